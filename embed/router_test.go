package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// fakeRouter answers with vectors that tell which text they are of, and counts
// what it was asked.
type fakeRouter struct {
	mu       sync.Mutex
	requests []fakeRequest
	calls    atomic.Int64
	// answer, where set, replaces the reply.
	answer func(ctx context.Context, call int64) (Reply, error)
}

type fakeRequest struct {
	Model          string   `json:"model"`
	Input          []string `json:"input"`
	EncodingFormat string   `json:"encoding_format"`
	Dimensions     *int     `json:"dimensions"`
}

func (f *fakeRouter) Call(ctx context.Context, method, path string, body []byte) (Reply, error) {
	call := f.calls.Add(1)
	if f.answer != nil {
		if reply, err := f.answer(ctx, call); reply.Status != 0 || err != nil {
			return reply, err
		}
	}
	if method != "POST" || path != "/embeddings" {
		return Reply{Status: 404}, nil
	}
	var req fakeRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return Reply{Status: 400}, nil
	}
	f.mu.Lock()
	f.requests = append(f.requests, req)
	f.mu.Unlock()
	var data []string
	for i, text := range req.Input {
		data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[%d,1]}`, i, len(text)))
	}
	return Reply{Status: 200, Body: []byte(`{"data":[` + strings.Join(data, ",") + `]}`)}, nil
}

// lengthOf undoes the fake router's embedding.
func lengthOf(v []float32) int { return int(math.Round(float64(v[0] / v[1]))) }

func TestEveryTextGetsItsOwnVectorWhateverTheBatches(t *testing.T) {
	words := func(s string) int { return len(strings.Fields(s)) }
	texts := make([]string, 5000)
	for i := range texts {
		texts[i] = strings.Repeat("a ", i%7+1)
	}
	texts[17], texts[4999] = "", " \n"
	f := &fakeRouter{}
	vectors, err := NewRouter("m", 2, RouterOptions{Count: words, BatchTokens: 3000}).Embed(t.Context(), f, texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		switch blank := i == 17 || i == 4999; {
		case blank && v != nil:
			t.Errorf("text %d is blank and has a vector", i)
		case !blank && lengthOf(v) != len(texts[i]):
			t.Fatalf("text %d has the vector of a text of %d bytes", i, lengthOf(v))
		}
	}
	for _, r := range f.requests {
		tokens := 0
		for _, s := range r.Input {
			tokens += words(s)
		}
		if len(r.Input) > 2048 || tokens > 3000 {
			t.Errorf("a request of %d inputs and %d tokens", len(r.Input), tokens)
		}
	}
}

func TestRequestAsksForWhatIsConfigured(t *testing.T) {
	for _, send := range []bool{false, true} {
		f := &fakeRouter{}
		if _, err := NewRouter("openai/x", 2, RouterOptions{SendDimensions: send}).Embed(t.Context(), f, []string{"a"}); err != nil {
			t.Fatal(err)
		}
		r := f.requests[0]
		if r.Model != "openai/x" || r.EncodingFormat != "base64" || (r.Dimensions != nil) != send || send && *r.Dimensions != 2 {
			t.Errorf("SendDimensions %v: %+v", send, r)
		}
	}
}

func TestLongTextsAreCutToTheLimitOnACharacter(t *testing.T) {
	runes := func(s string) int { return len([]rune(s)) }
	for name, text := range map[string]string{
		"wide characters": strings.Repeat("語", 100_000),
		"white space":     "x" + strings.Repeat(" ", 1<<20),
	} {
		in := NewRouter("m", 2, RouterOptions{Count: runes, InputTokens: 100}).input(0, text)
		if in.tokens > 100 || in.tokens < 50 || !strings.HasPrefix(text, in.text) || strings.ContainsRune(in.text, '\ufffd') {
			t.Errorf("%s: cut to %d tokens", name, in.tokens)
		}
	}
}

func TestErrorsCarryTheStatusAndNothingOfTheReply(t *testing.T) {
	broken := errors.New("connection refused")
	for name, c := range map[string]struct {
		status int
		err    error
	}{
		"refused":     {status: 401},
		"overloaded":  {status: 529},
		"unreachable": {err: broken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // some are tried again
				f := &fakeRouter{answer: func(context.Context, int64) (Reply, error) {
					return Reply{Status: c.status, Body: []byte(`{"error":{"message":"key sk-secret is bad"}}`)}, c.err
				}}
				_, err := NewRouter("m", 2, RouterOptions{}).Embed(t.Context(), f, []string{"a", "b"})
				var status *StatusError
				if c.err == nil && (!errors.As(err, &status) || status.Status != c.status) {
					t.Errorf("got %v", err)
				}
				if c.err != nil && !errors.Is(err, broken) || strings.Contains(err.Error(), "secret") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestWithoutACallerNothingCanBeEmbedded(t *testing.T) {
	if _, err := NewRouter("m", 2, RouterOptions{}).Embed(t.Context(), nil, []string{"a"}); !errors.Is(err, ErrNoCaller) {
		t.Errorf("got %v", err)
	}
}

func TestAKnownQueryMakesNoCall(t *testing.T) {
	f := &fakeRouter{}
	r := NewRouter("m", 2, RouterOptions{})
	for range 3 {
		v, err := r.Embed(t.Context(), f, []string{"query"})
		if err != nil || lengthOf(v[0]) != 5 {
			t.Fatal(v, err)
		}
		v[0][0] = 99 // the caller's to change
	}
	if n := f.calls.Load(); n != 1 {
		t.Errorf("%d calls", n)
	}
}

func TestTheCacheIsBoundedInBytes(t *testing.T) {
	r := NewRouter("m", 2, RouterOptions{CacheBytes: 2000})
	f := &fakeRouter{}
	for i := range 100 {
		if _, err := r.Embed(t.Context(), f, []string{strings.Repeat("a", i+1)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.cache.Len(); n == 0 || n > 20 {
		t.Errorf("%d entries", n)
	}
	off := NewRouter("m", 2, RouterOptions{CacheBytes: -1})
	for range 2 {
		if _, err := off.Embed(t.Context(), f, []string{"same"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.calls.Load(); n != 102 {
		t.Errorf("%d calls", n)
	}
}

func TestConcurrentCallersWithOneQueryShareOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := &fakeRouter{answer: func(context.Context, int64) (Reply, error) { <-release; return Reply{}, nil }}
		r := NewRouter("m", 2, RouterOptions{})
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if v, err := r.Embed(t.Context(), f, []string{"query"}); err != nil || lengthOf(v[0]) != 5 {
					t.Error(v, err)
				}
			})
		}
		synctest.Wait()
		close(release)
		group.Wait()
		if n := f.calls.Load(); n != 1 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestAFailureIsNotSharedWithOtherCallers(t *testing.T) {
	for name, fail := range map[string]func(ctx context.Context, cancel func()) (int, error){
		"the leader's key is bad":  func(context.Context, func()) (int, error) { return 401, nil },
		"the leader has gone away": func(ctx context.Context, cancel func()) (int, error) { cancel(); return 0, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				release := make(chan struct{})
				r := NewRouter("m", 2, RouterOptions{})
				leader := &fakeRouter{answer: func(ctx context.Context, _ int64) (Reply, error) {
					<-release
					status, err := fail(ctx, cancel)
					return Reply{Status: status}, err
				}}
				var group sync.WaitGroup
				group.Go(func() {
					if _, err := r.Embed(ctx, leader, []string{"query"}); err == nil {
						t.Error("the leader's call succeeded")
					}
				})
				synctest.Wait()
				good := &fakeRouter{}
				group.Go(func() {
					if v, err := r.Embed(t.Context(), good, []string{"query"}); err != nil || lengthOf(v[0]) != 5 {
						t.Error(v, err)
					}
				})
				synctest.Wait()
				close(release)
				group.Wait()
				if good.calls.Load() != 1 {
					t.Error("the follower didn't ask for itself")
				}
			})
		})
	}
}

func TestAFollowerWaitsNoLongerThanItsOwnContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := NewRouter("m", 2, RouterOptions{})
		slow := &fakeRouter{answer: func(context.Context, int64) (Reply, error) { <-release; return Reply{}, nil }}
		var group sync.WaitGroup
		group.Go(func() { _, _ = r.Embed(t.Context(), slow, []string{"query"}) })
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Embed(ctx, slow, []string{"query"}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		close(release)
		group.Wait()
	})
}

func TestTheFirstFailedBatchStopsTheOthers(t *testing.T) {
	f := &fakeRouter{answer: func(_ context.Context, call int64) (Reply, error) { return Reply{Status: 400}, nil }}
	texts := make([]string, 100)
	for i := range texts {
		texts[i] = "word"
	}
	r := NewRouter("m", 2, RouterOptions{Count: func(string) int { return 1 }, BatchTokens: 1, Concurrency: 1})
	if _, err := r.Embed(t.Context(), f, texts); err == nil {
		t.Error("no error")
	}
	if n := f.calls.Load(); n != 1 {
		t.Errorf("%d calls after the first failed", n)
	}
}
