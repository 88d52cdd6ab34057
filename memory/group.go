package memory

import (
	"slices"

	"github.com/backstory-proxy/backstory/store"
)

// Group is one exchange, or several that make sense only together: a tool call and
// its results. It begins with a user message and holds a result for every call. Only
// the last group of a Reconciliation may end in calls, which the request then
// answers. An exchange that brought a whole history is split into several groups.
type Group struct {
	Exchanges []store.Exchange
	// Calling says that the request answers the calls at the end of this group.
	Calling bool
}

// Tokens returns the sum of the tokens of the group's messages.
func (g *Group) Tokens() int {
	n := 0
	for i := range g.Exchanges {
		n += g.Exchanges[i].Tokens()
	}
	return n
}

// split divides the log into groups of what makes sense only together: a user message
// and all that follows it up to the last reply. A user message begins a new group if
// it is the first of its exchange or follows a reply.
//
// Results of tools join the group with their calls, wherever it is: another request
// may have ended in between. Where a call had been answered before, the new results
// replace all that followed it. The groups may share memory with log, and may still
// hold messages that no provider would accept. last is the index of the group that
// holds the log's last message, or -1.
func split(log []storedMessage) (groups [][]storedMessage, last int) {
	groups = make([][]storedMessage, 0, len(log)/2+1)
	at := -1 // the group that the next message joins
	for i := range log {
		s := &log[i]
		switch {
		case s.role == "user" && (startsExchange(log, i) || log[i-1].role == "assistant"):
			at = -1
		case s.isResult() && startsExchange(log, i):
			ids := []string{s.answersCall}
			for n := i + 1; n < len(log) && log[n].isResult() && !startsExchange(log, n); n++ {
				ids = append(ids, log[n].answersCall)
			}
			at = resume(groups, ids)
		}
		if at < 0 {
			groups = append(groups, log[i:i])
			at = len(groups) - 1
		} else if g := groups[at]; &g[len(g)-1] != &log[i-1] {
			groups[at] = slices.Clip(g) // or append would overwrite the log
		}
		groups[at] = append(groups[at], *s)
	}
	return groups, at
}

// resume returns the index of the group with the calls of these ids, and cuts the
// group so that their results can follow. It returns -1 where there is none. A group
// whose calls are pending is preferred: some models reuse the ids of calls.
func resume(groups [][]storedMessage, ids []string) int {
	for i := len(groups) - 1; i >= 0; i-- {
		if _, pending := validSuffix(groups[i]); containsAll(pending, ids) {
			return i
		}
	}
	for i := len(groups) - 1; i >= 0; i-- {
		for j := len(groups[i]) - 1; j >= 0; j-- {
			if containsAll(groups[i][j].calls, ids) {
				groups[i] = groups[i][:j+1]
				return i
			}
		}
	}
	return -1
}

func containsAll(list, of []string) bool {
	for _, s := range of {
		if !slices.Contains(list, s) {
			return false
		}
	}
	return true
}

// validSuffix returns the longest suffix of a group that a provider accepts. It
// begins with a user message, results follow every call, in any order, and a call
// precedes every result. pending are the calls at its end without a result.
func validSuffix(g []storedMessage) (end []storedMessage, pending []string) {
	start := len(g)
	for i := range g {
		s := &g[i]
		if s.isResult() {
			if n := slices.Index(pending, s.answersCall); n >= 0 {
				pending = slices.Concat(pending[:n], pending[n+1:])
			} else {
				start, pending = len(g), nil
			}
			continue
		}
		if len(pending) > 0 {
			start = len(g)
		}
		if s.role == "user" {
			start = min(start, i)
		}
		if pending = nil; start <= i {
			pending = s.calls
		}
	}
	return g[start:], pending
}

// untilReply returns the group up to its last reply.
func untilReply(g []storedMessage) []storedMessage {
	for len(g) > 0 && !g[len(g)-1].isReply() {
		g = g[:len(g)-1]
	}
	return g
}

// validGroups returns the part of each group that a provider accepts. calling says
// that the request answers calls of the last group.
func validGroups(tail []store.Exchange, groups [][]storedMessage, calling bool) []Group {
	out := make([]Group, 0, len(groups))
	for i, g := range groups {
		answered := calling && i == len(groups)-1
		if g, pending := validSuffix(g); len(g) > 0 && (answered || len(pending) == 0) {
			out = append(out, Group{Exchanges: exchangesOf(tail, g), Calling: answered})
		}
	}
	return out
}

// exchangesOf returns the exchanges of a group. Where these are whole and adjacent,
// as nearly always, it is a slice of the tail.
func exchangesOf(tail []store.Exchange, g []storedMessage) []store.Exchange {
	first, last := g[0].exchange, g[len(g)-1].exchange
	n := 0
	for i := first; i <= last; i++ {
		n += len(tail[i].Messages)
	}
	if n == len(g) {
		return tail[first : last+1 : last+1]
	}
	var out []store.Exchange
	for from := 0; from < len(g); {
		to := from + 1
		for to < len(g) && g[to].exchange == g[from].exchange {
			to++
		}
		e := tail[g[from].exchange]
		start, end := g[from].message, g[to-1].message+1
		for i := range e.Messages[:start] {
			e.Offset += int64(e.Messages[i].Tokens)
		}
		e.Messages = e.Messages[start:end:end]
		out = append(out, e)
		from = to
	}
	return out
}
