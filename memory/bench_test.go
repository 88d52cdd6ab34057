package memory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/store"
)

// sayings is a text of about the length of a chat message.
var sayings = strings.Repeat("the-quick-brown-fox-jumps-over-the-lazy-dog-", 10)

func longSession(b *testing.B, exchanges int, tools bool) ([]store.Exchange, string) {
	s, history := newSession(b), ""
	for i := range exchanges {
		q := fmt.Sprintf("u:%d%s ", i, sayings)
		s.ask(q).answered("a:x") // replaced below: only its size matters here
		last := &s.log[len(s.log)-1]
		a := fmt.Sprintf("a:%d%s", i, sayings)
		*last = exchangeOf(s, q, a, last.Seq)
		history += q + a + " "
		if tools && i%4 == 3 {
			history += fmt.Sprintf("u:tool%d c:%d ", i, i)
			s.ask(fmt.Sprintf("u:tool%d", i)).answered(fmt.Sprintf("c:%d", i))
			history += fmt.Sprintf("r:%d a:done ", i)
			s.ask(fmt.Sprintf("r:%d", i)).answered("a:done")
		}
	}
	return s.log, history
}

func exchangeOf(s *session, q, a string, seq int64) store.Exchange {
	e := store.Exchange{Seq: seq, Created: s.now, Finish: "stop"}
	for _, m := range parse(q + a) {
		e.Messages = append(e.Messages, store.Message{JSON: m.JSON, Tokens: 50, Digest: memory.Digest(&m)})
	}
	return e
}

func benchmarkReconcile(b *testing.B, exchanges int, tools bool, request func(history string) string) {
	log, history := longSession(b, exchanges, tools)
	messages := parse(request(history))
	b.ReportAllocs()
	for b.Loop() {
		memory.Reconcile(log, memory.Conversation(messages), false, noon)
	}
}

func oneMessage(string) string { return "u:" + sayings }

func everything(history string) string { return history + "u:new" }

// BenchmarkReconcile is the hot path: the identities of the request's messages, and
// Reconcile itself.
func BenchmarkReconcile(b *testing.B) {
	b.Run("one message, 10 stored", func(b *testing.B) { benchmarkReconcile(b, 5, false, oneMessage) })
	b.Run("one message, 50 stored", func(b *testing.B) { benchmarkReconcile(b, 25, false, oneMessage) })
	b.Run("one message, 50 stored, tools", func(b *testing.B) { benchmarkReconcile(b, 17, true, oneMessage) })
	b.Run("200 resent", func(b *testing.B) { benchmarkReconcile(b, 100, false, everything) })
	b.Run("200 resent, tools", func(b *testing.B) { benchmarkReconcile(b, 67, true, everything) })
	b.Run("200 resent, one edited", func(b *testing.B) {
		benchmarkReconcile(b, 100, false, func(history string) string {
			return everything(strings.Replace(history, "a:50", "a:edited", 1))
		})
	})
	b.Run("200 resent, template", func(b *testing.B) {
		const template = "u:good? a:yes "
		s := newSession(b)
		for i := range 100 {
			s.ask(template + fmt.Sprint("u:", i)).answered("a:yes")
		}
		messages := parse(template + "u:x")
		b.ReportAllocs()
		for b.Loop() {
			memory.Reconcile(s.log, memory.Conversation(messages), false, noon)
		}
	})
}

func BenchmarkDigest(b *testing.B) {
	for name, m := range map[string]string{
		"text": "u:" + sayings,
		"call": "c:1",
	} {
		messages := parse(m)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				memory.Digest(&messages[0])
			}
		})
	}
}
