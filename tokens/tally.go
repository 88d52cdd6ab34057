package tokens

import (
	"unicode/utf8"
	"unsafe"
)

const (
	// maxPart is the length in bytes up to which a piece is merged as a whole. A
	// longer one, which no language has, is merged in parts of this length: the
	// memory that merging takes stays in the processor's cache, and Thai without a
	// single space counts .1 % more.
	maxPart = 4 << 10
	// maxMerged is how many bytes a Tally merges. That takes about a tenth of a second
	// for any text. All of Chinese is merged, of code a fifteenth, of English a
	// twentieth: 1 MB of Chinese has 280,000 tokens, 14 MB of code four million.
	// Beyond the context of a model a count need not be exact.
	maxMerged = 1 << 20
	// bytesPerToken is how many bytes of what isn't merged any more make a token at
	// most, whatever came before: 1 MB of spaces doesn't make all that follows cheap.
	bytesPerToken = 4
)

// Tally counts the texts of one request. Counting is exact until 1 MB of their bytes
// stood in pieces that aren't tokens. From then on such a piece is taken to have as
// many tokens for its length as those before it had together, and at least one for
// every 4 bytes. Pieces that are tokens count as ever.
//
// A Tally is not safe for concurrent use.
type Tally struct {
	encoding     *Encoding
	merged, made int // bytes that were merged, and the tokens that they made
}

// NewTally returns a Tally that has counted nothing.
func (e *Encoding) NewTally() *Tally { return &Tally{encoding: e} }

// Encoding is what it counts by.
func (t *Tally) Encoding() *Encoding { return t.encoding }

// Exact reports whether all that was counted was counted exactly.
func (t *Tally) Exact() bool { return t.merged < maxMerged }

// Count returns the number of tokens of text.
func (t *Tally) Count(text string) int {
	s := newScanner(t.encoding.split, text)
	var w workspace
	n := 0
	for s.next() {
		n += t.piece(&s, &w)
	}
	return n
}

// piece counts the tokens of the scanner's current piece.
func (t *Tally) piece(s *scanner, w *workspace) int {
	if s.end-s.start <= maxPart { // as nearly all
		return t.part(s, w, s.start, s.end)
	}
	n := 0
	for i := s.start; i < s.end; {
		j := partEnd(s.text, i, s.end)
		n += t.part(s, w, i, j)
		i = j
	}
	return n
}

// partEnd returns where the part of a piece that starts at i ends: between two
// characters.
func partEnd(text string, i, end int) int {
	j := i + maxPart
	if j >= end {
		return end
	}
	for k := j; k > j-utf8.UTFMax; k-- {
		if utf8.RuneStart(text[k]) {
			return k
		}
	}
	return j // no UTF-8
}

// part counts the tokens of a piece, or of a part of a long one.
func (t *Tally) part(s *scanner, w *workspace, i, j int) int {
	if !s.valid && !utf8.ValidString(s.text[i:j]) {
		return t.repaired(w, s.text[i:j])
	}
	return t.merge(w, s.text, i, j)
}

// merge counts the tokens of the part text[i:j].
func (t *Tally) merge(w *workspace, text string, i, j int) int {
	v := t.encoding.vocab
	if j-i == 1 {
		return 1 // every byte is a token
	}
	if v.rank(text, i, j) != noRank {
		return 1
	}
	if t.merged >= maxMerged {
		return max((j-i+bytesPerToken-1)/bytesPerToken, ((j-i)*t.made+t.merged/2)/t.merged)
	}
	n := 0
	if j-i <= maxShort {
		n = v.mergeShort(w, text, i, j)
	} else {
		sc := scratches.Get().(*scratch)
		n = v.mergeLong(sc, text[i:j])
		scratches.Put(sc)
	}
	t.merged += j - i
	t.made += n
	return n
}

// repaired counts a part that isn't valid UTF-8, each of whose invalid bytes stands
// for U+FFFD.
func (t *Tally) repaired(w *workspace, part string) int {
	sc := scratches.Get().(*scratch)
	sc.text = sc.text[:0]
	for _, r := range part { // ranging yields U+FFFD for each invalid byte
		sc.text = utf8.AppendRune(sc.text, r)
	}
	// merge doesn't keep the text, and sc stays ours until it has returned.
	n := t.merge(w, unsafe.String(unsafe.SliceData(sc.text), len(sc.text)), 0, len(sc.text))
	scratches.Put(sc)
	return n
}
