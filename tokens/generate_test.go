package tokens

import (
	"math/rand/v2"
	"strings"
)

// alphabets are what generated texts are made of: characters that sit at the
// edges of the patterns' classes, and fragments that trigger their branches.
var alphabets = [][]string{
	strings.Split("abcdefghijklmnopqrstuvwxyzeeeeaaaooottss", ""),
	strings.Split("ABCDEFGHIJKLMNOPQRSTUVWXYZ", ""),
	strings.Split("aAbBzZ'' ", ""),
	strings.Split("0123456789٠١٢一二Ⅷ½²", ""),
	strings.Split(" \t\n\r\v\f\u0085\u00a0\u2003\u2028\u3000", ""),
	{" ", " ", "\n", "\r\n", "  ", "\n ", " \n", "\t", "a"},
	strings.Split(".,;:!?-_()[]{}<>/\\|@#$%^&*+=~`\"'", ""),
	{"/", "//", "\n", "\r", "*/", "a", ".", " "},
	{"'s", "'S", "'t", "'T", "'re", "'RE", "'rE", "'ve", "'VE", "'m", "'M", "'ll", "'LL", "'Ll", "'d", "'D", "'", "'l", "'r", "'v", "’s", "'x", "''s", "don", "I", "we", "ſ", "K"},
	strings.Split("äöüßéèêñçøåÄÖÜÉÑØÅŒœšžŠŽłŁ", ""),
	strings.Split("абвгдежзийклмнопАБВГДЕЖЗ", ""),
	strings.Split("αβγδεζηθάέήΑΒΓΔΕΆ", ""),
	strings.Split("的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年", ""),
	strings.Split("あいうえおかきくけこアイウエオカキクケコーっッ々", ""),
	strings.Split("안녕하세요가나다라마바사한국어", ""),
	strings.Split("ابتثجحخدذرزسشصضطظعغفقكلمنهويةىءأإ\u064b\u064e\u0651ـ", ""),
	strings.Split("אבגדהוזחטיכלמנסעפצקרשתםןץ\u05b0\u05b8\u05bc", ""),
	strings.Split("कखगघचजटडतदनपबमयरलवशसह\u093e\u093f\u0940\u0941\u0947\u094b\u094d\u0902", ""),
	strings.Split("กขคงจชซดตทนบปพมยรลวสหอะ\u0e31าำ\u0e34\u0e35\u0e38เแโ\u0e48\u0e49", ""),
	strings.Split("ăâđêôơưáàảãạếềểễệ", ""),
	{"😀", "🎉", "👩\u200d💻", "👨\u200d👩\u200d👧\u200d👦", "🇩🇪", "👍🏽", "❤\ufe0f", "☃", "\u200d", "\ufe0f"},
	{"\u0301", "\u0308", "\u20e3", "\u0300\u0301", "e", "A", "a\u0301", "A\u030a", "\u0903"},
	{"ʰ", "ˈ", "ǅ", "ǈ", "ª", "º", "Ａ", "ａ", "ǆ", "ß", "ẞ", "A", "b", "中", "\u0301"},
	{"\x00", "\x01", "\x07", "\x1b", "\x7f", "\u200b", "\u2060", "\ufeff", "\ufffd", "\U000e0001", "\U0010ffff", "\ue000"},
	{"func ", "return", "if err != nil {\n\t\t", "}\n", "();", "->", "::", "&&", "0x1F", "//", "/* ", "\t", "var x = ", "==", "!="},
	{"{\"", "\": ", "\", \"", "null", "true", "[", "]", "}", ",\n  ", "1.5e-3"},
	{"the ", "of ", "and ", "token", "ization", " un", "believ", "able", " Straßen", "bahn", "https://", "www.", ".com/", "?q=", "%20", "# ", "- ", "**", "```"},
	{"<|endoftext|>", "<|im_start|>", "<|fim_prefix|>", "<|", "|>", "endoftext"},
}

// invalid are fragments of broken UTF-8.
var invalid = []string{"\xff", "\xc5", "\xe4\xb8", "\xf0\x9f\x98", "\x80", "\xed\xa0\x80", "\xc0\xaf", "a", " ", "'", "é", "中"}

// generate returns a text of up to limit fragments. Texts stay short: the
// oracle merges long pieces in quadratic time.
func generate(r *rand.Rand, limit int) string {
	var b strings.Builder
	n := 1 + r.IntN(limit)
	switch r.IntN(20) {
	case 0: // any characters at all
		for range n {
			b.WriteRune(rune(r.IntN(0x3000)))
		}
		return b.String()
	case 1: // runs
		for range 1 + n/8 {
			a := alphabets[r.IntN(len(alphabets))]
			b.WriteString(strings.Repeat(a[r.IntN(len(a))], 1+r.IntN(12)))
		}
		return b.String()
	case 2:
		for range n {
			b.WriteString(invalid[r.IntN(len(invalid))])
		}
		return b.String()
	}
	stay := []int{1, 3, 10}[r.IntN(3)] // how long one alphabet is kept, on average
	a := alphabets[r.IntN(len(alphabets))]
	for range n {
		if r.IntN(stay) == 0 {
			a = alphabets[r.IntN(len(alphabets))]
		}
		b.WriteString(a[r.IntN(len(a))])
	}
	return b.String()
}
