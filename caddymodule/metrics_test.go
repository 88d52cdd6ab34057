package caddymodule_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
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

func withUsage(prompt, completion string) string {
	return strings.Replace(jsonReply("ok"), `"prompt_tokens":1,"completion_tokens":1`, `"prompt_tokens":`+prompt+`,"completion_tokens":`+completion, 1)
}

func TestMetricsCountWhatHappened(t *testing.T) {
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL, site: "handle /metrics {\nmetrics\n}", app: "journal off", store: "flaky " + filepath.Join(t.TempDir(), "b.db")})
	before := s.scrape()

	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, withUsage("70", "7"))
	})
	s.ok(s.upload(acme, "f.md", "The refund window is 30 days."))
	s.chat(acme, "hi", `"sessionId":"m"`)
	s.chat(acme, "refund window", `"sessionId":"m"`)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		writeEvents(w, delta("ok"), finished, `data: {"choices":[],"usage": {"prompt_tokens":100,"completion_tokens":10}}`+"\n\n", done)
	})
	s.chat(acme, "go on", `"sessionId":"m","stream":true`)
	s.chat(beta, "nothing to add", "")
	s.post(acme, "/chat/completions", "nonsense")
	s.post("nobody's", "/chat/completions", chatBody("hi", ""))
	s.post(acme, "/chat/completions/preview", chatBody("hi", ""))
	s.get(acme, "/sessions/m")
	s.get(acme, "/models")
	for range 11 { // of 10 in a minute
		s.post(tiny, "/chat/completions", chatBody("hi", ""))
	}
	failGather.Store(true)
	s.post(acme, "/chat/completions", chatBody("hi", `"sessionId":"m"`))
	failGather.Store(false)
	failAppend.Store(true)
	s.chat(acme, "hi", `"sessionId":"m"`)
	failAppend.Store(false)
	upstream.replyWith(func(http.ResponseWriter, *http.Request, string) { panic(http.ErrAbortHandler) })
	s.post(acme, "/chat/completions", chatBody("hi", `"sessionId":"m"`))
	upstream.replyWith(func(w http.ResponseWriter, r *http.Request, _ string) {
		writeEvents(w, delta("half"))
		<-r.Context().Done()
	})
	e := s.stream(acme, "hi", `"sessionId":"m"`)
	e.until("half")
	e.body.Close()
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		writeEvents(w, delta("half"))
		panic(http.ErrAbortHandler)
	})
	e = s.stream(acme, "hi", `"sessionId":"m"`)
	_, _ = io.ReadAll(e.in)
	upstream.Close()
	s.post(acme, "/chat/completions", chatBody("hi", ""))

	want := map[string]float64{
		`backstory_requests_total{endpoint="chat",outcome="ok",plan="enterprise"}`:                 5,
		`backstory_requests_total{endpoint="chat",outcome="invalid",plan="enterprise"}`:            1,
		`backstory_requests_total{endpoint="chat",outcome="unauthorized",plan="none"}`:             1,
		`backstory_requests_total{endpoint="preview",outcome="ok",plan="enterprise"}`:              1,
		`backstory_requests_total{endpoint="files",outcome="ok",plan="enterprise"}`:                1,
		`backstory_requests_total{endpoint="sessions",outcome="ok",plan="enterprise"}`:             1,
		`backstory_requests_total{endpoint="other",outcome="router_error",plan="enterprise"}`:      1, // 404
		`backstory_requests_total{endpoint="chat",outcome="ok",plan="free"}`:                       10,
		`backstory_requests_total{endpoint="chat",outcome="rate_limited",plan="free"}`:             1,
		`backstory_requests_total{endpoint="chat",outcome="store_unavailable",plan="enterprise"}`:  1,
		`backstory_requests_total{endpoint="chat",outcome="router_error",plan="enterprise"}`:       1,
		`backstory_requests_total{endpoint="chat",outcome="client_closed",plan="enterprise"}`:      1,
		`backstory_requests_total{endpoint="chat",outcome="router_unreachable",plan="enterprise"}`: 2,
		`backstory_billed_tokens_total{kind="prompt",plan="enterprise"}`:                           340,
		`backstory_billed_tokens_total{kind="completion",plan="enterprise"}`:                       34,
		`backstory_store_errors_total{effect="request_refused"}`:                                   1,
		`backstory_store_errors_total{effect="exchange_not_saved"}`:                                1,
		`backstory_stage_duration_seconds_count{stage="search"}`:                                   9,
	}
	var got series
	eventually(t, "all requests are counted", func() bool {
		got = s.scrape().since(before)
		return got[`backstory_requests_total{endpoint="chat",outcome="client_closed",plan="enterprise"}`] == 1
	})
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}
	for name, n := range got {
		if _, ok := want[name]; !ok && strings.HasPrefix(name, "backstory_requests_total") {
			t.Errorf("%s is %v", name, n)
		}
	}
	for _, name := range []string{
		`backstory_added_tokens_total{plan="enterprise",source="history"}`, `backstory_added_tokens_total{plan="enterprise",source="files"}`,
		`backstory_included_messages_total{plan="enterprise"}`, `backstory_included_chunks_total{plan="enterprise"}`,
		`backstory_stage_duration_seconds_count{stage="auth"}`, `backstory_stage_duration_seconds_count{stage="gather"}`,
		`backstory_stage_duration_seconds_count{stage="assemble"}`, `backstory_stage_duration_seconds_count{stage="router"}`,
		`backstory_stage_duration_seconds_count{stage="save"}`,
		`backstory_cache_lookups_total{cache="sessions",result="hit"}`, `backstory_cache_lookups_total{cache="sessions",result="miss"}`,
	} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
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

func TestTheDashboardAndTheMetricsAgree(t *testing.T) {
	b, err := os.ReadFile("../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	dashboard := map[string]bool{}
	for _, name := range regexp.MustCompile(`backstory_[a-z_]+`).FindAllString(string(b), -1) {
		dashboard[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")] = true
	}
	upstream := newFake(t)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, withUsage("1200", "7"))
	})
	s := start(t, options{upstream: upstream.URL})
	s.ok(s.upload(acme, "f.md", "words"))
	s.chat(acme, strings.Repeat("words ", 1000), `"sessionId":"s"`)
	ctx := caddy.ActiveContext()
	families, err := ctx.GetMetricsRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{"backstory_degraded_searches_total": true} // shown only once there is one
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "backstory_") {
			there[f.GetName()] = true
		}
	}
	for name := range dashboard {
		if !there[name] {
			t.Errorf("the dashboard shows %s, which there isn't", name)
		}
	}
	for name := range there {
		if !dashboard[name] {
			t.Errorf("the dashboard doesn't show %s", name)
		}
	}
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
