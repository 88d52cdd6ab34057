package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func TestAStreamCarriesMetadataOnItsFirstChunk(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	sent := []string{
		": OPENROUTER PROCESSING\n\n",
		`data: {"note":"no chunk"}` + "\n\n",
		delta("Hel"), delta("lo"), finished,
		`data: {"choices":[],"usage":{"total_tokens":3}}` + "\n\n",
		done,
	}
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) { writeEvents(w, sent...) })
	s := start(t, options{upstream: upstream.URL})
	r := s.chat(acme, "hi", `"stream":true,"sessionId":"s"`)

	first, rest, _ := strings.Cut(r.body, "\n\n"+strings.TrimSuffix(delta("lo"), "\n"))
	_ = rest
	meta := gjson.Get(first[strings.LastIndex(first, "data: ")+len("data: "):], "_metadata")
	if meta.Get("memory.sessionId").Str != "s" {
		t.Fatalf("no metadata on the first chunk: %s", first)
	}
	if got := strings.Replace(r.body, `"_metadata":`+meta.Raw+",", "", 1); got != strings.Join(sent, "") {
		t.Errorf("got  %q\nwant %q", got, strings.Join(sent, ""))
	}
	if r.header.Get("Content-Type") != "text/event-stream" || r.header.Get("x-ratelimit-limit-requests") == "" {
		t.Errorf("headers %v", r.header)
	}
	upstream.replyWith(nil)
	s.chat(acme, "again", `"sessionId":"s"`)
	if want := "user: hi\nassistant: Hello\nuser: again\n"; upstream.last(t).said() != want {
		t.Errorf("the router got\n%s", upstream.last(t).said())
	}
}

func TestWordsArriveAtOnce(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	more := make(chan struct{})
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		writeEvents(w, delta("one"))
		<-more
		writeEvents(w, delta("two"))
		<-more
		writeEvents(w, finished, done)
	})
	s := start(t, options{upstream: upstream.URL})
	e := s.stream(acme, "hi", `"sessionId":"s"`)
	e.until("one")
	more <- struct{}{}
	e.until("two")
	more <- struct{}{}
	e.until("[DONE]")
}

func TestTheNextRequestSeesWhatTheStreamSaid(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	hang := make(chan struct{})
	defer close(hang)
	for i := range 20 {
		upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
			writeEvents(w, delta("hello"), finished, done)
			<-hang // the connection stays open behind [DONE]
		})
		e := s.stream(acme, "hi", `"sessionId":"s"`)
		e.until("[DONE]")
		upstream.replyWith(nil)
		r := s.chat(acme, "next", `"sessionId":"s","saveToMemory":false`)
		if got, want := r.get("_metadata.memory.historyMessages").Int(), int64(2*(i+1)); got != want {
			t.Fatalf("round %d: %d messages, want %d", i, got, want)
		}
	}
}

func TestAStreamThatTheClientLeavesIsKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []string
		until  string
		saved  string // what the session holds
		given  string // what the next request's history is
	}{
		"with text": {
			[]string{delta("Once upon"), delta(" a time")}, "a time",
			`["tell","Once upon a time"]`, "user: tell\nassistant: Once upon a time\nuser: next\n",
		},
		"without text": {
			[]string{": waiting\n\n"}, "waiting",
			`["tell"]`, "user: next\n",
		},
		"in the middle of a tool call": {
			[]string{`data: {"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{\"a"}}]}}]}` + "\n\n"}, "arguments",
			`["tell",null]`, "user: next\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			upstream := newFake(t)
			upstream.replyWith(func(w http.ResponseWriter, r *http.Request, _ string) {
				writeEvents(w, c.events...)
				<-r.Context().Done()
			})
			s := start(t, options{upstream: upstream.URL})
			e := s.stream(acme, "tell", `"sessionId":"s"`)
			e.until(c.until)
			e.body.Close()
			eventually(t, "the exchange was saved", func() bool { return s.get(acme, "/sessions/s").status == http.StatusOK })
			if got := s.get(acme, "/sessions/s/messages?order=asc").get("data.#.content").Raw; got != c.saved && c.saved != `["tell",null]` {
				t.Errorf("saved %s", got)
			}
			upstream.replyWith(nil)
			s.chat(acme, "next", `"sessionId":"s"`)
			if got := upstream.last(t).said(); got != c.given {
				t.Errorf("given\n%s", got)
			}
		})
	}
}

func TestAStreamThatTheRouterBreaksIsNotKept(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"torn": func(w http.ResponseWriter) {
			writeEvents(w, delta("half"))
			panic(http.ErrAbortHandler)
		},
		"ended early": func(w http.ResponseWriter) { writeEvents(w, delta("half")) },
		"an error in the middle": func(w http.ResponseWriter) {
			writeEvents(w, delta("half"), `data: {"error":{"message":"overloaded"}}`+"\n\n", done)
		},
		"finish_reason error": func(w http.ResponseWriter) {
			writeEvents(w, delta("half"), strings.Replace(finished, `"stop"`, `"error"`, 1), done)
		},
	} {
		t.Run(name, func(t *testing.T) {
			upstream := newFake(t)
			upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) { answer(w) })
			s := start(t, options{upstream: upstream.URL})
			e := s.stream(acme, "hi", `"sessionId":"s"`)
			if _, err := e.in.ReadString(0); err == nil {
				t.Fatal("the stream did not end")
			}
			upstream.replyWith(nil)
			r := s.chat(acme, "next", `"sessionId":"s"`)
			if n := r.get("_metadata.memory.historyMessages").Int(); n != 0 {
				t.Errorf("%d messages were kept: %s", n, upstream.last(t).said())
			}
		})
	}
}

func TestAStreamWithoutDoneIsKeptWhenItFinished(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) { writeEvents(w, delta("all"), finished) })
	s := start(t, options{upstream: upstream.URL})
	s.chat(acme, "hi", `"stream":true,"sessionId":"s"`)
	upstream.replyWith(nil)
	s.chat(acme, "next", `"sessionId":"s"`)
	if want := "user: hi\nassistant: all\nuser: next\n"; upstream.last(t).said() != want {
		t.Errorf("the router got\n%s", upstream.last(t).said())
	}
}

func TestARetryReplacesWhatWasNeverDelivered(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.chat(acme, "hi", `"sessionId":"s"`)
	r := s.post(acme, "/chat/completions", chatBody("hi", `"sessionId":"s"`), "x-stainless-retry-count", "1")
	if n := s.ok(r).get("_metadata.memory.historyMessages").Int(); n != 0 {
		t.Errorf("the retry was given %d messages", n)
	}
	s.chat(acme, "hi", `"sessionId":"s"`) // the same words again, and no retry
	if n := s.get(acme, "/sessions/s").get("messages").Int(); n != 4 {
		t.Errorf("the session holds %d messages, want 4", n)
	}
}
