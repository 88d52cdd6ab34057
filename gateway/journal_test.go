package gateway_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/internal/redistest"
	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
)

// journaled starts a site on a store that fails, with a journal.
func journaled(t *testing.T, adjust func(*gateway.Options)) (*site, *fake, *flaky) {
	t.Helper()
	upstream, db := newFake(t), newFlaky(t)
	return start(t, options{upstream: upstream.URL, store: db.open, adjust: adjust, journal: filepath.Join(t.TempDir(), "journal.db")}), upstream, db
}

// metered has the tokens of the enterprise plan be counted.
func metered(o *gateway.Options) {
	o.Plans = map[string]gateway.Plan{"enterprise": {RequestsPerMinute: 1000, TokensPerMonth: 1_000_000}}
}

// waits is how many exchanges wait in the journals of the process: tests that ask
// don't run beside others.
func (s *site) waits() float64 { return s.scrape()["backstory_journal_depth"] }

// notTold fails where a client was told that its exchange wasn't saved.
func notTold(t *testing.T, r reply) {
	t.Helper()
	if r.status != http.StatusOK || r.get("_metadata.memory.saved").Exists() || strings.Contains(r.body, "not-saved") {
		t.Errorf("status %d: %s", r.status, r.body)
	}
}

func TestAnExchangeThatTheStoreSavedWithoutSayingSoIsThereOnce(t *testing.T) {
	s, _, db := journaled(t, metered)
	db.saveAndFail.Store(true)
	notTold(t, s.chat(acme, "one", `"sessionId":"s"`))
	if s.waits() != 1 {
		t.Error("nothing waits: nothing is tested")
	}
	db.saveAndFail.Store(false)
	eventually(t, "it is replayed", func() bool { return s.waits() == 0 })
	if got := s.stored("s"); got != "user: one\nassistant: ok\n" {
		t.Errorf("the session holds\n%s", got)
	}
	if got := s.get(acme, "/usage").get("tokens.used").Int(); got != 2 {
		t.Errorf("%d tokens were counted, want 2", got)
	}
}

// Each request of a session may come to another proxy.
func TestOtherProxiesSeeWhatIsNotConfirmed(t *testing.T) {
	s, _, db := journaled(t, nil)
	db.loseReplicas.Store(true)
	notTold(t, s.chat(acme, "one", `"sessionId":"s"`))
	notTold(t, s.chat(acme, "two", `"sessionId":"s"`))
	other, err := sqlite.Open(t.Context(), db.path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if list, err := other.Exchanges(t.Context(), store.Scope{Tenant: "acme"}, "s", 0, 10, store.Ascending); err != nil || len(list) != 2 {
		t.Errorf("the store has %d exchanges, want 2: %v", len(list), err)
	}
	if n := s.waits(); n != 2 {
		t.Errorf("%v exchanges wait to be confirmed, want 2", n)
	}
	db.loseReplicas.Store(false)
	eventually(t, "they are confirmed", func() bool { return s.waits() == 0 })
	if got := s.stored("s"); got != "user: one\nassistant: ok\nuser: two\nassistant: ok\n" {
		t.Errorf("the session holds\n%s", got)
	}
}

func TestTheTokensOfAJournaledExchangeAreCounted(t *testing.T) {
	s, _, db := journaled(t, metered)
	db.failAppend.Store(true)
	s.chat(acme, "one", `"sessionId":"s"`)
	db.failAppend.Store(false)
	eventually(t, "it is replayed", func() bool { return s.waits() == 0 })
	if got := s.get(acme, "/usage").get("tokens.used").Int(); got != 2 {
		t.Errorf("%d tokens were counted, want 2", got)
	}
}

func TestAClientDoesNotWaitForAStoreThatHangs(t *testing.T) {
	t.Parallel()
	s, _, db := journaled(t, nil)
	db.hangAppend.Store(true)
	began := time.Now()
	notTold(t, s.chat(acme, "one", `"sessionId":"s"`))
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %v, and the journal takes over after 2 s", took)
	}
	db.hangAppend.Store(false)
	if got := s.stored("s"); got != "user: one\nassistant: ok\n" {
		t.Errorf("the session holds\n%s", got)
	}
}

func TestWhatADeletedSessionHasInTheJournalVanishes(t *testing.T) {
	s, _, db := journaled(t, nil)
	s.chat(acme, "one", `"sessionId":"s"`)
	db.failAppend.Store(true)
	s.chat(acme, "two", `"sessionId":"s"`)
	s.chat(acme, "one", `"sessionId":"new"`) // it is in the journal alone
	for _, session := range []string{"s", "new"} {
		if r := s.do(s.request("DELETE", "/sessions/"+session, acme, nil)); r.status != http.StatusOK {
			t.Errorf("delete %s: status %d: %s", session, r.status, r.body)
		}
	}
	if n := s.waits(); n != 0 {
		t.Errorf("%v exchanges wait", n)
	}
	db.failAppend.Store(false)
	for _, session := range []string{"s", "new"} {
		if r := s.get(acme, "/sessions/"+session); r.status != http.StatusNotFound {
			t.Errorf("%s is there again: %s", session, r.body)
		}
	}
}

func TestWhatEndsLaterStandsBehindWhatWaits(t *testing.T) {
	t.Parallel()
	s, upstream, db := journaled(t, nil)
	arrived, release := make(chan struct{}), make(chan struct{})
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, body string) {
		if strings.Contains(body, "slow") {
			close(arrived)
			<-release
		}
		writeReply(w, "ok")
	})
	var slow sync.WaitGroup
	slow.Go(func() { notTold(t, s.post(acme, "/chat/completions", chatBody("slow", `"sessionId":"s"`))) })
	<-arrived
	db.failAppend.Store(true)
	s.chat(acme, "quick", `"sessionId":"s"`)
	db.failAppend.Store(false) // and now the other one could be saved at once
	close(release)
	slow.Wait()
	if got := s.stored("s"); got != "user: quick\nassistant: ok\nuser: slow\nassistant: ok\n" {
		t.Errorf("the session holds\n%s", got)
	}
}

// A client that resends its history has the same messages in two requests that
// are under way at once: whichever is saved last, they are kept once.
func TestOverlapIsCheckedAgainWhenTheJournalIsReplayed(t *testing.T) {
	s, upstream, db := journaled(t, nil)
	db.failAppend.Store(true)
	both := make(chan struct{})
	var arrived atomic.Int32
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, body string) {
		if arrived.Add(1) == 2 {
			close(both)
		}
		<-both
		if strings.Contains(body, "left") {
			writeReply(w, "to the left")
			return
		}
		writeReply(w, "to the right")
	})
	var all sync.WaitGroup
	for _, way := range []string{"left", "right"} {
		all.Go(func() {
			notTold(t, s.post(acme, "/chat/completions", `{"model":"demo/echo","sessionId":"s","messages":[{"role":"user","content":"hi"},`+
				`{"role":"assistant","content":"hello"},{"role":"user","content":"`+way+`"}]}`))
		})
	}
	all.Wait()
	if n := s.waits(); n != 2 {
		t.Errorf("%v exchanges wait, want 2", n)
	}
	db.failAppend.Store(false)
	got := s.stored("s")
	left, right := "user: left\nassistant: to the left\n", "user: right\nassistant: to the right\n"
	if history := "user: hi\nassistant: hello\n"; got != history+left+right && got != history+right+left {
		t.Errorf("the session holds\n%s", got)
	}
}

func TestTheJournalIsReplayedWhenRedisIsBack(t *testing.T) {
	upstream := newFake(t)
	server := redistest.Start(t)
	s := start(t, options{upstream: upstream.URL, store: redisAt(server.URL), journal: filepath.Join(t.TempDir(), "journal.db")})
	s.chat(acme, "one", `"sessionId":"s"`)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		server.Kill()
		writeEvents(w, delta("ok"), finished, done)
	})
	notTold(t, s.chat(acme, "two", `"sessionId":"s","stream":true`))
	if n := s.waits(); n != 1 {
		t.Errorf("%v exchanges wait, want 1", n)
	}
	server.Restart()
	eventually(t, "it is replayed by itself", func() bool { return s.waits() == 0 })
	if got := s.stored("s"); got != "user: one\nassistant: ok\nuser: two\nassistant: ok\n" {
		t.Errorf("the session holds\n%s", got)
	}
}
