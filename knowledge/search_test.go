package knowledge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/store"
)

// library is a service over three small files of acme and one of another.
func library(t *testing.T, e *fakeEmbedder) (*Service, *fakeStore) {
	f := newFakeStore()
	s := New(f, f, e, Options{Count: words})
	ingest(t, s, "acme", "refunds.md", "Customers are refunded within fourteen days.")
	ingest(t, s, "acme", "harbour.md", "The harbour was built by the Romans.")
	ingest(t, s, "acme", "cooking.md", "Rice is cooked in twice its volume of water.")
	ingest(t, s, "other", "secret.md", "Customers of the other tenant are refunded never.")
	return s, f
}

func names(hits []store.Hit) string {
	var n []string
	for _, h := range hits {
		n = append(n, h.Filename)
	}
	return strings.Join(n, " ")
}

func TestSearchFindsTheTenantsChunks(t *testing.T) {
	for query, want := range map[string]string{
		"When are customers refunded?":   "refunds.md",
		"refunding of a customer":        "refunds.md", // by n-grams only
		"Romans or rice?":                "cooking.md harbour.md",
		"what about the who":             "",
		"xylophone":                      "",
		"?!":                             "",
		"":                               "",
		strings.Repeat("Romans ", 1<<16): "harbour.md",
	} {
		s, _ := library(t, &fakeEmbedder{Hashing: embed.NewHashing(1024)})
		r, err := s.Search(t.Context(), nil, store.Scope{Tenant: "acme"}, query, 5)
		if err != nil || names(r.Hits) != want || r.Degraded != "" {
			t.Errorf("%.40q: got %q, %q, %v", query, names(r.Hits), r.Degraded, err)
		}
		for i, h := range r.Hits {
			if h.Score <= 0 || h.Score > 1 || i > 0 && h.Score > r.Hits[i-1].Score {
				t.Errorf("%.40q: score %v", query, h.Score)
			}
		}
	}
}

func TestTheRestAnswersWhereAPartFails(t *testing.T) {
	down := errors.New("down")
	for name, c := range map[string]struct {
		embed, vector, text error
		query               string
		degraded            string
		found               bool
		fails               bool
	}{
		"embedding":                     {embed: down, query: "customers refunded", degraded: PartEmbedding, found: true},
		"vectors":                       {vector: down, query: "customers refunded", degraded: PartVector, found: true},
		"words":                         {text: down, query: "customers refunded", degraded: PartLexical, found: true},
		"embedding, and words":          {embed: down, text: down, query: "customers refunded", fails: true},
		"vectors, and words":            {vector: down, text: down, query: "customers refunded", fails: true},
		"embedding, and there are none": {embed: down, query: "?!", degraded: PartEmbedding},
		"vectors, and there are none":   {vector: down, query: "?!"}, // nothing to embed either
	} {
		t.Run(name, func(t *testing.T) {
			e := &fakeEmbedder{Hashing: embed.NewHashing(1024)}
			s, f := library(t, e)
			e.err, f.vectorErr, f.textErr = c.embed, c.vector, c.text
			r, err := s.Search(t.Context(), nil, store.Scope{Tenant: "acme"}, c.query, 5)
			if (err != nil) != c.fails || r.Degraded != c.degraded || (len(r.Hits) > 0) != c.found {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

func TestAnEmbedderThatHangsDoesNotHoldUpTheSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &fakeEmbedder{Hashing: embed.NewHashing(1024)}
		s, _ := library(t, e)
		e.wait = true
		r, err := s.Search(t.Context(), nil, store.Scope{Tenant: "acme"}, "customers", 5)
		if err != nil || r.Degraded != PartEmbedding || names(r.Hits) != "refunds.md" {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

func TestSearchEndsWithItsContext(t *testing.T) {
	s, _ := library(t, &fakeEmbedder{Hashing: embed.NewHashing(1024)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Search(ctx, nil, store.Scope{Tenant: "acme"}, "customers", 5); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
