package terms

import "github.com/blevesearch/go-porterstemmer"

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
	return string(porterstemmer.StemWithoutLowerCasing([]rune(word)))
}
