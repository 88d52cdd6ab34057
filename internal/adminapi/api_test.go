package adminapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/internal/adminapi"
	"github.com/backstory-proxy/backstory/knowledge/sandbox"
	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
)

// configured is a service key of the configuration: that of the tenant acme.
const configured = "key-of-acme"

// down is a store that fails while it is told to.
type down struct {
	*sqlite.Store
	failing atomic.Bool
}

var errDown = errors.New("the disk is on fire")

func (d *down) Append(ctx context.Context, a store.Append) (int64, error) {
	if d.failing.Load() {
		return 0, errDown
	}
	return d.Store.Append(ctx, a)
}

func (d *down) ListKeys(ctx context.Context, tenant string) ([]store.Key, error) {
	if d.failing.Load() {
		return nil, errDown
	}
	return d.Store.ListKeys(ctx, tenant)
}

// site serves the admin API of a gateway, and below /api/v1 the gateway itself,
// in front of a model that says "ok".
type site struct {
	t   *testing.T
	mux *http.ServeMux
	db  *down
}

func start(t *testing.T) *site {
	t.Helper()
	g, err := gateway.New(gateway.Options{
		Keys:     []gateway.Key{{Key: configured, Tenant: "acme", Plan: "enterprise"}},
		Embedder: embed.NewHashing(64), Sandbox: sandbox.New(),
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, err := sqlite.Open(t.Context(), filepath.Join(dir, "b.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, mux: serve(g), db: &down{Store: file}}
	shared, err := gateway.Share(t.Context(), s.db, gateway.JournalOptions{Path: filepath.Join(dir, "journal.db")}, zap.NewNop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Close(); err != nil {
			t.Error(err)
		}
	})
	g.Start(shared, nil)
	model := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
	})
	s.mux.Handle("/api/v1/", http.StripPrefix("/api/v1", g.Handler(model)))
	return s
}

// serve mounts the admin API of a gateway, and tells its errors as Caddy does.
func serve(g *gateway.Gateway) *http.ServeMux {
	mux := http.NewServeMux()
	for _, pattern := range adminapi.Patterns() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			err := adminapi.Serve(pattern, w, r, g, time.ParseDuration)
			var refused *adminapi.Error
			if errors.As(err, &refused) {
				w.WriteHeader(refused.Status)
				_ = json.NewEncoder(w).Encode(map[string]string{"error": refused.Error()})
			}
		})
	}
	return mux
}

// call sends a request to the admin API.
func (s *site) call(method, path, body string) (int, gjson.Result) {
	s.t.Helper()
	return send(s.mux, httptest.NewRequest(method, path, strings.NewReader(body)))
}

// must sends a request that must succeed.
func (s *site) must(method, path, body string) gjson.Result {
	s.t.Helper()
	status, reply := s.call(method, path, body)
	if status != http.StatusOK {
		s.t.Fatalf("%s %s: status %d: %s", method, path, status, reply.Raw)
	}
	return reply
}

// status is what a request is answered with.
func (s *site) status(method, path string) int {
	status, _ := s.call(method, path, "")
	return status
}

// as sends a request to the gateway, as a client with a service key does.
func (s *site) as(key, method, path, body string) (int, gjson.Result) {
	r := httptest.NewRequest(method, "/api/v1"+path, strings.NewReader(body))
	r.Header.Set("serviceKey", key)
	r.Header.Set("Authorization", "Bearer sk-router")
	r.Header.Set("Content-Type", "application/json")
	return send(s.mux, r)
}

// good reports whether a service key is taken.
func (s *site) good(key string) bool {
	status, _ := s.as(key, "GET", "/sessions", "")
	return status == http.StatusOK
}

// chat has an exchange with the model, in a session.
func (s *site) chat(key, session string) {
	s.t.Helper()
	if status, reply := s.as(key, "POST", "/chat/completions", `{"model":"a/b","sessionId":"`+session+`","messages":[{"role":"user","content":"hi"}]}`); status != http.StatusOK {
		s.t.Fatalf("status %d: %s", status, reply.Raw)
	}
}

func send(to http.Handler, r *http.Request) (int, gjson.Result) {
	w := httptest.NewRecorder()
	to.ServeHTTP(w, r)
	return w.Code, gjson.Parse(w.Body.String())
}

func TestARequestThatIsWrongIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := s.must("POST", "/backstory/keys", `{"tenant":"gamma","plan":"free"}`)
	if key.Get("object").Str != "service_key" || !s.good(key.Get("key").Str) {
		t.Errorf("got %s", key.Raw)
	}
	id := key.Get("id").Str
	if got := s.must("GET", "/backstory/keys/"+id, ""); got.Get("tenant").Str != "gamma" || got.Get("key").Exists() {
		t.Errorf("got %s", got.Raw)
	}
	for name, c := range map[string]struct {
		method, path, body string
		status             int
	}{
		"no JSON":           {"POST", "/backstory/keys", "tenant=x", 400},
		"an unknown member": {"POST", "/backstory/keys", `{"tenant":"a","plan":"free","x":1}`, 400},
		"a bad tenant":      {"POST", "/backstory/keys", `{"tenant":"Acme!","plan":"free"}`, 400},
		"an unknown plan":   {"POST", "/backstory/keys", `{"tenant":"a","plan":"gold"}`, 400},
		"no time at all":    {"POST", "/backstory/keys", `{"tenant":"a","plan":"free","expires_in":"0s"}`, 400},
		"a long name":       {"POST", "/backstory/keys", `{"tenant":"a","plan":"free","name":"` + strings.Repeat("x", 300) + `"}`, 400},
		"a bad method":      {"DELETE", "/backstory/keys", "", 405},
		"a GET that writes": {"GET", "/backstory/keys/" + id + "/revoke", "", 405},
		"a POST that reads": {"POST", "/backstory/keys/" + id, "", 405},
		"an unknown action": {"POST", "/backstory/keys/" + id + "/praise", "", 404},
		"an unknown key":    {"POST", "/backstory/keys/0123456789ab/revoke", "", 404},
		"half an id":        {"GET", "/backstory/keys/" + id[:4], "", 400},
		"a key, not an id":  {"GET", "/backstory/keys/" + configured, "", 400},
		"a bad grace":       {"POST", "/backstory/keys/" + id + "/rotate", `{"grace":"-1h"}`, 400},
		"no tenant":         {"DELETE", "/backstory/tenants/", "", 400},
		"a GET of a tenant": {"GET", "/backstory/tenants/gamma", "", 405},
		"nobody's tenant":   {"DELETE", "/backstory/tenants/nobody", "", 404},
		"nobody's sessions": {"GET", "/backstory/sessions", "", 400},
		"no such session":   {"GET", "/backstory/sessions?tenant=acme&session=x", "", 404},
		"nor its messages":  {"GET", "/backstory/sessions/messages?tenant=acme&session=x", "", 404},
		"a bad page":        {"GET", "/backstory/sessions?tenant=acme&limit=0", "", 400},
		"all to be deleted": {"DELETE", "/backstory/sessions?tenant=acme", "", 405},
	} {
		if status, reply := s.call(c.method, c.path, c.body); status != c.status || reply.Get("error").Str == "" {
			t.Errorf("%s: status %d: %s", name, status, reply.Raw)
		}
	}
}

func TestKeysAreRotatedAndRevoked(t *testing.T) {
	t.Parallel()
	s := start(t)
	first := s.must("POST", "/backstory/keys", `{"tenant":"gamma","plan":"pro","name":"ci","expires_in":"100h"}`)
	second := s.must("POST", "/backstory/keys/"+first.Get("id").Str+"/rotate", `{"grace":"1h"}`)
	in := func(expires gjson.Result) time.Duration {
		return time.Until(time.Unix(expires.Int(), 0)).Round(time.Minute)
	}
	if second.Get("plan").Str != "pro" || second.Get("name").Str != "ci" || in(second.Get("expires_at")) != 100*time.Hour || in(second.Get("replaces.expires_at")) != time.Hour {
		t.Errorf("got %s", second.Raw)
	}
	if !s.good(first.Get("key").Str) || !s.good(second.Get("key").Str) {
		t.Error("both must be good for the time of grace")
	}
	third := s.must("POST", "/backstory/keys/"+second.Get("id").Str+"/rotate", `{"grace":"0s"}`)
	if s.good(second.Get("key").Str) || !s.good(third.Get("key").Str) {
		t.Error("without grace the old key must end at once, and the new one be good")
	}
	if got := s.must("POST", "/backstory/keys/"+third.Get("id").Str+"/revoke", ""); got.Get("status").Str != "revoked" || s.good(third.Get("key").Str) {
		t.Errorf("a key that was revoked is good still: %s", got.Raw)
	}
	if status, reply := s.call("POST", "/backstory/keys/"+third.Get("id").Str+"/rotate", ""); status != http.StatusConflict {
		t.Errorf("a key that has ended: status %d: %s", status, reply.Raw)
	}
	list := s.must("GET", "/backstory/keys", "")
	if got := list.Get("data.#.source").Raw; got != `["configuration","store","store","store"]` {
		t.Errorf("listed are %s", list.Raw)
	}
	if got := s.must("GET", "/backstory/keys?tenant=acme", "").Get("data"); got.Get("#").Int() != 1 || s.status("POST", "/backstory/keys/"+got.Get("0.id").Str+"/revoke") != http.StatusConflict {
		t.Errorf("a key of the configuration was revoked: %s", got)
	}
}

func TestSessionsOfATenant(t *testing.T) {
	t.Parallel()
	s := start(t)
	beta := s.must("POST", "/backstory/keys", `{"tenant":"beta","plan":"pro"}`).Get("key").Str
	s.chat(beta, "secret")
	s.chat(configured, "a/ b")
	s.chat(configured, "..")
	if got := s.must("GET", "/backstory/sessions?tenant=acme", "").Get("data.#.id").Raw; got != `["..","a/ b"]` {
		t.Errorf("listed are %s", got)
	}
	const one = "tenant=acme&session=a%2F+b"
	if got := s.must("GET", "/backstory/sessions?"+one, ""); got.Get("messages").Int() != 2 || got.Get("object").Str != "session" {
		t.Errorf("got %s", got.Raw)
	}
	if got := s.must("GET", "/backstory/sessions/messages?order=asc&"+one, "").Get("data.#.content").Raw; got != `["hi","ok"]` {
		t.Errorf("the messages are %s", got)
	}
	if got := s.must("DELETE", "/backstory/sessions?"+one, ""); !got.Get("deleted").Bool() {
		t.Errorf("got %s", got.Raw)
	}
	if status := s.status("GET", "/backstory/sessions?"+one); status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
	if got := s.must("GET", "/backstory/sessions?tenant=beta", "").Get("data.#").Int(); got != 1 {
		t.Errorf("another tenant has %d sessions", got)
	}
}

func TestAnOperatorDeletesWhatIsInTheJournal(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.db.failing.Store(true)
	s.chat(configured, "new")
	s.must("DELETE", "/backstory/sessions?tenant=acme&session=new", "")
	s.db.failing.Store(false)
	if status := s.status("DELETE", "/backstory/sessions?tenant=acme&session=new"); status != http.StatusNotFound {
		t.Errorf("deleted again: status %d", status)
	}
	if status, reply := s.as(configured, "GET", "/sessions/new", ""); status != http.StatusNotFound {
		t.Errorf("the journal has brought it back: status %d: %s", status, reply.Raw)
	}
}

func TestADeletedTenantCanBeginAgain(t *testing.T) {
	t.Parallel()
	s := start(t)
	key := s.must("POST", "/backstory/keys", `{"tenant":"gamma","plan":"pro"}`).Get("key").Str
	for _, session := range []string{"a", "b"} {
		s.chat(key, session)
		s.chat(configured, session)
	}
	if got := s.must("GET", "/backstory/tenants", "").Get("data.#.tenant").Raw; got != `["acme","gamma"]` {
		t.Errorf("listed are %s", got)
	}
	got := s.must("DELETE", "/backstory/tenants/gamma", "")
	if got.Get("keys").Int() != 1 || got.Get("sessions").Int() != 2 || got.Get("messages").Int() != 4 || got.Get("configured_keys").Int() != 0 {
		t.Errorf("got %s", got.Raw)
	}
	if s.good(key) {
		t.Error("its key is good still")
	}
	if got := s.must("DELETE", "/backstory/tenants/acme", ""); got.Get("sessions").Int() != 2 || got.Get("configured_keys").Int() != 1 || !s.good(configured) {
		t.Errorf("got %s", got.Raw)
	}
}

func TestWithoutAStoreThereIsNothingToOperate(t *testing.T) {
	t.Parallel()
	if status, reply := send(serve(nil), httptest.NewRequest("GET", "/backstory/keys", nil)); status != http.StatusNotFound || reply.Get("error").Str == "" {
		t.Errorf("no gateway: status %d: %s", status, reply.Raw)
	}
	g, err := gateway.New(gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g.Start(nil, errDown)
	if status, reply := send(serve(g), httptest.NewRequest("GET", "/backstory/keys", nil)); status != http.StatusServiceUnavailable || reply.Get("error").Str == "" {
		t.Errorf("a store that couldn't be opened: status %d: %s", status, reply.Raw)
	}
	s := start(t)
	s.db.failing.Store(true)
	if status, reply := s.call("GET", "/backstory/keys", ""); status != http.StatusServiceUnavailable || reply.Get("error").Str == "" {
		t.Errorf("a store that fails: status %d: %s", status, reply.Raw)
	}
}
