package caddymodule_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/internal/redistest"
	"github.com/backstory-proxy/backstory/redis"
	"github.com/backstory-proxy/backstory/store"
)

// startRedis runs a redis-server and returns its URL. Sites on it do without
// files.
func startRedis(t *testing.T) string {
	t.Helper()
	return redistest.Start(t).URL
}

// twoProxies are two processes on one Redis.
func twoProxies(t *testing.T, upstream, app string) (one, other *site, url string) {
	t.Helper()
	url = startRedis(t)
	proxy := func() *site {
		s, _ := startProcessWith(t, processOptions{
			upstream: upstream, store: "redis " + url + " {\nfiles off\n}", app: app, admin: "off", address: freeAddress(t),
		})
		return s
	}
	return proxy(), proxy(), url
}

func TestASessionGoesOnOnAnotherProxy(t *testing.T) {
	upstream := newFake(t)
	one, other, _ := twoProxies(t, upstream.URL, "")
	for i := range 10 {
		one.chat(acme, fmt.Sprint("one ", i), `"sessionId":"s"`)
		r := other.chat(acme, fmt.Sprint("other ", i), `"sessionId":"s"`)
		if got, want := r.get("_metadata.memory.historyMessages").Int(), int64(4*i+2); got != want {
			t.Fatalf("round %d: %d messages, want %d", i, got, want)
		}
	}
	if want := "user: one 0\nassistant: ok\nuser: other 0\nassistant: ok\n"; !strings.HasPrefix(upstream.last(t).said(), want) {
		t.Errorf("the router got\n%s", upstream.last(t).said())
	}
}

func TestRatesAddUpOverProxies(t *testing.T) {
	upstream := newFake(t)
	one, other, _ := twoProxies(t, upstream.URL, "")
	var mu sync.Mutex
	statuses := map[int]int{}
	var all sync.WaitGroup
	for range 15 {
		for _, s := range []*site{one, other} {
			all.Go(func() {
				r := s.post(tiny, "/chat/completions", chatBody("hi", ""))
				mu.Lock()
				defer mu.Unlock()
				statuses[r.status]++
			})
		}
	}
	all.Wait()
	if statuses[http.StatusOK] != 10 || statuses[http.StatusTooManyRequests] != 20 {
		t.Errorf("got %v, want ten 200 and twenty 429", statuses)
	}
}

func TestARevokedKeyIsRefusedEverywhere(t *testing.T) {
	t.Parallel() // the proxies are other processes
	upstream := newFake(t)
	one, other, url := twoProxies(t, upstream.URL, "")
	// A key as the first start makes them: the digest alone is stored.
	const key = "bsk_0000000000000000000000000000000000000000000_jlcZC2"
	db, err := redis.Open(t.Context(), url, redis.Options{NoFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	record := store.Key{Digest: sha256.Sum256([]byte(key)), Tenant: "acme", Plan: "pro", Created: time.Now()}
	if err := db.PutKey(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	one.chat(key, "hi", "")
	other.chat(key, "hi", "")
	record.Revoked = time.Now()
	if err := db.PutKey(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*site{one, other} {
		eventually(t, "the key is refused", func() bool {
			return s.post(key, "/chat/completions", chatBody("hi", "")).status == http.StatusUnauthorized
		})
	}
	if took := time.Since(record.Revoked); took > 11*time.Second {
		t.Errorf("it took %v, and must not take more than 10 s", took)
	}
}

func TestConcurrentAppendsFromTwoProxiesAreWhole(t *testing.T) {
	t.Parallel() // the proxies are other processes
	const exchanges, workers = 1000, 16
	upstream := newFake(t)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, body string) {
		messages := gjson.Get(body, "messages").Array()
		writeReply(w, "reply to "+messages[len(messages)-1].Get("content").Str)
	})
	// Prompts are small, so that the time goes into the appends.
	one, other, url := twoProxies(t, upstream.URL, "context {\nmax_added_tokens 200\nrecall off\n}")
	next := make(chan int)
	var all sync.WaitGroup
	for i := range workers {
		s := []*site{one, other}[i%2]
		all.Go(func() {
			for n := range next {
				r := s.post(acme, "/chat/completions", chatBody(fmt.Sprint("message ", n), `"sessionId":"s"`))
				if r.status != http.StatusOK || r.get("_metadata.memory.saved").Exists() {
					t.Errorf("message %d: status %d: %s", n, r.status, r.body)
				}
			}
		})
	}
	for n := range exchanges {
		next <- n
	}
	close(next)
	all.Wait()

	db, err := redis.Open(t.Context(), url, redis.Options{NoFiles: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stored, err := db.Exchanges(t.Context(), store.Scope{Tenant: "acme"}, "s", 0, 2*exchanges, store.Ascending)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range stored {
		if len(e.Messages) != 2 {
			t.Fatalf("an exchange of %d messages", len(e.Messages))
		}
		said := gjson.GetBytes(e.Messages[0].JSON, "content").Str
		if got := gjson.GetBytes(e.Messages[1].JSON, "content").Str; got != "reply to "+said {
			t.Fatalf("%q is followed by %q", said, got)
		}
		seen[said] = true
	}
	if len(stored) != exchanges || len(seen) != exchanges {
		t.Errorf("%d exchanges, %d different ones, want %d", len(stored), len(seen), exchanges)
	}
}

func TestAFullRedisIsSaidToBeFullBeforeTheModelIsCalled(t *testing.T) {
	upstream := newFake(t)
	server := redistest.Start(t)
	s := start(t, options{upstream: upstream.URL, store: "redis " + server.URL + " {\nfiles off\n}"})
	s.chat(acme, "one", `"sessionId":"s"`)
	server.Limit("100kb")
	asked := upstream.count()
	for range 3 {
		r := s.post(acme, "/chat/completions", chatBody("two", `"sessionId":"s"`))
		if r.status != http.StatusServiceUnavailable || r.get("error.code").Str != "store_full" || r.header.Get("Retry-After") == "" {
			t.Errorf("a chat: status %d: %s", r.status, r.body)
		}
	}
	if upstream.count() != asked {
		t.Error("the model was called for an exchange that can't be kept")
	}
	s.chat(acme, "nothing is kept of this", "")
	if got := s.stored("s"); got != "user: one\nassistant: ok\n" {
		t.Errorf("the session holds\n%s", got)
	}
	s.ok(s.do(s.request("DELETE", "/sessions/s", acme, nil)))
	server.Limit("0")
	s.chat(acme, "three", `"sessionId":"s"`)
	if want := "user: three\n"; upstream.last(t).said() != want {
		t.Errorf("the router got\n%s", upstream.last(t).said())
	}
}
