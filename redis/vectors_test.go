package redis

import (
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

func TestVectorsEndWithTheirSession(t *testing.T) {
	ctx := t.Context()
	s := openAt(t, sharedServer(t).url(), Options{Prefix: newPrefix(), unindexed: true})
	seq, err := s.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: store.Exchange{ID: "e"}, Anyway: true})
	if err != nil {
		t.Fatal(err)
	}
	put := func() {
		t.Helper()
		if err := s.PutVectors(ctx, of("a"), "s", []store.ExchangeVector{{Seq: seq, ID: "e"}}); err != nil {
			t.Fatal(err)
		}
	}
	tag := sessionTag(of("a"), "s")
	turns := s.layout.tagged(vectorsKey, tag)
	if put(); s.client.HLen(ctx, turns).Val() != 1 || s.client.PTTL(ctx, turns).Val() > 0 {
		t.Error("the vector isn't kept, or not for as long as the session")
	}
	s.client.PExpire(ctx, s.layout.tagged(sessionKey, tag), time.Hour)
	if put(); s.client.PTTL(ctx, turns).Val() <= 0 {
		t.Error("the vector outlives a session with a time to live")
	}
	if err := s.DeleteSession(ctx, of("a"), "s"); err != nil || s.client.Exists(ctx, turns).Val() != 0 {
		t.Errorf("the vector outlives its session: %v", err)
	}
}
