package memory

import (
	"slices"

	"github.com/backstory-proxy/backstory/store"
)

// isTemplate reports whether what the request carries ahead of its last user
// message came at least twice before, each time with another last user
// message: then it is no history but an introduction that is sent every time,
// such as few-shot examples. Where the session's own replies stand in it, it
// is a history all the same, whose end the user has edited again and again.
func isTemplate(tail []store.Exchange, log []line, said []Said, user int, carried store.Digest) bool {
	if user == 0 || carriedUntil(said[:user+1]) == 0 { // nothing that looks like a history
		return false
	}
	asked := []store.Digest{said[user].Digest}
	for i := range tail {
		if e := &tail[i]; e.Carried == carried {
			if d := lastUserOf(e); d != (store.Digest{}) && !slices.Contains(asked, d) {
				asked = append(asked, d)
			}
		}
	}
	return len(asked) > 2 && !replied(tail, log, said[:user])
}

func lastUserOf(e *store.Exchange) store.Digest {
	for i := len(e.Messages) - 1; i >= 0; i-- {
		if role(e.Messages[i].JSON) == "user" {
			return e.Messages[i].Digest
		}
	}
	return store.Digest{}
}

// replied reports whether one of the session's replies, or the client's version
// of one, stands in what was said, behind the same message where one stands
// ahead of it; behind the question, where the client left out what tools did
// for the answer.
func replied(tail []store.Exchange, log []line, said []Said) bool {
	for i := 1; i < len(log); i++ {
		reply := i
		switch {
		case rewritten(tail, log, i-1):
			reply--
		case begins(log, i) || !ends(log, i) || log[i].role != "assistant":
			continue
		}
		before := max(0, reply-1)
		asked := before
		for log[i].says() && asked > 0 && (log[asked].result() || len(log[asked].calls) > 0) {
			asked--
		}
		for j := range said {
			if said[j].Digest != log[i].digest {
				continue
			}
			if j == 0 || said[j-1].Digest == log[before].digest || said[j-1].Digest == log[asked].digest {
				return true
			}
		}
	}
	return false
}

// withoutTemplate returns the log less the template, which the client sends
// itself every time. It stands at the beginning of the exchange that brought
// it; after a change of the template, in pieces.
func withoutTemplate(log []line, template []Said) []line {
	rest := make([]line, 0, len(log))
	for i := 0; i < len(log); i++ {
		if begins(log, i) {
			i += introduction(log[i:], template)
		}
		rest = append(rest, log[i])
	}
	return rest
}

// introduction is the number of the exchange's first messages that are a piece
// of the template and end in an answer. The exchange's reply is never one.
func introduction(log []line, template []Said) int {
	start := slices.IndexFunc(template, func(s Said) bool { return s.Digest == log[0].digest })
	if start < 0 {
		return 0
	}
	whole := 0
	for i := 0; start+i < len(template) && !ends(log, i) && log[i].digest == template[start+i].Digest; i++ {
		if log[i].says() {
			whole = i + 1
		}
	}
	return whole
}
