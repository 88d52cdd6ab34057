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
