package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// secrets are words of a tenant that stand in one place each.
var secrets = struct{ session, ending, late, text, id, key, file, title, chunk, content string }{
	"zanzibar-session", "yucatan-session", "xanadu-session", "wyoming", "valparaiso", "ulaanbaatar", "file-timbuktu", "samarkand.txt", "reykjavik", "quito",
}

// confide fills tenant a with all kinds of things, and returns the words in them.
func (f *fixture) confide() (words []string) {
	f.Helper()
	ctx := context.Background()
	e := turn(secrets.id)
	e.Messages[0].JSON = []byte(`{"role":"user","content":"` + secrets.text + `"}`)
	f.save("a", secrets.session, e)
	_, err := f.Append(ctx, store.Append{Scope: of("a"), Session: secrets.ending, Exchange: e, TTL: time.Hour, Anyway: true, Usage: store.Used{Month: march, Tokens: 5}})
	f.ok(err)
	f.ok(f.PutKey(ctx, store.Key{Digest: [32]byte{1}, Tenant: "a", Plan: "free", Name: secrets.key, Created: time.Unix(1, 0)}))
	words = []string{secrets.session, secrets.ending, secrets.text, secrets.id, secrets.key}
	if f.vectorStore != nil {
		f.ok(f.PutVectors(ctx, of("a"), secrets.session, []store.ExchangeVector{{Seq: 1, ID: secrets.id, Model: "m", Vector: store.Shrink([]float32{1, 0})}}))
	}
	if f.fileStore == nil {
		return words
	}
	file := document(secrets.file, "m")
	file.Name = secrets.title
	_, err = f.CreateFile(ctx, of("a"), file, strings.NewReader(secrets.content))
	f.ok(err)
	f.ok(f.AddChunks(ctx, of("a"), secrets.file, []store.Chunk{
		{N: 0, Text: secrets.chunk, Terms: secrets.chunk, Section: secrets.title, Vector: []float32{1, 0}},
	}))
	f.ok(f.FinishFile(ctx, of("a"), secrets.file, store.FileProcessed, ""))
	return append(words, secrets.file, secrets.title, secrets.chunk)
}

// holds returns those of the words that are anywhere in the store.
func (f *fixture) holds(words ...string) (found []string) {
	f.Helper()
	dump := f.backend.Dump(f.T, f.Store)
	for _, word := range words {
		for _, piece := range dump {
			if strings.Contains(piece, word) {
				if len(piece) > 300 {
					piece = "a piece of " + piece[:100] + "…"
				}
				found = append(found, word+" in "+piece)
				break
			}
		}
	}
	return found
}

// testErasure tests that nothing is left of what is deleted, not even a name.
func testErasure(t *testing.T, b Backend) {
	if b.Dump == nil {
		t.Skip("this store can't be looked into")
	}
	ctx := context.Background()
	b.each(t, map[string]func(*fixture){
		"of a session": func(f *fixture) {
			if all := f.confide(); len(f.holds(all...)) < len(all) {
				f.Fatalf("only these are there, so that nothing is tested: %q", f.holds(all...))
			}
			for _, session := range []string{secrets.session, secrets.ending} {
				f.ok(f.DeleteSession(ctx, of("a"), session))
			}
			if left := f.holds(secrets.session, secrets.ending, secrets.text, secrets.id); len(left) > 0 {
				f.Errorf("left: %q", left)
			}
			if len(f.holds(secrets.key)) == 0 {
				f.Error("the rest is gone, too")
			}
		},
		"of a session that a late save comes for": func(f *fixture) {
			for _, ttl := range []time.Duration{0, time.Hour} {
				mark := f.gather("a", secrets.late, 0, 0).Mark
				f.save("a", secrets.late, turn("e"))
				f.ok(f.DeleteSession(ctx, of("a"), secrets.late))
				f.clock.advance(time.Second)
				a := store.Append{Scope: of("a"), Session: secrets.late, Exchange: turn(secrets.id), Mark: mark, TTL: ttl}
				if _, err := f.Append(ctx, a); !errors.Is(err, store.ErrDeleted) {
					f.Fatalf("got %v", err)
				}
				if f.importer != nil {
					_, err := f.Import(ctx, store.Import{Scope: of("a"), Session: secrets.late, Exchanges: []store.Exchange{turn(secrets.id)}, Mark: mark, TTL: ttl})
					if !errors.Is(err, store.ErrDeleted) {
						f.Fatalf("got %v", err)
					}
				}
				if left := f.holds(secrets.late, secrets.id); len(left) > 0 {
					f.Errorf("left: %q", left)
				}
			}
		},
		"of a file": func(f *fixture) {
			if f.fileStore == nil {
				f.Skip("this store has no files")
			}
			f.confide()
			f.ok(f.DeleteFile(ctx, of("a"), secrets.file))
			if left := f.holds(secrets.file, secrets.title, secrets.chunk, secrets.content); len(left) > 0 {
				f.Errorf("left: %q", left)
			}
		},
		"of a tenant": func(f *fixture) {
			words := f.confide()
			f.save("b", "kept-session", turn("e"))
			for range 2 { // as the admin API does
				_, err := f.ForgetTenant(ctx, "a")
				f.ok(err)
				for _, session := range []string{secrets.session, secrets.ending} {
					if err := f.DeleteSession(ctx, of("a"), session); !errors.Is(err, store.ErrNotFound) {
						f.ok(err)
					}
				}
				if f.fileStore != nil {
					if err := f.DeleteFile(ctx, of("a"), secrets.file); !errors.Is(err, store.ErrNotFound) {
						f.ok(err)
					}
				}
			}
			if left := f.holds(words...); len(left) > 0 {
				f.Errorf("left: %q", left)
			}
			if len(f.holds("kept-session")) == 0 {
				f.Error("another tenant's session is gone")
			}
		},
	})
}
