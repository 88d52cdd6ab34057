package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/openai"
)

// BenchmarkObserve is what it costs to observe a chat request that comes by
// every stage but the search of files, where nothing is logged or traced.
func BenchmarkObserve(b *testing.B) {
	g, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	learnt := newCalibration()
	r := httptest.NewRequest("POST", "/chat/completions", nil)
	w := g.newReplyWriter(httptest.NewRecorder(), r)
	b.ReportAllocs()
	for b.Loop() {
		w.seen, w.match = Stats{start: time.Now()}, match{}
		s := &w.seen
		s.endpoint = g.routeOf(w, r).endpoint
		s.end(stageAuth)
		for _, at := range []stage{stageGather, stageRouter, stageSave} {
			s.begin(at)
			s.end(at)
		}
		s.end(stageAssemble)
		header := http.Header{}
		header["Server-Timing"] = append(header["Server-Timing"], s.serverTiming())
		s.plan, s.added, s.tokens, s.whole, s.usage = "pro", true, 4000, true, openai.Usage{Prompt: 4000, Completion: 100}
		estimateRatio.Observe(1)
		learnt.learn("a/b", learnt.margin("a/b", 1), s.tokens, s.usage.Prompt, nil)
		g.observe(w, r)
	}
}
