package sqlite

import (
	"database/sql"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/backstory-proxy/backstory/store"
)

// cache keeps in memory what Gather answers with, so that most requests need no
// query: the tails of sessions, and what is known of tenants.
//
// It is right because it knows the state of the file that it agrees with, by
// the stamp that a watch reads there; each commit by anyone changes the stamp,
// before it is seen by anyone. What is read while the stamp is still the
// cache's can be neither outdated nor ahead of its time. The writer says when
// it is about to commit, and afterwards, before anyone is told that the write
// is done, what that has changed: the cache then agrees with the new stamp. Any
// other new stamp means that another store or another program has written, and
// empties the cache.
type cache struct {
	watch *watch
	limit int // bytes

	mu      sync.Mutex
	closed  bool
	entries *simplelru.LRU[cacheKey, *entry]
	size    int
	stamp   stamp // of the state that the entries are of
	writing bool  // a new stamp may be the writer's, which is going to tell
}

// cacheKey is a session, or its tenant where the session is empty.
type cacheKey struct {
	scope   store.Scope
	session string
}

// entry is what the cache keeps of a tenant or of a session.
type entry struct {
	size   int
	tenant tenantFacts
	tail   tail
	last   store.GatherRequest // what was last asked of the tail
}

// tenantFacts are what every request of a tenant is told.
type tenantFacts struct {
	epoch int64
	files bool
	month store.Month // whose usage is known; 0 where none is
	used  int64       // tokens in that month
}

// entrySize is about what an entry takes up besides its tail and its key.
const entrySize = 320

func newCache(w *watch, limit int) *cache {
	c := &cache{watch: w, limit: limit}
	// It is bounded by size, not by number.
	c.entries, _ = simplelru.NewLRU(math.MaxInt, func(k cacheKey, e *entry) { c.size -= e.size })
	return c
}

// look returns what the cache knows, at a time, of a request's tenant and session. Where
// that isn't all, it returns the stamp by which keep can tell whether what is
// then read from the file is still so.
func (c *cache) look(req *store.GatherRequest, at time.Time) (facts tenantFacts, t tail, found bool, now stamp, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now, err = c.refresh(); err != nil {
		return facts, t, false, now, err
	}
	if now != c.stamp {
		return facts, t, false, now, nil
	}
	known, ok := c.entries.Get(cacheKey{req.Scope, ""})
	if !ok || req.Month != 0 && req.Month != known.tenant.month {
		return facts, t, false, now, nil
	}
	if req.Session == "" {
		return known.tenant, t, true, now, nil
	}
	session, ok := c.entries.Get(cacheKey{req.Scope, req.Session})
	if !ok || session.tail.expires.Valid && session.tail.expires.Int64 <= at.UnixMilli() {
		return facts, t, false, now, nil
	}
	session.last = *req
	t = session.tail
	t.exchanges, ok = t.last(req)
	return known.tenant, t, ok, now, nil
}

// keep adds what was read for a request, if nobody has written since look
// returned the stamp: else it may be of any moment between the two.
func (c *cache) keep(req *store.GatherRequest, facts tenantFacts, t tail, before stamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now, err := c.refresh(); err != nil || now != before || now != c.stamp {
		return
	}
	// What a request didn't ask for, as plans without an allowance don't, is
	// still known from one that did.
	if known, ok := c.entries.Peek(cacheKey{req.Scope, ""}); ok && facts.month == 0 {
		facts.month, facts.used = known.tenant.month, known.tenant.used
	}
	c.put(cacheKey{req.Scope, ""}, &entry{tenant: facts})
	if req.Session != "" {
		c.put(cacheKey{req.Scope, req.Session}, &entry{tail: t, last: *req})
	}
}

// refresh reads the stamp, and empties the cache if somebody else has written.
func (c *cache) refresh() (stamp, error) {
	if c.closed {
		return stamp{}, errClosed
	}
	now, err := c.watch.stamp()
	if err == nil && now != c.stamp && !c.writing {
		c.entries.Purge()
		c.stamp = now
	}
	return now, err
}

// read reads the stamp and does nothing about it.
func (c *cache) read() (stamp, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch.stamp()
}

// begin says that the writer is about to write.
func (c *cache) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = true
}

// end says that the writer has written, to what effect, and that the file then
// had the stamp. Where it isn't certain that nobody else has written before the
// stamp was read, sure is false, and the cache starts anew.
func (c *cache) end(effects []effect, now stamp, sure bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = false
	c.stamp = now
	if !sure {
		c.entries.Purge()
		return
	}
	for _, apply := range effects {
		apply(c)
	}
}

// effect is what a write does to the cache once it is committed.
type effect func(*cache)

// forget is the effect of a write that changes what is known of a tenant or of
// a session.
func forget(scope store.Scope, session string) effect {
	return func(c *cache) { c.entries.Remove(cacheKey{scope, session}) }
}

// appended is the effect of an append.
func appended(scope store.Scope, session string, e store.Exchange, replaces int64, expires sql.NullInt64) effect {
	return func(c *cache) {
		k := cacheKey{scope, session}
		known, ok := c.entries.Peek(k)
		if !ok {
			return
		}
		if e.Seq != known.tail.seq+1 { // the sweep has removed the session that is known
			c.entries.Remove(k)
			return
		}
		t := known.tail.append(e, replaces)
		t.expires = expires
		// It needn't be longer than what is asked of it, but to shorten it
		// every time would be to copy it every time.
		if last, _ := t.last(&known.last); len(t.exchanges) > 2*len(last) {
			t.exchanges, t.whole = append([]store.Exchange(nil), last...), false
		}
		c.put(k, &entry{tail: t, last: known.last})
	}
}

// used is the effect of adding to what a tenant has used.
func used(scope store.Scope, u store.Used) effect {
	return func(c *cache) {
		if known, ok := c.entries.Peek(cacheKey{scope, ""}); ok && known.tenant.month == u.Month {
			known.tenant.used += u.Tokens
		}
	}
}

// put adds or replaces an entry, and makes room for it.
func (c *cache) put(k cacheKey, e *entry) {
	c.entries.Remove(k)
	if e.size = entrySize + len(k.scope.Tenant) + len(k.session) + e.tail.size(); e.size > c.limit {
		return
	}
	c.size += e.size
	c.entries.Add(k, e)
	for c.size > c.limit {
		c.entries.RemoveOldest()
	}
}

func (c *cache) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.entries.Purge()
	return c.watch.close()
}
