package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// Every row: a session as it was told, a request and its reply; what the
// request gets, and the log afterwards.
func TestReconcile(t *testing.T) {
	for _, c := range []struct {
		name, log, request, reply, included, saved string
	}{
		{"a first message finds nothing",
			"", "u:A", "a:a", "", "u:A a:a"},
		{"a new message gets what was said",
			"u:A a:a | u:B a:b", "u:C", "a:c", "u:A a:a u:B a:b", "u:A a:a | u:B a:b | u:C a:c"},
		{"a new message with the words of an earlier one is new",
			"u:hi a:hello | u:hi a:hello", "u:hi", "a:hello", "u:hi a:hello u:hi a:hello", "u:hi a:hello | u:hi a:hello | u:hi a:hello"},
		{"two new user messages are both saved",
			"u:A a:a", "u:B u:C", "a:c", "u:A a:a", "u:A a:a | u:B u:C a:c"},
		{"a full resend gets nothing, and only its end is saved",
			"u:A a:a | u:B a:b", "u:A a:a u:B a:b u:C", "a:c", "", "u:A a:a | u:B a:b | u:C a:c"},
		{"a resend that was trimmed gets what it lacks",
			"u:A a:a | u:B a:b | u:C a:c", "u:C a:c u:D", "a:d", "u:A a:a u:B a:b", "u:A a:a | u:B a:b | u:C a:c | u:D a:d"},
		{"a resend that begins inside of an exchange gets its beginning",
			"u:A a:a | u:B a:b", "a:b u:C", "a:c", "u:A a:a u:B", "u:A a:a | u:B a:b | u:C a:c"},
		{"a history saved in one exchange is included in part",
			"u:A a:a u:B a:b u:C a:c", "u:C a:c u:D", "a:d", "u:A a:a u:B a:b", "u:A a:a u:B a:b u:C a:c | u:D a:d"},
		{"a history from before the session is saved with the first request",
			"", "u:A a:a u:B a:b u:C", "a:c", "", "u:A a:a u:B a:b u:C a:c"},
		{"a resend that reaches further back than the session",
			"u:B a:b", "u:A a:a u:B a:b u:C", "a:c", "", "u:B a:b | u:C a:c"},
		{"a resend of something else altogether is new",
			"u:A a:a", "u:X a:x u:Y", "a:y", "u:A a:a", "u:A a:a | u:X a:x u:Y a:y"},
		{"identical prompts, all resent",
			"u:hi a:hello | u:hi a:hello | u:hi a:hello", "u:hi a:hello u:hi a:hello u:hi a:hello u:hi", "a:hello",
			"", "u:hi a:hello | u:hi a:hello | u:hi a:hello | u:hi a:hello"},
		{"identical prompts, trimmed",
			"u:hi a:hello | u:hi a:hello | u:hi a:hello", "u:hi a:hello u:hi", "a:hello",
			"u:hi a:hello u:hi a:hello", "u:hi a:hello | u:hi a:hello | u:hi a:hello | u:hi a:hello"},
		{"identical prompts with replies that differ",
			"u:hi a:1 | u:hi a:2 | u:hi a:3", "u:hi a:2 u:hi a:3 u:hi", "a:4", "u:hi a:1", "u:hi a:1 | u:hi a:2 | u:hi a:3 | u:hi a:4"},
		{"an edited last user message: the client's version is seen, both are kept",
			"u:A a:a | u:B a:b", "u:A a:a u:B2", "a:b2", "", "u:A a:a | u:B a:b | u:B2 a:b2"},
		{"an edited first message of a longer history",
			"u:A a:a | u:B a:b", "u:A2 a:a u:B a:b u:C", "a:c", "", "u:A a:a | u:B a:b | u:C a:c"},
		{"an edited first exchange of a longer history",
			"u:A a:a | u:B a:b | u:C a:c", "u:B2 a:b2 u:C a:c u:D", "a:d", "u:A a:a", "u:A a:a | u:B a:b | u:C a:c | u:D a:d"},
		{"an edited assistant message in the middle",
			"u:A a:a | u:B a:b", "u:A a:a2 u:B a:b u:C", "a:c", "", "u:A a:a | u:B a:b | u:C a:c"},
		{"an edited last assistant message is kept as the client has it",
			"u:A a:a", "u:A a:a2 u:B", "a:b", "", "u:A a:a | a:a2 u:B a:b"},
		{"an edited message that begins a trimmed resend doesn't come twice",
			"u:A a:a | u:B a:b", "u:B2 a:b u:C", "a:c", "u:A a:a", "u:A a:a | u:B a:b | u:C a:c"},
		{"a summary ahead of a trimmed resend is no edit",
			"u:A a:a | u:B a:b", "u:summary u:B a:b u:C", "a:c", "u:A a:a", "u:A a:a | u:B a:b | u:C a:c"},
		{"a regeneration that was delivered before: both are kept",
			"u:A a:a | u:B a:b", "u:A a:a u:B", "a:b2", "", "u:A a:a | u:B a:b | u:B a:b2"},
		{"a resend after a regeneration",
			"u:A a:a | u:B a:b | u:B a:b2", "u:A a:a u:B a:b2 u:C", "a:c", "", "u:A a:a | u:B a:b | u:B a:b2 | u:C a:c"},
		{"a message that the client left out of the middle",
			"u:A a:a | u:B a:b | u:C a:c", "u:A a:a u:C a:c u:D", "a:d", "", "u:A a:a | u:B a:b | u:C a:c | u:D a:d"},
		{"a system message that is added later, or changed, is neither compared nor saved",
			"u:A a:a", "s:be_brief u:A a:a s:be_kind u:B", "a:b", "", "u:A a:a | u:B a:b"},
		{"a system message alone with a new message",
			"s:x u:A a:a", "s:y u:B", "a:b", "u:A a:a", "u:A a:a | u:B a:b"},
		{"tool messages that the client dropped",
			"u:A c:1 | r:1 a:a", "u:A a:a u:B", "a:b", "", "u:A c:1 | r:1 a:a | u:B a:b"},
		{"tool messages that the client dropped, and an edit",
			"u:A c:1 | r:1 a:a | u:B a:b", "u:A2 a:a u:B a:b u:C", "a:c", "", "u:A c:1 | r:1 a:a | u:B a:b | u:C a:c"},
		{"a tool result alone gets its call",
			"u:A a:a | u:B c:1", "r:1", "a:b", "u:A a:a u:B c:1", "u:A a:a | u:B c:1 | r:1 a:b"},
		{"parallel tool results alone",
			"u:B c:1,2", "r:2 r:1", "a:b", "u:B c:1,2", "u:B c:1,2 | r:2 r:1 a:b"},
		{"a tool result and a new message alone",
			"u:B c:1", "r:1 u:C", "a:c", "u:B c:1", "u:B c:1 | r:1 u:C a:c"},
		{"a function result alone",
			"u:B f:x", "g:x", "a:b", "u:B f:x", "u:B f:x | g:x a:b"},
		{"a second round of tools",
			"u:B c:1 | r:1 c:2", "r:2", "a:b", "u:B c:1 r:1 c:2", "u:B c:1 | r:1 c:2 | r:2 a:b"},
		{"a tool result that comes late: what was said since stands aside",
			"u:A c:1 | u:B a:b", "r:1", "a:a", "u:A c:1", "u:A c:1 | u:B a:b | r:1 a:a"},
		{"a tool result of a call that was answered before: it is answered anew",
			"u:A c:1 | r:1 a:a", "r:1", "a:a2", "u:A c:1", "u:A c:1 | r:1 a:a | r:1 a:a2"},
		{"calls numbered anew in each exchange: the open one is meant",
			"u:A c:0 | r:0 a:a | u:B c:0", "r:0", "a:b", "u:A c:0 r:0 a:a u:B c:0", "u:A c:0 | r:0 a:a | u:B c:0 | r:0 a:b"},
		{"calls numbered anew in each round: those that are answered are meant",
			"u:A c:0,1,2 | r:0 r:1 r:2 c:0,1", "r:0 r:1 r:2", "a:a", "u:A c:0,1,2", "u:A c:0,1,2 | r:0 r:1 r:2 c:0,1 | r:0 r:1 r:2 a:a"},
		{"a tool result of a call that nobody made is the client's affair",
			"u:A a:a", "r:9", "a:b", "u:A a:a", "u:A a:a | r:9 a:b"},
		{"tool results in a resent history",
			"u:A a:a | u:B c:1", "u:A a:a u:B c:1 r:1", "a:b", "", "u:A a:a | u:B c:1 | r:1 a:b"},
		{"tool results with their question alone",
			"u:A a:a | u:B c:1", "u:B c:1 r:1", "a:b", "u:A a:a", "u:A a:a | u:B c:1 | r:1 a:b"},
		{"a resend that was trimmed to begin with a result",
			"u:A c:1 | r:1 a:a", "r:1 a:a u:B", "a:b", "u:A c:1", "u:A c:1 | r:1 a:a | u:B a:b"},
		{"a resend that was trimmed to begin with the answer behind tools",
			"u:A c:1 | r:1 a:a", "a:a u:B", "a:b", "u:A c:1 r:1", "u:A c:1 | r:1 a:a | u:B a:b"},
		{"a call that nobody answered isn't included",
			"u:A a:a | u:B c:1 | u:C a:c", "u:D", "a:d", "u:A a:a u:C a:c", "u:A a:a | u:B c:1 | u:C a:c | u:D a:d"},
		{"a call that was answered in part isn't included",
			"u:A a:a | u:B c:1,2 | r:1 a:b", "u:D", "a:d", "u:A a:a", "u:A a:a | u:B c:1,2 | r:1 a:b | u:D a:d"},
		{"what follows a call that was answered in part, from the next user message on",
			"u:A a:a | u:B c:1,2 | r:1 u:C a:c", "u:D", "a:d", "u:A a:a u:C a:c", "u:A a:a | u:B c:1,2 | r:1 u:C a:c | u:D a:d"},
		{"a tool result whose exchange began with calls that were answered in part",
			"u:A c:1 | u:B c:2,3 | r:2 u:C c:1", "r:1", "a:c", "u:C c:1", "u:A c:1 | u:B c:2,3 | r:2 u:C c:1 | r:1 a:c"},
		{"results whose call is not there don't take others with them",
			"u:A a:a | r:9 a:x | u:B a:b", "u:D", "a:d", "u:A a:a u:B a:b", "u:A a:a | r:9 a:x | u:B a:b | u:D a:d"},
		{"results stand with their call, though another exchange ended in between",
			"u:A c:1 | u:B a:b | r:1 a:a", "u:D", "a:d", "u:A c:1 r:1 a:a u:B a:b", "u:A c:1 | u:B a:b | r:1 a:a | u:D a:d"},
		{"results that were sent again stand for the first ones",
			"u:A c:1 | r:1 a:a | r:1 a:a2", "u:D", "a:d", "u:A c:1 r:1 a:a2", "u:A c:1 | r:1 a:a | r:1 a:a2 | u:D a:d"},
		{"an unanswered call in a history saved at once",
			"u:A c:1 u:B a:b", "u:C", "a:c", "u:B a:b", "u:A c:1 u:B a:b | u:C a:c"},
		{"a greeting ahead of the first message",
			"a:welcome u:A a:a", "u:B", "a:b", "u:A a:a", "a:welcome u:A a:a | u:B a:b"},
		{"the beginning of a reply is no history",
			"u:A a:{ a:a", "u:A a:{", "a:b", "u:A a:{ a:a", "u:A a:{ a:a | u:A a:{ a:b"},
		{"the beginning of a reply behind a resent history",
			"u:A a:a", "u:A a:a u:B a:{", "a:b", "", "u:A a:a | u:B a:{ a:b"},
		{"a reply sent back to be continued comes once",
			"u:A a:a | u:B a:b", "u:B a:b", "a:more", "u:A a:a", "u:A a:a | u:B a:b | a:more"},
		{"a system message alone",
			"u:A a:a", "s:x", "a:b", "u:A a:a", "u:A a:a | a:b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			newSession(t).conversation(c.log).ask(c.request).want(c.included).answered(c.reply).want(c.saved)
		})
	}
}

func TestTemplate(t *testing.T) {
	const template = "u:good? a:yes u:bad? a:no "
	ask := func(s *session, included, q, r string) { s.t.Helper(); s.ask(template + q).want(included).answered(r) }

	t.Run("is saved once, and what was said behind it included from the third request on", func(t *testing.T) {
		s := newSession(t)
		ask(s, "", "u:A", "a:yes")
		ask(s, "", "u:B", "a:no")
		ask(s, "u:A a:yes u:B a:no", "u:C", "a:no")
		ask(s, "u:A a:yes u:B a:no u:C a:no", "u:D", "a:yes")
		s.want(template + "u:A a:yes | u:B a:no | u:C a:no | u:D a:yes")
	})
	t.Run("is not saved again when it is no longer in sight", func(t *testing.T) {
		s := newSession(t)
		s.tail = 3
		for i := range 6 {
			s.ask(template + fmt.Sprint("u:", i)).answered(fmt.Sprint("a:", i))
		}
		s.want(template + "u:0 a:0 | u:1 a:1 | u:2 a:2 | u:3 a:3 | u:4 a:4 | u:5 a:5")
		ask(s, "u:3 a:3 u:4 a:4 u:5 a:5", "u:6", "a:6")
	})
	t.Run("goes on with tools", func(t *testing.T) {
		s := newSession(t)
		ask(s, "", "u:A", "a:yes")
		ask(s, "", "u:B", "a:no")
		ask(s, "u:A a:yes u:B a:no", "u:C", "c:1")
		r := s.ask(template + "u:C c:1 r:1").want("u:A a:yes u:B a:no")
		if r.reconciled.Stored == nil || shorts(r.reconciled.Stored.Messages) != "u:C c:1" {
			t.Errorf("Stored = %v, want the exchange of the user message", r.reconciled.Stored)
		}
		r.answered("a:done").want(template + "u:A a:yes | u:B a:no | u:C c:1 | r:1 a:done")
		ask(s, "u:A a:yes u:B a:no u:C c:1 r:1 a:done", "u:D", "a:no")
	})
	t.Run("tools in the second request don't make it one early", func(t *testing.T) {
		s := newSession(t)
		s.ask("u:A").answered("a:a")
		s.ask("u:A a:a u:B").answered("c:1")
		s.ask("u:A a:a u:B c:1 r:1").answered("a:b")
		s.ask("u:A a:a u:B2").want("").answered("a:b2")
		s.want("u:A a:a | u:B c:1 | r:1 a:b | u:B2 a:b2")
	})
	t.Run("is no history whose end was edited twice", func(t *testing.T) {
		s := newSession(t)
		s.ask("u:A").answered("a:a")
		for _, q := range words("B B2 B3 B4") {
			s.ask("u:A a:a u:" + q).want("").answered("a:b")
		}
		s.want("u:A a:a | u:B a:b | u:B2 a:b | u:B3 a:b | u:B4 a:b")
	})
	t.Run("is no history without its tool messages whose end was edited twice", func(t *testing.T) {
		s := newSession(t)
		s.conversation("u:A c:1 | r:1 c:2,3 | r:2 r:3 a:a")
		for _, q := range words("B B2 B3 B4") {
			s.ask("u:A a:a u:" + q).want("").answered("a:b")
		}
		s.want("u:A c:1 | r:1 c:2,3 | r:2 r:3 a:a | u:B a:b | u:B2 a:b | u:B3 a:b | u:B4 a:b")
	})
	t.Run("is no history in the client's version whose end was edited twice", func(t *testing.T) {
		s := newSession(t)
		s.conversation("u:A c:1 | r:1 a:thought")
		s.ask("u:A a:a u:B").answered("a:thought_too")
		s.ask("u:A a:a u:B a:b u:C").answered("a:c")
		for _, q := range words("C2 C3 C4") {
			s.ask("u:A a:a u:B a:b u:" + q).want("").answered("a:c")
		}
		s.want("u:A c:1 | r:1 a:thought | a:a u:B a:thought_too | a:b u:C a:c | u:C2 a:c | u:C3 a:c | u:C4 a:c")
	})
	t.Run("the same question twice is no second question", func(t *testing.T) {
		s := newSession(t)
		ask(s, "", "u:A", "a:1")
		ask(s, "", "u:A", "a:2")
		ask(s, "", "u:A", "a:3")
		s.want(template + "u:A a:1 | u:A a:2 | u:A a:3")
	})
	t.Run("words without a reply are said anew each time", func(t *testing.T) {
		s := newSession(t)
		s.conversation("u:ctx u:A a:a | u:ctx u:B a:b | u:ctx u:C a:c").
			ask("u:ctx u:D").want("u:ctx u:A a:a u:ctx u:B a:b u:ctx u:C a:c")
	})
	t.Run("a greeting is one", func(t *testing.T) {
		s := newSession(t)
		for _, q := range words("A B C") {
			s.ask("a:welcome u:" + q).answered("a:r" + q)
		}
		s.want("a:welcome u:A a:rA | u:B a:rB | u:C a:rC").ask("a:welcome u:D").want("u:A a:rA u:B a:rB u:C a:rC")
	})
}

func TestHiddenExchanges(t *testing.T) {
	t.Run("are not included", func(t *testing.T) {
		s := newSession(t).conversation("u:A a:a")
		s.ask("u:B").left("").want("u:A a:a | (u:B)").ask("u:C").want("u:A a:a")
	})
	t.Run("don't stand for what the client sends again", func(t *testing.T) {
		s := newSession(t).conversation("u:A a:a")
		s.ask("u:A a:a u:B").left("")
		s.ask("u:A a:a u:B u:C").want("").answered("a:c").want("u:A a:a | (u:B) | u:B u:C a:c")
		s.ask("u:D").want("u:A a:a u:B u:C a:c")
	})
	t.Run("don't hold what was shown elsewhere", func(t *testing.T) {
		s := newSession(t).conversation("u:A a:a")
		s.ask("u:B").left("")
		s.ask("u:A a:a u:B a:b u:C").answered("a:c").want("u:A a:a | (u:B) | u:B a:b u:C a:c")
	})
	t.Run("between a call and its result", func(t *testing.T) {
		s := newSession(t).conversation("u:A c:1")
		s.ask("r:1").left("")
		s.ask("r:1").want("u:A c:1").answered("a:a").want("u:A c:1 | r:1 a:a")
		s.ask("u:X").left("")
		s.ask("u:B").want("u:A c:1 r:1 a:a")
	})
}

func TestRetries(t *testing.T) {
	t.Run("a retry replaces what the client left without a word", func(t *testing.T) {
		s := newSession(t).conversation("u:A a:a")
		s.ask("u:B").left("")
		s.ask("u:B").want("u:A a:a").answered("a:b").want("u:A a:a | u:B a:b")
	})
	t.Run("a retry replaces what the client left in the middle", func(t *testing.T) {
		s := newSession(t).conversation("u:A a:a")
		s.ask("u:B").left("a:be")
		s.ask("u:B").want("u:A a:a").answered("a:b").want("u:A a:a | u:B a:b")
	})
	t.Run("what was seen in part and talked about since stays", func(t *testing.T) {
		s := newSession(t)
		s.ask("u:story").left("a:once")
		s.ask("u:go_on").answered("a:upon")
		s.ask("u:story").want("u:story a:once u:go_on a:upon").answered("a:x").
			want("u:story a:once | u:go_on a:upon | u:story a:x")
	})
	t.Run("a marked retry replaces the last exchange, though its reply was sent", func(t *testing.T) {
		s := newSession(t).conversation("u:A a:a | u:B a:b")
		s.retry("u:B").want("u:A a:a").answered("a:b2").want("u:A a:a | u:B a:b2")
	})
	t.Run("not without the mark", func(t *testing.T) {
		s := newSession(t).conversation("u:A a:a | u:B a:b")
		s.ask("u:B").want("u:A a:a u:B a:b").answered("a:b2").want("u:A a:a | u:B a:b | u:B a:b2")
	})
	t.Run("a marked retry of what never got here leaves an earlier one with its words alone", func(t *testing.T) {
		s := newSession(t).conversation("u:yes a:a | u:B a:b")
		s.retry("u:yes").want("u:yes a:a u:B a:b").answered("a:c").want("u:yes a:a | u:B a:b | u:yes a:c")
	})
	t.Run("another request may have ended in between", func(t *testing.T) {
		s := newSession(t).conversation("u:A a:a")
		s.ask("u:B").left("")
		s.ask("u:C").answered("a:c")
		s.ask("u:B").want("u:A a:a u:C a:c").answered("a:b").want("u:A a:a | u:C a:c | u:B a:b")
	})
	t.Run("another request may have ended in between, and the client says that it retries", func(t *testing.T) {
		s := newSession(t)
		s.ask("u:B").left("a:be")
		s.ask("u:C").answered("a:c")
		s.retry("u:B").want("u:C a:c").answered("a:b").want("u:C a:c | u:B a:b")
	})
	t.Run("what shows nothing doesn't come in between", func(t *testing.T) {
		s := newSession(t)
		s.ask("u:B").left("a:be")
		s.ask("u:X").left("")
		s.ask("u:B").want("").answered("a:b").want("(u:X) | u:B a:b")
	})
	t.Run("not behind many others", func(t *testing.T) {
		s := newSession(t)
		s.ask("u:B").left("")
		s.conversation("u:1 a:1 | u:2 a:2 | u:3 a:3 | u:4 a:4 | u:5 a:5 | u:6 a:6 | u:7 a:7 | u:8 a:8")
		if r := s.retry("u:B"); r.reconciled.Replaces != 0 {
			t.Errorf("replaces %d", r.reconciled.Replaces)
		}
	})
	for minutes, replaces := range map[int]bool{0: true, 14: true, 16: false} {
		t.Run(fmt.Sprintf("after %d minutes: %t", minutes, replaces), func(t *testing.T) {
			for _, retried := range []bool{true, false} {
				s := newSession(t)
				s.ask("u:B").left("a:be")
				s.now = s.now.Add(time.Duration(minutes) * time.Minute)
				if r := s.begin(parse("u:B"), retried); r.reconciled.Replaces != 0 != replaces {
					t.Errorf("marked %t: replaces %d", retried, r.reconciled.Replaces)
				}
			}
		})
	}
	t.Run("with a history that the session didn't know", func(t *testing.T) {
		s := newSession(t)
		s.ask("u:A a:a u:B").left("a:be")
		s.ask("u:A a:a u:B").want("").answered("a:b").want("u:A a:a u:B a:b")
	})
	t.Run("with a history that the session knows", func(t *testing.T) {
		s := newSession(t).conversation("u:A a:a")
		s.ask("u:A a:a u:B").left("")
		s.retry("u:A a:a u:B").want("").answered("a:b").want("u:A a:a | u:B a:b")
	})
	t.Run("the same words behind another history are another request", func(t *testing.T) {
		s := newSession(t).conversation("u:A a:a")
		s.ask("u:A a:a u:ok").left("a:o")
		s.ask("u:A a:a u:ok a:o u:ok").want("").answered("a:x").want("u:A a:a | u:ok a:o | u:ok a:x")
	})
	t.Run("of tool results", func(t *testing.T) {
		s := newSession(t).conversation("u:A c:1")
		s.ask("r:1").answered("a:a")
		s.retry("r:1").want("u:A c:1").answered("a:a2").want("u:A c:1 | r:1 a:a2")
	})
}

func TestTwoInFlight(t *testing.T) {
	t.Run("a history that both bring is saved once", func(t *testing.T) {
		s := newSession(t)
		one, two := s.ask("u:A a:a u:B"), s.ask("u:A a:a u:C")
		one.answered("a:b")
		two.answered("a:c").want("u:A a:a u:B a:b | u:C a:c")
	})
	t.Run("whoever brings more of it", func(t *testing.T) {
		s := newSession(t)
		one, two := s.ask("u:X a:x u:A a:a u:B"), s.ask("u:A a:a u:C")
		one.answered("a:b")
		two.answered("a:c").want("u:X a:x u:A a:a u:B a:b | u:C a:c")
	})
	t.Run("one that went on meanwhile", func(t *testing.T) {
		s := newSession(t)
		slow := s.ask("u:A a:a u:B a:b u:C")
		s.ask("u:A a:a u:B").answered("a:b")
		slow.answered("a:c").want("u:A a:a u:B a:b | u:C a:c")
	})
	t.Run("a message that happens to be the same proves nothing", func(t *testing.T) {
		s := newSession(t)
		slow := s.ask("u:A a:a u:B a:ok u:C")
		s.ask("u:X").answered("a:ok")
		slow.answered("a:c").want("u:X a:ok | u:A a:a u:B a:ok u:C a:c")
	})
	t.Run("what the session held before stays out", func(t *testing.T) {
		s := newSession(t).conversation("u:A a:a")
		one, two := s.ask("u:A a:a u:B"), s.ask("u:A a:a u:B")
		one.answered("a:b1")
		two.answered("a:b2").want("u:A a:a | u:B a:b1 | u:B a:b2")
	})
	t.Run("one message each", func(t *testing.T) {
		s := newSession(t)
		one, two := s.ask("u:A"), s.ask("u:A")
		two.answered("a:2")
		one.answered("a:1").want("u:A a:2 | u:A a:1")
	})
	t.Run("the client left one and asked again: what it got stays", func(t *testing.T) {
		for _, c := range []struct{ first, second, saved string }{
			{"left:", "a:b", "u:B a:b"},
			{"left:a:be", "a:b", "u:B a:b"},
			{"a:b", "left:", "u:B a:b"},
			{"a:b", "left:a:be", "u:B a:b"},
			{"left:", "left:a:be", "u:B a:be"},
			{"left:a:be", "left:", "u:B a:be"},
			{"left:", "left:", "(u:B)"},
			{"a:1", "a:2", "u:B a:1 | u:B a:2"},
		} {
			for _, history := range []string{"", "u:A a:a "} {
				s := newSession(t)
				one, two := s.ask(history+"u:B"), s.ask(history+"u:B")
				for _, end := range []struct {
					r   *request
					how string
				}{{one, c.first}, {two, c.second}} {
					if partial, left := strings.CutPrefix(end.how, "left:"); left {
						end.r.left(partial)
					} else {
						end.r.answered(end.how)
					}
				}
				s.want(strings.Replace(c.saved, "u:B", history+"u:B", 1))
			}
		}
	})
	t.Run("what another left without a word is saved", func(t *testing.T) {
		s := newSession(t)
		one, two := s.ask("u:A a:a u:B"), s.ask("u:A a:a u:C")
		one.left("")
		two.answered("a:c").want("(u:A a:a u:B) | u:A a:a u:C a:c")
	})
}

func TestStored(t *testing.T) {
	for _, c := range []struct{ name, log, request, want string }{
		{"a new exchange has none", "u:A a:a", "u:A", ""},
		{"results alone", "u:A a:a | u:B c:1", "r:1", "u:B c:1"},
		{"results alone, of a call further back", "u:A c:1 | u:B a:b", "r:1", "u:A c:1"},
		{"results in their second round", "u:B c:1 | r:1 c:2", "r:2", "u:B c:1"},
		{"results with their question", "u:B a:b | u:B c:1", "u:B c:1 r:1", "u:B c:1"},
		{"results with a question that the session doesn't know", "u:B a:b", "u:X a:x u:C c:1 r:1", ""},
		{"results with their question, trimmed to begin with those of another", "u:A c:0 | r:0 a:a | u:B c:1", "r:0 a:a u:B c:1 r:1", "u:B c:1"},
		{"the beginning of a reply", "u:B a:b", "u:B a:{", ""},
		{"nothing said", "u:B a:b", "s:x", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if e := newSession(t).conversation(c.log).ask(c.request).reconciled.Stored; e != nil {
				got = shorts(e.Messages)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("hidden exchanges are none", func(t *testing.T) {
		s := newSession(t).conversation("u:A c:1")
		s.ask("u:X").left("")
		if e := s.ask("r:1").reconciled.Stored; e == nil || shorts(e.Messages) != "u:A c:1" {
			t.Errorf("got %v", e)
		}
	})
}

func TestGroupsKnowTheirPlace(t *testing.T) {
	s := newSession(t).conversation("u:A a:a | u:B a:b u:C c:1 r:1 a:c u:D a:d | u:E c:2 | r:2 a:e")
	var total int64
	var sizes []int
	for _, g := range s.ask("u:F").reconciled.Groups {
		if got := g.Exchanges[0].Offset; got != total {
			t.Errorf("a group begins at %d, want %d", got, total)
		}
		total += int64(g.Tokens())
		sizes = append(sizes, len(g.Exchanges))
		if g.Calling {
			t.Error("no group is answered by the request")
		}
	}
	if total != s.total {
		t.Errorf("the groups hold %d tokens of %d", total, s.total)
	}
	if got := fmt.Sprint(sizes); got != "[1 1 1 1 2]" {
		t.Errorf("the groups have %s exchanges", got)
	}
	groups := newSession(t).conversation("u:A a:a | u:B c:1").ask("r:1").reconciled.Groups
	if len(groups) != 2 || groups[0].Calling || !groups[1].Calling {
		t.Errorf("the last group alone is answered: %+v", groups)
	}
}

func TestLongSession(t *testing.T) {
	s, history := newSession(t), ""
	for i := range 500 {
		q := fmt.Sprint("u:", i, " ")
		s.ask(history + q).want("").answered(fmt.Sprint("a:", i))
		history += q + fmt.Sprint("a:", i, " ")
	}
	if len(s.log) != 500 {
		t.Fatalf("%d exchanges", len(s.log))
	}
	if r := s.ask("u:x"); len(r.history()) != 1000 {
		t.Errorf("%d messages are included", len(r.history()))
	}
	// Edited near its end, and in another place than before.
	edited := strings.Replace(history, "a:498", "a:other", 1)
	s.ask(edited + "u:x").want("").answered("a:x")
	if got := shorts(s.log[500].Messages); got != "u:x a:x" {
		t.Errorf("saved %s", got)
	}
	// Trimmed and edited.
	list := words(edited)
	s.ask(strings.Join(list[900:], " ") + " u:x a:x u:y").want(strings.Join(words(history)[:900], " "))
	// Back to an early message, and on from there.
	back := strings.Join(words(history)[:20], " ")
	s.ask(back + " u:back").want("").answered("a:b")
	s.ask(back + " u:back a:b u:on").want("").answered("a:c")
	if got := shorts(s.log[501].Messages) + " | " + shorts(s.log[502].Messages); got != "u:back a:b | u:on a:c" {
		t.Errorf("saved %s", got)
	}
}

func TestReconcileTakesAnything(t *testing.T) {
	for _, tail := range [][]store.Exchange{nil, {{}}, {{Hidden: true}, {}}, {{Messages: []store.Message{{JSON: []byte("x")}}}}, {{Messages: []store.Message{{}}}}} {
		for _, list := range []string{"", "s:x", "u:x", "a:x", "r:x", "a:x u:x"} {
			s := newSession(t)
			s.log = tail
			s.begin(parse(list), true).end(&openai.Reply{}, true)
		}
	}
}

// A session whose beginning is read because its end doesn't show what the
// request resends.
func TestWithHead(t *testing.T) {
	back := func(s *session, head, tail int, list string, retried bool) *request {
		r := s.begin(parse(list), retried)
		r.reconciled = memory.Reconcile(s.log[len(s.log)-tail:], r.conv, retried, s.now)
		found := false
		if r.reconciled, found = r.reconciled.WithHead(s.log[:head], s.log[len(s.log)-tail:], r.conv, s.now); !found {
			s.t.Errorf("%s isn't found at the beginning of %s", list, s.saved())
		}
		return r
	}
	const long = "u:A c:0 | r:0 a:a | u:B c:0 | r:0 a:b | u:1 c:0 | r:0 a:1 | u:2 c:0 | r:0 a:2 | u:3 c:0 | r:0 a:3"
	t.Run("a retry of what brought something else, too", func(t *testing.T) {
		s := newSession(t).conversation(long)
		const sent = "u:A c:0 r:0 a:a u:X a:x u:Y"
		back(s, 4, 4, sent, false).want("").left("a:y")
		back(s, 4, 4, sent, true).want("").answered("a:yes").want(long + " | u:X a:x u:Y a:yes")
	})
	t.Run("the exchange that is continued is the one that was found", func(t *testing.T) {
		s := newSession(t).conversation(long)
		r := back(s, 4, 4, "u:A c:0 r:0 a:a u:B c:0 r:0", false)
		if e := r.reconciled.Stored; e == nil || shorts(e.Messages) != "u:B c:0" {
			t.Errorf("Stored = %v", e)
		}
	})
	t.Run("of a client that drops tool messages", func(t *testing.T) {
		s := newSession(t).conversation(long)
		back(s, 4, 4, "u:A a:a u:B a:b u:new", false).want("").answered("a:new").want(long + " | u:new a:new")
	})
	t.Run("an exchange in both", func(t *testing.T) {
		s := newSession(t).conversation(long)
		back(s, 8, 4, "u:B a:b u:1 a:1 u:2 a:2 u:new", false).want("u:A c:0 r:0 a:a").answered("a:new").want(long + " | u:new a:new")
	})
}

func TestATemplateThatOnlyTheBeginningShows(t *testing.T) {
	s := newSession(t)
	for _, q := range words("A B C") {
		s.ask("u:good? a:yes u:" + q).answered("a:no")
	}
	s.conversation("u:1 a:1 | u:2 a:2 | u:3 a:3")
	r := s.begin(parse("u:good? a:yes u:D"), false)
	r.reconciled = memory.Reconcile(s.log[3:], r.conv, false, s.now)
	r.reconciled, _ = r.reconciled.WithHead(s.log[:2], s.log[3:], r.conv, s.now)
	r.want("u:1 a:1 u:2 a:2 u:3 a:3").answered("a:d").want("u:good? a:yes u:A a:no | u:B a:no | u:C a:no | u:1 a:1 | u:2 a:2 | u:3 a:3 | u:D a:d")
}

func TestATemplateIsNotLookedFor(t *testing.T) {
	s := newSession(t)
	for _, q := range words("A B C D") {
		s.ask("u:good? a:yes u:" + q).answered("a:no")
	}
	// It continues a call that the session doesn't hold.
	if n := s.ask("u:good? a:yes u:E c:1 r:1").want("u:A a:no u:B a:no u:C a:no u:D a:no").reconciled.Unmatched; n != 0 {
		t.Errorf("%d messages are looked for at the beginning, where the template stands", n)
	}
}
