package openai

import "unicode/utf8"

// escapes tells the ASCII characters that JSON has escaped in strings. We
// escape no others: it is the model's text, and longer for nothing.
var escapes = func() (t [utf8.RuneSelf]bool) {
	for c := range ' ' {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

// appendString appends s as a JSON string. What isn't UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0 // what stands behind it isn't copied yet
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf && !escapes[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			if c < utf8.RuneSelf {
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			} else {
				b = append(b, "\ufffd"...)
			}
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
