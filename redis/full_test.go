package redis

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// A server at its maxmemory refuses what begins with a write, reads on, and
// deletes.
func TestAFullServer(t *testing.T) {
	server := start(t)
	s := openAt(t, server.url(), Options{Prefix: newPrefix(), unindexed: true})
	ctx := context.Background()
	add(t, s, "s", "e")
	key := store.Key{Digest: sha256.Sum256([]byte("k")), Tenant: "a", Plan: "free", Created: time.Now()}
	if err := s.PutKey(ctx, key); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"processed", "uploading"} {
		_, err := s.CreateFile(ctx, of("a"), store.File{ID: id, Name: id}, strings.NewReader(id))
		if err == nil {
			err = s.AddChunks(ctx, of("a"), id, []store.Chunk{{N: 0, Text: "x", Terms: "x"}})
		}
		if err == nil && id == "processed" {
			err = s.FinishFile(ctx, of("a"), id, store.FileProcessed, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	limit := func(bytes string) {
		t.Helper()
		if err := server.client(t).ConfigSet(ctx, "maxmemory", bytes).Err(); err != nil {
			t.Fatal(err)
		}
	}
	limit("100kb")
	for what, f := range map[string]func() error{
		"gather of a session": func() error {
			_, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 100, Session: "s", Tokens: 1, Saves: true})
			return err
		},
		"gather of a new session": func() error {
			_, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 100, Session: "new", Saves: true})
			return err
		},
		"append": func() error {
			_, err := s.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: sample("e2"), Anyway: true})
			return err
		},
		"import": func() error {
			_, err := s.Import(ctx, store.Import{Scope: of("a"), Session: "s", Exchanges: []store.Exchange{sample("e3")}})
			return err
		},
		"create a file": func() error {
			_, err := s.CreateFile(ctx, of("a"), store.File{ID: "f"}, strings.NewReader("x"))
			return err
		},
		"ping": func() error { return s.Ping(ctx) },
	} {
		if err := f(); !errors.Is(err, store.ErrFull) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, c := range []struct {
		what string
		f    func() error
	}{
		{"gather without a session", func() error {
			_, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 100})
			return err
		}},
		{"gather of a session in which nothing is saved", func() error {
			g, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 100, Session: "s", Tokens: 1})
			if len(g.Tail) != 1 {
				t.Errorf("read %d exchanges", len(g.Tail))
			}
			return err
		}},
		{"take", func() error { _, err := s.Take(ctx, "a", 100); return err }},
		{"read", func() error {
			list, err := s.Exchanges(ctx, of("a"), "s", 0, 10, store.Ascending)
			if len(list) != 1 {
				t.Errorf("read %d exchanges", len(list))
			}
			return err
		}},
		{"give up an upload", func() error { return s.FinishFile(ctx, of("a"), "uploading", store.FileError, "x") }},
		{"delete a file", func() error { return s.DeleteFile(ctx, of("a"), "processed") }},
		{"delete a session", func() error { return s.DeleteSession(ctx, of("a"), "s") }},
		{"revoke a key", func() error { key.Revoked = time.Now(); return s.PutKey(ctx, key) }},
		{"forget a tenant", func() error { _, err := s.ForgetTenant(ctx, "a"); return err }},
	} {
		if err := c.f(); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if left := keysLike(t, s, "chunk*", "log*", "session:*"); len(left) != 0 {
		t.Errorf("%q are left", left)
	}
	limit("0")
	add(t, s, "another", "e")
	if err := s.Ping(ctx); err != nil {
		t.Errorf("with room again: %v", err)
	}
}
