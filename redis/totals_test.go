package redis

import (
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

// A proxy of an older version changes files without changing the totals.
func TestTotalsAreSummedUpAnewInTime(t *testing.T) {
	ctx := t.Context()
	s := openAt(t, sharedServer(t).url(), Options{Prefix: newPrefix(), unindexed: true})
	key := s.layout.tenant(totalsKey, of("a"))
	look := func(want store.FileTotals, kept bool) {
		t.Helper()
		got, err := s.FileTotals(ctx, of("a"))
		if err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		if left := s.client.PTTL(ctx, key).Val(); kept && (left <= 0 || left > totalsFor) || !kept && left != -2 {
			t.Errorf("the totals are kept for %v", left)
		}
	}
	look(store.FileTotals{}, false)
	if _, err := s.CreateFile(ctx, of("a"), store.File{ID: "f", Bytes: 7}, strings.NewReader("content")); err != nil {
		t.Fatal(err)
	}
	look(store.FileTotals{Files: 1, Bytes: 7}, true)
	s.client.HIncrBy(ctx, s.layout.file(fileKey, of("a"), "f"), "chunks", 3)
	s.client.PExpire(ctx, key, 0)
	look(store.FileTotals{Files: 1, Bytes: 7, Chunks: 3}, true)
	if err := s.DeleteFile(ctx, of("a"), "f"); err != nil {
		t.Fatal(err)
	}
	look(store.FileTotals{}, false)
}

// What changes while totals are summed up isn't lost.
func TestTotalsAreNotKeptOfWhatHasChangedMeanwhile(t *testing.T) {
	ctx := t.Context()
	s := openAt(t, sharedServer(t).url(), Options{Prefix: newPrefix(), unindexed: true})
	key := s.layout.tenant(totalsKey, of("a"))
	s.client.HSet(ctx, key, "summing", "another")
	if _, err := s.CreateFile(ctx, of("a"), store.File{ID: "f", Bytes: 7}, strings.NewReader("content")); err != nil {
		t.Fatal(err)
	}
	if err := s.run(ctx, setTotalsScript, []string{key}, "another", 1000, 5, 5, 5).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.FileTotals(ctx, of("a")); err != nil || got != (store.FileTotals{Files: 1, Bytes: 7}) {
		t.Errorf("got %+v, %v", got, err)
	}
}
