package knowledge

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/store"
)

// ingest uploads a file.
func ingest(t *testing.T, s *Service, tenant, name, text string) {
	t.Helper()
	p, err := s.Prepare(t.Context(), "acme", name, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ingest(t.Context(), nil, store.Scope{Tenant: tenant}, name, p); err != nil {
		t.Fatal(err)
	}
}

func TestAFileIsFoundOnceItIsIngested(t *testing.T) {
	f := newFakeStore()
	s := New(f, f, embed.NewHashing(256), Options{Count: words})
	p, err := s.Prepare(t.Context(), "acme", "policy.md", strings.NewReader("# Refunds\n\nMoney comes back within fourteen days."))
	if err != nil || f.steps != 0 {
		t.Fatal(p, err, "and nothing may be written yet:", f.steps)
	}
	if err := s.Ingest(t.Context(), nil, store.Scope{Tenant: "acme"}, "f1", p); err != nil {
		t.Fatal(err)
	}
	c := f.chunks["acme/f1"][0]
	if f.status["acme/f1"] != store.FileProcessed || c.Section != "Refunds" || len(c.Vector) != 256 || c.Tokens == 0 {
		t.Errorf("got %+v", c)
	}
}

func TestLargeFilesAreIngestedInSteps(t *testing.T) {
	f := newFakeStore()
	e := &fakeEmbedder{Hashing: embed.NewHashing(8)}
	s := New(f, f, e, Options{Count: words, Chunking: Chunking{Size: minSize, Overlap: -1}})
	var b strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&b, "Paragraph %d has more than eight words, so that two don't fit.\n\n", i)
	}
	ingest(t, s, "acme", "f1", b.String())
	if f.steps != 3 || e.calls != 3 || len(f.chunks["acme/f1"]) != 2500 {
		t.Errorf("%d steps, %d calls, %d chunks", f.steps, e.calls, len(f.chunks["acme/f1"]))
	}
	for _, c := range f.chunks["acme/f1"] {
		if c.Vector == nil {
			t.Fatalf("chunk %d has no vector", c.N)
		}
	}
}

func TestAFailedIngestionLeavesTheFileToTheCaller(t *testing.T) {
	refused := &embed.StatusError{Status: 401}
	for name, c := range map[string]struct {
		embedErr, addErr error
		embedding        bool
	}{
		"the embedder fails":  {embedErr: refused, embedding: true},
		"the store fails":     {addErr: errors.New("disk full")},
		"the file is deleted": {addErr: store.ErrDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeStore()
			f.addErr = c.addErr
			s := New(f, f, &fakeEmbedder{Hashing: embed.NewHashing(8), err: c.embedErr}, Options{Count: words})
			p, err := s.Prepare(t.Context(), "acme", "a.md", strings.NewReader("text"))
			if err != nil {
				t.Fatal(err)
			}
			err = s.Ingest(t.Context(), nil, store.Scope{Tenant: "acme"}, "f1", p)
			if errors.Is(err, ErrEmbedding) != c.embedding || !errors.Is(err, c.addErr) && !errors.Is(err, c.embedErr) {
				t.Errorf("got %v", err)
			}
			if f.status["acme/f1"] != "" {
				t.Errorf("the file was finished: %v", f.status["acme/f1"])
			}
		})
	}
}

func TestWithoutAnEmbedderThereAreWordsOnly(t *testing.T) {
	f := newFakeStore()
	s := New(f, f, nil, Options{})
	ingest(t, s, "acme", "a.md", "Refunds are paid.")
	r, err := s.Search(t.Context(), nil, store.Scope{Tenant: "acme"}, "refunds", 5)
	if s.Model() != "" || f.chunks["acme/a.md"][0].Vector != nil || err != nil || len(r.Hits) != 1 || r.Hits[0].Score != 1 || r.Degraded != "" {
		t.Errorf("got %+v, %v", r, err)
	}
}
