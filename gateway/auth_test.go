package gateway_test

import (
	"net/http"
	"strings"
	"testing"
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
