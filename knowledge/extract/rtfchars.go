package extract

import (
	"strconv"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// rtfSymbols are the control words that stand for text.
var rtfSymbols = map[string]string{
	"emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",
	"emspace": "\u2003", "enspace": "\u2002", "qmspace": "\u2005", "zwj": "\u200d", "zwnj": "\u200c",
}

// rtfCharsets are the code pages of Windows' character sets.
var rtfCharsets = map[int]int{
	0: 1252, 77: 10000, 128: 932, 129: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256,
	186: 1257, 204: 1251, 222: 874, 238: 1250, 254: 437, 255: 850,
}

// codePage returns a code page of Windows or DOS, or nil.
func codePage(n int) encoding.Encoding {
	switch n {
	case 437:
		return charmap.CodePage437
	case 850:
		return charmap.CodePage850
	case 852:
		return charmap.CodePage852
	case 866:
		return charmap.CodePage866
	case 10000:
		return charmap.Macintosh
	}
	name, ok := map[int]string{932: "shift_jis", 936: "gb18030", 949: "euc-kr", 950: "big5", 874: "windows-874", 65001: "utf-8"}[n]
	if !ok {
		name = "windows-" + strconv.Itoa(n)
	}
	e, err := htmlindex.Get(name)
	if err != nil {
		return nil
	}
	return e
}
