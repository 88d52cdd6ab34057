package tokens

import lru "github.com/hashicorp/golang-lru/v2"

// Cache remembers the counts of texts that come again and again, such as the
// messages of a conversation, by a digest that the caller has computed anyway:
// a hit costs neither the counting nor the decoding of the text. It holds a
// bounded number of counts, the least recently used of which makes way. It is
// safe for concurrent use, and a nil Cache is one that remembers nothing.
type Cache struct {
	counts *lru.Cache[cacheKey, int]
}

// cacheKey is 24 bytes; with the list and the map around it an entry is some
// 150.
type cacheKey struct {
	encoding *Encoding
	digest   [16]byte
}

// NewCache returns a cache of at most the given number of counts, some 150
// bytes each. Of 0 or fewer it returns nil: no caching.
func NewCache(entries int) *Cache {
	counts, err := lru.New[cacheKey, int](entries)
	if err != nil { // its only error: not a positive size
		return nil
	}
	return &Cache{counts: counts}
}

// Count returns the number of tokens of the text that the digest stands for, in
// t's encoding. It calls text, and has t count it, only if it doesn't know the
// count; what t can't count exactly it doesn't keep. The digest must be of all of
// the text, and strong enough that nobody can choose two texts with the same one:
// a truncated SHA-256, or a keyed hash.
//
// Two calls at the same time may both count; neither waits for the other.
func (c *Cache) Count(t *Tally, digest [16]byte, text func() string) int {
	if c == nil {
		return t.Count(text())
	}
	key := cacheKey{t.encoding, digest}
	if n, ok := c.counts.Get(key); ok {
		return n
	}
	n := t.Count(text())
	if t.Exact() {
		c.counts.Add(key, n)
	}
	return n
}

// Len returns the number of counts held.
func (c *Cache) Len() int {
	if c == nil {
		return 0
	}
	return c.counts.Len()
}
