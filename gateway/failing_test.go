package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
)

// flaky is a store that can be made to fail.
type flaky struct {
	*sqlite.Store
	path string

	failPing, failSearch, failGather, failAppend atomic.Bool
	// saveAndFail has it save, and then answer with an error: as when the
	// connection breaks at the wrong moment. loseReplicas has it save, and say
	// that it is not safe. hangAppend has it not answer at all.
	saveAndFail, loseReplicas, hangAppend atomic.Bool
	// deleteFirst has a session deleted just before messages are imported into it.
	deleteFirst atomic.Bool
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

func (f *flaky) Ping(ctx context.Context) error {
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

func (f *flaky) Gather(ctx context.Context, r store.GatherRequest) (store.Gathered, error) {
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
	return f.Store.Import(ctx, i)
}

func (f *flaky) Append(ctx context.Context, a store.Append) (int64, error) {
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
