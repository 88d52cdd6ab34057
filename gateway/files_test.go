package gateway_test

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

	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/internal/redistest"
)

const policy = "# Refunds\n\nThe refund window is 30 days from delivery.\n"

func TestTheFilesAPI(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	f := s.ok(s.upload(acme, "policy.md", policy))
	id := f.get("id").Str
	if !strings.HasPrefix(id, "file-") || f.get("object").Str != "file" || f.get("bytes").Int() != int64(len(policy)) ||
		f.get("filename").Str != "policy.md" || f.get("purpose").Str != "assistants" || f.get("status").Str != "processed" ||
		f.get("created_at").Int() == 0 {
		t.Errorf("file %s", f.body)
	}
	if again := s.ok(s.upload(acme, "policy.md", policy)); again.get("id").Str != id {
		t.Errorf("the same file again is another one: %s", again.body)
	}
	other := s.ok(s.upload(acme, "other.txt", "Something else."))

	list := s.ok(s.get(acme, "/files?limit=1&order=asc"))
	if list.get("object").Str != "list" || list.get("data.0.id").Str != id || !list.get("has_more").Bool() || list.get("last_id").Str != id {
		t.Errorf("list %s", list.body)
	}
	list = s.ok(s.get(acme, "/files?order=asc&after="+id))
	if list.get("data.#").Int() != 1 || list.get("data.0.id").Str != other.get("id").Str || list.get("has_more").Bool() {
		t.Errorf("list %s", list.body)
	}
	if r := s.ok(s.get(acme, "/files?purpose=batch")); r.get("data").Raw != "[]" {
		t.Errorf("list %s", r.body)
	}
	if r := s.ok(s.get(acme, "/files/"+id)); !strings.HasPrefix(f.body, strings.TrimSuffix(strings.TrimSpace(r.body), "}")) {
		t.Errorf("file %s", r.body)
	}
	if r := s.ok(s.get(acme, "/files/"+id+"/content")); r.body != policy {
		t.Errorf("content %q", r.body)
	}
	found := s.ok(s.post(acme, "/files/search", `{"query":"refund window","limit":1}`))
	if found.get("data.#").Int() != 1 || found.get("data.0.file_id").Str != id ||
		!strings.Contains(found.get("data.0.content.0.text").Str, "30 days") || found.get("search_query").Str != "refund window" {
		t.Errorf("found %s", found.body)
	}
	gone := s.ok(s.do(s.request("DELETE", "/files/"+id, acme, nil)))
	if strings.TrimSpace(gone.body) != `{"id":"`+id+`","object":"file","deleted":true}` {
		t.Errorf("deletion %s", gone.body)
	}
	if r := s.ok(s.post(acme, "/files/search", `{"query":"refund window"}`)); strings.Contains(r.body, "30 days") {
		t.Errorf("a deleted file was found: %s", r.body)
	}
	for _, path := range []string{"/files/" + id, "/files/" + id + "/content", "/files/" + id + "/nothing"} {
		if r := s.get(acme, path); r.status != http.StatusNotFound || r.get("error.message").Str == "" {
			t.Errorf("%s: status %d: %s", path, r.status, r.body)
		}
	}
}

func TestBadUploadsAreRefusedAndLeaveNothing(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL, adjust: func(o *gateway.Options) { o.MaxFile = 1000 }})
	form := func(fields ...string) (string, string) {
		var b strings.Builder
		for i := 0; i+1 < len(fields); i += 2 {
			fmt.Fprintf(&b, "--x\r\nContent-Disposition: form-data; name=%s\r\n\r\n%s\r\n", fields[i], fields[i+1])
		}
		return b.String() + "--x--\r\n", "multipart/form-data; boundary=x"
	}
	const file = `"file"; filename="a.md"`
	for name, c := range map[string]struct {
		fields []string
		status int
		param  string
	}{
		"no file":                 {[]string{`"purpose"`, "assistants"}, 400, "file"},
		"no purpose":              {[]string{file, "text"}, 400, "purpose"},
		"another purpose":         {[]string{file, "text", `"purpose"`, "fine-tune"}, 400, "purpose"},
		"no name":                 {[]string{`"file"`, "text", `"purpose"`, "assistants"}, 400, "file"},
		"an unknown field":        {[]string{file, "text", `"purpose"`, "assistants", `"colour"`, "red"}, 400, "colour"},
		"empty":                   {[]string{file, "", `"purpose"`, "assistants"}, 400, "file"},
		"a name that is too long": {[]string{`"file"; filename="` + strings.Repeat("x", 300) + `"`, "text", `"purpose"`, "assistants"}, 400, "file"},
		"white space":             {[]string{file, " \n\t", `"purpose"`, "assistants"}, 400, "file"},
		"a broken PDF":            {[]string{`"file"; filename="a.txt"`, "%PDF-1.7\n%\xe2\xe3", `"purpose"`, "assistants"}, 400, "file"},
		"binary":                  {[]string{file, "a\x00b\x01\xff", `"purpose"`, "assistants"}, 415, "file"},
		"too large":               {[]string{file, strings.Repeat("word ", 300), `"purpose"`, "assistants"}, 413, "file"},
		"purpose is too large":    {[]string{file, "text", `"purpose"`, strings.Repeat("x", 5000)}, 413, "purpose"},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			body, contentType := form(c.fields...)
			r := s.post(acme, "/files", body)
			if r.status != 400 {
				t.Errorf("no multipart: status %d", r.status)
			}
			req := s.request("POST", "/files", acme, strings.NewReader(body), "Content-Type", contentType)
			r = s.do(req)
			if r.status != c.status || r.get("error.param").Str != c.param || r.get("error.message").Str == "" {
				t.Errorf("status %d: %s", r.status, r.body)
			}
			if c.status == 413 && !strings.Contains(r.get("error.message").Str, "' is larger than ") {
				t.Errorf("the message doesn't say how much is too much: %s", r.body)
			}
		})
	}
	s.t = t
	if r := s.ok(s.get(acme, "/files")); r.get("data").Raw != "[]" {
		t.Errorf("left behind: %s", r.body)
	}
	if r := s.ok(s.chat(acme, "anything", `"sessionId":"s"`)); r.get("_metadata.rag.enabled").Bool() {
		t.Error("retrieval is on without a file")
	}
}

func TestASearchThatNestsIsRefused(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	for _, body := range []string{`{"query":"x","a":` + strings.Repeat("[", 30000), `{"query":"` + strings.Repeat("x", 100<<10) + `"}`, `[]`, `{"query":""}`, `{"query":"x","limit":0}`} {
		if r := s.post(acme, "/files/search", body); r.status != http.StatusBadRequest && r.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%.30s: status %d: %s", body, r.status, r.body)
		}
	}
}

func TestPassagesStandInTheLastUserMessage(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	id := s.ok(s.upload(acme, "policy.md", policy)).get("id").Str
	r := s.ok(s.post(acme, "/chat/completions",
		`{"model":"demo/echo","messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"How long is the refund window?"}]}]}`))
	m := gjson.Get(upstream.last(t).body, "messages")
	if m.Get("0.content").Str != "be brief" || m.Get("#").Int() != 2 {
		t.Errorf("messages %s", m)
	}
	parts := m.Get("1.content").Array()
	if len(parts) != 2 || !strings.Contains(parts[0].Get("text").Str, "30 days") || !strings.Contains(parts[0].Get("text").Str, "policy.md") ||
		parts[1].Raw != `{"type":"text","text":"How long is the refund window?"}` {
		t.Errorf("content %s", m.Get("1.content"))
	}
	rag := r.get("_metadata.rag")
	if !rag.Get("enabled").Bool() || rag.Get("query").Str != "How long is the refund window?" || rag.Get("resultsFound").Int() != 1 ||
		rag.Get("sources.0.fileId").Str != id || rag.Get("sources.0.filename").Str != "policy.md" || rag.Get("sources.0.section").Str != "Refunds" {
		t.Errorf("rag %s", rag)
	}
	if r.get("_metadata.memory").Exists() || r.get("_metadata.context.includedChunks").Int() != 1 {
		t.Errorf("metadata %s", r.get("_metadata"))
	}

	r = s.chat(acme, "Please help.", `"ragQuery":"refund window"`)
	if r.get("_metadata.rag.query").Str != "refund window" || !strings.HasSuffix(upstream.last(t).said(), "\n\nPlease help.\n") ||
		!strings.Contains(upstream.last(t).said(), "30 days") {
		t.Errorf("with ragQuery: %s", upstream.last(t).said())
	}
	r = s.chat(acme, "How long is the refund window?", `"useRAG":false`)
	if r.get("_metadata").Exists() || upstream.last(t).said() != "user: How long is the refund window?\n" {
		t.Errorf("with useRAG false: %s", upstream.last(t).body)
	}
	r = s.ok(s.post(acme, "/chat/completions", chatBody("How long is the refund window?", ""), "X-Backstory-Use-RAG", "false"))
	if r.get("_metadata").Exists() {
		t.Errorf("with the header: %s", r.body)
	}
	s.chat(acme, "How long is the refund window?", `"sessionId":"s"`)
	s.chat(acme, "And then?", `"sessionId":"s","useRAG":false`)
	if strings.Contains(upstream.last(t).body, "30 days") {
		t.Error("quoted text was saved")
	}
}

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

// vectors has the router be asked for vectors.
func vectors(o *gateway.Options) { o.Embedder = routerEmbedder("some/model", 8) }

func TestWithoutEmbeddingsSearchIsLexicalAndUploadsFail(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	e := new(embeddings)
	upstream.other = e.ServeHTTP
	s := start(t, options{upstream: upstream.URL, adjust: vectors})
	s.ok(s.upload(acme, "policy.md", policy))
	e.failing.Store(500)
	r := s.chat(acme, "How long is the refund window?", "")
	if r.get("_metadata.rag.degraded").Str != "embedding" || r.get("_metadata.context.includedChunks").Int() != 1 {
		t.Errorf("metadata %s", r.get("_metadata"))
	}
	e.failing.Store(400) // a 500 would be asked again for a while
	if r := s.upload(acme, "new.md", "abc"); r.status != http.StatusBadGateway || r.get("error.message").Str == "" {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	e.failing.Store(401)
	if r := s.upload(acme, "new.md", "abc"); r.status != http.StatusUnauthorized {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	if n := s.get(acme, "/files").get("data.#").Int(); n != 1 {
		t.Errorf("%d files are left", n)
	}
}

func TestTheModelsContextBoundsThePrompt(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	var asked atomic.Int64
	upstream.other = func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[{"id":"demo/echo","context_length":400},{"id":"demo/wide","context_length":100000}]}`)
	}
	s := start(t, options{upstream: upstream.URL, adjust: func(o *gateway.Options) { o.Context.Models = map[string]int{"fixed/*": 100_000} }})
	long := strings.Repeat("word ", 60)
	for range 10 {
		s.chat(acme, long, `"sessionId":"s","max_tokens":100`)
	}
	r := s.chat(acme, "next", `"sessionId":"s","max_tokens":100,"saveToMemory":false`)
	c := r.get("_metadata.context")
	if n := c.Get("totalTokens").Int(); n > 300 || n < 150 || !c.Get("truncated").Bool() {
		t.Errorf("context %s", c)
	}
	r = s.ok(s.post(acme, "/chat/completions", strings.Replace(chatBody("next", `"sessionId":"s","saveToMemory":false`), "demo/echo", "demo/wide", 1)))
	if r.get("_metadata.memory.historyMessages").Int() != 20 || r.get("_metadata.context.truncated").Bool() {
		t.Errorf("metadata %s", r.get("_metadata"))
	}
	r = s.ok(s.post(acme, "/chat/completions", strings.Replace(chatBody("next", `"sessionId":"s","saveToMemory":false`), "demo/echo", "fixed/x", 1)))
	if r.get("_metadata.memory.historyMessages").Int() != 20 {
		t.Errorf("metadata %s", r.get("_metadata"))
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the list of models was asked for %d times", n)
	}
}

func TestWithFilesOffAnUploadIsRefused(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL, store: redisAt(redistest.Start(t).URL)})
	if r := s.upload(acme, "policy.md", policy); r.status != http.StatusNotImplemented || r.get("error.message").Str == "" ||
		r.header.Get("x-should-retry") != "false" {
		t.Errorf("status %d, %v: %s", r.status, r.header, r.body)
	}
	s.chat(acme, "hi", `"sessionId":"s"`)
	if n := s.chat(acme, "again", `"sessionId":"s"`).get("_metadata.memory.historyMessages").Int(); n != 2 {
		t.Errorf("%d messages", n)
	}
}
