package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/memory"
)

// results are messages of tools, which make no exchange of their own.
func results(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"x"}`, i))
	}
	return strings.Join(list, ",")
}

func TestAnExchangeHasABound(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	const user = `{"role":"user","content":"q"},`
	whole := user + results(memory.MaxExchange-1)
	refused := func(r reply) {
		t.Helper()
		if r.status != http.StatusBadRequest || r.get("error.param").Str != "messages" || !strings.Contains(r.get("error.message").Str, "5000") {
			t.Errorf("status %d: %s", r.status, r.body)
		}
	}
	refused(s.post(acme, "/sessions/s/messages", `{"messages":[`+whole+`,`+results(1)+`]}`))
	s.importInto("s", whole+","+user+results(1))

	chat := func(messages, extra string) reply {
		return s.post(acme, "/chat/completions", `{"model":"demo/echo","messages":[`+messages+`]`+extra+`}`)
	}
	refused(chat(whole+","+results(1), `,"sessionId":"new"`))
	if upstream.count() != 0 {
		t.Error("the model was called")
	}
	s.ok(chat(whole+","+results(1), `,"sessionId":"new","saveToMemory":false`))
	s.ok(chat(whole+","+results(1), ``))
	s.ok(chat(whole, `,"sessionId":"new"`))
}

func TestALongQueryIsSearchedAtItsEnds(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.ok(s.upload(acme, "tower.md", "The tower is 93 metres tall."))
	r := s.chat(acme, "How tall is the tower? "+strings.Repeat("lorem ipsum ", 100_000), "")
	if q := r.get("_metadata.rag.query").Str; len(q) > 9000 || !strings.HasPrefix(q, "How tall") || r.get("_metadata.rag.resultsFound").Int() != 1 {
		t.Errorf("%d bytes were searched for: %s", len(q), r.get("_metadata.rag.sources"))
	}
}

// A request's texts are counted together. What they come to is an estimate beyond
// the first megabyte of what isn't a token: see package tokens.
func TestCountingEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	const spaces = 40_000 // 313 tokens
	count := func(texts ...string) int64 {
		t.Helper()
		var list []string
		for _, text := range texts {
			list = append(list, `{"role":"user","content":"`+text+`"}`)
		}
		r := s.ok(s.post(acme, "/chat/completions/preview", `{"model":"demo/echo","sessionId":"s","messages":[`+strings.Join(list, ",")+`]}`))
		return r.get("_metadata.context.totalTokens").Int()
	}
	ahead, blank := strings.Repeat("x", 3<<19), strings.Repeat(" ", spaces)
	if n := count(blank); n > 400 {
		t.Errorf("%d tokens", n)
	}
	blank = "." + blank // or the count would be known
	if n := count(ahead, blank) - count(ahead); n < spaces/4 {
		t.Errorf("%d tokens more, which were counted one by one", n)
	}
}
