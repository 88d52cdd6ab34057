package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"
)

const policy = "# Refunds\n\nThe refund window is 30 days from delivery.\n"

// embeddings is a router's POST /embeddings: the vector of a text counts its
// letters a to h. It fails while failing is set.
type embeddings struct {
	calls   atomic.Int64
	failing atomic.Int64 // the status to answer with; 0: none
	mu      sync.Mutex
	auth    map[string]bool
	paths   map[string]bool
}

func (e *embeddings) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/embeddings") {
		http.NotFound(w, r)
		return
	}
	e.calls.Add(1)
	e.mu.Lock()
	if e.auth == nil {
		e.auth, e.paths = map[string]bool{}, map[string]bool{}
	}
	e.auth[r.Header.Get("Authorization")+r.Header.Get("serviceKey")] = true
	e.paths[r.URL.Path+" "+r.Header.Get("X-Added")] = true
	e.mu.Unlock()
	if status := int(e.failing.Load()); status != 0 {
		http.Error(w, `{"error":{"message":"no"}}`, status)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var data []map[string]any
	for i, input := range gjson.GetBytes(body, "input").Array() {
		vector := make([]float32, 8)
		for _, c := range strings.ToLower(input.Str) {
			if c >= 'a' && c <= 'h' {
				vector[c-'a']++
			}
		}
		data = append(data, map[string]any{"index": i, "embedding": vector})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

func TestTheRoutersEmbeddingsAreAskedForThroughTheSameHandlers(t *testing.T) {
	upstream := newFake(t)
	e := new(embeddings)
	upstream.other = e.ServeHTTP
	s := start(t, options{
		upstream: upstream.URL, app: "embedder router some/model 8",
		behind: `handle /embeddings {
			rewrite * /v1/rewritten{uri}
			reverse_proxy ` + upstream.URL + ` {
				header_up X-Added embeddings
			}
		}
		handle {
			rewrite * /v1{uri}
			reverse_proxy ` + upstream.URL + `
		}`,
	})
	s.chat(acme, "no files yet", `"sessionId":"s"`)
	if n := e.calls.Load(); n != 0 {
		t.Errorf("%d embedding calls without a file", n)
	}
	s.ok(s.upload(acme, "a.md", "abba dada cafe"))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			r := s.post(acme, "/chat/completions", chatBody(fmt.Sprintf("bad cab %d", i), `"sessionId":"s"`))
			if r.status != 200 || r.get("_metadata.rag.resultsFound").Int() != 1 || r.get("_metadata.rag.degraded").Exists() {
				t.Errorf("status %d: %s", r.status, r.body)
			}
		})
	}
	wg.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.auth) != 1 || !e.auth["Bearer "+router] {
		t.Errorf("the embedding requests carried %v", e.auth)
	}
	if len(e.paths) != 1 || !e.paths["/v1/rewritten/embeddings embeddings"] {
		t.Errorf("the embedding requests went to %v", e.paths)
	}
	if got := upstream.last(t).path; got != "/v1/chat/completions" {
		t.Errorf("the chat request went to %s", got)
	}
}
