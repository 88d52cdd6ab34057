package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/backstory-proxy/backstory/gateway/internal/calibrate"
	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/openai"
)

// BenchmarkObserve is what it costs to observe a chat request that comes by
// every stage but the search of files, where nothing is logged or traced.
func BenchmarkObserve(b *testing.B) {
	g, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	learnt := calibrate.New()
	r := httptest.NewRequest("POST", "/chat/completions", nil)
	w := g.newReplyWriter(httptest.NewRecorder(), r)
	b.ReportAllocs()
	for b.Loop() {
		w.stats, w.match = stats.Begun("id"), match{}
		s := &w.stats
		s.Endpoint = g.routeOf(w, r).endpoint
		s.End(stats.Auth)
		for _, at := range []stats.Stage{stats.Gather, stats.Router, stats.Save} {
			s.Begin(at)
			s.End(at)
		}
		s.Assembled(0, stats.Prompt{Tokens: 4000})
		header := http.Header{}
		header["Server-Timing"] = append(header["Server-Timing"], s.ServerTiming())
		s.Plan, s.Whole, s.Usage = "pro", true, openai.Usage{Prompt: 4000, Completion: 100}
		stats.EstimateRatio.Observe(1)
		learnt.Learn("a/b", learnt.Margin("a/b", 1), s.Prompt.Tokens, s.Usage.Prompt, nil)
		g.observe(w, r)
	}
}
