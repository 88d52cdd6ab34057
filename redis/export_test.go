package redis

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/store/migrate"
	"github.com/backstory-proxy/backstory/store/storetest"
)

func openFile(t testing.TB) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "test.db"), sqlite.Options{Synchronous: sqlite.Normal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func move(t testing.TB, from, to store.Migrator) *migrate.Report {
	t.Helper()
	r, err := migrate.Run(context.Background(), from, to, migrate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Verified() || r.Source != r.Target || r.Source.Chunks < 300 || r.Source.Exchanges < 200 {
		t.Fatalf("%d differences: %q; %+v in the source, %+v in the target", r.Differing, r.Differences, r.Source, r.Target)
	}
	return r
}

// moves copies a filled file to Redis, to other keys there, and back. On a server
// that can search, all three find the same.
func moves(t *testing.T, url string, o Options, searches bool) {
	here := openFile(t)
	storetest.Fill(t, here)
	// The prefix has all that a pattern may hold.
	o.Prefix = newPrefix() + `[*?]\:`
	there := openAt(t, url, o)
	move(t, here, there)
	o.Prefix = newPrefix()
	other := openAt(t, url, o)
	move(t, there, other)
	if r := move(t, there, other); r.Copied != (migrate.Counts{}) {
		t.Errorf("the second time it copied %+v", r.Copied)
	}
	back := openFile(t)
	move(t, other, back)
	storetest.SearchesAlike(t, here, back)
	if searches {
		storetest.SearchesAlike(t, here, there)
		storetest.SearchesAlike(t, here, other)
	}
}

func TestMovingToAServerAndBack(t *testing.T) {
	moves(t, sharedServer(t).url(), Options{unindexed: true}, false)
}

func TestMovingToAClusterAndBack(t *testing.T) {
	moves(t, startCluster(t, 3), Options{unindexed: true}, false)
}

func TestMovingToAServerThatSearches(t *testing.T) {
	if os.Getenv(serverVariable) == "" || os.Getenv(recordVariable) == "1" {
		t.Skipf("it is for a real server (%s), and not for the tape", serverVariable)
	}
	url := searchServer(t)
	t.Run("hnsw", func(t *testing.T) { moves(t, url, Options{Algorithm: HNSW}, true) })
	t.Run("flat", func(t *testing.T) { moves(t, url, Options{Algorithm: Flat}, true) })
}

func TestAnInterruptedMoveGoesOn(t *testing.T) {
	here := openFile(t)
	storetest.Fill(t, here)
	o := Options{unindexed: true, Prefix: newPrefix()}
	url := sharedServer(t).url()
	interruptions := 0
	for after := time.Millisecond; ; after = after * 3 / 2 {
		there, err := Open(context.Background(), url, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), after)
		_, err = migrate.Run(ctx, here, there, migrate.Options{})
		cancel()
		if err := there.Close(); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			break
		}
		if ctx.Err() == nil || interruptions == 100 {
			t.Fatal(err)
		}
		interruptions++
	}
	t.Logf("interrupted %d times", interruptions)
	move(t, here, openAt(t, url, o))
}

func TestWhatADeletionLeftIsNotInTheWay(t *testing.T) {
	ctx := context.Background()
	s := openAt(t, sharedServer(t).url(), Options{unindexed: true, Prefix: newPrefix()})
	f := store.File{ID: "f", Name: "f"}
	create := func() {
		t.Helper()
		if _, err := s.CreateFile(ctx, of("a"), f, strings.NewReader("content")); err != nil {
			t.Fatal(err)
		}
		if err := s.AddChunks(ctx, of("a"), "f", []store.Chunk{{N: 0, Text: "x"}, {N: 3, Text: "y"}}); err != nil {
			t.Fatal(err)
		}
	}
	create()
	list, err := s.FileChunks(ctx, of("a"), "f", -1, 10)
	if err != nil || len(list) != 2 || list[1].N != 3 {
		t.Fatalf("got %+v, %v", list, err)
	}
	// As a process leaves it that dies in the middle.
	if err := s.client.Rename(ctx, s.layout.file(fileKey, of("a"), "f"), s.layout.file(goneKey, of("a"), "f")).Err(); err != nil {
		t.Fatal(err)
	}
	s.client.Del(ctx, s.layout.tenant(sameKey, of("a")))
	if _, err := s.CreateFile(ctx, of("a"), f, strings.NewReader("")); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Fatalf("got %v", err)
	}
	if err := s.RemoveFile(ctx, of("a"), "f"); err != nil {
		t.Fatal(err)
	}
	if keys := s.client.Keys(ctx, globEscaper.Replace(s.layout.global(chunkKey))+"*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %q", keys)
	}
	create()
}

func TestASessionThatIsNotListedIsFound(t *testing.T) {
	ctx := context.Background()
	s := openAt(t, sharedServer(t).url(), Options{NoFiles: true, Prefix: newPrefix()})
	if _, err := s.Append(ctx, store.Append{Scope: of("a:b"), Session: "s}{", Exchange: store.Exchange{ID: "e"}}); err != nil {
		t.Fatal(err)
	}
	s.client.Del(ctx, s.layout.tenant(sessionsKey, of("a:b")))
	tenants, err := s.Tenants(ctx)
	if err != nil || len(tenants) != 1 || tenants[0] != "a:b" {
		t.Fatalf("got %q, %v", tenants, err)
	}
	list, err := s.ListSessions(ctx, of("a:b"), "", 10)
	if err != nil || len(list) != 1 || list[0].ID != "s}{" {
		t.Errorf("got %+v, %v", list, err)
	}
}
