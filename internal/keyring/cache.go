package keyring

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/backstory-proxy/backstory/store"
)

// trusted is how long a key that the store knows is trusted: a revocation
// takes effect everywhere after that time.
const trusted = 10 * time.Second

// size bounds the memory for known keys.
const size = 10_000

// cache remembers keys that the store knows, each for trusted. (The
// library's own cache of that kind keeps a goroutine that nothing ends: one
// more with every reload.)
type cache struct {
	*lru.Cache[[32]byte, cachedKey]
}

type cachedKey struct {
	store.Key
	until time.Time
}

func newCache() *cache {
	keys, _ := lru.New[[32]byte, cachedKey](size) // its only error: not a positive size
	return &cache{keys}
}

func (c *cache) get(digest [32]byte) (store.Key, bool) {
	known, ok := c.Get(digest)
	if !ok || time.Now().After(known.until) {
		return store.Key{}, false
	}
	return known.Key, true
}

func (c *cache) add(digest [32]byte, key store.Key) {
	c.Add(digest, cachedKey{key, time.Now().Add(trusted)})
}
