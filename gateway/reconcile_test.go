package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// A user goes back to an early message of a long session. What was said after
// it is no history any more: the model is given what the client sends.
func TestGoingBackInALongSession(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL, adjust: small})
	var messages []string
	user := func(text string) { messages = append(messages, fmt.Sprintf(`{"role":"user","content":%q}`, text)) }
	replies := 0
	stored := func() int64 { return s.ok(s.get(acme, "/sessions/s")).get("messages").Int() }
	send := func() {
		t.Helper()
		replies++
		reply := fmt.Sprintf("reply %d: %s", replies, strings.Repeat("so it goes ", 30))
		upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) { writeReply(w, reply) })
		sent := strings.Join(messages, ",")
		r := s.ok(s.post(acme, "/chat/completions", `{"model":"demo/echo","sessionId":"s","messages":[`+sent+`]}`))
		if n := r.get("_metadata.memory.historyMessages").Int(); n != 0 || r.get("_metadata.context.truncated").Bool() {
			t.Errorf("%d messages from memory beside %d of the client's: %s", n, len(messages), r.get("_metadata"))
		}
		if got := gjson.Get(upstream.last(t).body, "messages").Raw; got != "["+sent+"]" {
			t.Errorf("the model was given %s", got)
		}
		messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":%q}`, reply))
	}
	for i := range 30 {
		user(fmt.Sprint("question ", i))
		send()
	}
	messages = messages[:10]
	for i := range 12 {
		user(fmt.Sprint("another question ", i))
		send()
		if n := stored(); n != int64(60+2*(i+1)) {
			t.Fatalf("%d messages are stored after %d questions", n, 30+i+1)
		}
	}
	messages = messages[4:] // and then the client trims what it resends
	user("what now?")
	r := s.ok(s.post(acme, "/chat/completions", `{"model":"demo/echo","sessionId":"s","messages":[`+strings.Join(messages, ",")+`]}`))
	if n := r.get("_metadata.memory.historyMessages").Int(); n != 4 || stored() != 60+2*12+2 {
		t.Errorf("%d messages from memory, %d stored: %s", n, stored(), gjson.Get(upstream.last(t).body, "messages.#.content"))
	}
}

// The messages that the user goes back to may be larger than what is read at once.
func TestGoingBackToLargeMessages(t *testing.T) {
	t.Parallel()
	s := start(t, options{upstream: newFake(t).URL, adjust: small})
	image := strings.Repeat("A", 3<<20)
	var album, talk []string
	for i := range 3 {
		album = append(album, fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"picture %d"},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]},{"role":"assistant","content":"nice %d"}`, i, image, i))
	}
	for i := range 40 {
		talk = append(talk, fmt.Sprintf(`{"role":"user","content":"question %d"},{"role":"assistant","content":"answer %d: %s"}`, i, i, strings.Repeat("so it goes ", 30)))
	}
	s.importInto("s", strings.Join(album, ","))
	s.importInto("s", strings.Join(talk, ","))
	s.ok(s.post(acme, "/chat/completions", `{"model":"demo/echo","sessionId":"s","messages":[`+strings.Join(album, ",")+`,{"role":"user","content":"which one?"}]}`))
	if n := s.ok(s.get(acme, "/sessions/s")).get("messages").Int(); n != 2*3+2*40+2 {
		t.Errorf("%d messages are stored", n)
	}
}
