package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/memory/recall"
	"github.com/backstory-proxy/backstory/store"
)

// fakeLog is a session's log in memory. It counts how often it is read.
type fakeLog struct {
	list  []store.Exchange
	reads int
	hold  chan struct{} // where set, reading waits for it
	err   error
	kept  vectorStore
}

func (b *fakeLog) Exchanges(ctx context.Context, _ store.Scope, _ string, after int64, limit int, _ store.Order) ([]store.Exchange, error) {
	b.reads++
	if b.hold != nil {
		<-b.hold
	}
	if b.err != nil {
		return nil, b.err
	}
	i := slices.IndexFunc(b.list, func(e store.Exchange) bool { return e.Seq > after })
	if i < 0 {
		return nil, ctx.Err()
	}
	return b.list[i:min(i+limit, len(b.list))], ctx.Err()
}

// write adds an exchange of what a user and the assistant say.
func (b *fakeLog) write(user, assistant string) {
	e := store.Exchange{ID: fmt.Sprint("e", len(b.list)), Seq: int64(len(b.list) + 1), Created: time.Date(2026, 1, 1, 0, len(b.list), 0, 0, time.UTC)}
	for _, json := range []string{fmt.Sprintf(`{"role":"user","content":%q}`, user), fmt.Sprintf(`{"role":"assistant","content":%q}`, assistant)} {
		e.Messages = append(e.Messages, store.Message{JSON: []byte(json), Tokens: 10})
	}
	b.list = append(b.list, e)
}

// topThree takes the best three.
func topThree(r *recall.Ranking) (hits []recall.Hit) {
	r.Matches(func(h recall.Hit) bool { hits = append(hits, h); return len(hits) < 3 })
	return hits
}

// nobody pins anything.
func nobody(string) bool { return false }

// gathered is what a request sees of the log: the last n exchanges.
func (b *fakeLog) gathered(n int) *store.Gathered {
	return &store.Gathered{Tail: b.list[max(0, len(b.list)-n):], Mark: store.Mark{Seq: b.list[len(b.list)-1].Seq}}
}

func aboutZebras(n int) *fakeLog {
	b := &fakeLog{}
	for i := range n {
		b.write(fmt.Sprintf("something else, number %d", i), "I see.")
	}
	b.list[2].Messages[0].JSON = []byte(`{"role":"user","content":[{"type":"text","text":"My zebra is called Zoe."}]}`)
	return b
}

// best is the Seq of the best hit for a text; 0 where nothing is about it.
func best(t *testing.T, r *memory.Recaller, g *store.Gathered, text string) int64 {
	t.Helper()
	hits, err := r.Search(t.Context(), store.Scope{Tenant: "a"}, "s", g, recall.Query{Text: text}, nil, time.Minute, topThree)
	if err != nil {
		t.Fatal(err)
	}
	if len(hits) == 0 || hits[0].Score == 0 {
		return 0
	}
	return hits[0].Seq
}

func TestRecallerReadsASessionOnce(t *testing.T) {
	b := aboutZebras(1200) // three pages
	r := memory.NewRecaller(b, 1<<30, nobody)
	if got := best(t, r, b.gathered(5), "what is my zebra called"); got != 3 {
		t.Errorf("found %d", got)
	}
	reads := b.reads
	b.write("My giraffe is called Gus.", "Nice.")
	if got := best(t, r, b.gathered(5), "the name of the giraffe?"); got != 1201 {
		t.Errorf("found %d", got)
	}
	if b.reads != reads {
		t.Error("what was gathered was read again")
	}
	for range 10 { // more than the next request gathers
		b.write("filler", "filler")
	}
	b.write("My hippo is called Hugo.", "Nice.")
	for range 10 {
		b.write("filler", "filler")
	}
	if got := best(t, r, b.gathered(5), "the name of the hippo?"); got != 1212 {
		t.Errorf("found %d", got)
	}
}

// heldLog counts how many are reading it, and lets nobody go on until it is released.
type heldLog struct {
	*fakeLog
	reading atomic.Int64
	release chan struct{}
}

func (l *heldLog) Exchanges(ctx context.Context, scope store.Scope, session string, after int64, limit int, order store.Order) ([]store.Exchange, error) {
	l.reading.Add(1)
	<-l.release
	return slices.Clone(l.list[after:min(after+int64(limit), int64(len(l.list)))]), ctx.Err()
}

func TestFewSessionsAreReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions, atOnce = 9, 4
		l := &heldLog{fakeLog: aboutZebras(10), release: make(chan struct{})}
		r := memory.NewRecaller(l, 1<<30, nobody)
		search := func(i int) ([]recall.Hit, error) {
			return r.Search(t.Context(), store.Scope{Tenant: "a"}, fmt.Sprint(i), l.gathered(2), recall.Query{Text: "zebra"}, nil, time.Second, topThree)
		}
		for i := range sessions {
			if _, err := search(i); err == nil {
				t.Error("a session that isn't read was searched")
			}
		}
		synctest.Wait()
		if n := l.reading.Load(); n != atOnce {
			t.Errorf("%d sessions are read at once, want %d", n, atOnce)
		}
		close(l.release)
		synctest.Wait()
		for i := range sessions { // those that waited were read in their turn
			if hits, err := search(i); err != nil || len(hits) == 0 || hits[0].Seq != 3 {
				t.Errorf("session %d: %v, %v", i, hits, err)
			}
		}
	})
}

func TestDaysAreThoseOfUTC(t *testing.T) {
	b := &fakeLog{}
	b.write("we baked bread", "Nice.")
	b.write("we baked rolls", "Nice.")
	for i := range b.list {
		b.list[i].Created = time.Date(2026, 1, 2+i, 12, 0, 0, 0, time.UTC).In(time.FixedZone("", 14*60*60))
	}
	now := time.Date(2026, 1, 4, 4, 0, 0, 0, time.UTC).In(time.FixedZone("", -8*60*60))
	hits, err := memory.NewRecaller(b, 1<<30, nobody).Search(t.Context(), store.Scope{Tenant: "a"}, "s", b.gathered(2),
		recall.Query{Text: "What did we bake yesterday?", Now: now}, nil, time.Minute, topThree)
	if err != nil || len(hits) == 0 || hits[0].Seq != 2 {
		t.Errorf("found %+v, %v", hits, err)
	}
}

func TestRecallerForgets(t *testing.T) {
	const question = "what is my zebra called"
	b := aboutZebras(10)
	r := memory.NewRecaller(b, 1<<30, nobody)
	if got := best(t, r, b.gathered(10), question); got != 3 {
		t.Fatalf("found %d", got)
	}
	t.Run("what was replaced", func(t *testing.T) {
		b.list = slices.Delete(b.list, 2, 3)
		if got := best(t, r, b.gathered(9), question); got == 3 {
			t.Error("the exchange that was replaced is found")
		}
	})
	t.Run("a session that was deleted", func(t *testing.T) {
		b = &fakeLog{}
		b.write("My zebra is called Zed.", "Nice.")
		r := memory.NewRecaller(b, 1<<30, nobody)
		best(t, r, b.gathered(1), question)
		b.list = nil
		b.write("hello", "hello")
		g := b.gathered(1)
		g.Mark.Epoch = 1
		if got := best(t, r, g, question); got != 0 {
			t.Error("what was deleted is found")
		}
	})
	t.Run("a session that began anew when its time was up", func(t *testing.T) {
		b := aboutZebras(10)
		r := memory.NewRecaller(b, 1<<30, nobody)
		best(t, r, b.gathered(10), question)
		b.list = nil
		for i := range 4 {
			b.write("hello", "hello")
			b.list[i].ID = fmt.Sprint("another ", i)
		}
		if got := best(t, r, b.gathered(4), question); got != 0 {
			t.Error("what is gone is found")
		}
	})
	t.Run("hidden exchanges and what isn't said in words", func(t *testing.T) {
		b := aboutZebras(3)
		b.list[2].Hidden = true
		b.list[1].Messages[0].JSON = []byte(`{"role":"tool","tool_call_id":"1","content":"the zebra is called Zack"}`)
		if got := best(t, memory.NewRecaller(b, 1<<30, nobody), b.gathered(1), question); got != 0 {
			t.Errorf("found %d", got)
		}
	})
}

func TestRecallerKeepsToItsMemory(t *testing.T) {
	b := aboutZebras(100)
	r := memory.NewRecaller(b, 128<<10, nobody) // room for a few of them
	reads := func(session string) int {
		before := b.reads
		if _, err := r.Search(t.Context(), store.Scope{Tenant: "a"}, session, b.gathered(5), recall.Query{Text: "zebra"}, nil, time.Minute, topThree); err != nil {
			t.Fatal(err)
		}
		return b.reads - before
	}
	reads("s")
	if n := reads("s"); n != 0 {
		t.Errorf("read %d times again", n)
	}
	for i := range 20 {
		reads(fmt.Sprint("another ", i))
	}
	if n := reads("another 19"); n != 0 {
		t.Errorf("the last one: read %d times again", n)
	}
	if reads("s") == 0 {
		t.Error("the least recently used session is still there")
	}
}

func TestOfASessionThatIsTooLongTheNewerPartIsSearched(t *testing.T) {
	b := &fakeLog{}
	long := func(n int) {
		for i := range n {
			b.write(fmt.Sprintf("My parrot number%d says word%da word%db word%dc word%dd", len(b.list), i, i, i, i), "I see.")
		}
	}
	long(1200)
	r := memory.NewRecaller(b, 256<<10, nobody)
	ask := func(n int) bool { return best(t, r, b.gathered(5), fmt.Sprintf("number%d", n)) == int64(n+1) }
	if ask(3) || !ask(1180) {
		t.Errorf("the beginning is found: %v, the end: %v", ask(3), ask(1180))
	}
	for range 400 { // request by request, the index outgrows its part again
		long(2)
		if n := len(b.list) - 8; !ask(n) {
			t.Fatalf("number %d isn't found", n)
		}
	}
	if n := len(b.list) - 100; !ask(n) || ask(1180) {
		t.Errorf("number %d is found: %v, number 1180: %v", n, ask(n), ask(1180))
	}
	// What there is room for is read once.
	reads := b.reads
	for range 10 {
		ask(len(b.list) - 20)
	}
	if b.reads != reads {
		t.Errorf("read %d times again", b.reads-reads)
	}
}

func TestRecallerDoesNotHoldUpARequest(t *testing.T) {
	b := aboutZebras(10)
	b.hold = make(chan struct{})
	r := memory.NewRecaller(b, 1<<30, nobody)
	for range 2 { // the one that reads, and one that would wait for it
		if _, err := r.Search(t.Context(), store.Scope{Tenant: "a"}, "s", b.gathered(5), recall.Query{Text: "zebra"}, nil, time.Millisecond, topThree); err == nil {
			t.Fatal("an index that isn't read was searched")
		}
	}
	close(b.hold)
	if got := best(t, r, b.gathered(5), "what is my zebra called"); got != 3 {
		t.Errorf("found %d", got)
	}
	if b.reads != 1 {
		t.Errorf("read %d times, want once", b.reads)
	}
}

func TestRecallerTellsOfFailures(t *testing.T) {
	b := aboutZebras(10)
	b.err = errors.New("the disk is on fire")
	r := memory.NewRecaller(b, 1<<30, nobody)
	if _, err := r.Search(t.Context(), store.Scope{Tenant: "a"}, "s", b.gathered(5), recall.Query{Text: "zebra"}, nil, time.Minute, topThree); !errors.Is(err, b.err) {
		t.Errorf("got %v", err)
	}
	b.err = nil
	if got := best(t, r, b.gathered(5), "what is my zebra called"); got != 3 {
		t.Errorf("found %d", got)
	}
}
