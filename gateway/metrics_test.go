package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/backstory-proxy/backstory/gateway"
)

// series are the samples of a scrape, by name and labels.
type series map[string]float64

// scrape reads the metrics. They are the process's: tests that compare them don't
// run beside others.
func (s *site) scrape() series {
	s.t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry(s.t), promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body := w.Body.String()
	if w.Code != http.StatusOK {
		s.t.Fatalf("scrape: status %d: %s", w.Code, body)
	}
	all := series{}
	for line := range strings.Lines(body) {
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

func registry(t *testing.T) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewRegistry()
	if err := gateway.RegisterMetrics(r); err != nil {
		t.Fatal(err)
	}
	return r
}

func withUsage(prompt, completion string) string {
	return strings.Replace(jsonReply("ok"), `"prompt_tokens":1,"completion_tokens":1`, `"prompt_tokens":`+prompt+`,"completion_tokens":`+completion, 1)
}

func TestMetricsCountWhatHappened(t *testing.T) {
	upstream := newFake(t)
	db := newFlaky(t)
	s := start(t, options{upstream: upstream.URL, store: db.open})
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
	db.failGather.Store(true)
	s.post(acme, "/chat/completions", chatBody("hi", `"sessionId":"m"`))
	db.failGather.Store(false)
	db.failAppend.Store(true)
	s.chat(acme, "hi", `"sessionId":"m"`)
	db.failAppend.Store(false)
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
	families, err := registry(t).Gather()
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
