package tokens

import (
	_ "embed"
	"sync"
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

// Count returns the number of tokens of text: exactly, unless it is so long that the
// number can't matter. See Tally.
func (e *Encoding) Count(text string) int {
	t := Tally{encoding: e}
	return t.Count(text)
}
