package tokens

import (
	_ "embed"
	"sync"
	"unicode/utf8"
	"unsafe"
)

// Encoding counts tokens of one vocabulary. Get one from O200K or CL100K.
type Encoding struct {
	name  string
	split splitter
	vocab *vocab
}

// O200K returns o200k_base: GPT-4o, 4.1, 4.5, 5, the o series and gpt-oss. It
// is loaded on first use, which takes some 10 ms and 8 MB.
func O200K() *Encoding { return o200k() }

// CL100K returns cl100k_base: GPT-4, GPT-3.5 and the text-embedding models. It
// is loaded on first use, which takes some 4 ms and 4 MB.
func CL100K() *Encoding { return cl100k() }

// The vocabularies, as OpenAI publishes them; the command in gen makes the files.
var (
	//go:embed o200k_base.bin
	fileO200K string
	//go:embed cl100k_base.bin
	fileCL100K string
)

var (
	o200k = sync.OnceValue(func() *Encoding {
		return &Encoding{name: "o200k_base", split: splitO200K, vocab: newVocab(fileO200K, 19)}
	})
	cl100k = sync.OnceValue(func() *Encoding {
		return &Encoding{name: "cl100k_base", split: splitCL100K, vocab: newVocab(fileCL100K, 18)}
	})
)

// Name returns the encoding's published name, for example "o200k_base".
func (e *Encoding) Name() string { return e.name }

// Count returns the number of tokens of text.
func (e *Encoding) Count(text string) int {
	s := newScanner(e.split, text)
	var w workspace
	n := 0
	for s.next() {
		n += e.piece(&s, &w)
	}
	return n
}

// piece counts the tokens of the scanner's current piece.
func (e *Encoding) piece(s *scanner, w *workspace) int {
	if !s.valid && !utf8.ValidString(s.text[s.start:s.end]) {
		return e.repaired(w, s.text[s.start:s.end])
	}
	return e.merge(w, s.text, s.start, s.end)
}

// merge counts the tokens of the piece text[i:j].
func (e *Encoding) merge(w *workspace, text string, i, j int) int {
	if j-i == 1 {
		return 1 // every byte is a token
	}
	if e.vocab.rank(text, i, j) != noRank {
		return 1
	}
	if j-i <= maxShort {
		return e.vocab.mergeShort(w, text, i, j)
	}
	sc := scratches.Get().(*scratch)
	n := e.vocab.mergeLong(sc, text[i:j])
	sc.release()
	return n
}

// repaired counts a piece that isn't valid UTF-8, each of whose invalid bytes
// stands for U+FFFD.
func (e *Encoding) repaired(w *workspace, piece string) int {
	sc := scratches.Get().(*scratch)
	sc.text = sc.text[:0]
	for _, r := range piece { // ranging yields U+FFFD for each invalid byte
		sc.text = utf8.AppendRune(sc.text, r)
	}
	// merge doesn't keep the text, and sc stays ours until it has returned.
	n := e.merge(w, unsafe.String(unsafe.SliceData(sc.text), len(sc.text)), 0, len(sc.text))
	sc.release()
	return n
}
