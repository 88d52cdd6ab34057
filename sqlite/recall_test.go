package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

func TestVectorsLeaveTheFileWithTheirExchanges(t *testing.T) {
	ctx := t.Context()
	s := openAt(t, filepath.Join(t.TempDir(), "backstory.db"), Options{})
	count := func(want int) {
		t.Helper()
		var n int
		if err := s.row(ctx, `SELECT count(*) FROM turns`).Scan(&n); err != nil || n != want {
			t.Errorf("%d vectors, %v; want %d", n, err, want)
		}
	}
	const exchanges = purgeBatch + 5
	var list []store.ExchangeVector
	for i := range exchanges {
		id := string(rune('a' + i))
		seq, err := s.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: store.Exchange{ID: id}, Anyway: true})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, store.ExchangeVector{Seq: seq, ID: id})
	}
	if err := s.PutVectors(ctx, of("a"), "s", list); err != nil {
		t.Fatal(err)
	}
	count(exchanges)
	_, err := s.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: store.Exchange{ID: "new"}, Mark: store.Mark{Seq: exchanges}, Replaces: 3})
	if err != nil {
		t.Fatal(err)
	}
	count(exchanges - 1)
	if err := s.DeleteSession(ctx, of("a"), "s"); err != nil {
		t.Fatal(err)
	}
	count(0)
}
