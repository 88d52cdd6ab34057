package memory

import (
	"slices"

	"github.com/backstory-proxy/backstory/store"
)

// Some clients resend a reply in a version of their own: without its reasoning, or
// cut off where the user stopped it. The session keeps both versions, and the
// client's is included.

// rewritten reports whether the next message of the log is the client's version of
// this one: the request of the next exchange brought it, and carried a history ahead
// of it. A request without a history brings something new instead.
func rewritten(tail []store.Exchange, log []storedMessage, i int) bool {
	if i+1 >= len(log) || log[i+1].message > 0 || !log[i+1].isReply() || !log[i].isReply() {
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
	ahead := make([]RequestMessage, user)
	for j := range ahead {
		ahead[j].Digest = e.Messages[j].Digest
	}
	return user > 0 && digestAll(ahead) != e.Carried
}

// withoutRewritten returns a group without the message that the client has its own
// version of. There is at most one: the exchange that brought the client's version
// also holds the user message that begins the next group.
func withoutRewritten(tail []store.Exchange, group []storedMessage) []storedMessage {
	for i := range group {
		if rewritten(tail, group, i) {
			return slices.Concat(group[:i], group[i+1:])
		}
	}
	return group
}
