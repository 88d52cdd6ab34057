package memory

import (
	"slices"

	"github.com/backstory-proxy/backstory/store"
)

// Some clients resend replies in a version of their own: without the thoughts
// in them, or as far as they were shown before the user stopped them. The log
// keeps both, and the client's version is the one that is supplied.

// rewritten reports whether the next line is the client's version of this one:
// the request of the next exchange brought that line, and carried a history
// ahead of it. A request without a history has something new to say.
func rewritten(tail []store.Exchange, log []line, i int) bool {
	if i+1 >= len(log) || log[i+1].message > 0 || !log[i+1].says() || !log[i].says() {
		return false
	}
	e := &tail[log[i+1].exchange]
	if e.Carried == (store.Digest{}) {
		return false
	}
	user := len(e.Messages) - 1
	for user > 0 && role(e.Messages[user].JSON) != "user" {
		user--
	}
	ahead := make([]Said, user)
	for j := range ahead {
		ahead[j].Digest = e.Messages[j].Digest
	}
	return user > 0 && digestAll(ahead) != e.Carried
}

// withoutRewritten returns a turn less the line that the client has its own
// version of. There is one at most: the exchange that brought that version holds
// the next turn's user message.
func withoutRewritten(tail []store.Exchange, turn []line) []line {
	for i := range turn {
		if rewritten(tail, turn, i) {
			return slices.Concat(turn[:i], turn[i+1:])
		}
	}
	return turn
}
