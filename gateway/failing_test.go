package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
)

// flaky is a store that can be made to fail.
type flaky struct {
	*sqlite.Store
	path string

	failPing, failSearch, failGather, failAppend, failChunks atomic.Bool
	// saveAndFail has it save, and then answer with an error: as when the
	// connection breaks at the wrong moment. loseReplicas has it save, and say
	// that it is not safe. hangAppend has it not answer at all.
	saveAndFail, loseReplicas, hangAppend atomic.Bool
	// failAll has all that requests begin with fail; full says that there is no
	// room.
	failAll, full atomic.Bool
	// deleteFirst has a session deleted just before messages are imported into it.
	deleteFirst atomic.Bool
	// backlog is how long its oldest write has waited, it says.
	backlog atomic.Int64
	// saveTime is how long the last save might have taken, when it began.
	saveTime atomic.Int64
}

var errDown = errors.New("the disk is on fire")

func newFlaky(t *testing.T) *flaky {
	return &flaky{path: filepath.Join(t.TempDir(), "b.db")}
}

// open is its opener.
func (f *flaky) open(embed.Embedder) (store.Store, error) {
	s, err := sqlite.Open(context.Background(), f.path, sqlite.Options{})
	f.Store = s
	return f, err
}

// refuses is the error of a store that does nothing.
func (f *flaky) refuses() error {
	switch {
	case f.failAll.Load():
		return errDown
	case f.full.Load():
		return fmt.Errorf("redis: %w", store.ErrFull)
	}
	return nil
}

func (f *flaky) Take(ctx context.Context, tenant string, limit int) (store.Rate, error) {
	if err := f.refuses(); err != nil {
		return store.Rate{}, err
	}
	return f.Store.Take(ctx, tenant, limit)
}

func (f *flaky) WriteBacklog() time.Duration { return time.Duration(f.backlog.Load()) }

func (f *flaky) Ping(ctx context.Context) error {
	if err := f.refuses(); err != nil {
		return err
	}
	if f.failPing.Load() {
		return errDown
	}
	return f.Store.Ping(ctx)
}

func (f *flaky) SearchText(ctx context.Context, scope store.Scope, terms []string, limit int) ([]store.Hit, error) {
	if f.failSearch.Load() {
		return nil, errDown
	}
	return f.Store.SearchText(ctx, scope, terms, limit)
}

func (f *flaky) SearchVector(ctx context.Context, scope store.Scope, model string, vector []float32, limit int) ([]store.Hit, error) {
	if f.failSearch.Load() {
		return nil, errDown
	}
	return f.Store.SearchVector(ctx, scope, model, vector, limit)
}

func (f *flaky) Chunks(ctx context.Context, scope store.Scope, refs []store.ChunkRef) ([]store.Hit, error) {
	if f.failChunks.Load() {
		return nil, errDown
	}
	return f.Store.Chunks(ctx, scope, refs)
}

func (f *flaky) Gather(ctx context.Context, r store.GatherRequest) (store.Gathered, error) {
	if err := f.refuses(); err != nil {
		return store.Gathered{}, err
	}
	if f.failGather.Load() {
		return store.Gathered{}, errDown
	}
	return f.Store.Gather(ctx, r)
}

func (f *flaky) Import(ctx context.Context, i store.Import) ([]int64, error) {
	if f.failAppend.Load() {
		return nil, errDown
	}
	if f.deleteFirst.Load() {
		if err := f.Store.DeleteSession(ctx, i.Scope, i.Session); err != nil {
			return nil, err
		}
	}
	seqs, err := f.Store.Import(ctx, i)
	if err == nil && f.loseReplicas.Load() {
		err = store.ErrUnconfirmed
	}
	return seqs, err
}

func (f *flaky) Append(ctx context.Context, a store.Append) (int64, error) {
	if end, ok := ctx.Deadline(); ok {
		f.saveTime.Store(int64(time.Until(end)))
	}
	switch {
	case f.failAppend.Load():
		return 0, errDown
	case f.hangAppend.Load():
		<-ctx.Done()
		return 0, ctx.Err()
	case f.saveAndFail.Load():
		_, err := f.Store.Append(ctx, a)
		if err == nil {
			err = errDown
		}
		return 0, err
	case f.loseReplicas.Load():
		_, err := f.Store.Append(ctx, a)
		if err == nil {
			err = store.ErrUnconfirmed
		}
		return 0, err
	}
	return f.Store.Append(ctx, a)
}

func TestTheModelIsNotCalledWhenTheStoreIsDown(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	db := newFlaky(t)
	s := start(t, options{upstream: upstream.URL, store: db.open})
	db.failGather.Store(true)
	for _, extra := range []string{"", `"sessionId":"s"`} {
		r := s.post(acme, "/chat/completions", chatBody("my secret", extra))
		if r.status != http.StatusServiceUnavailable || r.get("error.type").Str != "server_error" || strings.Contains(r.body, "fire") {
			t.Errorf("status %d: %s", r.status, r.body)
		}
	}
	if n := upstream.count(); n != 0 {
		t.Errorf("the model was called %d times", n)
	}
	if log := s.logged(); !strings.Contains(log, "the disk is on fire") || strings.Contains(log, "my secret") {
		t.Error("the log doesn't hold the cause, or holds the message")
	}
}

func TestTheClientIsToldWhenAnExchangeCouldNotBeKept(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	db := newFlaky(t)
	s := start(t, options{upstream: upstream.URL, store: db.open})
	db.failAppend.Store(true)
	r := s.chat(acme, "hi", `"sessionId":"s"`)
	if saved := r.get("_metadata.memory.saved"); saved.Raw != "false" || r.get("choices.0.message.content").Str != "ok" {
		t.Errorf("reply %s", r.body)
	}
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		writeEvents(w, delta("ok"), finished, done)
	})
	r = s.chat(acme, "hi", `"sessionId":"s","stream":true`)
	if !strings.HasSuffix(r.body, finished+": backstory not-saved\n\n"+done) {
		t.Errorf("stream %q", r.body)
	}
	r = s.chat(acme, "hi", `"sessionId":"s","stream":true,"saveToMemory":false`)
	if strings.Contains(r.body, "not-saved") {
		t.Errorf("nothing was to be saved, and yet %q", r.body)
	}
}

func TestEveryRefusalByTheStoreSaysWhenToAskAgain(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	db := newFlaky(t)
	s := start(t, options{upstream: upstream.URL, store: db.open})
	s.chat(acme, "hi", `"sessionId":"s"`)
	asked := upstream.count()
	for _, c := range []struct {
		fail func(bool)
		code string
		want string
	}{
		{db.failAll.Store, "store_unavailable", "can't be reached"},
		{db.full.Store, "store_full", "is full"},
	} {
		c.fail(true)
		for path, body := range map[string]string{
			"/chat/completions":         chatBody("hi", `"sessionId":"s"`),
			"/chat/completions/preview": chatBody("hi", `"sessionId":"s"`),
			"/sessions":                 "",
			"/sessions/s/messages":      "",
			"/files":                    "",
			"/usage":                    "",
		} {
			r := s.get(acme, path)
			if body != "" {
				r = s.post(acme, path, body)
			}
			after, err := strconv.Atoi(r.header.Get("Retry-After"))
			if r.status != http.StatusServiceUnavailable || err != nil || after < 1 || r.get("error.code").Str != c.code || !strings.Contains(r.body, c.want) {
				t.Errorf("%s: status %d, Retry-After %q: %s", path, r.status, r.header.Get("Retry-After"), r.body)
			}
			if chat := path == "/chat/completions"; strings.Contains(r.body, "model was not called") != chat {
				t.Errorf("%s: %s", path, r.body)
			}
		}
		r, _ := http.NewRequestWithContext(t.Context(), "GET", s.root+"/readyz", nil)
		eventually(t, "/readyz says so", func() bool {
			got := s.do(r)
			return got.status == http.StatusServiceUnavailable && got.get("error.code").Str == c.code && got.header.Get("Retry-After") != ""
		})
		c.fail(false)
	}
	if upstream.count() != asked {
		t.Error("the model was called")
	}
}

func TestAChatGoesOnWithoutFilesThatCanNotBeSearched(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	db := newFlaky(t)
	s := start(t, options{upstream: upstream.URL, store: db.open})
	s.ok(s.upload(acme, "handbook.md", handbook(40)))
	const question = "When is a customer refunded?"
	s.chat(acme, question, `"sessionId":"s"`)
	without := func(what string, r reply) {
		t.Helper()
		if s.ok(r).get("_metadata.rag.degraded").Str != "all" || r.get("_metadata.context.includedChunks").Int() != 0 || r.get("_metadata.rag.enabled").Raw != "true" {
			t.Errorf("%s: %s", what, r.get("_metadata"))
		}
		if sent := upstream.last(t).body; strings.Contains(sent, "Rule 1 ") {
			t.Errorf("%s: the router got %s", what, sent)
		}
	}
	db.failSearch.Store(true)
	without("a question", s.chat(acme, question, `"sessionId":"t"`))
	if !strings.Contains(s.logged(), "files could not be searched") {
		t.Error("the log doesn't say so")
	}
	if r := s.post(acme, "/files/search", `{"query":"refunds"}`); r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
		t.Errorf("a search for its own sake: status %d: %s", r.status, r.body)
	}
	db.failSearch.Store(false)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		const call = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find","arguments":"{}"}}]}`
		fmt.Fprint(w, strings.Replace(strings.Replace(jsonReply("x"), `{"role":"assistant","content":"x"}`, call, 1), `"stop"`, `"tool_calls"`, 1))
	})
	s.chat(acme, question, `"sessionId":"u"`)
	upstream.replyWith(nil)
	db.failChunks.Store(true)
	without("the results of a tool", s.post(acme, "/chat/completions", `{"model":"demo/echo","sessionId":"u","messages":[{"role":"tool","tool_call_id":"c1","content":"found"}]}`))
}
