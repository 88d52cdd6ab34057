package caddymodule_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/backstory-proxy/backstory/internal/porttest"
)

// configOf is a Caddyfile as its JSON.
func configOf(t *testing.T, config string) []byte {
	t.Helper()
	adapter := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}
	adapted, _, err := adapter.Adapt([]byte(config), nil)
	if err != nil {
		t.Fatalf("adapt: %v", err)
	}
	return adapted
}

func TestAReloadUnderFiftyStreamsDropsNoneAndChangesPlansAtOnce(t *testing.T) {
	const n = 50
	upstream := newFake(t)
	more := make(chan struct{})
	upstream.replyWith(func(w http.ResponseWriter, r *http.Request, _ string) {
		writeEvents(w, delta("before "))
		select {
		case <-more:
		case <-r.Context().Done():
		}
		writeEvents(w, delta("after"), finished, done)
	})
	admin := freeAddress(t)
	o := processOptions{upstream: upstream.URL, store: "sqlite " + filepath.Join(t.TempDir(), "b.db"), admin: admin, address: freeAddress(t)}
	s, _ := startProcessWith(t, o)
	limit := func() string {
		defer s.client.CloseIdleConnections() // they may be the old server's
		r := s.request("POST", "/chat/completions/preview", acme, strings.NewReader(chatBody("hi", "")))
		r.Header.Set("Content-Type", "application/json")
		res, err := s.client.Do(r)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		return res.Header.Get("X-Ratelimit-Limit-Requests")
	}
	if got := limit(); got != "1000" {
		t.Fatalf("the limit is %s", got)
	}
	streams := make([]*events, n)
	for i := range streams {
		streams[i] = s.stream(acme, "hi", fmt.Sprintf(`"sessionId":"s%d"`, i))
		streams[i].until("before")
	}

	o.app = "plan enterprise 2000"
	reload(t, admin, o.caddyfile())
	// Caddy's old server may yet accept a connection when the reload is over,
	// and close it unanswered.
	eventually(t, "the limit is that of the reload", func() bool { return limit() == "2000" })
	o.app = "plan enterprise 3000"
	reload(t, admin, o.caddyfile()) // and again, under the streams of the one before the last
	eventually(t, "the limit is that of the second reload", func() bool { return limit() == "3000" })
	close(more)
	for _, e := range streams {
		if rest := e.until("[DONE]"); !strings.Contains(rest, "after") {
			t.Errorf("a stream ended with %q", rest)
		}
	}
	upstream.replyWith(nil)
	http.DefaultClient.CloseIdleConnections() // those of the streams: the old server's
	for i := range n {
		s.chat(acme, "next", fmt.Sprintf(`"sessionId":"s%d"`, i))
		if want := "user: hi\nassistant: before after\nuser: next\n"; upstream.last(t).said() != want {
			t.Fatalf("session %d: the router got\n%s", i, upstream.last(t).said())
		}
	}
}

// reload does what `backstory reload` does. The old server closes connections
// that are idle; a client that sends on one at that moment would get an error.
func reload(t *testing.T, admin, config string) {
	t.Helper()
	res, err := http.Post("http://"+admin+"/load", "text/caddyfile", strings.NewReader(config))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("reload: status %d", res.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAShutdownSavesWhatFiftyStreamsDelivered(t *testing.T) {
	const n = 50
	upstream := newFake(t)
	upstream.replyWith(func(w http.ResponseWriter, r *http.Request, _ string) {
		writeEvents(w, delta("delivered"))
		<-r.Context().Done()
	})
	database := "sqlite " + filepath.Join(t.TempDir(), "b.db")
	s, process := startProcess(t, upstream.URL, database)
	for i := range n {
		s.stream(acme, "hi", fmt.Sprintf(`"sessionId":"s%d"`, i)).until("delivered")
	}
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()

	upstream.replyWith(nil)
	s, _ = startProcess(t, upstream.URL, database)
	for i := range n {
		s.chat(acme, "next", fmt.Sprintf(`"sessionId":"s%d"`, i))
		if want := "user: hi\nassistant: delivered\nuser: next\n"; upstream.last(t).said() != want {
			t.Fatalf("session %d: the router got\n%s", i, upstream.last(t).said())
		}
	}
}

// resources are what the process holds, once what is going away has gone.
type resources struct{ goroutines, files int }

func settled(t *testing.T) (now resources) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	for deadline := time.Now().Add(5 * time.Second); ; {
		runtime.GC() // finalizers close what Caddy's listeners leave
		before := now
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("this system doesn't tell of open files")
		}
		now = resources{runtime.NumGoroutine(), len(files)}
		if now == before || time.Now().After(deadline) {
			return now
		}
		<-time.After(20 * time.Millisecond)
	}
}

// leaks runs f a hundred times, and fails if the process then holds more than
// it did after a few.
func leaks(t *testing.T, f func(i int)) {
	t.Helper()
	const times, warm, few = 100, 5, 10
	for i := range warm {
		f(i)
	}
	before := settled(t)
	for i := range times {
		f(warm + i)
	}
	after := settled(t)
	t.Logf("before %+v, after %d times %+v", before, times, after)
	if after.goroutines > before.goroutines+few || after.files > before.files+few {
		var held strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&held, 1)
		t.Errorf("something leaks; the goroutines are\n%s", held.String())
	}
}

func TestReloadsLeakNothing(t *testing.T) {
	upstream := newFake(t)
	// Caddy itself keeps the idle connections of a reverse_proxy that is gone
	// for two minutes.
	behind := "rewrite * /v1{uri}\nreverse_proxy " + upstream.URL + " {\ntransport http {\nkeepalive off\n}\n}"
	journal := "journal " + filepath.Join(t.TempDir(), "journal.db")
	o := options{behind: behind, store: "sqlite " + filepath.Join(t.TempDir(), "b.db"), app: journal}
	s := start(t, o)
	other := options{behind: behind, store: "sqlite " + filepath.Join(t.TempDir(), "c.db"), app: journal}
	leaks(t, func(i int) {
		if i%2 == 0 { // the same store goes on, or another one takes its place
			s.load(o)
		} else {
			s.load(other)
		}
		s.chat(acme, "hi", `"sessionId":"s"`)
		http.DefaultClient.CloseIdleConnections()
	})
}

func TestConfigurationsThatFailLeakNothing(t *testing.T) {
	upstream := newFake(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	site := func(address, app, directives string) []byte {
		return configOf(t, fmt.Sprintf("{\nadmin off\npersist_config off\nauto_https off\nbackstory {\nkey k acme pro\n%s\n}\n}\nhttp://%s {\nbind 127.0.0.1\nbackstory\n%s\n}\n", app, address, directives))
	}
	s := start(t, options{upstream: upstream.URL, store: "sqlite " + filepath.Join(dir, "b.db")})
	ours, theirs := "store sqlite "+filepath.Join(dir, "b.db"), "store sqlite "+filepath.Join(dir, "c.db")
	notADir := filepath.Join(dir, "b.db", "x", "y.db")
	for name, config := range map[string][]byte{
		"the site's address is taken":        site(taken.Addr().String(), ours, ""),
		"the same, with a store of its own":  site(taken.Addr().String(), theirs, ""),
		"the store can't be opened":          site("127.0.0.1:0", "store sqlite "+notADir, ""),
		"the journal can't be opened":        site("127.0.0.1:0", theirs+"\njournal "+notADir, ""),
		"a tenant's name that can't be one":  site("127.0.0.1:0", ours+"\nkey j Acme! pro", ""),
		"a certificate that can't be loaded": site("127.0.0.1:0", theirs, "reverse_proxy https://x {\ntransport http {\ntls_client_auth /nowhere.crt /nowhere.key\n}\n}"),
	} {
		t.Run(name, func(t *testing.T) {
			failed := 0
			leaks(t, func(int) {
				if caddy.Load(config, true) != nil {
					failed++
				}
			})
			if failed == 0 {
				t.Fatal("it didn't fail: nothing was tested")
			}
		})
	}
	s.chat(acme, "the one before goes on", `"sessionId":"s"`)
}

// A request may come before the store is open. If that then fails, Caddy waits
// for the request before it gives up the configuration.
func TestARequestDoesNotWaitForAStoreThatCannotBeOpened(t *testing.T) {
	address := freeAddress(t)
	dir := t.TempDir()
	var waiting sync.WaitGroup
	arrived := make(chan struct{}, 1)
	open := func() error {
		select {
		case <-arrived: // Caddy began with the server
			return errors.New("no such disk")
		case <-time.After(100 * time.Millisecond): // or with us; then try again
			return errors.New("nobody came")
		}
	}
	whileOpening.Store(&open)
	defer whileOpening.Store(nil)
	config := configOf(t, fmt.Sprintf("{\nadmin off\npersist_config off\nauto_https off\nbackstory {\nstore flaky %s\njournal off\nkey k acme pro\n}\n}\nhttp://%s {\nroute {\nnotify\nbackstory\n}\n}\n",
		filepath.Join(dir, "b.db"), address))
	notify.Store(&arrived)
	defer notify.Store(nil)
	for range 100 { // Caddy seldom begins with the server
		select {
		case <-arrived: // in the time before
		default:
		}
		stop := make(chan struct{})
		waiting.Go(func() {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				res, err := http.Post("http://"+address+"/chat/completions", "application/json", strings.NewReader("{}"))
				if err == nil {
					_ = res.Body.Close()
				}
			}
		})
		err := caddy.Load(config, true) // a test that hangs here has failed
		close(stop)
		waiting.Wait()
		if err == nil {
			t.Fatal("the store was opened")
		}
		if strings.Contains(err.Error(), "no such disk") {
			return
		}
	}
	t.Fatal("no request ever came before the store was to be opened")
}

func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := porttest.Next()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// notifyHandler says that a request has arrived.
type notifyHandler struct{}

var notify atomic.Pointer[chan struct{}]

func init() {
	caddy.RegisterModule(notifyHandler{})
	httpcaddyfile.RegisterHandlerDirective("notify", func(httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		return notifyHandler{}, nil
	})
}

func (notifyHandler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.notify", New: func() caddy.Module { return notifyHandler{} }}
}

func (notifyHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if c := notify.Load(); c != nil {
		select {
		case *c <- struct{}{}:
		default:
		}
	}
	return next.ServeHTTP(w, r)
}

func TestARunningStreamOutlivesAReload(t *testing.T) {
	upstream := newFake(t)
	more := make(chan struct{})
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		writeEvents(w, delta("before "))
		<-more
		writeEvents(w, delta("after"), finished, done)
	})
	o := options{upstream: upstream.URL, store: "sqlite " + filepath.Join(t.TempDir(), "b.db")}
	s := start(t, o)
	e := s.stream(acme, "hi", `"sessionId":"s"`)
	e.until("before")
	s.load(options{upstream: upstream.URL}) // the first store is given up by the configuration
	close(more)
	e.until("[DONE]")
	s.load(o)
	upstream.replyWith(nil)
	s.chat(acme, "next", `"sessionId":"s"`)
	if want := "user: hi\nassistant: before after\nuser: next\n"; upstream.last(t).said() != want {
		t.Errorf("the router got\n%s", upstream.last(t).said())
	}
}
