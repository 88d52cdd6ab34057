package gateway_test

import (
	"net/http"
	"testing"
)

func TestReadinessTellsOfStoreIndexAndRouter(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	db := newFlaky(t)
	s := start(t, options{upstream: upstream.URL, store: db.open})
	ready := func() reply {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", s.root+"/readyz", nil)
		return s.do(r)
	}
	is := func(status int, body string) func() bool {
		return func() bool { r := ready(); return r.status == status && r.body == body+"\n" }
	}
	state := func(index, router string) string {
		return `{"status":"ok","store":"ok","index":"` + index + `","router":"` + router + `","load":"ok"}`
	}
	if r := ready(); r.status != http.StatusOK || r.body != state("ok", "unknown")+"\n" {
		t.Errorf("at first: status %d: %s", r.status, r.body)
	}
	s.chat(acme, "hi", "")
	eventually(t, "the router is said to be there", is(200, state("ok", "ok")))
	s.get(acme, "/models") // 404: an answer, too
	db.failSearch.Store(true)
	eventually(t, "the index is said to fail, which doesn't take the proxy out", is(200, state("failing", "ok")))
	db.failSearch.Store(false)
	upstream.Close()
	s.post(acme, "/chat/completions", chatBody("hi", ""))
	eventually(t, "the router is said to be gone, which doesn't take the proxy out", is(200, state("ok", "unreachable")))
	db.failPing.Store(true)
	eventually(t, "a store that doesn't answer takes the proxy out", func() bool {
		r := ready()
		return r.status == http.StatusServiceUnavailable && r.get("error.type").Str == "server_error"
	})
	db.failPing.Store(false)
	eventually(t, "it comes back", is(200, state("ok", "unreachable")))
}
