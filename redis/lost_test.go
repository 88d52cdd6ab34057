package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/store"
)

const march = store.Month(2026*12 + 2)

// A reply that is lost leaves it open whether the command was carried out.
// go-redis sends it again; that must change nothing.
func TestWhatIsSentAgainIsDoneOnce(t *testing.T) {
	var lose atomic.Bool
	errLost := errors.New("lost")
	p := startProxy(t, sharedServer(t).addr(), func(command value, forward func() (value, error)) (value, error) {
		reply, err := forward()
		if err == nil && command.name() == "EVALSHA" && lose.CompareAndSwap(true, false) {
			return value{}, errLost
		}
		return reply, err
	})
	s := openAt(t, p.url(), Options{Prefix: newPrefix(), unindexed: true})
	ctx := context.Background()
	losing := func(what string, f func() error) {
		t.Helper()
		lose.Store(true)
		if err := f(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if lose.Load() {
			t.Errorf("%s: no reply was lost", what)
		}
	}
	losing("append", func() error {
		seq, err := s.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: sample("e1"), Usage: store.Used{Month: march, Tokens: 7}, Anyway: true})
		if seq != 1 {
			t.Errorf("append returned %d", seq)
		}
		return err
	})
	losing("gather", func() error {
		g, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 10, Session: "s", Tokens: 1, Month: march})
		if len(g.Tail) != 1 || g.Rate.Remaining != 9 || g.Used != 7 {
			t.Errorf("gather returned %d exchanges, %+v, %d tokens", len(g.Tail), g.Rate, g.Used)
		}
		return err
	})
	losing("create a file", func() error {
		_, err := s.CreateFile(ctx, of("a"), store.File{ID: "f"}, strings.NewReader("x"))
		return err
	})
	losing("add chunks", func() error { return s.AddChunks(ctx, of("a"), "f", []store.Chunk{{N: 0}, {N: 1}}) })
	losing("finish a file", func() error { return s.FinishFile(ctx, of("a"), "f", store.FileProcessed, "") })
	if f, err := s.File(ctx, of("a"), "f"); err != nil || f.Chunks != 2 || f.Status != store.FileProcessed {
		t.Errorf("the file is %+v, %v", f, err)
	}
	losing("delete a file", func() error { return s.DeleteFile(ctx, of("a"), "f") })
}

// Two stores on one server, as two proxies have them.
func TestTwoStoresOnOneServer(t *testing.T) {
	const exchanges, workers, limit = 500, 4, 100
	prefix := newPrefix()
	var stores []*Store
	for range 2 {
		stores = append(stores, openAt(t, sharedServer(t).url(), Options{Prefix: prefix, unindexed: true}))
	}
	ctx := context.Background()
	var all sync.WaitGroup
	var allowed, next atomic.Int64
	for worker := range 2 * workers {
		s := stores[worker%2]
		all.Go(func() {
			for range limit / workers {
				r, err := s.Take(ctx, "limited", limit)
				if err != nil {
					t.Error(err)
				} else if r.Allowed {
					allowed.Add(1)
				}
			}
			for {
				i := next.Add(1)
				if i > exchanges {
					return
				}
				e := sample(fmt.Sprint("e", i))
				g, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 1 << 30, Session: "s"})
				if err == nil {
					d := memory.Draft{Exchange: e}
					_, err = d.Save(ctx, s, store.Append{Scope: of("a"), Session: "s", Mark: g.Mark})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if allowed.Load() != limit {
		t.Errorf("%d of %d were allowed, the limit is %d", allowed.Load(), 2*limit, limit)
	}
	list, err := stores[0].Exchanges(ctx, of("a"), "s", 0, 2*exchanges, store.Ascending)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for i, e := range list {
		seen[e.ID] = true
		if e.Seq != int64(i+1) || e.Offset != int64(400*i) || len(e.Messages) != 2 {
			t.Errorf("place %d has Seq %d, Offset %d and %d messages", i, e.Seq, e.Offset, len(e.Messages))
		}
	}
	if len(seen) != exchanges {
		t.Errorf("%d exchanges, want %d", len(seen), exchanges)
	}
}

// hands is a clock that is moved by hand.
type hands struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hands) read() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hands) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func TestWhatADeadProcessLeftIsFinished(t *testing.T) {
	clock := &hands{now: time.Now()}
	s := openAt(t, sharedServer(t).url(), Options{Prefix: newPrefix(), unindexed: true, Now: clock.read})
	ctx := context.Background()
	chunks := make([]store.Chunk, 150)
	for i := range chunks {
		chunks[i] = store.Chunk{N: i, Text: "x", Terms: "x"}
	}
	for _, id := range []string{"uploading", "abandoned", "deleted", "kept"} {
		f := store.File{ID: id, Name: id}
		_, err := s.CreateFile(ctx, of("a"), f, strings.NewReader(id))
		if err == nil {
			err = s.AddChunks(ctx, of("a"), id, chunks)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.FinishFile(ctx, of("a"), "kept", store.FileProcessed, ""); err != nil {
		t.Fatal(err)
	}
	// The deletion got as far as the first step.
	if err := s.note(ctx, of("a"), "deleted"); err != nil {
		t.Fatal(err)
	}
	keys := []string{
		s.layout.file(fileKey, of("a"), "deleted"), s.layout.file(goneKey, of("a"), "deleted"), s.layout.tenant(filesKey, of("a")), s.layout.tenant(sameKey, of("a")),
		s.layout.tenant(liveKey, of("a")), s.layout.tenant(darkKey, of("a")), s.layout.file(blobKey, of("a"), "deleted"),
		s.layout.tenant(totalsKey, of("a")),
	}
	if err := s.run(ctx, deleteFileScript, keys, "deleted", "deleted", "").Err(); err != nil {
		t.Fatal(err)
	}
	sweep := func() {
		t.Helper()
		if err := s.sweepOnce(ctx); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if left := len(keysLike(t, s, "chunk*deleted*")); left != len(chunks) {
		t.Errorf("a removal that may be under way was interfered with: %d chunks are left", left)
	}
	clock.advance(abandoned - time.Minute)
	if err := s.AddChunks(ctx, of("a"), "uploading", chunks[:1]); err != nil {
		t.Fatal(err)
	}
	if err := s.note(ctx, of("a"), "uploading"); err != nil { // its next step
		t.Fatal(err)
	}
	clock.advance(2 * time.Minute)
	sweep()
	for id, want := range map[string]int{"uploading": 150, "abandoned": 0, "deleted": 0, "kept": 150} {
		if left := len(keysLike(t, s, "chunk*:"+id+":*")); left != want {
			t.Errorf("%s has %d chunks left, want %d", id, left, want)
		}
	}
	if f, err := s.File(ctx, of("a"), "abandoned"); err != nil || f.Status != store.FileError || f.Reason != interrupted {
		t.Errorf("the abandoned file is %+v, %v", f, err)
	}
	if f, err := s.File(ctx, of("a"), "uploading"); err != nil || f.Status != store.FileUploaded {
		t.Errorf("the file being uploaded is %+v, %v", f, err)
	}
	dark, err := s.client.SMembers(ctx, s.layout.tenant(darkKey, of("a"))).Result()
	if err != nil || len(dark) != 1 {
		t.Errorf("dark are %q, %v", dark, err)
	}
}

func TestTheListOfSessionsIsRepaired(t *testing.T) {
	clock := &hands{now: time.Now()}
	s := openAt(t, sharedServer(t).url(), Options{Prefix: newPrefix(), unindexed: true, Now: clock.read})
	ctx := context.Background()
	g, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 9, Session: "voided"})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.DeleteSession(ctx, of("a"), "voided")
	// The refused append has listed the session all the same.
	if _, err := s.Append(ctx, store.Append{Scope: of("a"), Session: "voided", Mark: g.Mark, Exchange: sample("e")}); !errors.Is(err, store.ErrDeleted) {
		t.Fatal(err)
	}
	for i := range 3 {
		clock.advance(time.Second)
		add(t, s, fmt.Sprint("s", i), "e")
	}
	for range 2 {
		if list, err := s.ListSessions(ctx, of("a"), "", 3); err != nil || len(list) != 3 || list[0].ID != "s2" {
			t.Errorf("got %+v, %v", list, err)
		}
		clock.advance(2 * settled)
		if list, err := s.ListSessions(ctx, of("a"), "s2", 9); err != nil || len(list) != 2 {
			t.Errorf("got %+v, %v", list, err)
		}
	}
	if n := s.client.ZCard(ctx, s.layout.tenant(sessionsKey, of("a"))).Val(); n != 3 {
		t.Errorf("%d are on the list, want 3", n)
	}
}

func TestDeletionsAreForgottenAfterAWhile(t *testing.T) {
	s := openAt(t, sharedServer(t).url(), Options{Prefix: newPrefix(), unindexed: true})
	ctx := context.Background()
	add(t, s, "s", "e")
	if err := s.DeleteSession(ctx, of("a"), "s"); err != nil {
		t.Fatal(err)
	}
	left := keysLike(t, s, "epoch*", "session:*", "log*", "seen*")
	if len(left) != 1 {
		t.Fatalf("%q are left", left)
	}
	if ttl := s.client.TTL(ctx, s.opts.Prefix+left[0]).Val(); ttl <= voidFor-time.Minute || ttl > voidFor {
		t.Errorf("it is remembered for %v", ttl)
	}
}

// What vectors were made of is a trace of the texts.
func TestNothingIsKnownOfDeletedFiles(t *testing.T) {
	s := openAt(t, sharedServer(t).url(), Options{Prefix: newPrefix(), unindexed: true})
	ctx := context.Background()
	chunks := make([]store.Chunk, 150)
	for i := range chunks {
		chunks[i] = store.Chunk{N: i, Text: fmt.Sprint("text ", i), Terms: "x", Vector: []float32{1}}
	}
	known := func() int64 { return s.client.HLen(ctx, s.layout.tenant(knownKey, of("a"))).Val() }
	for id, status := range map[string]store.FileStatus{"kept": store.FileProcessed, "failed": store.FileError, "deleted": store.FileProcessed} {
		_, err := s.CreateFile(ctx, of("a"), store.File{ID: id, Name: id, Model: "m"}, strings.NewReader(id))
		if err == nil {
			err = s.AddChunks(ctx, of("a"), id, chunks[:100])
		}
		if err == nil && id == "kept" {
			err = s.AddChunks(ctx, of("a"), id, chunks[100:])
		}
		if err == nil {
			err = s.FinishFile(ctx, of("a"), id, status, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := known(); n > 150 || n < 50 {
		t.Errorf("%d texts are known", n)
	}
	for _, id := range []string{"deleted", "failed", "kept"} {
		if err := s.DeleteFile(ctx, of("a"), id); err != nil {
			t.Fatal(err)
		}
	}
	if n := known(); n != 0 {
		t.Errorf("%d texts are known of no file", n)
	}
}
