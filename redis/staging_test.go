package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// imported are exchanges of about a KB, of sizes that differ.
func imported(name string, n int) []store.Exchange {
	list := make([]store.Exchange, n)
	for i := range list {
		text := strings.Repeat("x", 500+i%700)
		list[i] = store.Exchange{ID: fmt.Sprint(name, i), Created: time.Unix(1e9, 0), Messages: []store.Message{
			{JSON: []byte(`{"role":"user","content":"` + text + `"}`), Tokens: 100 + i%7},
			{JSON: []byte(`{"role":"assistant","content":"` + text + `"}`), Tokens: 100 + i%11},
		}}
		list[i].Messages = list[i].Messages[:1+i%2]
	}
	return list
}

func (s *Store) importInto(session string, list []store.Exchange) ([]int64, error) {
	return s.Import(context.Background(), store.Import{Scope: of("a"), Session: session, Exchanges: list})
}

// everythingOf reads all that there is of a session.
func everythingOf(t *testing.T, s *Store, session string) (hash, seen map[string]string, log []string) {
	t.Helper()
	ctx, tag := context.Background(), sessionTag(of("a"), session)
	hash = s.client.HGetAll(ctx, s.layout.tagged(sessionKey, tag)).Val()
	seen = s.client.HGetAll(ctx, s.layout.tagged(seenKey, tag)).Val()
	log = s.client.LRange(ctx, s.layout.tagged(logKey, tag), 0, -1).Val()
	delete(hash, "id")
	return hash, seen, log
}

// However many exchanges are imported at once, what is kept is the same.
func TestStagedImportsAreKeptAsOthers(t *testing.T) {
	for _, before := range []int{0, 300} {
		for _, n := range []int{1, moved / 2, moved + 500} {
			t.Run(fmt.Sprint(n, " behind ", before), func(t *testing.T) {
				t.Parallel()
				clock := &hands{now: time.Now()}
				s := openAt(t, sharedServer(t).url(), Options{Prefix: newPrefix(), unindexed: true, Now: clock.read})
				ctx := context.Background()
				list := imported("new", n)
				if n == 1 { // large by its size
					list[0].Messages[0].JSON = []byte(`{"role":"user","content":"` + strings.Repeat("x", 3<<20) + `"}`)
				}
				for _, session := range []string{"staged", "whole"} {
					for i, e := range imported("old", before) {
						a := store.Append{Scope: of("a"), Session: session, Exchange: e, Anyway: true}
						if i == before/2 {
							a.Replaces = int64(i)
						}
						if _, err := s.Append(ctx, a); err != nil {
							t.Fatal(err)
						}
					}
				}
				if before > 0 { // the session has one of them already, and one comes twice
					list = append(list, imported("old", 1)[0], list[0])
				}
				if isSmall(list) {
					t.Fatal("nothing is staged of so little")
				}
				seqs, err := s.importInto("staged", list)
				if err != nil {
					t.Fatal(err)
				}
				a := &store.Append{Scope: of("a"), Session: "whole", Anyway: true}
				reply, err := s.appendAll(ctx, a, list, s.beside(a))
				if err != nil || !slices.Equal(seqs, reply.seqs) {
					t.Fatalf("Seqs %d, want %d, %v", seqs, reply.seqs, err)
				}
				hash, seen, log := everythingOf(t, s, "staged")
				wantHash, wantSeen, wantLog := everythingOf(t, s, "whole")
				if !maps.Equal(hash, wantHash) || !maps.Equal(seen, wantSeen) || !slices.Equal(log, wantLog) {
					t.Errorf("kept is\n%v, %d seen, a log of %d, want\n%v, %d, %d", hash, len(seen), len(log), wantHash, len(wantSeen), len(wantLog))
				}
				for _, key := range keysLike(t, s, "*") {
					if strings.HasPrefix(key, "staged") {
						t.Errorf("%s is left", key)
					}
					if ttl := s.client.PTTL(ctx, s.opts.Prefix+key).Val(); ttl >= 0 && !strings.HasPrefix(key, rateKey) {
						t.Errorf("%s expires in %v", key, ttl)
					}
				}
				if again, err := s.importInto("staged", list); err != nil || !slices.Equal(again, seqs) {
					t.Errorf("the second time: %d, %v", again, err)
				}
				if left, err := s.ListSessions(ctx, of("a"), "", 9); err != nil || len(left) != 2 {
					t.Errorf("listed are %+v, %v", left, err)
				}
			})
		}
	}
}

// meeting opens a store whose commands come past see, with what they are.
func meeting(t *testing.T, see func(script *script, command value) error) *Store {
	p := startProxy(t, sharedServer(t).addr(), func(command value, forward func() (value, error)) (value, error) {
		var of *script
		if command.name() == "EVALSHA" {
			if i := slices.IndexFunc(scripts, func(s *script) bool { return s.digest == command.items[1].text }); i >= 0 {
				of = scripts[i]
			}
		}
		if err := see(of, command); err != nil {
			return value{}, err
		}
		return forward()
	})
	return openAt(t, p.url(), Options{Prefix: newPrefix(), unindexed: true})
}

func TestAnImportHoldsUpNobody(t *testing.T) {
	for name, before := range map[string]int{"into a new session": 0, "into a long session": 5000} {
		t.Run(name, func(t *testing.T) {
			steps := 0
			s := meeting(t, func(script *script, command value) error {
				bytes := len(command.append(nil))
				limit := stepBytes + 64<<10
				if script != nil {
					limit = smallBytes + 64<<10
				}
				if bytes > limit {
					t.Errorf("%s of %d bytes", command.name(), bytes)
				}
				if command.name() == "RPUSH" || script == copyLogScript {
					steps++
				}
				return nil
			})
			for range before / smallCount {
				if _, err := s.importInto("s", imported(s.unique(), smallCount)); err != nil {
					t.Fatal(err)
				}
			}
			steps = 0
			if _, err := s.importInto("s", imported("new", 20000)); err != nil { // 26 MB
				t.Fatal(err)
			}
			if want := (20000 + before) / stepCount; steps < want {
				t.Errorf("%d steps, want %d", steps, want)
			}
		})
	}
}

// What a process leaves that dies on the way is seen by nobody, and is gone soon.
func TestAnImportThatIsBrokenOffLeavesNothing(t *testing.T) {
	for name, n := range map[string]int{"moved": moved / 2, "renamed": 2 * moved} {
		t.Run(name, func(t *testing.T) {
			dead := errors.New("the process is dead")
			var died atomic.Bool // connections have goroutines of their own
			s := meeting(t, func(script *script, command value) error {
				if script == commitScript || died.Load() {
					died.Store(true)
					return dead
				}
				return nil
			})
			other := openAt(t, sharedServer(t).url(), Options{Prefix: s.opts.Prefix, unindexed: true})
			add(t, other, "s", "e")
			list := imported("new", n)
			if _, err := s.importInto("s", list); err == nil {
				t.Fatal("it was saved")
			}
			if seen, err := other.Exchanges(context.Background(), of("a"), "s", 0, 9, store.Ascending); err != nil || len(seen) != 1 {
				t.Errorf("seen are %d exchanges, %v", len(seen), err)
			}
			left := keysLike(t, other, "staged*")
			if len(left) == 0 {
				t.Error("nothing was staged")
			}
			for _, key := range left {
				if ttl := other.client.PTTL(context.Background(), other.opts.Prefix+key).Val(); ttl <= 0 || ttl > stagedFor {
					t.Errorf("%s expires in %v", key, ttl)
				}
			}
			seqs, err := other.importInto("s", list)
			if err != nil || seqs[0] != 2 || seqs[len(seqs)-1] != int64(n+1) {
				t.Errorf("the next time: %v", err)
			}
		})
	}
}

func TestAnImportThatIsOvertaken(t *testing.T) {
	for name, n := range map[string]int{"moved": moved / 2, "renamed": 2 * moved} {
		t.Run(name, func(t *testing.T) {
			var other *Store
			overtake, commits := 1, 0
			s := meeting(t, func(script *script, _ value) error {
				if script == commitScript {
					if commits++; commits <= overtake {
						add(t, other, "s", fmt.Sprint("other", commits))
					}
				}
				return nil
			})
			other = openAt(t, sharedServer(t).url(), Options{Prefix: s.opts.Prefix, unindexed: true})
			add(t, other, "s", "first")
			seqs, err := s.importInto("s", imported("new", n))
			if err != nil || seqs[0] != 3 || commits != 2 {
				t.Errorf("%d commits, the first Seq is %d, %v", commits, seqs[0], err)
			}
			list, err := other.Exchanges(context.Background(), of("a"), "s", 0, 1<<20, store.Ascending)
			if err != nil || len(list) != n+2 || list[1].ID != "other1" || list[2].ID != "new0" || list[n+1].ID != fmt.Sprint("new", n-1) {
				t.Errorf("there are %d, %v", len(list), err)
			}
			for i := range list {
				if list[i].Seq != int64(i+1) || i > 0 && list[i].Offset != list[i-1].Offset+int64(list[i-1].Tokens()) {
					t.Fatalf("place %d has Seq %d and Offset %d", i, list[i].Seq, list[i].Offset)
				}
			}
			overtake = 1 << 20
			if _, err := s.importInto("s", imported("never", n)); !errors.Is(err, errBusy) {
				t.Errorf("got %v", err)
			}
			if left := keysLike(t, other, "staged*"); len(left) != 0 {
				t.Errorf("%q are left", left)
			}
			overtake = 0
			if err := other.DeleteSession(context.Background(), of("a"), "s"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.importInto("s", imported("late", n)); !errors.Is(err, store.ErrDeleted) {
				t.Errorf("into a session that was deleted since: %v", err)
			}
			listed := other.client.ZRange(context.Background(), other.layout.tenant(sessionsKey, of("a")), 0, -1).Val()
			if left := keysLike(t, other, "staged*"); len(left)+len(listed) != 0 {
				t.Errorf("%q are left of it, and on the list %q", left, listed)
			}
		})
	}
}
