package recall

import (
	"hash/maphash"
	"sync"

	"github.com/backstory-proxy/backstory/knowledge/terms"
	"github.com/backstory-proxy/backstory/memory/recall/internal/wordvec"
)

// seed makes the hashes of terms unpredictable, so that nobody can choose words that
// collide.
var seed = maphash.MakeSeed()

// wordInfo is what indexing needs to know of a word.
type wordInfo struct {
	hash   uint64 // of its stem
	stop   bool   // it is a stop word, and not indexed
	time   bool   // it names a time
	vector wordvec.ID
}

// analyse computes the wordInfo of a word.
func analyse(w string) wordInfo {
	stem := terms.Stem(w)
	return wordInfo{hash: maphash.String(seed, stem), stop: terms.Stop(w), time: isTime(w), vector: wordvec.Find(stem)}
}

// wordCache remembers words. Most of a text are the same few hundred, and the cache
// halves the time of indexing. It copies words, so that it keeps no text in memory.
type wordCache [4096]struct {
	text [23]byte
	size uint8
	wordInfo
}

var wordCaches = sync.Pool{New: func() any { return new(wordCache) }}

func (c *wordCache) analyse(w string) wordInfo {
	e := &c[maphash.String(seed, w)%uint64(len(c))]
	if len(w) > len(e.text) {
		return analyse(w)
	}
	if string(e.text[:e.size]) != w {
		e.wordInfo = analyse(w)
		e.size = uint8(copy(e.text[:], w))
	}
	return e.wordInfo
}
