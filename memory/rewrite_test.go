package memory_test

import (
	"fmt"
	"strings"
	"testing"
)

// A reply that the client resends in its own version is included in that
// version, and once.
func TestRewrittenReplies(t *testing.T) {
	// A client that drops what the model thinks, and resends everything.
	dropping := func(t *testing.T) *session {
		s := newSession(t)
		var conv []string
		for i := range 3 {
			conv = append(conv, fmt.Sprint("u:", i))
			s.ask(strings.Join(conv, " ")).want("").answered(fmt.Sprint("a:thought", i))
			conv = append(conv, fmt.Sprint("a:", i))
		}
		return s.want("u:0 a:thought0 | a:0 u:1 a:thought1 | a:1 u:2 a:thought2")
	}
	t.Run("then a client that resends nothing", func(t *testing.T) {
		dropping(t).ask("u:3").want("u:0 a:0 u:1 a:1 u:2 a:thought2")
	})
	t.Run("then one that was trimmed to begin with a user message", func(t *testing.T) {
		dropping(t).ask("u:1 a:1 u:2 a:2 u:3").want("u:0 a:0").answered("a:3").
			want("u:0 a:thought0 | a:0 u:1 a:thought1 | a:1 u:2 a:thought2 | a:2 u:3 a:3")
	})
	t.Run("then one that was trimmed to begin with a reply", func(t *testing.T) {
		dropping(t).ask("a:1 u:2 a:2 u:3").want("u:0 a:0 u:1")
	})
	t.Run("what was shown of a reply that the user stopped", func(t *testing.T) {
		s := newSession(t)
		s.ask("u:A").answered("a:a")
		s.ask("u:A a:a u:B").left("a:one_two_three")
		s.ask("u:A a:a u:B a:one u:C").want("").answered("a:c")
		s.want("u:A a:a | u:B a:one_two_three | a:one u:C a:c").ask("u:D").want("u:A a:a u:B a:one u:C a:c")
	})
	t.Run("behind tools", func(t *testing.T) {
		s := newSession(t).conversation("u:A c:1 | r:1 a:a")
		s.ask("u:A c:1 r:1 a:a2 u:B").answered("a:b")
		s.ask("u:C").want("u:A c:1 r:1 a:a2 u:B a:b")
	})
	t.Run("not what the assistant says of itself, where nothing is resent", func(t *testing.T) {
		s := newSession(t).conversation("u:A a:a")
		s.ask("a:by_the_way u:B").answered("a:b")
		s.ask("u:C").want("u:A a:a a:by_the_way u:B a:b")
	})
	t.Run("not a reply that goes on", func(t *testing.T) {
		s := newSession(t).conversation("u:A a:a")
		s.ask("u:A a:a u:B").answered("a:b")
		s.ask("u:A a:a u:B a:b").answered("a:more")
		s.ask("u:C").want("u:A a:a u:B a:b a:more")
	})
}
