package memory

import (
	"slices"

	"github.com/backstory-proxy/backstory/store"
)

// Group is one exchange, or several that only make sense together: a tool call
// and its results. It begins with a user message and holds an answer to every
// call, except that the last group of a View may end in calls which the
// request answers. An exchange that brought a whole history makes several
// groups, each with its part of it.
type Group struct {
	Exchanges []store.Exchange
	// Calling says that the request answers calls of this group.
	Calling bool
}

// Tokens is the sum over the group's messages.
func (g *Group) Tokens() int {
	n := 0
	for i := range g.Exchanges {
		n += g.Exchanges[i].Tokens()
	}
	return n
}

// split puts together what only makes sense together: a user message and what
// followed it up to the last answer. A user message begins something new
// where it is the first of its exchange or follows an answer.
//
// Results of tools go to their call, wherever it stands: another request may
// have ended in between. A call that was answered before is answered anew, and
// what followed it is void. The pieces of the result may share memory with
// log; what is unsound of them is still there. last is the turn of the log's
// last line; -1 where there is none.
func split(log []line) (turns [][]line, last int) {
	turns = make([][]line, 0, len(log)/2+1)
	at := -1 // the turn that goes on
	for i := range log {
		l := &log[i]
		switch {
		case l.role == "user" && (begins(log, i) || log[i-1].role == "assistant"):
			at = -1
		case l.result() && begins(log, i):
			ids := []string{l.answers}
			for n := i + 1; n < len(log) && log[n].result() && !begins(log, n); n++ {
				ids = append(ids, log[n].answers)
			}
			at = resume(turns, ids)
		}
		if at < 0 {
			turns = append(turns, log[i:i])
			at = len(turns) - 1
		} else if t := turns[at]; &t[len(t)-1] != &log[i-1] {
			turns[at] = slices.Clip(t) // or append would write over the log
		}
		turns[at] = append(turns[at], *l)
	}
	return turns, at
}

// resume is the index of the turn with the calls of these ids, cut so that
// their results can follow; -1 where there is none. One that waits for the
// results comes before others: some models number their calls anew each time.
func resume(turns [][]line, ids []string) int {
	for i := len(turns) - 1; i >= 0; i-- {
		if _, waiting := sound(turns[i]); containsAll(waiting, ids) {
			return i
		}
	}
	for i := len(turns) - 1; i >= 0; i-- {
		for j := len(turns[i]) - 1; j >= 0; j-- {
			if containsAll(turns[i][j].calls, ids) {
				turns[i] = turns[i][:j+1]
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

// sound returns the longest end of a turn that a provider would take: it begins
// with a user message, every call is followed by its results, in any order, and
// every result preceded by its call. waiting are the calls at its end that have
// no result yet.
func sound(t []line) (end []line, waiting []string) {
	start := len(t)
	for i := range t {
		l := &t[i]
		if l.result() {
			if n := slices.Index(waiting, l.answers); n >= 0 {
				waiting = slices.Concat(waiting[:n], waiting[n+1:])
			} else {
				start, waiting = len(t), nil
			}
			continue
		}
		if len(waiting) > 0 {
			start = len(t)
		}
		if l.role == "user" {
			start = min(start, i)
		}
		if waiting = nil; start <= i {
			waiting = l.calls
		}
	}
	return t[start:], waiting
}

// untilAnswer returns the turn up to its last answer in words.
func untilAnswer(t []line) []line {
	for len(t) > 0 && !t[len(t)-1].says() {
		t = t[:len(t)-1]
	}
	return t
}

// groups are what a provider would take of the turns. calling says that the
// request answers calls of the last one.
func groups(tail []store.Exchange, turns [][]line, calling bool) []Group {
	groups := make([]Group, 0, len(turns))
	for i, t := range turns {
		answered := calling && i == len(turns)-1
		if t, waiting := sound(t); len(t) > 0 && (answered || len(waiting) == 0) {
			groups = append(groups, Group{Exchanges: exchanges(tail, t), Calling: answered})
		}
	}
	return groups
}

// exchanges are the exchanges of a turn: a piece of the tail where it is made
// of whole ones that stand together, as nearly all are.
func exchanges(tail []store.Exchange, t []line) []store.Exchange {
	first, last := t[0].exchange, t[len(t)-1].exchange
	n := 0
	for i := first; i <= last; i++ {
		n += len(tail[i].Messages)
	}
	if n == len(t) {
		return tail[first : last+1 : last+1]
	}
	var out []store.Exchange
	for from := 0; from < len(t); {
		to := from + 1
		for to < len(t) && t[to].exchange == t[from].exchange {
			to++
		}
		e := tail[t[from].exchange]
		start, end := t[from].message, t[to-1].message+1
		for i := range e.Messages[:start] {
			e.Offset += int64(e.Messages[i].Tokens)
		}
		e.Messages = e.Messages[start:end:end]
		out = append(out, e)
		from = to
	}
	return out
}
