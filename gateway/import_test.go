package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/gateway"
)

// dialogue is a list of messages, "q0", "a0", "q1", …, as JSON.
func dialogue(turns int, with string) string {
	var list []string
	for i := range turns {
		list = append(list, fmt.Sprintf(`{"role":"user","content":"q%d"%s},{"role":"assistant","content":"a%d"%s}`, i, with, i, with))
	}
	return strings.Join(list, ",")
}

// importInto imports messages that must be accepted.
func (s *site) importInto(session, messages string, header ...string) reply {
	s.t.Helper()
	return s.ok(s.post(acme, "/sessions/"+session+"/messages", `{"messages":[`+messages+`]}`, header...))
}

// stored are the messages of a session as "role: content" lines.
func (s *site) stored(session string) string {
	s.t.Helper()
	var b strings.Builder
	after := ""
	for {
		page := s.ok(s.get(acme, "/sessions/"+session+"/messages?order=asc&limit=100&after="+after))
		for _, m := range page.get("data").Array() {
			b.WriteString(m.Get("role").Str + ": " + m.Get("content").String() + "\n")
		}
		if after = page.get("last_id").Str; !page.get("has_more").Bool() {
			return b.String()
		}
	}
}

func TestAnImportedHistoryIsRemembered(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			s := start(t, options{upstream: upstream.URL, store: store})
			const history = `{"role":"system","content":"Be brief."},
				{"role":"user","content":[{"type":"text","text":"q0"}],"name":"ann","created_at":1700000000},
				{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}],"created_at":1700000001.5},
				{"role":"tool","tool_call_id":"c1","content":"42"},
				{"role":"assistant","content":"a0","annotations":[1.50],"created_at":1690000000},
				{"role":"user","content":"q1"},{"role":"assistant","content":"a1"}`
			began := time.Now().Unix()
			r := s.importInto("s%2F1", history)
			if r.get("object").Str != "list" || r.get("data.#").Int() != 6 || r.get("has_more").Bool() ||
				r.get("first_id").Str != "msg_1_0" || r.get("last_id").Str != "msg_2_1" {
				t.Errorf("reply %s", r.body)
			}
			if first := r.get("data.0").Raw; first != `{"id":"msg_1_0","object":"session.message","created_at":1700000000,"role":"user","content":[{"type":"text","text":"q0"}],"name":"ann"}` {
				t.Errorf("message %s", first)
			}
			listed := s.ok(s.get(acme, "/sessions/s%2F1/messages?order=asc"))
			if listed.body != r.body {
				t.Errorf("the list is\n%s, the reply was\n%s", listed.body, r.body)
			}
			times := listed.get("data.#.created_at").Array()
			for i, want := range []int64{1700000000, 1700000001, 1690000000, 1690000000} {
				if times[i].Int() != want {
					t.Errorf("message %d is of %d, want %d", i, times[i].Int(), want)
				}
			}
			if times[5].Int() < began {
				t.Errorf("a message without a time is of %d", times[5].Int())
			}
			if d := s.get(acme, "/sessions/s%2F1"); d.get("messages").Int() != 6 || d.get("tokens").Int() < 30 || d.get("updated_at").Int() < began {
				t.Errorf("session %s", d.body)
			}

			chat := s.chat(acme, "q2", `"sessionId":"s/1"`)
			if n := chat.get("_metadata.memory.historyMessages").Int(); n != 6 {
				t.Errorf("%d messages were supplied", n)
			}
			sent := gjson.Get(upstream.last(t).body, "messages").Array()
			if len(sent) != 7 || sent[3].Raw != `{"role":"assistant","content":"a0","annotations":[1.50]}` || sent[0].Get("created_at").Exists() {
				t.Errorf("the router got %s", upstream.last(t).body)
			}
		})
	}
}

func TestAClientThatImportsAndResendsGetsNothingTwice(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.importInto("s", dialogue(3, `,"created_at":1700000000`))
	r := s.ok(s.post(acme, "/chat/completions", `{"model":"a/b","sessionId":"s","messages":[{"role":"system","content":"x"},`+
		dialogue(3, "")+`,{"role":"user","content":"q3"}]}`))
	if n := r.get("_metadata.memory.historyMessages").Int(); n != 0 {
		t.Errorf("%d messages were supplied to a client that carries them", n)
	}
	if got, want := s.stored("s"), "user: q0\nassistant: a0\nuser: q1\nassistant: a1\nuser: q2\nassistant: a2\nuser: q3\nassistant: ok\n"; got != want {
		t.Errorf("the session holds\n%s", got)
	}
}

func TestTheSameMessagesMayBeImportedTwice(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			s := start(t, options{upstream: upstream.URL, store: store})
			const thanks = `{"role":"user","content":"thanks"},{"role":"assistant","content":"welcome"}`
			const once = "user: thanks\nassistant: welcome\n"
			first := s.importInto("s", thanks)
			second := s.importInto("s", thanks)
			if got := s.stored("s"); got != once+once || second.get("first_id").Str == first.get("first_id").Str {
				t.Fatalf("the session holds\n%s", got)
			}
			// A retry of the second changes nothing, also when others came between.
			s.chat(acme, "hi", `"sessionId":"s"`)
			retried := s.importInto("s", thanks, "X-Stainless-Retry-Count", "1")
			if got := s.stored("s"); retried.body != second.body || got != once+once+"user: hi\nassistant: ok\n" {
				t.Errorf("the retry was answered %s; the session holds\n%s", retried.body, got)
			}
			// One whose first try never got here is the first.
			s.importInto("t", thanks, "X-Stainless-Retry-Count", "1")
			// With a key, the same is the same whenever it comes.
			for range 3 {
				s.importInto("t", thanks, "Idempotency-Key", "k1")
				s.chat(acme, "hi", `"sessionId":"t"`)
			}
			s.importInto("t", thanks, "Idempotency-Key", "k2")
			if got := strings.Count(s.stored("t"), once); got != 3 {
				t.Errorf("it is there %d times", got)
			}
		})
	}
}

func TestALargeImportIsAnsweredWithAPage(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	messages := dialogue(5000, "")
	r := s.importInto("s", messages)
	if r.get("data.#").Int() != 20 || !r.get("has_more").Bool() || r.get("last_id").Str != "msg_10_1" {
		t.Errorf("reply %.200s", r.body)
	}
	next := s.ok(s.get(acme, "/sessions/s/messages?order=asc&limit=1&after="+r.get("last_id").Str))
	if next.get("data.0.content").Str != "q10" {
		t.Errorf("the next is %s", next.body)
	}
	if r := s.ok(s.post(acme, "/sessions/t/messages?limit=3", `{"messages":[`+dialogue(2, "")+`]}`)); r.get("data.#").Int() != 3 || r.get("last_id").Str != "msg_2_0" {
		t.Errorf("reply %s", r.body)
	}
	if n := s.get(acme, "/sessions/s").get("messages").Int(); n != 10_000 {
		t.Errorf("%d messages", n)
	}
	s.chat(acme, "hi", `"sessionId":"s"`)
	got := upstream.last(t).said()
	if !strings.Contains(got, "user: q4999\nassistant: a4999\nuser: ") || !strings.HasSuffix(got, "hi\n") {
		t.Errorf("the router got\n…%s", got[max(0, len(got)-200):])
	}
}

func TestABadImportLeavesNothing(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL, adjust: func(o *gateway.Options) { o.MaxBody = 1_000_000 }})
	for body, param := range map[string]string{
		`{"messages":[` + dialogue(3, "") + `,{"role":"user","content":3}]}`:                              "messages[6].content",
		`{"messages":[` + dialogue(1, "") + `,{"role":"user","content":"x","created_at":"yesterday"}]}`:   "messages[2].created_at",
		`{"messages":[` + dialogue(1, "") + `,{"role":"user","content":"x","created_at":1e12}]}`:          "messages[2].created_at",
		`{"messages":[{"role":"system","content":"Be brief."},{"role":"developer","content":"And so."}]}`: "messages",
		`{}`: "messages",
	} {
		r := s.post(acme, "/sessions/s/messages", body)
		if r.status != http.StatusBadRequest || r.get("error.param").Str != param || r.header.Get("x-ratelimit-limit-requests") != "1000" {
			t.Errorf("status %d: %s; want %s", r.status, r.body, param)
		}
	}
	if r := s.post(acme, "/sessions/s/messages", `{"messages":[`+dialogue(40_000, "")+`]}`); r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", r.status)
	}
	if r := s.post(acme, "/sessions/s", `{}`); r.status != http.StatusMethodNotAllowed {
		t.Errorf("status %d", r.status)
	}
	if r := s.get(acme, "/sessions"); r.get("data.#").Int() != 0 {
		t.Errorf("there are sessions: %s", r.body)
	}
	for range 10 {
		s.post(tiny, "/sessions/s/messages", `{}`)
	}
	if r := s.post(tiny, "/sessions/s/messages", `{"messages":[`+dialogue(1, "")+`]}`); r.status != http.StatusTooManyRequests {
		t.Errorf("status %d: an import doesn't count against the rate", r.status)
	}
}

func TestAnImportIsAllOrNothingWhenTheStoreFails(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	db := newFlaky(t)
	s := start(t, options{upstream: upstream.URL, store: db.open})
	db.failAppend.Store(true)
	r := s.post(acme, "/sessions/s/messages", `{"messages":[`+dialogue(3, "")+`]}`)
	if r.status != http.StatusServiceUnavailable || strings.Contains(r.body, "fire") {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	db.failAppend.Store(false)
	s.importInto("s", dialogue(3, ""))
	if n := s.get(acme, "/sessions/s").get("messages").Int(); n != 6 {
		t.Errorf("%d messages", n)
	}
}

// It is there, and who is told otherwise imports it again.
func TestAnImportThatNoReplicaConfirmsIsThere(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	db := newFlaky(t)
	s := start(t, options{upstream: upstream.URL, store: db.open})
	db.loseReplicas.Store(true)
	s.importInto("s", dialogue(2, ""))
	if got := s.stored("s"); got != "user: q0\nassistant: a0\nuser: q1\nassistant: a1\n" {
		t.Errorf("the session holds\n%s", got)
	}
	if !strings.Contains(s.logged(), "imported messages may be lost in a failover") {
		t.Error("the log doesn't say so")
	}
}

func TestAnImportDoesNotBringBackADeletedSession(t *testing.T) {
	t.Parallel()
	db := newFlaky(t)
	s := start(t, options{upstream: newFake(t).URL, store: db.open})
	s.importInto("s", dialogue(1, ""))
	db.deleteFirst.Store(true)
	r := s.post(acme, "/sessions/s/messages", `{"messages":[`+dialogue(3, "")+`]}`)
	if r.status != http.StatusConflict || r.get("error.param").Str != "id" {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	if r.header.Get("X-Should-Retry") != "false" {
		t.Error("an SDK would import the messages anew, behind the deletion")
	}
	if r := s.get(acme, "/sessions/s"); r.status != http.StatusNotFound {
		t.Errorf("status %d: %s", r.status, r.body)
	}
}

func TestJSONLinesAreImported(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	var lines strings.Builder
	for i := range 3 {
		b, _ := json.Marshal(map[string]any{"role": []string{"user", "assistant"}[i%2], "content": fmt.Sprint("line\n", i), "created_at": i})
		lines.Write(append(b, '\n'))
	}
	r := s.request("POST", "/sessions/s/messages", acme, strings.NewReader(lines.String()), "Content-Type", "application/jsonl; charset=utf-8")
	if r := s.ok(s.do(r)); r.get("data.#").Int() != 3 || r.get("data.2.content").Str != "line\n2" || r.get("data.2.created_at").Int() != 2 {
		t.Errorf("reply %s", r.body)
	}
}
