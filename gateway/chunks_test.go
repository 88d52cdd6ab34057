package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"
)

// handbook is a document of one section in several passages, of which each
// sentence tells of refunds, and says which it is.
func handbook(sentences int) string {
	var b strings.Builder
	b.WriteString("# Refunds\n\n")
	for i := range sentences {
		fmt.Fprintf(&b, "Rule %d of the refunds says that a customer of kind %d is refunded within %d days of the return. ", i, i, i+10)
	}
	return b.String()
}

// Neighbours in a file stand in the prompt as one passage, each told as a
// source; and when the results of a tool come, the same again.
func TestNeighbouringPassagesAreQuotedAsOne(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.ok(s.upload(acme, "handbook.md", handbook(40)))
	const question = `{"role":"user","content":"When is a customer refunded?"}`
	const call = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find","arguments":"{}"}}]}`
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, strings.Replace(strings.Replace(jsonReply("x"), `{"role":"assistant","content":"x"}`, call, 1), `"stop"`, `"tool_calls"`, 1))
	})
	asked := func(messages string) (reply, string) {
		t.Helper()
		r := s.ok(s.post(acme, "/chat/completions", `{"model":"demo/echo","sessionId":"s","messages":[`+messages+`]}`))
		return r, gjson.Get(upstream.last(t).body, `messages.#(role=="user").content`).Str
	}
	r, prompt := asked(question)
	sources, n := r.get("_metadata.rag.sources").Array(), int(r.get("_metadata.context.includedChunks").Int())
	if len(sources) < 3 || n != len(sources) {
		t.Fatalf("metadata %s", r.get("_metadata"))
	}
	for i, source := range sources {
		if source.Get("chunk").Int() != int64(i) || source.Get("section").Str != "Refunds" || source.Get("filename").Str != "handbook.md" || source.Get("score").Num <= 0 {
			t.Errorf("source %d is %s", i, source)
		}
	}
	if got := strings.Count(prompt, "<<<passage"); got != 1 {
		t.Errorf("%d passages in\n%s", got, prompt)
	}
	for i := range 40 {
		if got := strings.Count(prompt, fmt.Sprintf("Rule %d ", i)); got != 1 {
			t.Errorf("rule %d stands there %d times", i, got)
		}
	}
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) { writeReply(w, "Soon.") })
	r, again := asked(`{"role":"tool","tool_call_id":"c1","content":"14"}`)
	if again != prompt || int(r.get("_metadata.context.includedChunks").Int()) != n {
		t.Errorf("with the results of the tool the model was asked\n%s\nbefore\n%s", again, prompt)
	}

	p := s.ok(s.post(acme, "/chat/completions/preview", chatBody("When is a customer refunded?", "")))
	s.addsUp(p)
}

// counted is a router that embeds, and counts the texts that it is given.
func counted(upstream *fake) (texts *atomic.Int64, e *embeddings) {
	texts, e = new(atomic.Int64), new(embeddings)
	upstream.other = func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/embeddings") && e.failing.Load() == 0 {
			body, _ := io.ReadAll(r.Body)
			texts.Add(gjson.GetBytes(body, "input.#").Int())
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		e.ServeHTTP(w, r)
	}
	return texts, e
}

func TestTheSameTextIsEmbeddedOnce(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	texts, _ := counted(upstream)
	s := start(t, options{upstream: upstream.URL, adjust: vectors})
	embedded := func(key, name, content string) (id string, n int64) {
		t.Helper()
		before := texts.Load()
		return s.ok(s.upload(key, name, content)).get("id").Str, texts.Load() - before
	}
	first, all := embedded(acme, "handbook.md", handbook(60))
	if all < 3 {
		t.Fatalf("%d texts were embedded", all)
	}
	second, n := embedded(acme, "handbook (1).md", handbook(60))
	if n != 0 {
		t.Errorf("under another name, %d of %d texts were embedded again", n, all)
	}
	if _, n := embedded(acme, "handbook 2.md", handbook(60)+"\n\nRule 60 is new."); n < 1 || n > 2 {
		t.Errorf("of a new version, %d of %d texts were embedded", n, all)
	}
	if _, n := embedded(beta, "handbook.md", handbook(60)); n != all {
		t.Errorf("of another tenant, %d of %d texts were embedded", n, all)
	}
	for _, f := range s.get(acme, "/files").get("data").Array() {
		s.ok(s.do(s.request("DELETE", "/files/"+f.Get("id").Str, acme, nil)))
	}
	if _, n := embedded(acme, "handbook.md", handbook(60)); n != all {
		t.Errorf("after %s and %s were deleted, %d of %d texts were embedded", first, second, n, all)
	}
}

func TestAnUploadOutlastsARouterThatIsBusy(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	e := new(embeddings)
	var refused atomic.Int64
	upstream.other = func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/embeddings") && refused.Add(1) <= 2 {
			w.Header().Set("Retry-After", "0")
			http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
			return
		}
		e.ServeHTTP(w, r)
	}
	s := start(t, options{upstream: upstream.URL, adjust: vectors})
	if f := s.ok(s.upload(acme, "a.md", "abba dada cafe")); f.get("status").Str != "processed" || refused.Load() != 3 {
		t.Errorf("%d requests, file %s", refused.Load(), f.body)
	}
}

func TestFilesAreIndexedAgainForAnotherEmbedder(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	texts, e := counted(upstream)
	o := options{upstream: upstream.URL, store: database(filepath.Join(t.TempDir(), "backstory.db"))}
	s := start(t, o)
	id := s.ok(s.upload(acme, "handbook.md", handbook(60))).get("id").Str
	o.adjust = vectors
	s.load(o)
	found := func(query string) int64 {
		t.Helper()
		return s.ok(s.post(acme, "/files/search", `{"query":"`+query+`"}`)).get("data.#").Int()
	}
	// Of words that stand nowhere, only vectors find something.
	if found("refunded customer") == 0 || found("zzabbazz") != 0 {
		t.Error("before, the file isn't found by words, or is by vectors")
	}
	reindex := func(key, id string) reply { return s.post(key, "/files/"+id+"/reindex", "") }
	e.failing.Store(400)
	if r := reindex(acme, id); r.status != http.StatusBadGateway || found("refunded customer") == 0 {
		t.Errorf("the embedder fails: status %d: %s", r.status, r.body)
	}
	e.failing.Store(0)
	before := texts.Load()
	r := s.ok(reindex(acme, id))
	if n := r.get("chunks").Int(); !r.get("reindexed").Bool() || n < 3 || texts.Load()-before != n || r.get("model").Str != "some/model/8" {
		t.Errorf("%d texts were embedded: %s", texts.Load()-before, r.body)
	}
	if found("refunded customer") == 0 || found("zzabbazz") == 0 {
		t.Error("after it, the file isn't found by words or by vectors")
	}
	if r := s.ok(reindex(acme, id)); r.get("reindexed").Bool() || r.get("chunks").Int() != 0 {
		t.Errorf("a second time: %s", r.body)
	}
	for _, r := range []reply{reindex(beta, id), reindex(acme, "file-none")} {
		if r.status != http.StatusNotFound {
			t.Errorf("status %d: %s", r.status, r.body)
		}
	}
	if r := s.get(acme, "/files/"+id+"/reindex"); r.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: status %d", r.status)
	}
}
