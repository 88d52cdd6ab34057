package openai

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// deltaText is the text of a delta. A router that cuts text by UTF-16 units, as
// JavaScript does, may end one delta with the first half of a character and
// begin the next one with the second: "\ud83d", "\ude00". A half at either end
// is kept as the three bytes that UTF-8 would have for it, so that joinText
// can put both together.
func deltaText(d gjson.Result) string {
	const escape = len(`\ud83d`)
	if len(d.Raw) < escape+2 || strings.IndexByte(d.Raw, '\\') < 0 {
		return d.Str
	}
	body, first, last := d.Raw[1:len(d.Raw)-1], "", ""
	if r := escaped(body[:escape]); r >= 0xdc00 && r < 0xe000 {
		first, body = half(r), body[escape:]
	}
	if n := len(body) - escape; n >= 0 {
		ahead := body[:n]
		backslashes := n - len(strings.TrimRight(ahead, `\`))
		if r := escaped(body[n:]); r >= 0xd800 && r < 0xdc00 && backslashes%2 == 0 {
			last, body = half(r), ahead
		}
	}
	if first == "" && last == "" {
		return d.Str
	}
	return first + gjson.Parse(`"`+body+`"`).Str + last
}

// escaped is the unit that an escape such as \ud83d stands for, or 0.
func escaped(s string) rune {
	hex, ok := strings.CutPrefix(s, `\u`)
	n, err := strconv.ParseUint(hex, 16, 16)
	if !ok || err != nil {
		return 0
	}
	return rune(n)
}

// half is one half of a character, in three bytes.
func half(r rune) string {
	return string([]byte{0xe0 | byte(r>>12), 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f})
}

// joinText puts s behind b, and the halves of a character between them
// together.
func joinText(b []byte, s string) []byte {
	const size = 3 // of a half
	if n := len(b) - size; n >= 0 && len(s) >= size && b[n] == 0xed && s[0] == 0xed {
		unit := func(p string) rune { return 0xd000 | rune(p[1]&0x3f)<<6 | rune(p[2]&0x3f) }
		if r := utf16.DecodeRune(unit(string(b[n:])), unit(s)); r != utf8.RuneError {
			return append(utf8.AppendRune(b[:n], r), s[size:]...)
		}
	}
	return append(b, s...)
}

// withoutHalves puts the replacement character, which has as many bytes, in the
// place of halves that stayed alone.
func withoutHalves(b []byte) []byte {
	whole := b
	for i := 0; i+2 < len(b); i++ {
		if b[i] != 0xed || b[i+1] < 0xa0 || b[i+2] < 0x80 {
			continue
		}
		if &whole[0] == &b[0] { // which may yet be continued
			whole = bytes.Clone(b)
		}
		copy(whole[i:], "\ufffd")
	}
	return whole
}
