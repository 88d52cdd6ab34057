package gateway_test

import (
	"net/http"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/gateway"
	. "github.com/backstory-proxy/backstory/internal/extracttest"
	"github.com/backstory-proxy/backstory/knowledge/sandbox"
)

func TestUploadsBeyondTheQueueAreToldToComeAgain(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err) // a reader that never ends
	}
	r := sandbox.New()
	r.Command, r.Patience, r.Waiting = []string{sleep, "3600"}, time.Hour, 1
	s := start(t, options{upstream: newFake(t).URL, adjust: func(o *gateway.Options) { o.Sandbox, o.UploadWait = r, time.Hour }})
	content := string(DOCX(P("", "text")))
	// One more than are read at once waits, and another one is too much.
	refused := make(chan *http.Response, 2+runtime.GOMAXPROCS(0))
	for range cap(refused) {
		request := s.uploading(acme, "a.docx", content)
		go func() {
			if res, err := s.client.Do(request); err == nil { // the others end with the test
				refused <- res
			}
		}()
	}
	res := <-refused
	defer res.Body.Close()
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "10" {
		t.Errorf("the tenant's own: %d, %v", res.StatusCode, res.Header)
	}
	r2 := s.upload(beta, "a.docx", content)
	if r2.status != http.StatusServiceUnavailable || r2.header.Get("Retry-After") != "10" || r2.get("error.type").Str != "server_error" {
		t.Errorf("another's: %d, %v: %s", r2.status, r2.header, r2.body)
	}
	if r := s.upload(beta, "a.md", "text that needs no reader"); r.status != http.StatusOK {
		t.Errorf("plain text: %d: %s", r.status, r.body)
	}
}
