package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// Filled are the tenants that Fill writes for, the dimension of the vectors and
// the embedder's name.
var Filled = struct {
	Tenants    []string
	Dimensions int
	Model      string
}{[]string{"acme", "keys-only", "tiny.co", "usage-only"}, 8, "openai/text-embedding-3-small"}

// Fill writes a little of all kinds to a store: keys that are good, revoked and
// expired; usage; sessions with odd names and hidden, replaced and empty exchanges,
// some with vectors; files that are processed, failed, empty, large and without vectors.
func Fill(t testing.TB, s store.Migrator) {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := context.Background()
	at := time.Date(2026, 2, 3, 4, 5, 6, 789e6, time.UTC)
	for i, k := range []store.Key{
		{Tenant: "acme", Plan: "pro", Name: "first"},
		{Tenant: "acme", Plan: "pro", Name: "revoked", Revoked: at.Add(time.Hour)},
		{Tenant: "keys-only", Plan: "free", Expires: at.Add(time.Minute)},
		{Tenant: "tiny.co", Plan: "free", Name: "both \"\x00 é", Expires: at, Revoked: at},
	} {
		k.Digest, k.Created = sha256.Sum256([]byte{byte(i)}), at.Add(-time.Duration(i)*time.Second)
		ok(s.PutKey(ctx, k))
	}
	now := store.MonthOf(time.Now())
	for i, tenant := range []string{"acme", "usage-only", "tiny.co"} {
		ok(s.AddUsage(ctx, of(tenant), store.Used{Month: now, Tokens: 1 << 40}))
		ok(s.AddUsage(ctx, of(tenant), store.Used{Month: now - store.Month(i+1), Tokens: int64(i) + 1}))
	}
	for i, name := range []string{"plain", "tiny.co", " ", "a:b{c}|*?", "\x00\xff", strings.Repeat("long ", 1000), "ünï/cødé\n", "last"} {
		for _, tenant := range []string{"acme", "tiny.co"}[:1+i%2] {
			fillSession(t, s, tenant, name, 1+i*7)
		}
	}
	_, err := s.Append(ctx, store.Append{Scope: of("acme"), Session: "gone", Exchange: turn("x"), Anyway: true})
	ok(err)
	ok(s.DeleteSession(ctx, of("acme"), "gone"))

	fillFile(t, s, "acme", "file-1", 300, true)
	fillFile(t, s, "acme", "file-2", 3, false)
	fillFile(t, s, "acme", "file-empty", 0, false)
	fillFile(t, s, "tiny.co", "file-1", 20, true)
	// One that failed, and was uploaded again under another name.
	for _, id := range []string{"file-failed", "file-again"} {
		f := document("file-failed", Filled.Model)
		f.ID, f.Bytes = id, int64(len(id))
		_, err := s.CreateFile(ctx, of("acme"), f, strings.NewReader(id))
		ok(err)
		ok(s.AddChunks(ctx, of("acme"), id, words("one two", "three")))
		if id == "file-failed" {
			ok(s.FinishFile(ctx, of("acme"), id, store.FileError, "no text in \"it\""))
		} else {
			ok(s.FinishFile(ctx, of("acme"), id, store.FileProcessed, ""))
		}
	}
	fillFile(t, s, "acme", "file-gone", 5, true)
	ok(s.DeleteFile(ctx, of("acme"), "file-gone"))
}

func fillSession(t testing.TB, s store.Migrator, tenant, name string, n int) {
	t.Helper()
	ctx := context.Background()
	for i := range n {
		e := turn(fmt.Sprintf("%s %d", name, i))
		e.Created = e.Created.Add(time.Duration(i) * time.Second)
		switch i % 7 {
		case 1:
			e.Hidden, e.Finish = true, "client_closed"
		case 2:
			e.Messages[0].JSON = []byte(`{ "role":"user", "content":"` + strings.Repeat("émoji 🙂 ", 500*(i%4)) + `"}`)
			e.Carried = store.Digest{1, 2, 255}
		case 3:
			e.Messages[0].Created = e.Created.Add(-time.Minute)
			e.Passages = []store.ChunkRef{{FileID: "file-1", N: 7}, {FileID: "\x00", N: 0}}
			e.Recalled = []store.MessageRef{{Seq: 1, N: 1, From: 3, To: 9}}
			e.Parent = "e0"
		case 4:
			e.Messages, e.Model = nil, ""
		}
		a := store.Append{Scope: of(tenant), Session: name, Exchange: e, Anyway: true}
		if n%2 == 0 {
			a.TTL = 1000 * time.Hour
		}
		if i%7 == 6 {
			g, err := s.Gather(ctx, store.GatherRequest{Scope: of(tenant), Session: name, Limit: generous})
			if err != nil {
				t.Fatal(err)
			}
			a.Mark, a.Replaces = g.Mark, g.Mark.Seq
		}
		if _, err := s.Append(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
	fillVectors(t, s, tenant, name)
}

// fillVectors gives every other exchange of a session a vector.
func fillVectors(t testing.TB, s store.Migrator, tenant, name string) {
	t.Helper()
	ctx := context.Background()
	var vectors []store.ExchangeVector
	err := store.EachExchange(ctx, s, of(tenant), name, func(list []store.Exchange) error {
		for i := range list {
			if i%2 == 0 {
				vectors = append(vectors, store.ExchangeVector{
					Seq: list[i].Seq, ID: list[i].ID, Model: Filled.Model, Vector: store.Shrink(direction(i)),
				})
			}
		}
		return nil
	})
	if err == nil {
		err = s.PutVectors(ctx, of(tenant), name, vectors)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func fillFile(t testing.TB, s store.Migrator, tenant, id string, n int, vectors bool) {
	t.Helper()
	ctx := context.Background()
	content := []byte(strings.Repeat(id+" ", n*500))
	f := store.File{
		ID: id, Name: "résumé " + id + ".pdf", Purpose: "assistants", Bytes: int64(len(content)), Digest: sha256.Sum256(content),
		Created: time.Date(2026, 1, 2, 3, 4, 5+n%7, 0, time.UTC),
	}
	var list []store.Chunk
	for i := range n {
		k := store.Chunk{
			N: i, Text: fmt.Sprintf("Passage %d of %s\x00 <é>", i, id), Terms: fmt.Sprintf("passage%d of %s, é w%d", i, id, i%5),
			Section: "One > Two", Page: i / 3, Tokens: i,
		}
		if vectors {
			f.Model = Filled.Model
			k.Vector = direction(i)
		}
		list = append(list, k)
	}
	_, err := s.CreateFile(ctx, of(tenant), f, bytes.NewReader(content))
	for _, do := range []func() error{
		func() error { return s.AddChunks(ctx, of(tenant), id, list) },
		func() error { return s.FinishFile(ctx, of(tenant), id, store.FileProcessed, "") },
	} {
		if err == nil {
			err = do()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// direction is a vector of unit length; no two have the same.
func direction(i int) []float32 {
	v := make([]float32, Filled.Dimensions)
	sum := 0.0
	for d := range v {
		v[d] = float32(math.Sin(float64(i+1) * float64(d+1)))
		sum += float64(v[d]) * float64(v[d])
	}
	for d := range v {
		v[d] /= float32(math.Sqrt(sum))
	}
	return v
}

// SearchesAlike compares what two filled stores find: the same chunks, in the
// same order by vector; by words whichever chunks hold them.
func SearchesAlike(t testing.TB, a, b store.Migrator) {
	t.Helper()
	ctx := context.Background()
	search := func(s store.Migrator, tenant string, i int) (vector string, text map[string]bool) {
		t.Helper()
		byVector, err1 := s.SearchVector(ctx, of(tenant), Filled.Model, direction(i*3), 10)
		byText, err2 := s.SearchText(ctx, of(tenant), []string{fmt.Sprintf("passage%d", i), "é"}, 400)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		text = make(map[string]bool)
		for _, h := range byText {
			text[fmt.Sprintf("%s/%d %s", h.FileID, h.Chunk.N, h.Chunk.Text)] = true
		}
		return found(byVector), text
	}
	hits := 0
	for _, tenant := range Filled.Tenants {
		for i := range 30 {
			v1, t1 := search(a, tenant, i)
			v2, t2 := search(b, tenant, i)
			if v1 != v2 {
				t.Errorf("tenant %s, vector %d: found %q and %q", tenant, i, v1, v2)
			}
			if fmt.Sprint(t1) != fmt.Sprint(t2) {
				t.Errorf("tenant %s, word %d: found %d and %d chunks, not the same", tenant, i, len(t1), len(t2))
			}
			hits += len(t1) + len(v1)
		}
	}
	if hits == 0 {
		t.Error("nothing is found in either")
	}
}
