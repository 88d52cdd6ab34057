package gateway_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/gateway"
)

const app = "https://app.example"

func TestAPreflightNeedsNoKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		origins         []string
		origin, allowed string
	}{
		{"an origin of the list", []string{"https://other.example", app}, app, app},
		{"any origin", []string{"*"}, app, "*"},
		{"another origin", []string{"https://other.example"}, app, ""},
		{"the same host on another port", []string{app}, app + ":8443", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			upstream := newFake(t)
			s := start(t, options{upstream: upstream.URL, adjust: func(o *gateway.Options) { o.Origins = c.origins }})
			r := s.do(s.request("OPTIONS", "/chat/completions", "", nil, "serviceKey", "", "Authorization", "",
				"Origin", c.origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,servicekey,x-stainless-os"))
			if r.status != http.StatusNoContent || r.body != "" {
				t.Fatalf("status %d: %s", r.status, r.body)
			}
			if got := r.header.Get("Access-Control-Allow-Origin"); got != c.allowed {
				t.Errorf("the origin allowed is %q, want %q", got, c.allowed)
			}
			if !strings.Contains(r.header.Get("Access-Control-Allow-Methods"), "DELETE") ||
				r.header.Get("Access-Control-Allow-Headers") != "authorization,servicekey,x-stainless-os" {
				t.Errorf("headers %v", r.header)
			}
			if timing := r.header.Values("Server-Timing"); len(timing) != 0 {
				t.Errorf("Server-Timing is %q, of a request without a stage", timing)
			}
			if vary := strings.Join(r.header.Values("Vary"), ","); c.origins[0] != "*" && !strings.Contains(vary, "Origin") {
				t.Errorf("Vary is %q", vary)
			}
			if upstream.count() != 0 {
				t.Error("it went to the router")
			}
		})
	}
}

func TestEveryReplyCanBeReadByABrowserApp(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Access-Control-Allow-Origin", "https://router.example") // of no use to anyone here
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		writeReply(w, "ok")
	})
	s := start(t, options{upstream: upstream.URL, adjust: func(o *gateway.Options) { o.Origins = []string{app} }})
	post := func(key, extra string, header ...string) reply {
		return s.post(key, "/chat/completions", chatBody("hi", extra), append(header, "Origin", app)...)
	}
	replies := map[string]reply{
		"of the router":    post(acme, ""),
		"with memory":      post(acme, `"sessionId":"s"`),
		"a wrong key":      post("nobody's", ""),
		"no key":           post("", "", "serviceKey", ""),
		"an invalid value": post(acme, `"temperature":9`),
		"beside the API":   s.do(s.request("GET", "/../../nowhere", acme, nil, "Origin", app)),
	}
	for name, r := range replies {
		if got := r.header.Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != app {
			t.Errorf("%s: status %d, allowed %q", name, r.status, got)
		}
		exposed := strings.Split(r.header.Get("Access-Control-Expose-Headers"), ", ")
		for _, header := range []string{"X-Request-Id", "X-Ratelimit-Remaining-Requests", "Retry-After", "X-Should-Retry", "X-Backstory-Saved"} {
			if !slices.Contains(exposed, header) {
				t.Errorf("%s: exposed %q, without %s", name, exposed, header)
			}
		}
		if r.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: credentials are allowed", name)
		}
	}
	r := s.post(acme, "/chat/completions", chatBody("hi", ""), "Origin", "https://evil.example")
	if r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: headers %v", r.header)
	}
}

func TestWithoutTheOptionNothingIsSaidOfOrigins(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Access-Control-Allow-Origin", "https://router.example")
		writeReply(w, "ok")
	})
	s := start(t, options{upstream: upstream.URL})
	r := s.ok(s.post(acme, "/chat/completions", chatBody("hi", ""), "Origin", app))
	if got := r.header.Get("Access-Control-Allow-Origin"); got != "https://router.example" {
		t.Errorf("the router's header became %q", got)
	}
	r = s.do(s.request("OPTIONS", "/chat/completions", "", nil, "serviceKey", "", "Origin", app, "Access-Control-Request-Method", "POST"))
	if r.status != http.StatusUnauthorized {
		t.Errorf("a preflight: status %d", r.status)
	}
}

func TestAnOriginIsChecked(t *testing.T) {
	t.Parallel()
	for _, origin := range []string{"app.example", "https://app.example/", "https://App.example", "https://app.example/path", "https://*.example", "null"} {
		_, err := gateway.New(gateway.Options{Origins: []string{origin}})
		if err == nil || !strings.Contains(err.Error(), "is no origin") {
			t.Errorf("%s: %v", origin, err)
		}
	}
}
