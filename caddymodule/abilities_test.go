package caddymodule_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/store/memstore"
)

func init() { caddy.RegisterModule(new(coreModule)) }

// coreModule opens a store that is nothing but a store.Store.
type coreModule struct {
	Name string `json:"name,omitempty"`
}

func (*coreModule) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "backstory.stores.core", New: func() caddy.Module { return new(coreModule) }}
}

func (m *coreModule) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&m.Name) {
		return d.ArgErr()
	}
	return nil
}

func (m *coreModule) Location() string { return "core:" + m.Name }

func (*coreModule) Open(context.Context, embed.Embedder) (store.Store, error) {
	return memstore.New(nil), nil
}

func TestMemoryWorksOnAStoreThatCanDoNothingElse(t *testing.T) {
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL, app: "journal off", store: "core " + t.Name()})
	s.chat(acme, "my name is Ada", `"sessionId":"s"`)
	s.chat(acme, "what is my name?", `"sessionId":"s"`)
	if sent := upstream.last(t); !strings.Contains(sent.body, "my name is Ada") {
		t.Errorf("the model was sent %s", sent.body)
	}
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/sessions/s/messages", http.StatusOK}, {"GET", "/files", http.StatusOK}, {"GET", "/files/file-1", http.StatusNotFound},
		{"GET", "/usage", http.StatusOK}, {"DELETE", "/sessions/s", http.StatusOK},
	} {
		if r := s.do(s.request(c.method, c.path, acme, nil)); r.status != c.status {
			t.Errorf("%s %s: status %d: %s", c.method, c.path, r.status, r.body)
		}
	}
	if r := s.post(acme, "/sessions/s/messages", `{"messages":[{"role":"user","content":"x"}]}`); r.status != http.StatusNotImplemented {
		t.Errorf("import: status %d: %s", r.status, r.body)
	}
	if r := s.upload(acme, "a.txt", "text"); r.status != http.StatusNotImplemented {
		t.Errorf("upload: status %d: %s", r.status, r.body)
	}
}

func TestAPlanThatCountsTokensNeedsAStoreThatDoes(t *testing.T) {
	s := start(t, options{upstream: newFake(t).URL})
	config, err := caddyfileAdapted(`{
		admin off
		persist_config off
		auto_https off
		backstory {
			store core counting
			journal off
			key ` + acme + ` acme metered
			plan metered 100 {
				tokens_per_month 1M
			}
		}
	}
	http://127.0.0.1:0 {
		backstory
	}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(config, true); err == nil || !strings.Contains(err.Error(), "plan metered has tokens_per_month") {
		t.Errorf("got %v", err)
	}
	s.ok(s.chat(acme, "the site that ran before goes on", ""))
}

func caddyfileAdapted(config string) ([]byte, error) {
	adapted, _, err := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}.Adapt([]byte(config), nil)
	return adapted, err
}
