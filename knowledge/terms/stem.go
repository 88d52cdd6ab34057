package terms

import "bytes"

// Stem returns the stem of an English word as Porter's algorithm of 1980
// defines it, so that "painted", "painting" and "paints" are one. Words that
// hold anything but small letters of ASCII come back as they are. In other
// languages it does little harm as long as both sides go through it.
func Stem(word string) string {
	if len(word) < 3 || len(word) > maxRunes {
		return word
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	var buffer [maxRunes + 1]byte // one step adds a letter to what it has shortened
	s := stemmer(append(buffer[:0], word...))
	s.plural()
	s.past()
	if s.has("y") && s.vowel(len(s)-1) {
		s[len(s)-1] = 'i'
	}
	s.replace(0, doubleSuffixes)
	s.replace(0, suffixes)
	s.replace(1, lastSuffixes)
	s.final()
	if string(s) == word {
		return word
	}
	return string(s)
}

// stemmer is a word on its way to its stem.
type stemmer []byte

// suffix is an ending and what replaces it.
type suffix struct{ from, to string }

// The suffixes of Porter's steps 2, 3 and 4, by the letter before the last, as
// only few can match; within a letter, longer ones come first.
var (
	doubleSuffixes = byLetter("ational ate", "tional tion", "enci ence", "anci ance", "izer ize", "abli able",
		"alli al", "entli ent", "eli e", "ousli ous", "ization ize", "ation ate", "ator ate", "alism al",
		"iveness ive", "fulness ful", "ousness ous", "aliti al", "iviti ive", "biliti ble")
	suffixes     = byLetter("icate ic", "ative ", "alize al", "iciti ic", "ical ic", "ful ", "ness ")
	lastSuffixes = byLetter("al ", "ance ", "ence ", "er ", "ic ", "able ", "ible ", "ant ", "ement ", "ment ", "ent ",
		"ion ", "ou ", "ism ", "ate ", "iti ", "ous ", "ive ", "ize ")
)

func byLetter(pairs ...string) (t [26][]suffix) {
	for _, p := range pairs {
		from, to, _ := bytes.Cut([]byte(p), []byte(" "))
		i := from[len(from)-2] - 'a'
		t[i] = append(t[i], suffix{string(from), string(to)})
	}
	return t
}

// has reports whether the word ends so, with something before it.
func (s stemmer) has(end string) bool {
	return len(s) > len(end) && string(s[len(s)-len(end):]) == end
}

func (s *stemmer) cut(n int) { *s = (*s)[:len(*s)-n] }

// consonant reports whether the letter at i is one; y is after a vowel.
func (s stemmer) consonant(i int) bool {
	switch s[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !s.consonant(i-1)
	}
	return true
}

// vowel reports whether one of the first n letters is a vowel.
func (s stemmer) vowel(n int) bool {
	for i := range n {
		if !s.consonant(i) {
			return true
		}
	}
	return false
}

// measure counts the consonants (runs of them) that follow vowels within the
// first n letters: about the syllables.
func (s stemmer) measure(n int) int {
	m, vowel := 0, false
	for i := range n {
		c := s.consonant(i)
		if c && vowel {
			m++
		}
		vowel = !c
	}
	return m
}

// double reports whether the word ends in a consonant twice.
func (s stemmer) double() bool {
	n := len(s)
	return n > 1 && s[n-1] == s[n-2] && s.consonant(n-1)
}

// short reports whether the first n letters end consonant, vowel, consonant,
// the last not w, x or y: hop, but not how.
func (s stemmer) short(n int) bool {
	return n > 2 && s.consonant(n-1) && !s.consonant(n-2) && s.consonant(n-3) &&
		s[n-1] != 'w' && s[n-1] != 'x' && s[n-1] != 'y'
}

// plural is step 1a.
func (s *stemmer) plural() {
	switch {
	case s.has("sses"), s.has("ies"):
		s.cut(2)
	case s.has("ss"):
	case s.has("s"):
		s.cut(1)
	}
}

// past is step 1b: -eed, -ed, -ing.
func (s *stemmer) past() {
	switch {
	case s.has("eed"):
		if s.measure(len(*s)-3) > 0 {
			s.cut(1)
		}
		return
	case s.has("ed") && s.vowel(len(*s)-2):
		s.cut(2)
	case s.has("ing") && s.vowel(len(*s)-3):
		s.cut(3)
	default:
		return
	}
	switch last := (*s)[len(*s)-1]; {
	case s.has("at"), s.has("bl"), s.has("iz"):
		*s = append(*s, 'e')
	case s.double() && last != 'l' && last != 's' && last != 'z':
		s.cut(1)
	case s.measure(len(*s)) == 1 && s.short(len(*s)):
		*s = append(*s, 'e')
	}
}

// replace exchanges the first suffix that the word has, where what is before
// it has more than the measure.
func (s *stemmer) replace(measure int, t [26][]suffix) {
	if len(*s) < 3 {
		return
	}
	c := (*s)[len(*s)-2]
	if c < 'a' || c > 'z' {
		return
	}
	for _, x := range t[c-'a'] {
		if !s.has(x.from) {
			continue
		}
		n := len(*s) - len(x.from)
		if x.from == "ion" && (*s)[n-1] != 's' && (*s)[n-1] != 't' {
			return
		}
		if s.measure(n) > measure {
			*s = append((*s)[:n], x.to...)
		}
		return
	}
}

// final is step 5: a last e, and a double l.
func (s *stemmer) final() {
	if n := len(*s) - 1; s.has("e") {
		if m := s.measure(n); m > 1 || m == 1 && !s.short(n) {
			s.cut(1)
		}
	}
	if n := len(*s); s.has("l") && s.double() && s.measure(n-1) > 1 {
		s.cut(1)
	}
}
