package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/memory/recall"
	"github.com/backstory-proxy/backstory/store"
)

// vectorStore keeps the vectors of a fakeLog.
type vectorStore struct {
	mu   sync.Mutex
	list map[int64]store.ExchangeVector
	err  error // where set, nothing is taken
}

func (b *fakeLog) ExchangesAt(ctx context.Context, _ store.Scope, _ string, seqs []int64) (found []store.Exchange, err error) {
	for _, e := range b.list {
		if slices.Contains(seqs, e.Seq) {
			found = append(found, e)
		}
	}
	return found, ctx.Err()
}

func (b *fakeLog) PutVectors(ctx context.Context, _ store.Scope, _ string, list []store.ExchangeVector) error {
	b.kept.mu.Lock()
	defer b.kept.mu.Unlock()
	if b.kept.err != nil {
		return b.kept.err
	}
	if b.kept.list == nil {
		b.kept.list = make(map[int64]store.ExchangeVector)
	}
	for _, v := range list {
		if v.ID != b.list[v.Seq-1].ID {
			return errors.New("not the exchange that it was made of")
		}
		b.kept.list[v.Seq] = v
	}
	return ctx.Err()
}

func (b *fakeLog) Vectors(ctx context.Context, _ store.Scope, _ string, seqs []int64) (list []store.ExchangeVector, err error) {
	b.kept.mu.Lock()
	defer b.kept.mu.Unlock()
	for _, seq := range seqs {
		if v, ok := b.kept.list[seq]; ok {
			list = append(list, v)
		}
	}
	return list, ctx.Err()
}

func (b *fakeLog) shelved() int {
	b.kept.mu.Lock()
	defer b.kept.mu.Unlock()
	return len(b.kept.list)
}

// fakeEmbedder is an embedder for which the words of an entry of ideas mean the same,
// and all others mean nothing. It keeps the texts that it was given, call by call.
type fakeEmbedder struct {
	mu     sync.Mutex
	calls  [][]string
	failed []string // parts
	model  string
	err    error
	// hold, where set, is called ahead of the answer.
	hold func(ctx context.Context, texts []string)
}

var ideas = []string{"zebra полосатой лошади", "boat судно", "called name"}

func (m *fakeEmbedder) embed(ctx context.Context, texts []string) ([][]float32, error) {
	m.mu.Lock()
	m.calls = append(m.calls, slices.Clone(texts))
	err, hold := m.err, m.hold
	m.mu.Unlock()
	if hold != nil {
		hold(ctx, texts)
	}
	if err != nil || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			continue
		}
		vectors[i] = make([]float32, len(ideas)+1)
		vectors[i][len(ideas)] = .01
		for n, idea := range ideas {
			for word := range strings.FieldsSeq(idea) {
				if strings.Contains(text, word) {
					vectors[i][n] = 1
				}
			}
		}
	}
	return vectors, nil
}

func (m *fakeEmbedder) semantic() *memory.SemanticSearch {
	return &memory.SemanticSearch{
		Model: "fake" + m.model, Weight: 1, Floor: .5, QueryTimeout: 3 * time.Second, Embed: m.embed,
		Go: func(task func()) { go task() },
		Failed: func(part string, _ error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.failed = append(m.failed, part)
		},
	}
}

// take returns what was asked since the last time: how many questions, and how
// many texts of exchanges in how many calls. A question holds no line break.
func (m *fakeEmbedder) take() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	questions, texts, calls := 0, 0, 0
	for _, call := range m.calls {
		if len(call) == 1 && !strings.Contains(call[0], "\n") {
			questions++
			continue
		}
		calls++
		texts += len(call)
	}
	m.calls = nil
	return fmt.Sprintf("%d questions, %d texts in %d calls", questions, texts, calls)
}

func (m *fakeEmbedder) failures() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { m.failed = nil }()
	return strings.Join(m.failed, " ")
}

const paraphrase = "напомни мне о полосатой лошади"

// means is the Seq of the best hit for a text among the exchanges before the last
// five, and waits for what goes on in the background.
func means(t *testing.T, r *memory.Recaller, b *fakeLog, m *fakeEmbedder, text string) int64 {
	t.Helper()
	q := recall.Query{Text: text, Before: recall.Ref{Seq: int64(len(b.list) - 4)}}
	hits, err := r.Search(t.Context(), store.Scope{Tenant: "a"}, "s", b.gathered(8), q, m.semantic(), time.Second, topThree)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if len(hits) == 0 {
		return 0
	}
	return hits[0].Seq
}

func TestWhatSharesNoWordIsFoundBySemanticSimilarity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, m := aboutZebras(20), &fakeEmbedder{}
		r := memory.NewRecaller(b, 1<<30, nobody)
		if got := best(t, r, b.gathered(8), paraphrase); got != 0 {
			t.Fatalf("found %d by words", got)
		}
		if got := means(t, r, b, m, paraphrase); got != 3 {
			t.Errorf("found %d", got)
		}
		if got := means(t, r, b, m, "какое судно"); got != 0 {
			t.Errorf("found %d, which is about nothing of the kind", got)
		}
		for _, call := range m.calls {
			if len(call) > 1 && call[2] != "user: My zebra is called Zoe.\nassistant: I see." {
				t.Errorf("embedded %q", call[2])
			}
		}
	})
}

func TestOfLongExchangesTheNewestAreEmbedded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, m := &fakeLog{}, &fakeEmbedder{}
		for i := range 20 { // a few tokens each, as they were counted
			b.write(fmt.Sprint(i, strings.Repeat(" word", 80<<10)), "I see.")
		}
		r := memory.NewRecaller(b, 1<<30, nobody)
		means(t, r, b, m, paraphrase)
		var numbers []string
		for _, call := range m.calls {
			for _, text := range call {
				if number, ok := strings.CutPrefix(text, "user: "); ok {
					numbers = append(numbers, strings.Fields(number)[0])
				}
			}
		}
		if want := []string{"13", "14"}; !slices.Equal(numbers, want) { // 15 on stand in place
			t.Errorf("embedded %q, want %q", numbers, want)
		}
	})
}

func TestAnExchangeIsEmbeddedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, m := aboutZebras(20), &fakeEmbedder{}
		r := memory.NewRecaller(b, 1<<30, nobody)
		expect := func(want string) {
			t.Helper()
			if got := means(t, r, b, m, paraphrase); got != 3 {
				t.Errorf("found %d", got)
			}
			if got := m.take(); got != want {
				t.Errorf("embedded %s, want %s", got, want)
			}
		}
		expect("1 questions, 15 texts in 1 calls")
		expect("1 questions, 0 texts in 0 calls")
		for range 3 { // each request moves one out of the tail
			b.write("more", "of it")
			expect("1 questions, 1 texts in 1 calls")
		}
		// Another process, or this one when it has forgotten the session.
		r = memory.NewRecaller(b, 1<<30, nobody)
		expect("1 questions, 0 texts in 0 calls")
		// Vectors of another model are of no use.
		m.model = "2"
		expect("1 questions, 18 texts in 1 calls")
		expect("1 questions, 0 texts in 0 calls")
		if b.shelved() != 18 {
			t.Errorf("%d vectors are kept", b.shelved())
		}
	})
}

func TestALongSessionIsEmbeddedBitByBit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, m := aboutZebras(150), &fakeEmbedder{}
		b.list[9].Hidden = true
		b.list[10].Messages[0].JSON, b.list[10].Messages[1].JSON = []byte(`{"role":"user","content":" "}`), []byte(`{"role":"assistant","content":null}`)
		r := memory.NewRecaller(b, 1<<30, nobody)
		for i, want := range []struct {
			found int64
			asked string
		}{
			{0, "1 questions, 64 texts in 1 calls"}, {0, "1 questions, 64 texts in 1 calls"},
			{3, "1 questions, 16 texts in 1 calls"}, {3, "1 questions, 0 texts in 0 calls"},
		} {
			if got := means(t, r, b, m, paraphrase); got != want.found {
				t.Errorf("%d: found %d, want %d", i, got, want.found)
			}
			if got := m.take(); got != want.asked {
				t.Errorf("%d: embedded %s, want %s", i, got, want.asked)
			}
		}
		for i := range b.list[:145] { // much to say
			b.list[i].Messages[0].Tokens = 20_000
		}
		m.model = "2"
		means(t, r, b, m, paraphrase)
		if got := m.take(); got != "1 questions, 2 texts in 1 calls" {
			t.Errorf("embedded %s", got)
		}
	})
}

func TestWordsAnswerWhereSemanticSearchFails(t *testing.T) {
	const question = "what is my zebra called"
	for name, c := range map[string]struct {
		err    error
		hold   func(ctx context.Context, texts []string)
		takes  time.Duration
		failed string
	}{
		"refused": {err: errors.New("no"), failed: "embedding embedding"},
		"the question takes too long": {hold: func(ctx context.Context, texts []string) {
			if len(texts) == 1 {
				<-ctx.Done()
			}
		}, takes: 3 * time.Second, failed: "embedding"},
		"the session takes too long": {hold: func(ctx context.Context, texts []string) {
			if len(texts) > 1 {
				<-ctx.Done()
			}
		}, takes: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, m := aboutZebras(20), &fakeEmbedder{err: c.err, hold: c.hold}
				r := memory.NewRecaller(b, 1<<30, nobody)
				began := time.Now()
				if got := means(t, r, b, m, question); got != 3 {
					t.Errorf("found %d", got)
				}
				if took := time.Since(began); took != c.takes {
					t.Errorf("it took %s, want %s", took, c.takes)
				}
				if got := m.failures(); got != c.failed {
					t.Errorf("told of failures %q, want %q", got, c.failed)
				}
				time.Sleep(time.Minute) // of the bubble's time
				synctest.Wait()
			})
		})
	}
}

func TestASessionThatCouldNotBeEmbeddedIsLeftAloneForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, m := aboutZebras(20), &fakeEmbedder{err: errors.New("no")}
		r := memory.NewRecaller(b, 1<<30, nobody)
		for _, want := range []string{"1 questions, 15 texts in 1 calls", "1 questions, 0 texts in 0 calls"} {
			means(t, r, b, m, paraphrase)
			if got := m.take(); got != want {
				t.Errorf("embedded %s, want %s", got, want)
			}
		}
		m.err = nil
		time.Sleep(2 * time.Minute)
		if got := means(t, r, b, m, paraphrase); got != 3 {
			t.Errorf("found %d", got)
		}
	})
}

func TestVectorsThatTheStoreDidNotTakeAreKeptLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, m := aboutZebras(20), &fakeEmbedder{}
		b.kept.err = errors.New("the disk is full")
		r := memory.NewRecaller(b, 1<<30, nobody)
		if got := means(t, r, b, m, paraphrase); got != 3 || m.failures() != "vector" || b.shelved() != 0 {
			t.Errorf("found %d, kept %d", got, b.shelved())
		}
		b.kept.err = nil
		time.Sleep(2 * time.Minute)
		m.take()
		if got := means(t, r, b, m, paraphrase); got != 3 || b.shelved() != 15 || m.take() != "1 questions, 0 texts in 0 calls" {
			t.Errorf("found %d, kept %d", got, b.shelved())
		}
	})
}

func TestVectorsCountAsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, m := aboutZebras(20), &fakeEmbedder{}
		embed := m.embed
		semantic := m.semantic()
		semantic.Embed = func(ctx context.Context, texts []string) ([][]float32, error) {
			vectors, err := embed(ctx, texts)
			for i := range vectors {
				vectors[i] = append(vectors[i], make([]float32, 10_000)...)
			}
			return vectors, err
		}
		r := memory.NewRecaller(b, 200_000, nobody) // room for two sessions, not for their vectors
		search := func(session string, by *memory.SemanticSearch) {
			t.Helper()
			if _, err := r.Search(t.Context(), store.Scope{Tenant: "a"}, session, b.gathered(5), recall.Query{Text: "zebra", Before: recall.Ref{Seq: 16}}, by, time.Second, topThree); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for i, by := range []*memory.SemanticSearch{nil, semantic} {
			b.reads = 0
			for range 2 {
				search("s", by)
				search("t", by)
			}
			// By semantic similarity, both are known at first, and then push each other out.
			if b.reads != 2 {
				t.Errorf("round %d: sessions were read %d times, want twice", i, b.reads)
			}
		}
	})
}
