package memory_test

import (
	"fmt"
	"testing"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

func TestDraft(t *testing.T) {
	answer, calls := message("a:a"), message("c:1")
	for _, c := range []struct {
		name   string
		reply  openai.Reply
		closed bool

		save, hidden bool
		finish       string
		messages     string
	}{
		{"finished", openai.Reply{Message: answer, Finish: "stop", HasText: true}, false, true, false, "stop", "u:A a:a"},
		{"finished at its limit", openai.Reply{Message: answer, Finish: "length", HasText: true}, false, true, false, "length", "u:A a:a"},
		{"calls tools", openai.Reply{Message: calls, Finish: "tool_calls", HasCalls: true}, false, true, false, "tool_calls", "u:A c:1"},
		{"says nothing", openai.Reply{Message: message("a:"), Finish: "stop"}, false, true, true, "stop", "u:A a:"},
		{"failed", openai.Reply{Failed: true}, false, false, false, "", ""},
		{"failed in the middle", openai.Reply{Message: answer, HasText: true, Failed: true}, false, false, false, "", ""},
		{"failed, and the client left", openai.Reply{Message: answer, HasText: true, Failed: true}, true, false, false, "", ""},
		{"broken off by the router", openai.Reply{Message: answer, HasText: true}, false, false, false, "", ""},
		{"without a message", openai.Reply{Finish: "stop"}, false, false, false, "", ""},
		{"the client left behind some text", openai.Reply{Message: answer, HasText: true}, true, true, false, "client_closed", "u:A a:a"},
		{"the client left at the very end", openai.Reply{Message: answer, Finish: "stop", HasText: true}, true, true, false, "client_closed", "u:A a:a"},
		{"the client left ahead of any text", openai.Reply{Message: message("a:")}, true, true, true, "client_closed", "u:A a:"},
		{"the client left ahead of anything", openai.Reply{}, true, true, true, "client_closed", "u:A"},
		{"the client left in the middle of a call", openai.Reply{Message: calls, HasText: true, HasCalls: true}, true, true, true, "client_closed", "u:A c:1"},
		{"the client left behind a whole call", openai.Reply{Message: calls, Finish: "tool_calls", HasCalls: true}, true, true, false, "client_closed", "u:A c:1"},
		{"too large to be kept", openai.Reply{Finish: "stop", Truncated: true}, false, false, false, "", ""},
		{"too large to be kept, and the client left", openai.Reply{Truncated: true}, true, false, false, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newSession(t).ask("s:x u:A")
			c.reply.Model = "m"
			completed := r.completed(&c.reply, c.closed)
			completed.Chunks = []store.ChunkRef{{FileID: "f", N: 3}}
			d, save := completed.Draft()
			if save != c.save {
				t.Fatalf("save = %t", save)
			}
			if !save {
				return
			}
			e := d.Exchange
			if e.Hidden != c.hidden || e.Finish != c.finish || shorts(e.Messages) != c.messages {
				t.Errorf("hidden %t, finish %q, messages %q", e.Hidden, e.Finish, shorts(e.Messages))
			}
			if e.ID != completed.ID || !e.Created.Equal(completed.Now) || e.Model != "m" || len(e.Passages) != 1 || e.Carried != (store.Digest{}) {
				t.Errorf("the exchange is %+v", e)
			}
			for i := range e.Messages {
				m := openai.ParseMessage(e.Messages[i].JSON)
				if e.Messages[i].Digest != memory.Digest(&m) || e.Messages[i].Tokens != len(m.JSON) {
					t.Errorf("message %d: %+v", i, e.Messages[i])
				}
			}
		})
	}
}

func TestTheExchangeTellsWhatTheRequestCarried(t *testing.T) {
	carried := func(list string) store.Digest {
		r := newSession(t).ask(list)
		d, _ := r.completed(&openai.Reply{Message: message("a:x"), Finish: "stop", HasText: true}, false).Draft()
		return d.Exchange.Carried
	}
	if carried("u:A a:a u:B") != carried("s:x u:A a:a u:C") || carried("u:A a:a u:B") != carried("u:A a:a u:B c:1 r:1") {
		t.Error("what follows the last user message is no part of it, nor are system messages")
	}
	if carried("u:A a:a u:B") == carried("u:A a:b u:B") || carried("u:A a:a u:B") == carried("u:B") {
		t.Error("what is ahead of the last user message is part of it")
	}
}

func TestTwoRequestsOfAClientThatAskedAgain(t *testing.T) {
	partly := &openai.Reply{Message: []byte(`{"role":"assistant","content":"ha"}`), HasText: true}
	whole := &openai.Reply{Message: []byte(`{"role":"assistant","content":"half"}`), HasText: true, Finish: "stop"}
	begin := func() (*session, *request, *request) {
		s := newSession(t).conversation("u:A a:a")
		return s, s.ask("u:X"), s.ask("u:X")
	}
	s, left, again := begin()
	left.end(partly, true)
	again.end(whole, false)
	if got, want := len(s.log), 2; got != want || s.log[1].Finish != "stop" {
		t.Errorf("the one that was left ends first: %d exchanges, want %d: %s", got, want, s.saved())
	}
	s, left, again = begin()
	again.end(whole, false)
	left.end(partly, true)
	if got, want := len(s.log), 2; got != want || s.log[1].Finish != "stop" {
		t.Errorf("the one that was left ends last: %d exchanges, want %d: %s", got, want, s.saved())
	}
	s, left, again = begin()
	left.end(whole, false)
	again.end(whole, false)
	if got, want := len(s.log), 3; got != want {
		t.Errorf("both replies were delivered: %d exchanges, want %d: %s", got, want, s.saved())
	}
}

// A connection may be dead without the proxy's notice: then the first try of a
// request ends as if its reply had been delivered, while the retry runs.
func TestARetryBesideItsFirstTry(t *testing.T) {
	t.Run("the first try ends first", func(t *testing.T) {
		s := newSession(t)
		s.ask("u:A").answered("a:a")
		first, again := s.ask("u:B"), s.retry("u:B")
		first.answered("a:b1")
		again.answered("a:b2").want("u:A a:a | u:B a:b2")
	})
	t.Run("the retry ends first", func(t *testing.T) {
		s := newSession(t)
		first, again := s.ask("u:B"), s.retry("u:B")
		again.answered("a:b2")
		first.answered("a:b1").want("u:B a:b2")
	})
	t.Run("the conversation has gone on before the first try ends", func(t *testing.T) {
		s := newSession(t)
		first, again := s.ask("u:B"), s.retry("u:B")
		again.answered("a:b2")
		s.ask("u:C").answered("a:c")
		first.answered("a:b1").want("u:B a:b2 | u:C a:c")
	})
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint("two retries, that end as ", order), func(t *testing.T) {
			s := newSession(t)
			tries := []*request{s.ask("u:B"), s.again(1, "u:B"), s.again(2, "u:B")}
			for _, n := range order {
				tries[n].answered(fmt.Sprint("a:b", n))
			}
			s.want("u:B a:b2")
		})
	}
	t.Run("with a history that the client resends", func(t *testing.T) {
		s := newSession(t)
		first, again := s.ask("u:A a:a u:B"), s.retry("u:A a:a u:B")
		first.answered("a:b1")
		again.answered("a:b2").want("u:A a:a u:B a:b2")
	})
	t.Run("who retries and leaves loses nothing of what was delivered", func(t *testing.T) {
		s := newSession(t)
		first, again := s.ask("u:B"), s.retry("u:B")
		again.left("a:b")
		first.answered("a:b1").want("u:B a:b1")
	})
	t.Run("two that say the same and show no sign of a retry", func(t *testing.T) {
		s := newSession(t)
		one, other := s.ask("u:yes"), s.ask("u:yes")
		one.answered("a:1")
		other.answered("a:2").want("u:yes a:1 | u:yes a:2")
	})
	t.Run("two that say the same, and both are retried", func(t *testing.T) {
		s := newSession(t)
		one, other := s.ask("u:yes"), s.ask("u:yes")
		oneAgain, otherAgain := s.retry("u:yes"), s.retry("u:yes")
		one.answered("a:1")
		other.answered("a:2")
		oneAgain.answered("a:3")
		otherAgain.answered("a:4").want("u:yes a:3 | u:yes a:4")
	})
}

func TestRebaseDropsWhatOthersSaved(t *testing.T) {
	for _, c := range []struct {
		name, newer, conv string
		from, want        int
	}{
		{"nothing was saved", "", "u:A a:a u:B", 0, 0},
		{"all of it", "u:A a:a u:C a:c", "u:A a:a u:B", 0, 2},
		{"never the new message", "u:A a:a u:B a:b", "u:A a:a u:B", 0, 2},
		{"in several exchanges", "u:A a:a | u:B a:b", "u:A a:a u:B a:b u:C", 0, 4},
		{"with others in between", "u:A a:a | u:X a:x | u:B a:b", "u:A a:a u:B a:b u:C", 0, 4},
		{"the first part", "u:A a:a u:X a:x", "u:A a:a u:B a:b u:C", 0, 2},
		{"not the first part", "u:B a:b", "u:A a:a u:B a:b u:C", 0, 0},
		{"what was known before", "u:B a:b", "u:A a:a u:B a:b u:C", 2, 4},
		{"nothing carried", "u:C a:c", "u:C", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t).conversation(c.newer)
			conv := memory.Conversation(parse(c.conv))
			d := memory.Draft{Said: conv, New: c.from, Exchange: store.Exchange{Messages: make([]store.Message, len(conv)-c.from)}}
			e, _ := d.Rebase(s.log)
			if got := len(conv) - len(e.Messages); got != c.want {
				t.Errorf("%d messages are left to save, want those from %d on", len(e.Messages), c.want)
			}
		})
	}
}
