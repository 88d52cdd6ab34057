package gateway

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/backstory-proxy/backstory/store"
)

// keyCache remembers keys that the store knows, each for keyCacheTime. (The
// library's own cache of that kind keeps a goroutine that nothing ends: one
// more with every reload.)
type keyCache struct {
	*lru.Cache[[32]byte, cachedKey]
}

type cachedKey struct {
	store.Key
	until time.Time
}

func newKeyCache() *keyCache {
	keys, _ := lru.New[[32]byte, cachedKey](keyCacheSize) // its only error: not a positive size
	return &keyCache{keys}
}

func (c *keyCache) get(digest [32]byte) (store.Key, bool) {
	known, ok := c.Get(digest)
	if !ok || time.Now().After(known.until) {
		return store.Key{}, false
	}
	return known.Key, true
}

func (c *keyCache) add(digest [32]byte, key store.Key) {
	c.Add(digest, cachedKey{key, time.Now().Add(keyCacheTime)})
}
