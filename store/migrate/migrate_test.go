package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/store/migrate"
	"github.com/backstory-proxy/backstory/store/storetest"
)

func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{Synchronous: sqlite.Normal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func filled(t testing.TB) *sqlite.Store {
	t.Helper()
	s := open(t, filepath.Join(t.TempDir(), "from.db"))
	storetest.Fill(t, s)
	return s
}

func run(t testing.TB, from, to store.Migrator, o migrate.Options) *migrate.Report {
	t.Helper()
	r, err := migrate.Run(context.Background(), from, to, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// same fails the test unless the report says that all was copied.
func same(t testing.TB, r *migrate.Report) {
	t.Helper()
	if !r.Verified() || r.Source != r.Target {
		t.Fatalf("%d differences: %q; %+v in the source, %+v in the target", r.Differing, r.Differences, r.Source, r.Target)
	}
	for _, tenant := range r.Tenants {
		if tenant.Source != tenant.Target {
			t.Errorf("tenant %s: %+v", tenant.Name, tenant)
		}
	}
	if s := r.Source; s.Tenants != 4 || s.Keys != 4 || s.Months != 6 || s.Sessions != 12 || s.Files != 6 || s.Chunks != 325 || s.Exchanges < 200 || s.Bytes < 1<<20 {
		t.Errorf("something was overlooked: %+v", r.Source)
	}
}

func TestEverythingIsCopied(t *testing.T) {
	from, to := filled(t), open(t, filepath.Join(t.TempDir(), "to.db"))
	r := run(t, from, to, migrate.Options{})
	same(t, r)
	if r.Copied != sans(r.Source, r.Copied) || r.There != (migrate.Counts{}) {
		t.Errorf("copied %+v, there %+v, of %+v", r.Copied, r.There, r.Source)
	}
	storetest.SearchesAlike(t, from, to)

	again := run(t, from, to, migrate.Options{})
	same(t, again)
	if again.Copied != (migrate.Counts{}) || again.There != r.Copied {
		t.Errorf("the second time copied %+v, there %+v", again.Copied, again.There)
	}

	// And a copy of the copy.
	same(t, run(t, to, open(t, filepath.Join(t.TempDir(), "third.db")), migrate.Options{Workers: 1}))
}

// sans is want but for what isn't counted while copying.
func sans(want, got migrate.Counts) migrate.Counts {
	want.Tenants = got.Tenants
	return want
}

// breaking is a store whose user gives up at a write: before it, or after it.
type breaking struct {
	store.Migrator
	left   *atomic.Int64
	cancel context.CancelFunc
}

func (b *breaking) step(do func() error) error {
	n := b.left.Add(-1)
	if n == 0 {
		b.cancel()
	}
	err := do()
	if n == -1 {
		b.cancel()
	}
	return err
}

func (b *breaking) PutKey(ctx context.Context, k store.Key) error {
	return b.step(func() error { return b.Migrator.PutKey(ctx, k) })
}

func (b *breaking) Import(ctx context.Context, i store.Import) (seqs []int64, err error) {
	err = b.step(func() error { seqs, err = b.Migrator.Import(ctx, i); return err })
	return seqs, err
}

func (b *breaking) RestoreUsage(ctx context.Context, scope store.Scope, list []store.Used) error {
	return b.step(func() error { return b.Migrator.RestoreUsage(ctx, scope, list) })
}

func (b *breaking) RestoreSessions(ctx context.Context, scope store.Scope, list []store.Session) error {
	return b.step(func() error { return b.Migrator.RestoreSessions(ctx, scope, list) })
}

func (b *breaking) CreateFile(ctx context.Context, scope store.Scope, f store.File, content io.Reader) (f2 store.File, err error) {
	err = b.step(func() error { f2, err = b.Migrator.CreateFile(ctx, scope, f, content); return err })
	return f2, err
}

func (b *breaking) AddChunks(ctx context.Context, scope store.Scope, id string, list []store.Chunk) error {
	return b.step(func() error { return b.Migrator.AddChunks(ctx, scope, id, list) })
}

func (b *breaking) FinishFile(ctx context.Context, scope store.Scope, id string, status store.FileStatus, reason string) error {
	return b.step(func() error { return b.Migrator.FinishFile(ctx, scope, id, status, reason) })
}

func (b *breaking) RemoveFile(ctx context.Context, scope store.Scope, id string) error {
	return b.step(func() error { return b.Migrator.RemoveFile(ctx, scope, id) })
}

func TestAnInterruptedCopyGoesOn(t *testing.T) {
	from := filled(t)
	for _, reopen := range []bool{true, false} {
		t.Run(fmt.Sprintf("reopened=%v", reopen), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "to.db")
			to := open(t, path)
			interruptions := 0
			for {
				ctx, cancel := context.WithCancel(context.Background())
				b := &breaking{Migrator: to, left: new(atomic.Int64), cancel: cancel}
				b.left.Store(rand.Int64N(12))
				_, err := migrate.Run(ctx, from, b, migrate.Options{Workers: 3})
				cancel()
				if err == nil {
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if interruptions++; interruptions > 500 {
					t.Fatal("it makes no progress")
				}
				if reopen { // a store that is opened fails the uploads of one that died
					if err := to.Close(); err != nil {
						t.Fatal(err)
					}
					to = open(t, path)
				}
			}
			t.Logf("interrupted %d times", interruptions)
			same(t, run(t, from, to, migrate.Options{}))
			storetest.SearchesAlike(t, from, to)
		})
	}
}

func TestDifferencesAreTold(t *testing.T) {
	ctx := context.Background()
	ok := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	from := filled(t)
	path := filepath.Join(t.TempDir(), "to.db")
	base := open(t, path)
	same(t, run(t, from, base, migrate.Options{}))
	ok(t, base.Close())
	copied, err := os.ReadFile(path)
	ok(t, err)
	for name, c := range map[string]struct {
		change func(*testing.T, store.Migrator)
		merge  bool
		want   string // empty: none
	}{
		"a session went on": {change: func(t *testing.T, s store.Migrator) {
			_, err := s.Append(ctx, store.Append{Scope: of("acme"), Session: "plain", Exchange: store.Exchange{ID: "new"}, Anyway: true})
			ok(t, err)
		}, want: `tenant acme: session "plain" has 1 exchanges in the source, 2 exchanges in the target`},
		"a session was deleted": {change: func(t *testing.T, s store.Migrator) {
			ok(t, s.DeleteSession(ctx, of("acme"), "plain"))
		}, want: `tenant acme: session "plain" was deleted from the target, and is not brought back`},
		"another tenant": {change: func(t *testing.T, s store.Migrator) {
			_, err := s.Append(ctx, store.Append{Scope: of("other"), Session: "s", Exchange: store.Exchange{ID: "new"}, Anyway: true})
			ok(t, err)
		}, want: `tenant other: session "s" is in the target only`},
		"another tenant, merged": {change: func(t *testing.T, s store.Migrator) {
			_, err := s.Append(ctx, store.Append{Scope: of("other"), Session: "s", Exchange: store.Exchange{ID: "new"}, Anyway: true})
			ok(t, err)
		}, merge: true},
		"an exchange has another vector, that comes back": {change: func(t *testing.T, s store.Migrator) {
			list, err := s.Exchanges(ctx, of("acme"), "plain", 0, 1, store.Ascending)
			ok(t, err)
			ok(t, s.PutVectors(ctx, of("acme"), "plain", []store.ExchangeVector{{Seq: list[0].Seq, ID: list[0].ID, Model: "another"}}))
		}},
		"another session, merged": {change: func(t *testing.T, s store.Migrator) {
			_, err := s.Append(ctx, store.Append{Scope: of("acme"), Session: "s", Exchange: store.Exchange{ID: "new"}, Anyway: true})
			ok(t, err)
		}, merge: true},
		"a key was revoked": {change: func(t *testing.T, s store.Migrator) {
			keys, err := s.ListKeys(ctx, "keys-only")
			ok(t, err)
			keys[0].Revoked = time.Unix(1, 0)
			ok(t, s.PutKey(ctx, keys[0]))
		}, want: "tenant keys-only: key "},
		"a file was uploaded again": {change: func(t *testing.T, s store.Migrator) {
			f, err := s.File(ctx, of("acme"), "file-2")
			ok(t, err)
			ok(t, s.DeleteFile(ctx, of("acme"), "file-2"))
			f.ID, f.Status = "file-other", store.FileProcessed
			_, err = s.CreateFile(ctx, of("acme"), f, strings.NewReader(""))
			ok(t, err)
		}, want: "tenant acme: file file-2 is in the target already, as file-other"},
		"a file was deleted, and comes back": {change: func(t *testing.T, s store.Migrator) {
			ok(t, s.DeleteFile(ctx, of("tiny.co"), "file-1"))
		}},
		"times and order were lost, and come back": {change: func(t *testing.T, s store.Migrator) {
			list, err := s.ListSessions(ctx, of("acme"), "", 1000)
			ok(t, err)
			list[3].Updated = time.Unix(1, 0)
			ok(t, s.RestoreSessions(ctx, of("acme"), list))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "to.db")
			ok(t, os.WriteFile(path, copied, 0o600))
			to := open(t, path)
			c.change(t, to)
			r := run(t, from, to, migrate.Options{Merge: c.merge})
			if r.Verified() != (c.want == "") || !strings.Contains(strings.Join(r.Differences, "\n"), c.want) {
				t.Errorf("got %q, want %q", r.Differences, c.want)
			}
		})
	}
}

func TestWithoutFiles(t *testing.T) {
	from, to := filled(t), open(t, filepath.Join(t.TempDir(), "to.db"))
	r := run(t, from, to, migrate.Options{NoFiles: true})
	if !r.Verified() || r.Source.Files != 0 || r.Source.Sessions != 12 {
		t.Errorf("got %+v", r)
	}
}

func TestAnEmptySourceIsAnError(t *testing.T) {
	folder := t.TempDir()
	_, err := migrate.Run(context.Background(), open(t, filepath.Join(folder, "a.db")), open(t, filepath.Join(folder, "b.db")), migrate.Options{})
	if !errors.Is(err, migrate.ErrEmpty) {
		t.Errorf("got %v", err)
	}
}

// losing is a store that loses the first chunks that are added, as to a sweep
// that still removes those of the file that was there before.
type losing struct {
	store.Migrator
	lost bool
}

func (l *losing) AddChunks(ctx context.Context, scope store.Scope, id string, list []store.Chunk) error {
	if scope.Tenant == "acme" && id == "file-1" && !l.lost {
		l.lost = true
		return nil
	}
	return l.Migrator.AddChunks(ctx, scope, id, list)
}

func TestAFileThatWasBegunIsBegunAnewUntilItIsWhole(t *testing.T) {
	from, to := filled(t), open(t, filepath.Join(t.TempDir(), "to.db"))
	f, err := from.File(context.Background(), of("acme"), "file-1")
	if err != nil {
		t.Fatal(err)
	}
	f.Status = store.FileUploaded
	if _, err := to.CreateFile(context.Background(), of("acme"), f, strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	l := &losing{Migrator: to}
	same(t, run(t, from, l, migrate.Options{}))
	if !l.lost {
		t.Error("nothing was lost")
	}
}

// of is the scope of a tenant.
func of(tenant string) store.Scope { return store.Scope{Tenant: tenant} }
