package memory

import (
	"slices"

	"github.com/backstory-proxy/backstory/store"
)

// isTemplate reports whether what the request carries ahead of its last user message
// is a template that the client sends every time, such as few-shot examples, and no
// history. It must have come at least twice before, each time with a different last
// user message. If it holds replies of the session it is a history all the same,
// whose end the user has edited again and again.
func isTemplate(tail []store.Exchange, log []storedMessage, conv []RequestMessage, user int, carried store.Digest) bool {
	if user == 0 || carriedUntil(conv[:user+1]) == 0 { // nothing that could be a history
		return false
	}
	asked := []store.Digest{conv[user].Digest}
	for i := 0; i < len(tail) && len(asked) < 3; i++ {
		if e := &tail[i]; e.Carried == carried {
			if d := lastUserDigest(e); d != (store.Digest{}) && !slices.Contains(asked, d) {
				asked = append(asked, d)
			}
		}
	}
	return len(asked) == 3 && !holdsReply(tail, log, conv[:user])
}

func lastUserDigest(e *store.Exchange) store.Digest {
	for i := len(e.Messages) - 1; i >= 0; i-- {
		if role(e.Messages[i].JSON) == "user" {
			return e.Messages[i].Digest
		}
	}
	return store.Digest{}
}

// holdsReply reports whether the conversation holds one of the session's replies, or
// the client's version of one. The message ahead of the reply, if any, must be the
// same on both sides. Where the client leaves out tool calls and results, that is the
// question ahead of them.
func holdsReply(tail []store.Exchange, log []storedMessage, conv []RequestMessage) bool {
	if len(conv) == 0 {
		return false
	}
	type pair struct{ before, message store.Digest }
	pairs := make(map[pair]bool, len(conv))
	for j := 1; j < len(conv); j++ {
		pairs[pair{conv[j-1].Digest, conv[j].Digest}] = true
	}
	for i := 1; i < len(log); i++ {
		reply := i
		switch {
		case rewritten(tail, log, i-1):
			reply--
		case startsExchange(log, i) || !endsExchange(log, i) || log[i].role != "assistant":
			continue
		}
		before := max(0, reply-1)
		asked := before
		for log[i].isReply() && asked > 0 && (log[asked].isResult() || len(log[asked].calls) > 0) {
			asked--
		}
		d := log[i].digest
		if conv[0].Digest == d || pairs[pair{log[before].digest, d}] || pairs[pair{log[asked].digest, d}] {
			return true
		}
	}
	return false
}

// withoutTemplate returns the log without the template, which the client sends itself
// every time. The template begins the exchange that brought it. Where the client
// changed the template, later exchanges begin with parts of it.
func withoutTemplate(log []storedMessage, template []RequestMessage) []storedMessage {
	rest := make([]storedMessage, 0, len(log))
	places := make(map[store.Digest]int, len(template)) // of the first of equal ones
	for i := len(template) - 1; i >= 0; i-- {
		places[template[i].Digest] = i
	}
	for i := 0; i < len(log); i++ {
		if startsExchange(log, i) {
			if start, ok := places[log[i].digest]; ok {
				i += templatePrefix(log[i:], template[start:])
			}
		}
		rest = append(rest, log[i])
	}
	return rest
}

// templatePrefix returns how many messages at the start of an exchange are the
// beginning of the template, or of a part of it, up to a reply. The exchange's own
// reply never counts.
func templatePrefix(log []storedMessage, template []RequestMessage) int {
	whole := 0
	for i := 0; i < len(template) && !endsExchange(log, i) && log[i].digest == template[i].Digest; i++ {
		if log[i].isReply() {
			whole = i + 1
		}
	}
	return whole
}
