package knowledge

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/knowledge/extract"
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

// numbered is a text of n words, no two the same.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%d ", i)
	}
	return b.String()
}

func TestALongFileIsIngestedWhole(t *testing.T) {
	for _, n := range []int{10, ingestStep, ingestStep + 1, 3*ingestStep + 7} { // chunks
		f := newFakeStore()
		s := New(f, f, nil, Options{Count: words, Chunking: Chunking{Size: 16, Overlap: -1}})
		text := numbered(16 * n)
		p, err := s.Prepare(t.Context(), "acme", "a.txt", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Ingest(t.Context(), nil, store.Scope{Tenant: "acme"}, "f", p); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for i, c := range f.chunks["acme/f"] {
			if c.N != i {
				t.Fatalf("chunk %d has the number %d", i, c.N)
			}
			got.WriteString(c.Text + " ")
		}
		if len(f.chunks["acme/f"]) != n || p.Chunks != n || got.String() != text {
			t.Errorf("%d chunks, counted as %d, want %d", len(f.chunks["acme/f"]), p.Chunks, n)
		}
	}
}

func TestVectorsOfManyDimensionsAreWrittenFewAtATime(t *testing.T) {
	const dimensions, n = 1 << 14, 300
	f := newFakeStore()
	s := New(f, f, embed.NewHashing(dimensions), Options{Count: words, Chunking: Chunking{Size: 16, Overlap: -1}})
	ingest(t, s, "acme", "f", numbered(16*n))
	if want := (n*4*dimensions + ingestVectors - 1) / ingestVectors; f.steps != want || len(f.chunks["acme/f"]) != n {
		t.Errorf("%d chunks in %d steps, want %d", len(f.chunks["acme/f"]), f.steps, want)
	}
}

func TestAFileOfTooManyChunksIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	f := newFakeStore()
	s := New(f, f, nil, Options{Count: words, Chunking: Chunking{Size: 16, Overlap: -1}})
	_, err := s.Prepare(t.Context(), "acme", "a.txt", strings.NewReader(numbered(16*(maxChunks+1))))
	if want := "more than 25000 chunks"; !isRefusal(err, want) {
		t.Errorf("got %v", err)
	}
	p, err := s.Prepare(t.Context(), "acme", "a.txt", strings.NewReader(numbered(16*(maxChunks-20))))
	if err != nil || p.Chunks < maxChunks-20 {
		t.Errorf("nearly as many as there may be: %v", err)
	}
}

func TestChunksHoldOnlySoMuch(t *testing.T) {
	var all tally
	if err := all.add(&store.Chunk{Text: strings.Repeat("x", maxChunkBytes-2), Terms: "x"}); err != nil {
		t.Error(err)
	}
	if err := all.add(&store.Chunk{Section: "xy"}); !isRefusal(err, "more than 128 MB") {
		t.Errorf("got %v", err)
	}
}

// isRefusal reports whether an error tells the client so of its file.
func isRefusal(err error, why string) bool {
	var told *extract.Error
	return errors.As(err, &told) && strings.Contains(told.Message, why) && strings.Contains(told.Message, "in parts")
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
