package caddymodule_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// series are the samples of a scrape, by name and labels.
type series map[string]float64

func (s *site) scrape() series {
	s.t.Helper()
	res, err := http.Get(s.root + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("scrape: status %d, %v: %s", res.StatusCode, err, body)
	}
	all := series{}
	for line := range strings.Lines(string(body)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if !ok {
			name, value, _ = strings.Cut(strings.TrimSpace(line), " ")
		} else {
			name += "}"
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil && strings.HasPrefix(name, "backstory_") {
			all[name] = n
		}
	}
	return all
}

// since are the changes since an earlier scrape: the metrics are the process's,
// and other tests have counted, too.
func (s series) since(before series) series {
	changes := series{}
	for name, n := range s {
		if n -= before[name]; n != 0 {
			changes[name] = n
		}
	}
	return changes
}

func TestMetricsGoOnCountingOverAReload(t *testing.T) {
	upstream := newFake(t)
	o := options{upstream: upstream.URL, site: "handle /metrics {\nmetrics\n}"}
	s := start(t, o)
	const name = `backstory_requests_total{endpoint="chat",outcome="ok",plan="enterprise"}`
	before := s.scrape()[name]
	s.chat(acme, "hi", "")
	s.load(o)
	s.chat(acme, "hi", "")
	eventually(t, "both requests are counted", func() bool { return s.scrape()[name] == before+2 })
}

func TestStagesAreSpansUnderCaddysTracing(t *testing.T) {
	var mu sync.Mutex
	var sent strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		sent.Write(b) // protobuf: names stand in it as they are
	}))
	defer collector.Close()
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	upstream := newFake(t)
	s := &site{t: t, log: filepath.Join(t.TempDir(), "log")}
	s.load(options{upstream: upstream.URL, site: "tracing {\nspan site\n}"})
	s.chat(acme, "the secret question", `"sessionId":"the-session"`)
	if err := caddy.Stop(); err != nil { // sends what was traced
		t.Fatal(err)
	}
	got := sent.String()
	for _, span := range []string{"site", "backstory.auth", "backstory.gather", "backstory.assemble", "backstory.router", "backstory.save", "backstory.tenant"} {
		if !strings.Contains(got, span) {
			t.Errorf("nothing called %s was traced", span)
		}
	}
	for _, secret := range []string{acme, router, "the secret question", "the-session"} {
		if strings.Contains(got, secret) {
			t.Errorf("the trace holds %q", secret)
		}
	}
}
