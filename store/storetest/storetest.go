// Package storetest is the suite that every store passes: black-box tests of
// what the interfaces of package store promise, each named by the interface and
// the behaviour.
package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// Backend makes the stores under test.
type Backend struct {
	// Open returns an empty store, which tells the time by now. It is closed
	// by a Cleanup of t; closing it twice must do no harm.
	Open func(t *testing.T, now func() time.Time) store.Store
	// Reopen closes a store that Open returned and opens it again, with what
	// it holds. Where it is nil, durability isn't tested.
	Reopen func(t *testing.T, s store.Store, now func() time.Time) store.Store
	// Dump returns all that a store holds, names of keys included, as it lies on its
	// server or disk. Where it is nil, what is left after a deletion isn't tested.
	Dump func(t *testing.T, s store.Store) []string
	// ServerClock says that sessions end by a clock that the suite can't set.
	ServerClock bool
	// Without names the parts of the suite that are left out, such as those of
	// search where a server has none.
	Without []string
}

// part is a part of the suite.
type part = func(*testing.T, Backend)

// suite is what is tested, by the interface that promises it.
var suite = []struct {
	name  string
	has   func(store.Store) bool
	parts map[string]part
}{
	{"Store", is[store.Store], map[string]part{
		"Limiter":  testLimiter,
		"Gather":   testGather,
		"Append":   testAppend,
		"Bytes":    testBytes,
		"Conflict": testConflict,
		"Expiry":   testExpiry,
		"Deletion": testDeletion,
		"Sessions": testSessions,
		"Names":    testNames,
		"Scopes":   testScopes,
		"Contexts": testContexts,
		"Closing":  testClosing,
	}},
	{"Keys", is[store.Keys], map[string]part{"Keys": testKeys}},
	{"Usage", is[store.Usage], map[string]part{"Usage": testUsage}},
	{"Tenants", func(s store.Store) bool { return is[store.Tenants](s) && is[store.Keys](s) && is[store.Usage](s) }, map[string]part{"Tenants": testTenants, "Erasure": testErasure}},
	{"Importer", is[store.Importer], map[string]part{"Import": testImport, "ExpiryOfImports": testExpiryOfImports}},
	{"Vectors", is[store.Vectors], map[string]part{"Vectors": testVectors}},
	{"Files", is[store.Files], map[string]part{"Files": testFiles, "Originals": testOriginals, "Totals": testTotals, "Known": testKnownFiles, "Reembedder": testReembedder}},
	{"Searcher", is[store.Searcher], map[string]part{
		"Chunks":      testChunks,
		"Text":        testText,
		"Vector":      testVector,
		"Reembedding": testReembedding,
		"Recall":      testRecall,
	}},
}

func is[T any](s store.Store) bool {
	_, ok := s.(T)
	return ok
}

// Run tests a store: of each interface of package store, whether it keeps what
// that promises. What it doesn't implement stands in the output as skipped.
func Run(t *testing.T, b Backend) {
	var s store.Store
	t.Run("Abilities", func(t *testing.T) { s = b.Open(t, time.Now) })
	if s == nil {
		t.Fatal("there is no store to be tested")
	}
	for _, ability := range suite {
		t.Run(ability.name, func(t *testing.T) {
			if !ability.has(s) {
				t.Skip("not implemented: this store is no store." + ability.name)
			}
			for name, test := range ability.parts {
				t.Run(name, func(t *testing.T) {
					if slices.Contains(b.Without, name) {
						t.Skip("left out for this store")
					}
					test(t, b)
				})
			}
		})
	}
}

// The interfaces by names that aren't those of their methods.
type (
	keyStore    = store.Keys
	usageStore  = store.Usage
	tenantStore = store.Tenants
	importer    = store.Importer
	vectorStore = store.Vectors
	fileStore   = store.Files
	searcher    = store.Searcher
)

// fixture is an empty store with a clock of its own. What the store doesn't
// implement is nil.
type fixture struct {
	store.Store
	keyStore
	usageStore
	tenantStore
	importer
	vectorStore
	fileStore
	searcher

	*testing.T
	backend Backend
	clock   *clock
}

func (b Backend) fixture(t *testing.T) *fixture {
	t.Helper()
	c := &clock{t: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	f := &fixture{T: t, backend: b, clock: c}
	f.use(b.Open(t, c.now))
	return f
}

func (f *fixture) use(s store.Store) {
	f.Store = s
	f.keyStore, _ = s.(store.Keys)
	f.usageStore, _ = s.(store.Usage)
	f.tenantStore, _ = s.(store.Tenants)
	f.importer, _ = s.(store.Importer)
	f.vectorStore, _ = s.(store.Vectors)
	f.fileStore, _ = s.(store.Files)
	f.searcher, _ = s.(store.Searcher)
}

// each runs subtests, each with an empty store.
func (b Backend) each(t *testing.T, tests map[string]func(*fixture)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(b.fixture(t)) })
	}
}

// reopen closes the store and opens it again.
func (f *fixture) reopen() {
	f.Helper()
	if f.backend.Reopen == nil {
		f.Skip("this store can't be reopened")
	}
	f.use(f.backend.Reopen(f.T, f.Store, f.clock.now))
}

// ok ends the test if err is one.
func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// clock is a time that only moves when it is told to.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// of is the scope of a tenant.
func of(tenant string) store.Scope { return store.Scope{Tenant: tenant} }

// generous is a limit that isn't what a test is about.
const generous = 1_000_000

func (f *fixture) gather(tenant, session string, tokens, messages int) store.Gathered {
	f.Helper()
	g, err := f.Gather(context.Background(), store.GatherRequest{
		Scope: of(tenant), Limit: generous, Session: session, Tokens: tokens, Messages: messages,
	})
	f.ok(err)
	return g
}

// all gathers the whole session.
func (f *fixture) all(tenant, session string) store.Gathered {
	f.Helper()
	return f.gather(tenant, session, generous, generous)
}

// save appends an exchange at the session's end.
func (f *fixture) save(tenant, session string, e store.Exchange) int64 {
	f.Helper()
	f.clock.advance(time.Millisecond)
	seq, err := f.Append(context.Background(), store.Append{
		Scope: of(tenant), Session: session, Exchange: e, Mark: f.gather(tenant, session, 0, 0).Mark,
	})
	f.ok(err)
	return seq
}

// turn is an exchange of a question and an answer of 10 tokens each.
func turn(id string) store.Exchange {
	return exchange(id, 10, 10)
}

// exchange has a message for each number of tokens.
func exchange(id string, tokens ...int) store.Exchange {
	e := store.Exchange{
		ID:      id,
		Created: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC),
		Model:   "openai/gpt-5-mini",
		Finish:  "stop",
	}
	for i, n := range tokens {
		role := []string{"user", "assistant"}[i%2]
		m := store.Message{JSON: fmt.Appendf(nil, `{"role":%q,"content":"%s, message %d"}`, role, id, i), Tokens: n}
		copy(m.Digest[:], fmt.Sprintf("%s/%d", id, i))
		e.Messages = append(e.Messages, m)
	}
	return e
}

// ids lists the exchanges' IDs, separated by spaces.
func ids(list []store.Exchange) string {
	var all []string
	for _, e := range list {
		all = append(all, e.ID)
	}
	return strings.Join(all, " ")
}
