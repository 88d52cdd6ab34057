package demo_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/demo"
)

// countWords makes a token of each word, so that a test can reckon.
func countWords(s string) int { return len(strings.Fields(s)) }

func serve(t *testing.T) string {
	t.Helper()
	now := func() time.Time { return time.Unix(1767225600, 0) }
	srv := httptest.NewServer(demo.New(demo.Options{Count: countWords, Now: now}))
	t.Cleanup(srv.Close)
	return srv.URL + "/any/v1"
}

// call sends a request with a good key and returns the reply, read.
func call(t *testing.T, method, url, body string) (*http.Response, string) {
	t.Helper()
	return callAs(t, "Bearer sk-demo", method, url, body)
}

func callAs(t *testing.T, authorization, method, url, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the body: %v", err)
	}
	return resp, string(got)
}

// request encodes a chat request; more are fields beyond model and messages.
func request(t *testing.T, more map[string]any, messages ...map[string]any) string {
	t.Helper()
	body := map[string]any{"model": "demo/echo", "messages": messages}
	for k, v := range more {
		body[k] = v
	}
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func msg(role, content string) map[string]any {
	return map[string]any{"role": role, "content": content}
}

// complete sends a chat request that has to succeed.
func complete(t *testing.T, body string) gjson.Result {
	t.Helper()
	resp, got := call(t, "POST", serve(t)+"/chat/completions", body)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", resp.StatusCode, got)
	}
	return gjson.Parse(got)
}

func wantError(t *testing.T, resp *http.Response, body string, status int, param string) {
	t.Helper()
	e := gjson.Get(body, "error")
	if resp.StatusCode != status || e.Get("message").String() == "" || e.Get("param").String() != param {
		t.Errorf("got %d %s, want %d with param %q", resp.StatusCode, body, status, param)
	}
	for _, key := range []string{"message", "type", "param", "code"} {
		if !e.Get(key).Exists() {
			t.Errorf("error without %s: %s", key, body)
		}
	}
}

func TestKeys(t *testing.T) {
	for name, tc := range map[string]struct {
		authorization string
		want          int
	}{
		"any key will do":         {"Bearer x", 200},
		"the scheme has any case": {"bearer x", 200},
		"no header":               {"", 401},
		"an empty key":            {"Bearer  ", 401},
		"another scheme":          {"Basic x", 401},
		"the invalid key":         {"Bearer sk-invalid", 401},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := callAs(t, tc.authorization, "GET", serve(t)+"/models", "")
			if tc.want == 401 {
				wantError(t, resp, body, 401, "")
			} else if resp.StatusCode != tc.want {
				t.Errorf("got %d %s", resp.StatusCode, body)
			}
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	ask := request(t, nil, msg("user", "hello"))
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		param              string
	}{
		"an unknown path":           {"GET", "/responses", "", 404, ""},
		"the wrong method":          {"GET", "/chat/completions", "", 405, ""},
		"an unknown model":          {"GET", "/models/demo/none", "", 404, "model"},
		"no JSON":                   {"POST", "/chat/completions", `{"model": `, 400, ""},
		"no object":                 {"POST", "/chat/completions", `[]`, 400, ""},
		"no model":                  {"POST", "/chat/completions", `{"messages":[{"role":"user"}]}`, 400, "model"},
		"no messages":               {"POST", "/chat/completions", `{"model":"m"}`, 400, "messages"},
		"empty messages":            {"POST", "/chat/completions", `{"model":"m","messages":[]}`, 400, "messages"},
		"a message without a role":  {"POST", "/chat/completions", `{"model":"m","messages":[{}]}`, 400, "messages"},
		"a number for content":      {"POST", "/chat/completions", `{"model":"m","messages":[{"role":"user","content":1}]}`, 400, "messages"},
		"max_tokens of 0":           {"POST", "/chat/completions", strings.Replace(ask, "{", `{"max_tokens":0,`, 1), 400, "max_tokens"},
		"n of 1.5":                  {"POST", "/chat/completions", strings.Replace(ask, "{", `{"n":1.5,`, 1), 400, "n"},
		"a body over the limit":     {"POST", "/chat/completions", strings.Repeat(" ", 32<<20+1), 413, ""},
		"embeddings without input":  {"POST", "/embeddings", `{"model":"m"}`, 400, "input"},
		"embeddings of nothing":     {"POST", "/embeddings", `{"model":"m","input":["a",""]}`, 400, "input"},
		"embeddings in 0 dimension": {"POST", "/embeddings", `{"model":"m","input":"a","dimensions":0}`, 400, "dimensions"},
		"embeddings in a format":    {"POST", "/embeddings", `{"model":"m","input":"a","encoding_format":"hex"}`, 400, "encoding_format"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := call(t, tc.method, serve(t)+tc.path, tc.body)
			wantError(t, resp, body, tc.status, tc.param)
		})
	}
}

func TestModels(t *testing.T) {
	base := serve(t)
	_, body := call(t, "GET", base+"/models", "")
	contexts := map[string]int64{"demo/echo": 8192, "demo/small": 4096, "demo/large": 131072}
	for id, want := range contexts {
		if got := gjson.Get(body, fmt.Sprintf(`data.#(id==%q).context_length`, id)).Int(); got != want {
			t.Errorf("listed: %s has a context of %d, want %d", id, got, want)
		}
		_, one := call(t, "GET", base+"/models/"+id, "")
		if gjson.Get(one, "id").String() != id || gjson.Get(one, "context_length").Int() != want {
			t.Errorf("retrieved: %s", one)
		}
	}
}

func TestPromptLongerThanTheContext(t *testing.T) {
	// 4095 words, one for the role, 3 around the message, 3 for the reply.
	base := serve(t)
	for words, want := range map[int]int{4096 - 7: 200, 4096 - 6: 400} {
		body := request(t, map[string]any{"model": "demo/small"}, msg("user", strings.Repeat("word ", words)))
		resp, got := call(t, "POST", base+"/chat/completions", body)
		if resp.StatusCode != want {
			t.Errorf("%d words: got %d %s", words, resp.StatusCode, got)
		}
		if want == 400 && gjson.Get(got, "error.code").String() != "context_length_exceeded" {
			t.Errorf("%d words: %s", words, got)
		}
	}
}

func TestSameRequestSameReply(t *testing.T) {
	body := request(t, nil, msg("user", "Rain falls. Snow falls. Hail melts."), msg("user", "What falls and melts?"))
	base := serve(t)
	_, first := call(t, "POST", base+"/chat/completions", body)
	for range 20 {
		if _, again := call(t, "POST", base+"/chat/completions", body); again != first {
			t.Fatalf("%s\n%s", first, again)
		}
	}
	_, other := call(t, "POST", base+"/chat/completions", request(t, nil, msg("user", "other")))
	if gjson.Get(first, "id").String() == gjson.Get(other, "id").String() {
		t.Error("two requests have one id")
	}
	if gjson.Get(first, "created").Int() != 1767225600 {
		t.Errorf("created isn't of the clock: %s", first)
	}
}

func TestDefaultOptionsCountAndTellTheTime(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/v1/chat/completions", bytes.NewBufferString(request(t, nil, msg("user", "hello"))))
	r.Header.Set("Authorization", "Bearer x")
	demo.New(demo.Options{}).ServeHTTP(w, r)
	got := gjson.Parse(w.Body.String())
	if got.Get("usage.prompt_tokens").Int() == 0 || got.Get("created").Int() < 1767225600 {
		t.Errorf("got %s", got)
	}
}
