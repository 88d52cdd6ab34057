package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/gateway"
)

func TestBothKeysAreNeeded(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	for name, header := range map[string][]string{
		"no service key":                       {"serviceKey", ""},
		"an unknown service key":               {"serviceKey", "nobody's"},
		"a malformed key of our kind":          {"serviceKey", "bsk_short"},
		"no router key":                        {"Authorization", ""},
		"an empty router key":                  {"Authorization", "Bearer "},
		"another scheme":                       {"Authorization", "Basic YTpi"},
		"the service key in Authorization":     {"Authorization", "Bearer " + acme},
		"another's service key as router key":  {"Authorization", "bearer " + beta},
		"a service key behind the router key":  {"Authorization", "Bearer " + router + ", Bearer " + acme},
		"a service key behind a second scheme": {"Authorization", "Bearer Bearer " + acme},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			for _, path := range []string{"/chat/completions", "/files", "/models", "/sessions"} {
				r := s.post(acme, path, chatBody("hi", ""), header...)
				if r.status != http.StatusUnauthorized {
					t.Fatalf("%s: status %d: %s", path, r.status, r.body)
				}
				e := r.get("error")
				if e.Get("type").Str != "invalid_request_error" || e.Get("code").Str != "invalid_api_key" || e.Get("message").Str == "" ||
					e.Get("param").Raw != "null" {
					t.Errorf("%s: body %s", path, r.body)
				}
				if r.header.Get("x-request-id") == "" {
					t.Errorf("%s: no x-request-id", path)
				}
			}
		})
	}
	if n := upstream.count(); n != 0 {
		t.Errorf("the router got %d requests", n)
	}
}

func TestTheRoutersOwn401ReachesTheClient(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"message":"bad router key","code":401}}`))
	})
	s := start(t, options{upstream: upstream.URL})
	for _, extra := range []string{"", `"sessionId":"s"`} {
		r := s.post(acme, "/chat/completions", chatBody("hi", extra))
		if r.status != http.StatusUnauthorized || r.body != `{"error":{"message":"bad router key","code":401}}` {
			t.Errorf("status %d: %s", r.status, r.body)
		}
	}
}

func TestASecondAuthorizationIsRefused(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	r := s.request("POST", "/chat/completions", acme, strings.NewReader(chatBody("hi", "")))
	r.Header.Add("Authorization", "Bearer "+acme)
	if r := s.do(r); r.status != http.StatusUnauthorized || upstream.count() != 0 {
		t.Errorf("status %d, %d requests to the router", r.status, upstream.count())
	}
}

func TestAServiceKeyInTheURLIsRefused(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	upstream.other = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }
	s := start(t, options{upstream: upstream.URL})
	for _, query := range []string{
		"serviceKey=" + acme, "servicekey=wrong", "SERVICEKEY=", "serviceKey", "a=b&ServiceKey=x", "service%4bey=" + acme, "a;serviceKey=x",
		"key=" + acme, "api_key=" + beta, "key=key%2Dof-acme", acme,
	} {
		for _, key := range []string{acme, ""} { // beside the header, and in its place
			for _, path := range []string{"/chat/completions", "/files", "/embeddings", "/sessions"} {
				r := s.post(key, path+"?"+query, chatBody("hi", ""), "serviceKey", key)
				if r.status != http.StatusUnauthorized || !strings.Contains(r.get("error.message").Str, "Send it in the header serviceKey") {
					t.Errorf("%s?%s: status %d: %s", path, query, r.status, r.body)
				}
				if strings.Contains(r.body, acme) {
					t.Errorf("the reply holds the key: %s", r.body)
				}
			}
		}
	}
	if upstream.count() != 0 {
		t.Errorf("the router got %d requests", upstream.count())
	}
	if log := s.logged(); strings.Contains(log, acme) || strings.Contains(log, beta) {
		t.Error("a key stands in the log")
	}
	// A parameter of the router's goes through.
	s.ok(s.post(acme, "/embeddings?api-version=2024&key=other", "{}"))
}

func TestTwoServiceKeysAreRefused(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	for name, adjust := range map[string]func(*gateway.Options){
		"two keys": nil, "one key": func(o *gateway.Options) { o.RouterKey = operators },
	} {
		s := start(t, options{upstream: upstream.URL, adjust: adjust})
		for _, keys := range [][]string{{acme, beta}, {acme, "wrong"}, {"wrong", acme}, {acme, ""}, {"", acme}, {acme, acme, beta}} {
			r := s.request("POST", "/chat/completions", "", strings.NewReader(chatBody("hi", "")))
			r.Header["Servicekey"] = keys
			if r := s.do(r); r.status != http.StatusUnauthorized || upstream.count() != 0 {
				t.Errorf("%s: %q: status %d, %d requests to the router", name, keys, r.status, upstream.count())
			}
		}
	}
	s := start(t, options{upstream: upstream.URL})
	r := s.request("POST", "/chat/completions", acme, strings.NewReader(chatBody("hi", "")))
	r.Header.Add("serviceKey", acme) // a client and its proxy may both add it
	s.ok(s.do(r))
	if got := upstream.last(t).header.Values("serviceKey"); len(got) != 0 {
		t.Errorf("the router was sent %q", got)
	}
}

func TestAShortKeyOfTheConfigurationIsWarnedOf(t *testing.T) {
	t.Parallel()
	warned := func(keys ...gateway.Key) string {
		s := start(t, options{upstream: "http://127.0.0.1:1", adjust: func(o *gateway.Options) { o.Keys = keys }})
		var lines []string
		for line := range strings.Lines(s.logged()) {
			if strings.Contains(line, "shorter than 16 bytes") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	short := gateway.Key{Key: "fifteen-bytes-1", Tenant: "short", Plan: "free"}
	long := gateway.Key{Key: "sixteen-bytes-12", Tenant: "long", Plan: "free"}
	unset := gateway.Key{Unset: true, Tenant: "unset", Plan: "free"}
	got := warned(long, short, unset)
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, `"level":"warn"`) || !strings.Contains(got, `"key":2,"tenant":"short"`) {
		t.Errorf("the log says %q", got)
	}
	if strings.Contains(got, short.Key) {
		t.Errorf("the log holds the key: %q", got)
	}
}
