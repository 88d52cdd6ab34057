package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// calls are all methods that a store has which take a context. About the scope are
// all but those in unscoped.
func calls(s store.Store, scope store.Scope) map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{
		"Ping": s.Ping,
		"Take": func(ctx context.Context) error { _, err := s.Take(ctx, "a", 10); return err },
		"Gather": func(ctx context.Context) error {
			_, err := s.Gather(ctx, store.GatherRequest{Scope: scope, Limit: generous, Session: "s", Tokens: generous})
			return err
		},
		"Append": func(ctx context.Context) error {
			_, err := s.Append(ctx, store.Append{Scope: scope, Session: "s", Exchange: turn("cancelled"), Anyway: true})
			return err
		},
		"Session":      func(ctx context.Context) error { _, err := s.Session(ctx, scope, "s"); return err },
		"ListSessions": func(ctx context.Context) error { _, err := s.ListSessions(ctx, scope, "", 10); return err },
		"Exchanges": func(ctx context.Context) error {
			_, err := s.Exchanges(ctx, scope, "s", 0, 10, store.Ascending)
			return err
		},
		"ExchangesAt": func(ctx context.Context) error {
			_, err := s.ExchangesAt(ctx, scope, "s", []int64{1})
			return err
		},
		"DeleteSession": func(ctx context.Context) error { return s.DeleteSession(ctx, scope, "s") },
	}
	if s, ok := s.(store.Keys); ok {
		all["Key"] = func(ctx context.Context) error { _, err := s.Key(ctx, [32]byte{1}); return err }
		all["PutKey"] = func(ctx context.Context) error {
			return s.PutKey(ctx, store.Key{Digest: [32]byte{9}, Tenant: "a"})
		}
		all["ListKeys"] = func(ctx context.Context) error { _, err := s.ListKeys(ctx, "a"); return err }
	}
	if s, ok := s.(store.Usage); ok {
		all["AddUsage"] = func(ctx context.Context) error { return s.AddUsage(ctx, scope, store.Used{Month: 1, Tokens: 1}) }
		all["Usage"] = func(ctx context.Context) error { _, err := s.Usage(ctx, scope, 1); return err }
	}
	if s, ok := s.(store.Importer); ok {
		all["Import"] = func(ctx context.Context) error {
			_, err := s.Import(ctx, store.Import{Scope: scope, Session: "s", Exchanges: []store.Exchange{turn("cancelled")}})
			return err
		}
	}
	if s, ok := s.(store.Vectors); ok {
		all["PutVectors"] = func(ctx context.Context) error {
			return s.PutVectors(ctx, scope, "s", []store.ExchangeVector{{Seq: 1, ID: "e1", Model: "m"}})
		}
		all["Vectors"] = func(ctx context.Context) error { _, err := s.Vectors(ctx, scope, "s", []int64{1}); return err }
	}
	if s, ok := s.(store.Files); ok {
		maps.Copy(all, fileCalls(s, scope))
	}
	if s, ok := s.(store.Searcher); ok {
		all["SearchText"] = func(ctx context.Context) error {
			_, err := s.SearchText(ctx, scope, []string{"alpha"}, 10)
			return err
		}
		all["SearchVector"] = func(ctx context.Context) error {
			_, err := s.SearchVector(ctx, scope, "m", []float32{1, 0}, 10)
			return err
		}
		all["Chunks"] = func(ctx context.Context) error {
			_, err := s.Chunks(ctx, scope, []store.ChunkRef{{FileID: "f1", N: 0}})
			return err
		}
	}
	return all
}

func fileCalls(s store.Files, scope store.Scope) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"CreateFile": func(ctx context.Context) error {
			_, err := s.CreateFile(ctx, scope, document("f2", ""), strings.NewReader("x"))
			return err
		},
		"AddChunks":  func(ctx context.Context) error { return s.AddChunks(ctx, scope, "f0", words("x")) },
		"FinishFile": func(ctx context.Context) error { return s.FinishFile(ctx, scope, "f1", store.FileError, "x") },
		"File":       func(ctx context.Context) error { _, err := s.File(ctx, scope, "f1"); return err },
		"ListFiles": func(ctx context.Context) error {
			_, err := s.ListFiles(ctx, scope, store.FileQuery{Limit: 10})
			return err
		},
		"Content":    func(ctx context.Context) error { _, err := s.Content(ctx, scope, "f1"); return err },
		"DeleteFile": func(ctx context.Context) error { return s.DeleteFile(ctx, scope, "f1") },
		"KnownVectors": func(ctx context.Context) error {
			_, err := s.KnownVectors(ctx, scope, "m", 2, make([]store.ChunkDigest, 1))
			return err
		},
		"FileChunks": func(ctx context.Context) error { _, err := s.FileChunks(ctx, scope, "f1", -1, 10); return err },
		"SetVectors": func(ctx context.Context) error { return s.SetVectors(ctx, scope, "f1", "m", []store.Chunk{both(0)}) },
		"SetModel":   func(ctx context.Context) error { return s.SetModel(ctx, scope, "f1", "m") },
	}
}

var unscoped = []string{"Ping", "Key", "PutKey", "ListKeys", "Take"}

// furnish gives every call something to work on.
func (f *fixture) furnish() {
	f.Helper()
	f.save("a", "s", turn("e1"))
	if f.keyStore != nil {
		f.ok(f.PutKey(context.Background(), store.Key{Digest: [32]byte{1}, Tenant: "a"}))
	}
	if f.fileStore != nil {
		f.upload("a", "f1", "m", []store.Chunk{both(0)})
		_, err := f.CreateFile(context.Background(), of("a"), document("f0", ""), strings.NewReader("x"))
		f.ok(err)
	}
}

// unharmed looks whether what furnish made is as it was, and nothing was added.
func (f *fixture) unharmed() {
	f.Helper()
	ctx := context.Background()
	if got := ids(f.all("a", "s").Tail); got != "e1" {
		f.Errorf("the session holds %q", got)
	}
	if f.keyStore != nil {
		if keys, err := f.ListKeys(ctx, "a"); err != nil || len(keys) != 1 {
			f.Errorf("%d keys, %v", len(keys), err)
		}
	}
	if f.fileStore == nil {
		return
	}
	if file, err := f.File(ctx, of("a"), "f1"); err != nil || file.Status != store.FileProcessed {
		f.Errorf("the file is %+v, %v", file, err)
	}
	if file, err := f.File(ctx, of("a"), "f0"); err != nil || file.Chunks != 0 {
		f.Errorf("the other file is %+v, %v", file, err)
	}
	if _, err := f.File(ctx, of("a"), "f2"); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("the file that wasn't to be created: %v", err)
	}
}

func testScopes(t *testing.T, b Backend) {
	b.each(t, map[string]func(*fixture){
		"a user's data isn't taken for the tenant's, nor the other way round": func(f *fixture) {
			ctx, user := context.Background(), store.Scope{Tenant: "a", User: "u"}
			f.furnish()
			list, err := f.ListSessions(ctx, user, "", 10)
			refused := errors.Is(err, store.ErrUsers)
			if !refused && (err != nil || len(list) != 0) {
				f.Errorf("the user has %d sessions, %v", len(list), err)
			}
			if g, err := f.Gather(ctx, store.GatherRequest{Scope: user, Limit: generous, Session: "s", Tokens: 1}); len(g.Tail) != 0 || g.Files {
				f.Errorf("the user was given %+v, %v", g, err)
			}
			for name, call := range calls(f.Store, user) {
				if slices.Contains(unscoped, name) {
					continue
				}
				if err := call(ctx); refused && !errors.Is(err, store.ErrUsers) {
					f.Errorf("%s: got %v, want ErrUsers", name, err)
				}
			}
			f.unharmed()
		},
	})
}

func testContexts(t *testing.T, b Backend) {
	background := context.Background()
	b.each(t, map[string]func(*fixture){
		"with a context that has ended nothing is done": func(f *fixture) {
			f.furnish()
			cancelled, cancel := context.WithCancel(background)
			cancel()
			expired, cancel := context.WithDeadline(background, time.Unix(0, 0))
			defer cancel()
			for name, call := range calls(f.Store, of("a")) {
				if err := call(cancelled); !errors.Is(err, context.Canceled) {
					f.Errorf("%s: got %v, want Canceled", name, err)
				}
				if err := call(expired); !errors.Is(err, context.DeadlineExceeded) {
					f.Errorf("%s: got %v, want DeadlineExceeded", name, err)
				}
			}
			f.unharmed()
			if rate, err := f.Take(background, "a", generous); err != nil || rate.Remaining != generous-3 {
				f.Errorf("%d requests were counted, %v", generous-rate.Remaining, err)
			}
		},
		"a context that ends at any moment leaves a whole outcome": func(f *fixture) {
			const appends = 60
			saved := make([]bool, appends)
			var all sync.WaitGroup
			for i := range appends {
				ctx, cancel := context.WithCancel(background)
				all.Go(func() {
					_, err := f.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: turn(fmt.Sprint("e", i)), Anyway: true})
					if err != nil && !errors.Is(err, context.Canceled) {
						f.Error(err)
					}
					saved[i] = err == nil
				})
				all.Go(cancel)
			}
			all.Wait()
			kept := make(map[string]bool)
			g := f.all("a", "s")
			for i, e := range g.Tail {
				kept[e.ID] = true
				if len(e.Messages) != 2 || e.Offset != int64(20*i) {
					f.Errorf("%s is torn: %+v", e.ID, e)
				}
			}
			for i, ok := range saved {
				if id := fmt.Sprint("e", i); ok && !kept[id] {
					f.Errorf("%s was acknowledged and isn't there", id)
				}
			}
		},
		"reads that are cancelled return their context's error": func(f *fixture) {
			f.furnish()
			for range 200 {
				f.save("a", "s", turn(fmt.Sprint(f.clock.now())))
			}
			reads := calls(f.Store, of("a"))
			var all sync.WaitGroup
			for _, name := range []string{"Gather", "Exchanges", "SearchText", "SearchVector", "ListSessions", "Content"} {
				read := reads[name]
				if read == nil {
					continue // of an interface that isn't implemented
				}
				for range 20 {
					ctx, cancel := context.WithCancel(background)
					all.Go(func() {
						if err := read(ctx); err != nil && !errors.Is(err, context.Canceled) {
							f.Errorf("%s: %v", name, err)
						}
					})
					all.Go(cancel)
				}
			}
			all.Wait()
			f.ok(f.Ping(background))
		},
	})
}

func testClosing(t *testing.T, b Backend) {
	background := context.Background()
	b.each(t, map[string]func(*fixture){
		"a store answers until it is closed, and fails then": func(f *fixture) {
			f.furnish()
			f.ok(f.Ping(background))
			f.ok(f.Close())
			for name, call := range calls(f.Store, of("a")) {
				if name == "Take" {
					continue // may be counted without the store
				}
				err := call(background)
				if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDeleted) || errors.Is(err, store.ErrExists) {
					f.Errorf("%s: got %v", name, err)
				}
			}
		},
		"it may be closed twice": func(f *fixture) {
			f.ok(f.Close())
			f.ok(f.Close())
		},
		"closing waits for writes under way, and loses none": func(f *fixture) {
			var all sync.WaitGroup
			var mu sync.Mutex
			var saved []string
			begun := make(chan struct{}, 100)
			for i := range 100 {
				all.Go(func() {
					id := fmt.Sprint("e", i)
					begun <- struct{}{}
					if _, err := f.Append(background, store.Append{Scope: of("a"), Session: "s", Exchange: turn(id), Anyway: true}); err == nil {
						mu.Lock()
						saved = append(saved, id)
						mu.Unlock()
					}
				})
			}
			<-begun
			f.ok(f.Close())
			all.Wait()
			f.reopen()
			kept := make(map[string]bool)
			for _, e := range f.all("a", "s").Tail {
				kept[e.ID] = true
			}
			for _, id := range saved {
				if !kept[id] {
					f.Errorf("%s was acknowledged and isn't there", id)
				}
			}
		},
	})
}
