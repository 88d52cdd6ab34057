package demo_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/demo"
)

// events splits a stream into its events' data; comments stay as they are.
func events(body string) []string {
	var data []string
	for event := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		data = append(data, strings.TrimPrefix(event, "data: "))
	}
	return data
}

func stream(t *testing.T, body string) []string {
	t.Helper()
	resp, got := call(t, "POST", serve(t)+"/chat/completions", body)
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || !strings.HasPrefix(ct, "text/event-stream") {
		t.Fatalf("got %d, %s: %s", resp.StatusCode, ct, got)
	}
	return events(got)
}

// open sends a chat request, and returns the reply as soon as it begins.
func open(ctx context.Context, t *testing.T, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", serve(t)+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer x")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestStream(t *testing.T) {
	ask := msg("user", "Tell me more.")
	whole := complete(t, request(t, nil, ask)).Get("choices.0")
	got := stream(t, request(t, map[string]any{"stream": true}, ask))
	if first := gjson.Get(got[0], "choices.0.delta").Raw; first != `{"role":"assistant","content":""}` {
		t.Errorf("first delta: %s", first)
	}
	var text strings.Builder
	for _, e := range got[1 : len(got)-2] {
		part := gjson.Get(e, "choices.0.delta.content").String()
		if len(strings.Fields(part)) != 1 {
			t.Errorf("a delta of %q", part)
		}
		text.WriteString(part)
	}
	if text.String() != whole.Get("message.content").String() {
		t.Errorf("streamed %q, whole %s", text.String(), whole)
	}
	last := gjson.Parse(got[len(got)-2])
	if last.Get("choices.0.finish_reason").String() != "stop" || last.Get("choices.0.delta").Raw != "{}" || last.Get("usage").Exists() {
		t.Errorf("last chunk: %s", last)
	}
	if got[len(got)-1] != "[DONE]" {
		t.Errorf("the end: %s", got[len(got)-1])
	}
	for _, e := range got[:len(got)-1] {
		if gjson.Get(e, "id").String() != last.Get("id").String() || gjson.Get(e, "object").String() != "chat.completion.chunk" {
			t.Errorf("chunk: %s", e)
		}
	}
}

func TestStreamUsageComesLastWithoutChoices(t *testing.T) {
	got := stream(t, request(t, map[string]any{"stream": true, "stream_options": map[string]any{"include_usage": true}}, msg("user", "demo:words 3")))
	last := gjson.Parse(got[len(got)-2])
	if last.Get("choices").Raw != "[]" || last.Get("usage").Raw != `{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}` {
		t.Errorf("got %s", last)
	}
	if first := gjson.Get(got[0], "usage"); first.Raw != "null" {
		t.Errorf("usage of the first chunk: %q", first.Raw)
	}
}

func TestStreamOfSeveralChoices(t *testing.T) {
	got := stream(t, request(t, map[string]any{"stream": true, "n": 3}, msg("user", "demo:words 5")))
	texts := make([]string, 3)
	finished := 0
	for _, e := range got {
		choice := gjson.Get(e, "choices.0")
		texts[choice.Get("index").Int()] += choice.Get("delta.content").String()
		if choice.Get("finish_reason").String() == "stop" {
			finished++
		}
	}
	if finished != 3 || len(strings.Fields(texts[0])) != 5 || texts[0] != texts[1] || texts[1] != texts[2] {
		t.Errorf("%d finished: %q", finished, texts)
	}
}

func TestDirectives(t *testing.T) {
	type result struct {
		status int
		body   string
		broken bool
	}
	for name, tc := range map[string]struct {
		words  string
		stream bool
		check  func(result) bool
	}{
		"an error":                  {"please demo:error 429 now", false, func(r result) bool { return r.status == 429 }},
		"an error of a stream":      {"demo:error 503", true, func(r result) bool { return r.status == 503 }},
		"an error without a status": {"demo:error", false, func(r result) bool { return r.status == 500 }},
		"an error that isn't one":   {"demo:error 200", false, func(r result) bool { return r.status == 500 }},
		"a break": {"demo:break", true, func(r result) bool {
			return r.broken && strings.Contains(r.body, ` model,"`) && !strings.Contains(r.body, "stop")
		}},
		"a break of a short reply": {"demo:break demo:words 1", true, func(r result) bool { return r.broken && strings.Contains(r.body, "assistant") }},
		"a break of a whole reply": {"demo:break", false, func(r result) bool { return r.broken && strings.HasPrefix(r.body, "{") }},
		"an error in the middle": {"demo:error-midstream", true, func(r result) bool {
			return strings.Contains(r.body, ` model,"`) && strings.HasSuffix(strings.TrimSpace(r.body), "}}") && strings.Contains(r.body, `data: {"error":{`)
		}},
		"an error in the middle, whole": {"demo:error-midstream", false, func(r result) bool { return r.status == 502 }},
		"comments": {"demo:comment", true, func(r result) bool {
			return strings.HasPrefix(r.body, ": OPENROUTER PROCESSING\n\n: OPEN") && strings.HasSuffix(r.body, "data: [DONE]\n\n")
		}},
		"words":                          {"demo:words 500", false, func(r result) bool { return gjson.Get(r.body, "usage.completion_tokens").Int() == 500 }},
		"several":                        {"demo:words 20 demo:slow 1ms demo:comment", true, func(r result) bool { return strings.Count(r.body, "data: ") == 20+3 && strings.HasPrefix(r.body, ": ") }},
		"none in a word that only looks": {"demo:errors and demo:breakfast", false, func(r result) bool { return r.status == 200 && !r.broken }},
		"none in a chunk":                {chunks + "hello", false, func(r result) bool { return r.status == 200 }},
	} {
		t.Run(name, func(t *testing.T) {
			resp := open(t.Context(), t, request(t, map[string]any{"stream": tc.stream}, msg("user", tc.words)))
			body, err := io.ReadAll(resp.Body)
			if r := (result{resp.StatusCode, string(body), err != nil}); !tc.check(r) {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestDirectivesOfEarlierMessagesAreOver(t *testing.T) {
	complete(t, request(t, nil, msg("user", "demo:error 500"), msg("assistant", "demo:break"), msg("user", "hello")))
}

func TestDeltasArriveOneByOne(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp := open(ctx, t, request(t, map[string]any{"stream": true}, msg("user", "demo:slow 10s")))
	// The first chunk is here, although the next one is ten seconds away.
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil || !strings.Contains(line, `"role":"assistant"`) {
		t.Fatalf("got %q, %v", line, err)
	}
	cancel()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("after the client went: %v", err)
	}
}

func TestSlowRepliesTakeTheirTimeAndEndWithTheClient(t *testing.T) {
	for name, tc := range map[string]struct {
		stream  bool
		timeout time.Duration
		want    time.Duration
		done    bool
	}{
		"a stream":                   {true, time.Minute, 20 * time.Second, true},
		"a whole reply":              {false, time.Minute, 20 * time.Second, true},
		"a stream that is left":      {true, 5 * time.Second, 5 * time.Second, false},
		"a whole reply that is left": {false, 5 * time.Second, 5 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			body := request(t, map[string]any{"stream": tc.stream}, msg("user", "demo:slow 2s demo:words 10"))
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.timeout)
				defer cancel()
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(ctx, "POST", "/v1/chat/completions", strings.NewReader(body))
				r.Header.Set("Authorization", "Bearer x")
				start := time.Now()
				demo.New(demo.Options{}).ServeHTTP(w, r)
				if took := time.Since(start); took != tc.want {
					t.Errorf("took %v, want %v", took, tc.want)
				}
				if done := strings.Contains(w.Body.String(), `"stop"`); done != tc.done {
					t.Errorf("got %s", w.Body)
				}
			})
		})
	}
}
