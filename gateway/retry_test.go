package gateway_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/backstory-proxy/backstory/internal/redistest"
)

// tries is a model router that answers the tries of a request in the order that a
// test wants: the first one that comes is told "first", and so on.
type tries struct {
	came    chan int
	release [3]chan struct{}
	n       atomic.Int32
}

func holdTries(f *fake, streams bool) *tries {
	h := &tries{came: make(chan int, 3), release: [3]chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}}
	f.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		n := int(h.n.Add(1)) - 1
		h.came <- n
		<-h.release[n]
		text := [...]string{"first", "second", "third"}[n]
		if streams {
			writeEvents(w, delta(text), finished, done)
			return
		}
		writeReply(w, text)
	})
	return h
}

// ask has each site in turn send the same request, the first one unmarked and the
// others as retries if so, and lets them end in the order given. No client leaves:
// a connection that is dead without the proxy's notice looks like that.
func (h *tries) ask(t *testing.T, sites []*site, marked bool, extra string, order ...int) {
	t.Helper()
	var ended [3]chan struct{}
	var all sync.WaitGroup
	for n, s := range sites {
		ended[n] = make(chan struct{})
		var header []string
		if marked && n > 0 {
			header = []string{"x-stainless-retry-count", string(rune('0' + n))}
		}
		all.Go(func() {
			defer close(ended[n])
			notTold(t, s.post(acme, "/chat/completions", chatBody("question", extra), header...))
		})
		if got := <-h.came; got != n {
			t.Errorf("try %d came as %d", n, got)
		}
	}
	for _, n := range order {
		close(h.release[n])
		<-ended[n]
	}
	all.Wait()
}

func TestARetryReplacesAFirstTryThatRunsBesideIt(t *testing.T) {
	redisURL := redistest.Start(t).URL
	for kind, open := range map[string]opener{"SQLite": nil, "Redis": redisAt(redisURL)} {
		for name, order := range map[string][]int{"the first try ends first": {0, 1}, "the retry ends first": {1, 0}, "two retries": {1, 2, 0}} {
			for _, streams := range []bool{false, true} {
				upstream := newFake(t)
				s := start(t, options{upstream: upstream.URL, store: open})
				session := strings.ReplaceAll(t.Name()+kind+name, " ", "-")
				extra := `"sessionId":"` + session + `"`
				last := "second"
				if len(order) == 3 {
					last = "third"
				}
				if streams {
					session += "-streams"
					extra = `"sessionId":"` + session + `","stream":true`
				}
				s.chat(acme, "before", `"sessionId":"`+session+`"`)
				h := holdTries(upstream, streams)
				all := []*site{s, s, s}[:len(order)]
				h.ask(t, all, true, extra, order...)
				if got, want := s.stored(session), "user: before\nassistant: ok\nuser: question\nassistant: "+last+"\n"; got != want {
					t.Errorf("%s, %s, streams %t: the session holds\n%s", kind, name, streams, got)
				}
			}
		}
	}
}

func TestRequestsThatSayTheSameWithoutASignOfARetryBothStand(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	holdTries(upstream, false).ask(t, []*site{s, s}, false, `"sessionId":"s"`, 0, 1)
	if got, want := s.stored("s"), "user: question\nassistant: first\nuser: question\nassistant: second\n"; got != want {
		t.Errorf("the session holds\n%s", got)
	}
}

func TestARetryThatComesToAnotherProxy(t *testing.T) {
	server := redistest.Start(t)
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		upstream := newFake(t)
		dir := t.TempDir()
		proxy := func(journal string) *site {
			return start(t, options{upstream: upstream.URL, store: redisAt(server.URL), journal: filepath.Join(dir, journal)})
		}
		one, other := proxy("a.db"), proxy("b.db")
		session := "two-" + string(rune('0'+order[0]))
		holdTries(upstream, false).ask(t, []*site{one, other}, true, `"sessionId":"`+session+`"`, order...)
		if got, want := one.stored(session), "user: question\nassistant: second\n"; got != want {
			t.Errorf("ended as %v: the session holds\n%s", order, got)
		}
	}
}

// The first try, or both, go into the journal: what stands beside them is looked at
// when they are replayed.
func TestAFirstTryInTheJournalGivesWayToItsRetry(t *testing.T) {
	for name, fails := range map[string][2]bool{"the first try is journaled": {true, false}, "both are": {true, true}, "the retry is": {false, true}} {
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			s, upstream, db := journaled(t, nil)
			h := holdTries(upstream, false)
			var all sync.WaitGroup
			var ended [2]chan struct{}
			for n := range 2 {
				ended[n] = make(chan struct{})
				var header []string
				if n > 0 {
					header = []string{"x-stainless-retry-count", "1"}
				}
				all.Go(func() {
					defer close(ended[n])
					notTold(t, s.post(acme, "/chat/completions", chatBody("question", `"sessionId":"s"`), header...))
				})
				<-h.came
			}
			for _, n := range order {
				db.failAppend.Store(fails[n])
				close(h.release[n])
				<-ended[n]
			}
			all.Wait()
			db.failAppend.Store(false)
			eventually(t, "nothing waits", func() bool { return s.waits() == 0 })
			if got, want := s.stored("s"), "user: question\nassistant: second\n"; got != want {
				t.Errorf("%s, ended as %v: the session holds\n%s", name, order, got)
			}
		}
	}
}
