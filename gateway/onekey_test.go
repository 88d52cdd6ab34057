package gateway_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/backstory-proxy/backstory/gateway"
)

const operators = "sk-of-the-operator"

func TestOneKeyIsEnoughWhereTheOperatorHasTheRouters(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	vectors := new(embeddings)
	var asked sync.Map // what, with which key: for anything but a chat
	upstream.other = func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.Path+" "+r.Header.Get("Authorization"), true)
		vectors.ServeHTTP(w, r)
	}
	s := start(t, options{
		upstream: upstream.URL,
		adjust:   func(o *gateway.Options) { o.RouterKey, o.Embedder = operators, routerEmbedder("test/embed", 8) },
	})
	one := []string{"serviceKey", "", "Authorization", "Bearer " + acme}

	s.ok(s.post("", "/chat/completions", chatBody("I am Ada", `"sessionId":"s"`), one...))
	s.ok(s.post("", "/chat/completions", chatBody("who am I?", `"sessionId":"s"`), one...))
	if want := "user: I am Ada\nassistant: ok\nuser: who am I?\n"; upstream.last(t).said() != want {
		t.Errorf("the router got\n%s", upstream.last(t).said())
	}
	if r := s.ok(s.do(s.request("GET", "/usage", "", nil, one...))); r.get("plan").Str != "enterprise" {
		t.Errorf("the caller's usage is %s", r.body)
	}
	if r := s.get(acme, "/sessions/s"); r.status != http.StatusOK {
		t.Errorf("the session is not that of the key's tenant: %s", r.body)
	}
	s.ok(s.upload(acme, "a.md", "abba dada cafe"))
	if _, ok := asked.Load("/v1/models Bearer " + operators); !ok {
		t.Error("the list of models was not asked for with the operator's key")
	}
	asked.Clear()
	if r := s.ok(s.post("", "/chat/completions", chatBody("bad cab", ""), one...)); r.get("_metadata.rag.resultsFound").Int() != 1 {
		t.Errorf("metadata %s", r.get("_metadata"))
	}
	s.ok(s.post("", "/embeddings", `{"input":["a"]}`, one...))
	for _, r := range upstream.chats {
		if got := r.header.Get("Authorization"); got != "Bearer "+operators {
			t.Errorf("the router was sent %q", got)
		}
	}
	asked.Range(func(what, _ any) bool {
		if what != "/v1/embeddings Bearer "+operators {
			t.Errorf("the router was asked for %s", what)
		}
		return true
	})

	// A client that brings a router key of its own goes on using it.
	s.chat(acme, "hi", "")
	if got := upstream.last(t).header.Get("Authorization"); got != "Bearer "+router {
		t.Errorf("the client's own key became %q", got)
	}
	for name, header := range map[string][]string{
		"a router key alone":                   {"serviceKey", "", "Authorization", "Bearer " + router},
		"a scheme alone":                       {"serviceKey", "", "Authorization", "Bearer "},
		"nothing at all":                       {"serviceKey", "", "Authorization", ""},
		"another scheme":                       {"serviceKey", "", "Authorization", "Basic " + acme},
		"two keys in a row":                    {"serviceKey", "", "Authorization", "Bearer " + acme + " " + beta},
		"a service key without a router key":   {"serviceKey", acme, "Authorization", ""},
		"the same key in both headers":         {"serviceKey", acme, "Authorization", "Bearer " + acme},
		"a key of our kind that nobody has":    {"serviceKey", "", "Authorization", "Bearer bsk_x"},
		"the operator's key, found out by one": {"serviceKey", "", "Authorization", "Bearer " + operators},
	} {
		if r := s.post("", "/chat/completions", chatBody("hi", ""), header...); r.status != http.StatusUnauthorized ||
			r.get("error.code").Str != "invalid_api_key" {
			t.Errorf("%s: status %d: %s", name, r.status, r.body)
		}
	}
	if log := s.logged(); strings.Contains(log, operators) || strings.Contains(log, acme) {
		t.Error("a key stands in the log")
	}
}

func TestARefusedOperatorsKeyIsNotTheClients(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	refuse := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("WWW-Authenticate", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"message":"Incorrect API key provided: ` + r.Header.Get("Authorization") + `"}}`))
	}
	upstream.other = refuse
	upstream.replyWith(func(w http.ResponseWriter, r *http.Request, _ string) { refuse(w, r) })
	s := start(t, options{upstream: upstream.URL, adjust: func(o *gateway.Options) {
		o.RouterKey, o.Embedder = operators, routerEmbedder("test/embed", 8)
	}})
	one := []string{"serviceKey", "", "Authorization", "Bearer " + acme}
	for path, extra := range map[string]string{"/chat/completions": `"sessionId":"s"`, "/chat/completions?": "", "/responses": ""} {
		r := s.post("", path, chatBody("hi", extra), one...)
		if r.status != http.StatusBadGateway || r.get("error.type").Str != "server_error" || r.header.Get("x-should-retry") != "false" {
			t.Errorf("%s: status %d, headers %v: %s", path, r.status, r.header, r.body)
		}
		if strings.Contains(r.body, operators) || r.header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: the client was shown the operator's key: %v %s", path, r.header, r.body)
		}
	}
	if !strings.Contains(s.logged(), "refused the router_key") {
		t.Error("the log doesn't tell the operator")
	}
	// With a key of the client's own, the router's word stands.
	if r := s.post(acme, "/responses", "{}"); r.status != http.StatusUnauthorized || !strings.Contains(r.body, router) {
		t.Errorf("status %d: %s", r.status, r.body)
	}
}

func TestTheOperatorsAccountIsNotTheClients(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	var asked []string
	upstream.other = func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.Method+" "+r.URL.Path) }
	s := start(t, options{upstream: upstream.URL, adjust: func(o *gateway.Options) { o.RouterKey = operators }})
	one := []string{"serviceKey", "", "Authorization", "Bearer " + acme}
	for _, request := range []string{
		"POST /embeddings", "POST /completions", "POST /responses", "POST /moderations", "POST /rerank", "POST /audio/speech",
		"POST /audio/transcriptions", "POST /images/generations", "GET /models", "HEAD /models", "GET /models/openai/gpt-5",
		"GET /models/@cf/meta/llama-3.1_8b:free", "GET /models/a~b+c/d",
	} {
		method, path, _ := strings.Cut(request, " ")
		asked = nil
		if r := s.do(s.request(method, path, "", nil, one...)); r.status != http.StatusOK || len(asked) != 1 {
			t.Errorf("%s: status %d, asked %q", request, r.status, asked)
		}
	}
	for _, request := range []string{
		"GET /key", "GET /credits", "GET /responses/resp_1", "DELETE /responses/resp_1", "GET /chat/completions/c_1", "GET /batches",
		"POST /batches", "POST /key/generate", "POST /embeddings/", "DELETE /models/m",
		"POST //key/generate", "GET /",
		// What a server behind us may read as another path.
		"GET /models/%252e%252e/key", "GET /models/%2e%2e%252fkey", "GET /models/..%5Ckey", "GET /models/..;/key", "GET /models/m;x=1",
		"GET /models/a%3Fb", "GET /models/a%23b", "GET /models/a%00", "GET /models/a%20b", "GET /models/a%2Fb", "GET /models/caf%C3%A9",
		"POST /%65mbeddings", "GET /models//key",
	} {
		method, path, _ := strings.Cut(request, " ")
		asked = nil
		if r := s.do(s.request(method, path, "", nil, one...)); r.status != http.StatusForbidden || r.get("error.message").Str == "" || len(asked) != 0 {
			t.Errorf("%s: status %d: %s, asked %q", request, r.status, r.body, asked)
		}
		if r := s.do(s.request(method, path, acme, nil)); r.status != http.StatusOK || len(asked) != 1 {
			t.Errorf("%s with a router key: status %d, asked %q", request, r.status, asked)
		}
	}
}
