package recall

import (
	"hash/maphash"
	"sync"

	"github.com/backstory-proxy/backstory/knowledge/terms"
	"github.com/backstory-proxy/backstory/memory/recall/internal/wordvec"
)

// seed makes the hashes of terms unpredictable: nobody can choose words that
// collide.
var seed = maphash.MakeSeed()

// word is what is to be known of one that a text holds.
type word struct {
	hash   uint64 // of its stem
	stop   bool   // it isn't indexed
	time   bool   // it names a time
	vector wordvec.ID
}

// look works it out.
func look(w string) word {
	stem := terms.Stem(w)
	return word{hash: maphash.String(seed, stem), stop: terms.Stop(w), time: isTime(w), vector: wordvec.Find(stem)}
}

// cache remembers words, as most of a text are the same few hundred: indexing
// is twice as fast. It holds copies, so that it keeps no text alive.
type cache [4096]struct {
	text [23]byte
	size uint8
	word
}

var caches = sync.Pool{New: func() any { return new(cache) }}

func (c *cache) look(w string) word {
	e := &c[maphash.String(seed, w)%uint64(len(c))]
	if len(w) > len(e.text) {
		return look(w)
	}
	if string(e.text[:e.size]) != w {
		e.word = look(w)
		e.size = uint8(copy(e.text[:], w))
	}
	return e.word
}
