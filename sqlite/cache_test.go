package sqlite

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// month is the one whose usage the tests ask for.
const month = store.Month(24_300)

func request(session string, messages int) store.GatherRequest {
	return store.GatherRequest{Scope: of("a"), Limit: 1 << 40, Session: session, Messages: messages, Month: month}
}

func gather(t testing.TB, s *Store, req store.GatherRequest) store.Gathered {
	t.Helper()
	g, err := s.Gather(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// everything is what the tests of the cache look at.
func everything() (all []store.GatherRequest) {
	for _, tenant := range []string{"a", "b", "nobody"} {
		for _, session := range []string{"", "s", "t", "new"} {
			req := request(session, 20)
			req.Scope.Tenant = tenant
			all = append(all, req)
		}
	}
	return all
}

// agree fails the test where Gather says anything else than the file does.
func agree(t *testing.T, s *Store) {
	t.Helper()
	for _, req := range everything() {
		g := gather(t, s, req)
		facts, want, err := s.readTail(context.Background(), &req)
		if err != nil {
			t.Fatal(err)
		}
		got := tail{g.Mark.Seq, g.Tokens, g.Tail, want.whole, want.expires}
		if !reflect.DeepEqual(got, want) || facts != (tenantFacts{g.Mark.Epoch, g.Files, month, g.Used}) {
			t.Errorf("%s/%s: got %+v and %d exchanges, want %+v, %d and %d exchanges",
				req.Scope.Tenant, req.Session, g.Mark, len(g.Tail), facts, want.seq, len(want.exchanges))
		}
	}
}

// cached tells whether the cache knows all that is asked.
func cached(t *testing.T, s *Store, req store.GatherRequest) bool {
	t.Helper()
	_, _, found, _, err := s.writer.cache.look(&req, s.now())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func save(s *Store, session string, a store.Append) error {
	a.Scope.Tenant, a.Session = "a", session
	_, err := s.Append(context.Background(), a)
	return err
}

// full is an exchange with something in every field.
func full(id string) store.Exchange {
	e := sample(id)
	e.Created = time.UnixMicro(1_790_000_000_123_456) // not of whole milliseconds, and of this place
	e.Hidden, e.Carried = true, store.Digest{7}
	e.Passages = []store.ChunkRef{{FileID: "f1", N: 3}, {FileID: "f2"}}
	e.Recalled = []store.MessageRef{{Seq: 1, To: 5}}
	e.Parent = "e1"
	return e
}

// writes are all the ways to change what Gather answers, by name. Each begins
// with 30 exchanges e0… in session s and one in t.
var writes = map[string]func(*Store) error{
	"nothing": func(*Store) error { return nil },
	"append":  func(s *Store) error { return save(s, "s", store.Append{Exchange: full("n"), Anyway: true}) },
	"append without messages": func(s *Store) error {
		return save(s, "s", store.Append{Exchange: store.Exchange{ID: "n"}, Anyway: true})
	},
	"append to a new session": func(s *Store) error { return save(s, "new", store.Append{Exchange: full("n"), Anyway: true}) },
	"append for an hour": func(s *Store) error {
		return save(s, "s", store.Append{Exchange: full("n"), TTL: time.Hour, Anyway: true})
	},
	"import": func(s *Store) error {
		_, err := s.Import(context.Background(), store.Import{Scope: of("a"), Session: "s", Exchanges: []store.Exchange{full("n"), full("m")}})
		return err
	},
	"append the same again": func(s *Store) error { return save(s, "s", store.Append{Exchange: full("e29"), Anyway: true}) },
	"replace the last": func(s *Store) error {
		return save(s, "s", store.Append{Exchange: full("n"), Replaces: 30, Anyway: true})
	},
	"replace one in the tail": func(s *Store) error {
		return save(s, "s", store.Append{Exchange: full("n"), Replaces: 25, Anyway: true})
	},
	"replace one before the tail": func(s *Store) error {
		return save(s, "s", store.Append{Exchange: full("n"), Replaces: 2, Anyway: true})
	},
	"replace what isn't there": func(s *Store) error {
		return save(s, "s", store.Append{Exchange: full("n"), Replaces: -99, Anyway: true})
	},
	"conflict": func(s *Store) error {
		var c *store.Conflict
		if err := save(s, "s", store.Append{Exchange: full("n"), Mark: store.Mark{Seq: 3}, Usage: store.Used{Month: month, Tokens: 7}}); !errors.As(err, &c) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	},
	"append that was rebased": func(s *Store) error {
		return save(s, "s", store.Append{Exchange: full("n"), Mark: store.Mark{Seq: 3}, Seen: 30, Replaces: 30})
	},
	"a panic": func(s *Store) error {
		defer func() { _ = recover() }()
		return s.writer.write(context.Background(), 1, func(c *conn) error {
			if _, err := s.append(c, &store.Append{Scope: of("a"), Session: "s", Exchange: full("n"), Anyway: true}); err != nil {
				return err
			}
			panic("a defect")
		})
	},
	"an append that is undone": func(s *Store) error {
		defect := errors.New("a defect")
		err := s.writer.write(context.Background(), 1, func(c *conn) error {
			_, err := s.append(c, &store.Append{Scope: of("a"), Session: "s", Exchange: full("n"), Anyway: true})
			return errors.Join(err, defect)
		})
		if !errors.Is(err, defect) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	},
	"appends that are undone with their transaction": func(s *Store) error {
		return s.writer.write(context.Background(), 1, func(c *conn) error {
			_, err := s.append(c, &store.Append{Scope: of("a"), Session: "s", Exchange: full("n"), Anyway: true})
			if err == nil {
				_ = c.exec(`ROLLBACK`)
			}
			return err
		})
	},
	"append with usage": func(s *Store) error {
		return save(s, "s", store.Append{Exchange: full("n"), Usage: store.Used{Month: month, Tokens: 7}, Anyway: true})
	},
	"append the same with usage": func(s *Store) error {
		return save(s, "s", store.Append{Exchange: full("e29"), Usage: store.Used{Month: month, Tokens: 7}, Anyway: true})
	},
	"append with usage what was deleted": func(s *Store) error {
		return save(s, "s", store.Append{Exchange: full("n"), Mark: store.Mark{Seq: 99}, Usage: store.Used{Month: month, Tokens: 7}})
	},
	"use": func(s *Store) error {
		return s.AddUsage(context.Background(), of("a"), store.Used{Month: month, Tokens: 7})
	},
	"use of somebody new": func(s *Store) error {
		return s.AddUsage(context.Background(), of("nobody"), store.Used{Month: month, Tokens: 7})
	},
	"use in another month": func(s *Store) error {
		return s.AddUsage(context.Background(), of("a"), store.Used{Month: month + 1, Tokens: 7})
	},
	"restore usage": func(s *Store) error {
		return s.RestoreUsage(context.Background(), of("a"), []store.Used{{Month: month, Tokens: 99}})
	},
	"forget a tenant": func(s *Store) error {
		_, err := s.ForgetTenant(context.Background(), "a")
		return err
	},
	"delete": func(s *Store) error { return s.DeleteSession(context.Background(), of("a"), "s") },
	"delete and append": func(s *Store) error {
		err := s.DeleteSession(context.Background(), of("a"), "s")
		return errors.Join(err, save(s, "s", store.Append{Exchange: full("n"), Mark: store.Mark{Epoch: 1}}))
	},
	"delete in steps": func(s *Store) error {
		for i := range purgeBatch {
			if err := save(s, "s", store.Append{Exchange: full(fmt.Sprint("n", i)), Anyway: true}); err != nil {
				return err
			}
		}
		return s.DeleteSession(context.Background(), of("a"), "s")
	},
	"delete what isn't there": func(s *Store) error {
		if err := s.DeleteSession(context.Background(), of("nobody"), "s"); !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	},
	"create a processed file":       func(s *Store) error { return create(s, "n", store.FileProcessed, 1) },
	"create a large processed file": func(s *Store) error { return create(s, "n", store.FileProcessed, (partBatch+1)*partSize) },
	"create and finish a file": func(s *Store) error {
		return errors.Join(create(s, "n", store.FileUploaded, 1), s.FinishFile(context.Background(), of("a"), "n", store.FileProcessed, ""))
	},
	"fail the file":   func(s *Store) error { return s.FinishFile(context.Background(), of("b"), "f", store.FileError, "x") },
	"delete the file": func(s *Store) error { return s.DeleteFile(context.Background(), of("b"), "f") },
}

func create(s *Store, id string, status store.FileStatus, size int) error {
	_, err := s.CreateFile(context.Background(), of("a"), store.File{ID: id, Name: id, Status: status}, bytes.NewReader(make([]byte, size)))
	return err
}

func TestTheCacheAgreesWithTheFileAfterAnyWrite(t *testing.T) {
	for name, write := range writes {
		for _, foreign := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/foreign=", foreign), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "backstory.db")
				s := openAt(t, path, Options{Synchronous: Normal})
				writer := s
				if foreign {
					writer = openAt(t, path, Options{Synchronous: Normal})
				}
				for i := range 30 {
					if err := save(s, "s", store.Append{Exchange: full(fmt.Sprint("e", i)), Anyway: true}); err != nil {
						t.Fatal(err)
					}
				}
				if err := save(s, "t", store.Append{Exchange: sample("e"), Anyway: true}); err != nil {
					t.Fatal(err)
				}
				if _, err := s.CreateFile(context.Background(), of("b"), store.File{ID: "f", Name: "f", Status: store.FileProcessed}, strings.NewReader("")); err != nil {
					t.Fatal(err)
				}
				for range 2 { // then from an entry that was written before
					agree(t, s)
					if !cached(t, s, request("s", 20)) {
						t.Error("nothing was kept")
					}
					if err := write(writer); err != nil && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDeleted) {
						t.Log(err)
					}
					agree(t, s)
					agree(t, writer)
				}
			})
		}
	}
}

func TestTheCacheLearnsNothingFromAJobThatIsUndoneAlone(t *testing.T) {
	s := temporary(t)
	agree(t, s)
	job := func(id string, defect error) func(*conn) error {
		return func(c *conn) error {
			_, err := s.append(c, &store.Append{Scope: of("a"), Session: "s", Exchange: full(id), Anyway: true})
			return errors.Join(err, defect)
		}
	}
	together(t, s.writer, job("e1", nil), job("e2", errors.New("a defect")), job("e3", nil))
	agree(t, s)
	if g := gather(t, s, request("s", 9)); len(g.Tail) != 2 || g.Tail[1].ID != "e3" || !cached(t, s, request("s", 9)) {
		t.Errorf("got %d exchanges", len(g.Tail))
	}
}

func TestACommitOfAnyProgramIsSeenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	s := openAt(t, path, Options{})
	if err := save(s, "s", store.Append{Exchange: sample("e"), Anyway: true}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		agree(t, s)
		run(t, path, fmt.Sprintf(`UPDATE sessions SET appended = %d; UPDATE tenants SET deletions = %[1]d; UPDATE exchanges SET model = %[1]d`, i))
		if g := gather(t, s, request("s", 1)); g.Tokens != int64(i) || g.Mark.Epoch != int64(i) || g.Tail[0].Model != fmt.Sprint(i) {
			t.Fatalf("after %d: got %+v", i, g)
		}
	}
}

// cachePath names, in the environment of a child process, the file to write to.
const cachePath = "BACKSTORY_CACHE_PATH"

// TestCacheChild is no test: it is the other process of the next one.
func TestCacheChild(t *testing.T) {
	path := os.Getenv(cachePath)
	if path == "" {
		t.Skip("it runs as a child")
	}
	s := openAt(t, path, Options{Synchronous: Normal})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := save(s, "s", store.Append{Exchange: sample("child " + lines.Text()), Anyway: true}); err != nil {
			t.Fatal(err)
		}
		fmt.Println("saved")
	}
}

func TestAnotherProcessIsSeenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	s := openAt(t, path, Options{Synchronous: Normal})
	child := exec.Command(os.Args[0], "-test.run=^TestCacheChild$")
	child.Env = append(os.Environ(), cachePath+"="+path)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	for i := range 200 {
		id := fmt.Sprint(i)
		if i%3 == 0 { // in between, so that there is more than one to look out for
			if err := save(s, "s", store.Append{Exchange: sample(id), Anyway: true}); err != nil {
				t.Fatal(err)
			}
		} else {
			fmt.Fprintln(in, i)
			if line, err := said.ReadString('\n'); line != "saved\n" {
				t.Fatalf("the child said %q, %v", line, err)
			}
			id = "child " + id
		}
		if g := gather(t, s, request("s", 4)); len(g.Tail) == 0 || g.Tail[len(g.Tail)-1].ID != id {
			t.Fatalf("%s isn't there", id)
		}
	}
	if err := errors.Join(in.Close(), child.Wait()); err != nil {
		t.Error(err)
	}
}

func TestWhatIsCachedNeedsNoQuery(t *testing.T) {
	s := temporary(t)
	for i := range 10 {
		if err := save(s, "s", store.Append{Exchange: sample(fmt.Sprint(i)), Anyway: true}); err != nil {
			t.Fatal(err)
		}
	}
	agree(t, s)
	if err := s.readers.close(); err != nil {
		t.Fatal(err)
	}
	for _, req := range everything() {
		gather(t, s, req)
	}
	for i := range 100 { // an append keeps its session in the cache
		session := []string{"s", "new"}[i%2]
		if err := save(s, session, store.Append{Exchange: sample(fmt.Sprint("n", i)), Anyway: true}); err != nil {
			t.Fatal(err)
		}
		if g := gather(t, s, request(session, 20)); g.Tail[len(g.Tail)-1].ID != fmt.Sprint("n", i) {
			t.Fatalf("got %+v", g.Mark)
		}
	}
	s.writer.tidy() // changes no answer
	gather(t, s, request("s", 20))
}

func TestALongSessionTakesUpNoMoreThanIsAskedOfIt(t *testing.T) {
	s := temporary(t)
	for i := range 500 {
		gather(t, s, request("s", 20))
		if err := save(s, "s", store.Append{Exchange: sample(fmt.Sprint(i)), Anyway: true}); err != nil {
			t.Fatal(err)
		}
		if e, _ := s.writer.cache.entries.Peek(cacheKey{of("a"), "s"}); len(e.tail.exchanges) > 2*(10+extra) {
			t.Fatalf("%d exchanges are kept", len(e.tail.exchanges))
		}
	}
	agree(t, s)
	// More than is there has to be read, and is kept then.
	for _, messages := range []int{100, 10_000} {
		if cached(t, s, request("s", messages)) {
			t.Errorf("%d messages are there before anyone has asked", messages)
		}
		if g := gather(t, s, request("s", messages)); len(g.Tail) != min(messages/2+extra, 500) || !cached(t, s, request("s", messages)) {
			t.Errorf("%d messages: got %d exchanges", messages, len(g.Tail))
		}
	}
}

func TestTheCacheKeepsToItsSize(t *testing.T) {
	const limit = 20_000
	path := filepath.Join(t.TempDir(), "backstory.db")
	s := openAt(t, path, Options{Synchronous: Normal, CacheSize: limit})
	c := s.writer.cache
	model := make(map[string]int64)
	most := 0 // entries at once; how many there are in the end is chance
	for i := range 2000 {
		session := fmt.Sprint("s", rand.IntN(15))
		if rand.IntN(3) == 0 {
			if err := save(s, session, store.Append{Exchange: sample(fmt.Sprint(i)), Anyway: true}); err != nil {
				t.Fatal(err)
			}
			model[session]++
		}
		if g := gather(t, s, request(session, rand.IntN(20))); g.Mark.Seq != model[session] {
			t.Fatalf("%s: got %d, want %d", session, g.Mark.Seq, model[session])
		}
		size := 0
		for _, e := range c.entries.Values() {
			size += e.size
		}
		if c.size > limit || c.size != size {
			t.Fatalf("%d bytes are counted, %d are there, of %d", c.size, size, limit)
		}
		most = max(most, c.entries.Len())
	}
	if most < 2 {
		t.Errorf("%d entries at most", most)
	}
	big := sample("big")
	big.Messages[0].JSON = make([]byte, 2*limit)
	if err := save(s, "s1", store.Append{Exchange: big, Anyway: true}); err != nil {
		t.Fatal(err)
	}
	if gather(t, s, request("s1", 1)); cached(t, s, request("s1", 1)) || !cached(t, s, request("", 0)) {
		t.Error("what is larger than the cache has pushed others out of it, or is in it")
	}
}

func TestACallerMayChangeAllOfItsTail(t *testing.T) {
	s := temporary(t)
	for i := range 3 {
		if err := save(s, "s", store.Append{Exchange: full(fmt.Sprint(i)), Anyway: true}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		agree(t, s)
		g := gather(t, s, request("s", 2))
		_ = append(g.Tail, store.Exchange{})
		for i := range g.Tail[0].Messages {
			_ = append(g.Tail[0].Messages[i].JSON, "over"...)
		}
		for i := range g.Tail {
			e := &g.Tail[i]
			clear(append(e.Messages, store.Message{}))
			clear(append(e.Passages, store.ChunkRef{}))
			clear(append(e.Recalled, store.MessageRef{}))
			*e = store.Exchange{}
		}
	}
}

// TestManyAtOnceSeeWhatWasAcknowledged has two stores of one file write and read
// at once. Whatever an append or a deletion has acknowledged, each gather that
// begins later must show.
func TestManyAtOnceSeeWhatWasAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	stores := []*Store{openAt(t, path, Options{Synchronous: Normal}), openAt(t, path, Options{Synchronous: Normal, CacheSize: 30_000})}
	type session struct {
		deletion sync.RWMutex // nothing is known of what goes on during one
		seq      atomic.Int64 // acknowledged
	}
	var sessions [4]session
	var all sync.WaitGroup
	for worker := range 12 {
		random := rand.New(rand.NewPCG(1, uint64(worker)))
		all.Go(func() {
			for i := range 60 {
				n := random.IntN(len(sessions))
				d, s, name := &sessions[n], stores[random.IntN(2)], fmt.Sprint("s", n)
				if random.IntN(40) == 0 {
					d.deletion.Lock()
					if err := s.DeleteSession(context.Background(), of("a"), name); err != nil && !errors.Is(err, store.ErrNotFound) {
						t.Error(err)
					}
					d.seq.Store(0)
					for _, s := range stores {
						if g := gather(t, s, request(name, 1)); g.Mark.Seq != 0 || len(g.Tail) != 0 {
							t.Errorf("%s was deleted, and has %d", name, g.Mark.Seq)
						}
					}
					d.deletion.Unlock()
					continue
				}
				d.deletion.RLock()
				before := d.seq.Load()
				g := gather(t, s, request(name, random.IntN(30)))
				if g.Mark.Seq < before {
					t.Errorf("%s has %d, and %d was acknowledged", name, g.Mark.Seq, before)
				}
				whole(t, g)
				if worker%2 == 0 {
					a := store.Append{Scope: of("a"), Session: name, Exchange: sample(fmt.Sprint(worker, " ", i)), Mark: g.Mark, Anyway: true}
					seq, err := s.Append(context.Background(), a)
					if err != nil {
						t.Error(err)
					}
					for old := d.seq.Load(); seq > old && !d.seq.CompareAndSwap(old, seq); old = d.seq.Load() {
					}
					if g := gather(t, stores[random.IntN(2)], request(name, 1)); g.Mark.Seq < seq {
						t.Errorf("%s has %d, and %d was acknowledged", name, g.Mark.Seq, seq)
					}
				}
				d.deletion.RUnlock()
			}
		})
	}
	all.Wait()
	for i := range sessions {
		name := fmt.Sprint("s", i)
		if a, b := gather(t, stores[0], request(name, 1000)), gather(t, stores[1], request(name, 1000)); a.Mark != b.Mark || len(a.Tail) != len(b.Tail) || a.Mark.Seq != sessions[i].seq.Load() {
			t.Errorf("%s is %+v and %+v, and %d was acknowledged", name, a.Mark, b.Mark, sessions[i].seq.Load())
		}
	}
}

// whole fails the test where what was gathered is of different moments.
func whole(t *testing.T, g store.Gathered) {
	end := g.Tokens
	for i := len(g.Tail) - 1; i >= 0; i-- {
		e := &g.Tail[i]
		if want := g.Mark.Seq - int64(len(g.Tail)-1-i); e.Seq != want || e.Offset+int64(e.Tokens()) != end || len(e.Messages) != 2 {
			t.Errorf("exchange %d has Seq %d, want %d; it ends at %d, want %d", i, e.Seq, want, e.Offset+int64(e.Tokens()), end)
		}
		end = e.Offset
	}
}

func TestTheWatchTellsCommitsApart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	s, other := openAt(t, path, Options{}), openAt(t, path, Options{})
	last, err := s.writer.cache.read()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if again, err := s.writer.cache.read(); again != last || err != nil {
			t.Fatalf("it changed without a commit, or failed: %v", err)
		}
		writer := cmp.Or(map[bool]*Store{true: s}[i%3 == 0], other)
		if err := writer.PutKey(context.Background(), store.Key{Digest: [32]byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
		now, err := s.writer.cache.read()
		if now == last || err != nil {
			t.Fatalf("commit %d isn't seen, %v", i, err)
		}
		last = now
		if i%10 == 0 {
			writer.writer.tidy() // the log starts from its beginning
			if last, err = s.writer.cache.read(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
