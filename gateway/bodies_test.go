package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/internal/redistest"
)

// countedBody counts what is read of a body.
type countedBody struct {
	io.Reader
	read atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read.Add(int64(n))
	return n, err
}

func TestALargeBodyIsNotReadForARequestBeyondTheRate(t *testing.T) {
	t.Parallel()
	s := start(t, options{upstream: newFake(t).URL})
	for range 10 {
		s.chat(tiny, "hi", "")
	}
	large := chatBody(strings.Repeat("x", 1<<20), "")
	for name, c := range map[string]struct {
		path   string
		length int64
	}{
		"a chat": {"/chat/completions", int64(len(large))}, "a chat that doesn't say how large it is": {"/chat/completions", -1},
		"an import": {"/sessions/s/messages", int64(len(large))},
	} {
		body := &countedBody{Reader: strings.NewReader(large)}
		r := s.request("POST", c.path, tiny, body, "Expect", "100-continue", "Content-Type", "application/json")
		r.ContentLength = c.length
		if got := s.do(r); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
		}
		if n := body.read.Load(); n != 0 {
			t.Errorf("%s: %d bytes of it were read", name, n)
		}
	}
}

func TestALargeRequestIsCountedOnce(t *testing.T) {
	t.Parallel()
	s := start(t, options{upstream: newFake(t).URL})
	long := strings.Repeat("x", 100_000)
	for i, body := range []string{
		chatBody("hi", ""), chatBody(long, ""), chatBody(long, `"sessionId":"s"`), chatBody(long, `"temperature":9`),
	} {
		r := s.post(tiny, "/chat/completions", body)
		if left := r.header.Get("X-Ratelimit-Remaining-Requests"); left != strconv.Itoa(9-i) {
			t.Errorf("request %d, status %d: %s requests left", i, r.status, left)
		}
	}
	r := s.post(tiny, "/sessions/s/messages", `{"messages":[{"role":"user","content":"`+long+`"}]}`)
	if left := s.ok(r).header.Get("X-Ratelimit-Remaining-Requests"); left != "5" {
		t.Errorf("an import: %s requests left", left)
	}
}

func TestBodiesUnderWayTakeABoundedMemory(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL, adjust: func(o *gateway.Options) {
		o.MaxBody, o.MaxBodies = 1<<20, 4<<20
		o.Keys = append(o.Keys, gateway.Key{Key: "key-of-gamma", Tenant: "gamma", Plan: "enterprise"})
	}})
	hold := make(chan struct{})
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		<-hold
		writeReply(w, "ok")
	})
	large := chatBody(strings.Repeat("x", 900<<10), "")
	ended := make(chan int, 10)
	begin := func(key string) {
		n := upstream.count()
		go func() { ended <- s.post(key, "/chat/completions", large).status }()
		eventually(t, "the chat is under way", func() bool { return upstream.count() > n })
	}
	refused := func(key string, status int, what string) {
		t.Helper()
		if r := s.post(key, "/chat/completions", large); r.status != status || r.header.Get("Retry-After") == "" {
			t.Errorf("%s: status %d, want %d: %s", what, r.status, status, r.body)
		}
		s.ok(s.upload(key, "a.txt", strings.Repeat("hello ", 150<<10))) // files wait on disk
	}
	begin(acme)
	begin(acme)
	refused(acme, http.StatusTooManyRequests, "half of the memory is the tenant's own")
	begin(beta)
	begin(tiny)
	refused("key-of-gamma", http.StatusServiceUnavailable, "there is none left")
	close(hold)
	for range 4 {
		if status := <-ended; status != http.StatusOK {
			t.Errorf("a chat that was let in got %d", status)
		}
	}
	for range 5 { // what was held is given back
		s.ok(s.post(acme, "/chat/completions", large))
		s.ok(s.upload(acme, "a.txt", strings.Repeat("hello ", 150<<10)))
		if r := s.post(acme, "/chat/completions", "{"+large); r.status != http.StatusBadRequest {
			t.Errorf("status %d: %s", r.status, r.body)
		}
	}
}

func TestUploadsUnderWayTakeABoundedDisk(t *testing.T) {
	t.Parallel()
	s := start(t, options{upstream: newFake(t).URL, adjust: func(o *gateway.Options) { o.MaxFile, o.MaxUploads = 1<<20, 1<<20 }})
	for range 5 { // what was held is given back, also of those that are refused
		if r := s.upload(acme, "large.txt", strings.Repeat("hello ", 150<<10)); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") == "" {
			t.Errorf("more than the tenant's half: status %d: %s", r.status, r.body)
		}
		s.ok(s.upload(acme, "a.txt", strings.Repeat("hello ", 60<<10)))
		s.ok(s.upload(acme, "small.txt", "A small one needs no room."))
	}
}

func TestAnUploadIsNotReadWhereFilesAreOff(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := start(t, options{upstream: newFake(t).URL, store: redisAt("redis://" + server.Address)})
	r := s.uploading(acme, "a.txt", strings.Repeat("hello ", 1<<20))
	body := &countedBody{Reader: r.Body}
	r.Body = io.NopCloser(body)
	r.Header.Set("Expect", "100-continue")
	if got := s.do(r); got.status != http.StatusNotImplemented {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	if n := body.read.Load(); n != 0 {
		t.Errorf("%d bytes of it were read", n)
	}
}

func TestSmallRequestsNeedNoRoomAmongTheLargeOnes(t *testing.T) {
	t.Parallel()
	s := start(t, options{upstream: newFake(t).URL, adjust: func(o *gateway.Options) { o.MaxBody, o.MaxBodies = 1<<10, 1<<10 }})
	s.chat(acme, strings.Repeat("x", 900), "")
}

func TestAnUploadInChunksKeepsItsConnection(t *testing.T) {
	t.Parallel()
	s := start(t, options{upstream: newFake(t).URL})
	const form = "--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nassistants\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nhello\r\n--x--\r\n"
	reused := false
	for range 2 {
		r := s.request("POST", "/files", acme, strings.NewReader(form), "Content-Type", "multipart/form-data; boundary=x")
		r.ContentLength = -1
		trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }}
		s.ok(s.do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace))))
	}
	if !reused {
		t.Error("the second upload had to connect again")
	}
}
