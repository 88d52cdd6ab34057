package caddymodule_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/backstory-proxy/backstory/caddymodule"
	"github.com/backstory-proxy/backstory/internal/redistest"
	"github.com/backstory-proxy/backstory/redis"
	"github.com/backstory-proxy/backstory/store"
)

func (f *flaky) Append(ctx context.Context, a store.Append) (int64, error) {
	if failAppend.Load() {
		return 0, errDown
	}
	return f.Store.Append(ctx, a)
}

// journaled starts a site on the flaky store with a journal.
func journaled(t *testing.T) (*site, *fake, options) {
	t.Helper()
	upstream := newFake(t)
	dir := t.TempDir()
	o := options{
		upstream: upstream.URL, store: "flaky " + filepath.Join(dir, "b.db"),
		app:  "journal " + filepath.Join(dir, "journal.db"),
		site: "handle /metrics {\nmetrics\n}",
	}
	return start(t, o), upstream, o
}

// waits is how many exchanges wait in the journal.
func (s *site) waits() float64 { return s.scrape()["backstory_journal_depth"] }

// notTold fails where a client was told that its exchange wasn't saved.
func notTold(t *testing.T, r reply) {
	t.Helper()
	if r.status != http.StatusOK || r.get("_metadata.memory.saved").Exists() || strings.Contains(r.body, "not-saved") {
		t.Errorf("status %d: %s", r.status, r.body)
	}
}

func TestTheJournalKeepsWhatTheStoreCanNot(t *testing.T) {
	s, upstream, o := journaled(t)
	before := s.scrape()
	s.chat(acme, "one", `"sessionId":"ada-77"`)
	failAppend.Store(true)
	defer failAppend.Store(false)
	notTold(t, s.chat(acme, "two", `"sessionId":"ada-77"`))
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) { writeEvents(w, delta("ok"), finished, done) })
	notTold(t, s.chat(acme, "other", `"sessionId":"bob","stream":true`))
	upstream.replyWith(nil)
	if n := s.waits(); n != 2 {
		t.Errorf("%v exchanges wait, want 2", n)
	}
	// Who goes on with the session would not see what was said: not now.
	asked := upstream.count()
	if r := s.post(acme, "/chat/completions", chatBody("three", `"sessionId":"ada-77"`)); r.status != http.StatusServiceUnavailable {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	if r := s.get(acme, "/sessions/ada-77/messages"); r.status != http.StatusServiceUnavailable {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	if upstream.count() != asked {
		t.Error("the model was called")
	}
	s.load(o) // a reload keeps what waits
	if n := s.waits(); n != 2 {
		t.Errorf("after a reload %v exchanges wait, want 2", n)
	}
	failAppend.Store(false)
	s.chat(acme, "three", `"sessionId":"ada-77"`) // at once: nobody waits for the background
	if want := "user: one\nassistant: ok\nuser: two\nassistant: ok\nuser: three\n"; upstream.last(t).said() != want {
		t.Errorf("the router got\n%s", upstream.last(t).said())
	}
	eventually(t, "the other session is replayed by itself", func() bool { return s.waits() == 0 })
	if got := s.stored("bob"); got != "user: other\nassistant: ok\n" {
		t.Errorf("the other session holds\n%s", got)
	}
	changes := s.scrape().since(before)
	for event, n := range map[string]float64{"journaled": 2, "replayed": 2, "void": 0, "set_aside": 0} {
		if got := changes[`backstory_journal_exchanges_total{event="`+event+`"}`]; got != n {
			t.Errorf("%v were %s, want %v", got, event, n)
		}
	}
	log := s.logged()
	for _, want := range []string{"the store can't take exchanges", "the journal is empty again"} {
		if strings.Count(log, want) != 1 {
			t.Errorf("the log says %d times %q", strings.Count(log, want), want)
		}
	}
	why := false
	for line := range strings.Lines(log) {
		why = why || strings.Contains(line, `"level":"warn"`) && strings.Contains(line, errDown.Error())
		if strings.Contains(line, "backstory") && strings.Contains(line, "journal") && !strings.Contains(line, `"request"`) &&
			(strings.Contains(line, "ada-77") || strings.Contains(line, `two`)) {
			t.Errorf("the log names a session, or quotes: %s", line)
		}
	}
	if !why {
		t.Error("no warning says why the store can't take exchanges")
	}
}

func TestTheJournalsPlace(t *testing.T) {
	t.Chdir(t.TempDir())
	upstream := newFake(t)
	s := &site{t: t, log: filepath.Join(t.TempDir(), "log")}
	there := func() bool {
		_, err := os.Stat("data/backstory-journal.db")
		return err == nil
	}
	config := func(app string) string {
		return "{\nadmin off\npersist_config off\nauto_https off\nbackstory {\nkey " + acme + " acme enterprise\n" + app +
			"\n}\n}\nhttp://127.0.0.1:0 {\nbind 127.0.0.1\nhandle_path /api/v1/* {\nroute {\nbackstory\nreverse_proxy " + upstream.URL + "\n}\n}\n}\n"
	}
	for _, app := range []string{"", "store flaky b.db\njournal off"} {
		run(t, s, config(app))
		if there() {
			t.Errorf("with %q there is a journal", app)
		}
	}
	run(t, s, config("store flaky c.db"))
	if !there() {
		t.Error("a store that isn't the embedded one has no journal")
	}
	for _, app := range []string{"journal", "journal a b", `journal ""`} {
		if err := validate(config(app)); err == nil || !strings.Contains(err.Error(), "expected: journal <path>|off") {
			t.Errorf("%q: %v", app, err)
		}
	}
}

func TestTheJournalOutlivesAKillAndTheStore(t *testing.T) {
	upstream := newFake(t)
	server := redistest.Start(t)
	journal := filepath.Join(t.TempDir(), "journal.db")
	o := processOptions{
		upstream: upstream.URL, store: "redis " + server.URL + " {\nfiles off\n}", app: "journal " + journal,
		admin: "off", address: freeAddress(t),
	}
	s, process := startProcessWith(t, o)
	s.chat(acme, "one", `"sessionId":"s"`)
	s.chat(acme, "one", `"sessionId":"gone"`)
	// The store goes away while the model thinks.
	var all sync.WaitGroup
	var arrived atomic.Int32
	down := make(chan struct{})
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		if arrived.Add(1) == 2 {
			server.Kill()
			close(down)
		}
		<-down
		writeReply(w, "ok")
	})
	for _, session := range []string{"s", "gone"} {
		all.Go(func() { notTold(t, s.post(acme, "/chat/completions", chatBody("two", `"sessionId":"`+session+`"`))) })
	}
	all.Wait()
	upstream.replyWith(nil)
	if r := s.post(acme, "/chat/completions", chatBody("three", `"sessionId":"s"`)); r.status != http.StatusServiceUnavailable {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()

	server.Restart()
	db, err := redis.Open(t.Context(), server.URL, redis.Options{NoFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.DeleteSession(t.Context(), store.Scope{Tenant: "acme"}, "gone"); err != nil {
		t.Fatal(err)
	}
	// It is the same store, however it is reached.
	o.store = strings.Replace(o.store, "files off", "files off\npool_size 5", 1)
	s, _ = startProcessWith(t, o)
	s.chat(acme, "three", `"sessionId":"s"`)
	if want := "user: one\nassistant: ok\nuser: two\nassistant: ok\nuser: three\n"; upstream.last(t).said() != want {
		t.Errorf("the router got\n%s", upstream.last(t).said())
	}
	if r := s.get(acme, "/sessions/gone"); r.status != http.StatusNotFound {
		t.Errorf("a deleted session is there again: %s", r.body)
	}
}

func TestTheJournalKnowsAStoreByItsData(t *testing.T) {
	data := func(r *caddymodule.Redis) string {
		t.Helper()
		if err := r.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		return r.Data()
	}
	first := data(&caddymodule.Redis{URL: "redis://user:secret@host"})
	if strings.Contains(first, "secret") {
		t.Errorf("it holds the password: %s", first)
	}
	for _, same := range []*caddymodule.Redis{
		{URL: "redis://user:other@host:6379/0"}, {URL: "redis://host", Prefix: "backstory:"}, {URL: "redis://host", PoolSize: 5, WaitReplicas: 1},
	} {
		if got := data(same); got != first {
			t.Errorf("got %s, want %s", got, first)
		}
	}
	for _, another := range []*caddymodule.Redis{
		{URL: "redis://host:6380"}, {URL: "redis://host/1"}, {URL: "redis://host", Prefix: "b:"}, {URL: "redis+sentinel://host:6379/primary"},
	} {
		if got := data(another); got == first {
			t.Errorf("%s is the same: %s", another.URL, got)
		}
	}
}
