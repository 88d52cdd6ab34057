package memory

import (
	"cmp"
	"math"
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

// grouping is a log that is being divided into groups of what makes sense only
// together. It takes time in proportion to the messages and their calls.
type grouping struct {
	groups [][]storedMessage
	ends   []suffix          // of the groups
	calls  map[string][]site // where a call with the id was made, in the order of the log
}

// site is the place of a message in a group. The group may have been cut since.
type site struct {
	group, index      int
	exchange, message int // as in storedMessage
}

// split divides the log into groups: a user message and all that follows it up to the
// last reply. A user message begins a new group if it is the first of its exchange or
// follows a reply.
//
// Results of tools join the group with their calls, wherever it is: another request
// may have ended in between. Where a call had been answered before, the new results
// replace all that followed it. The groups may share memory with log, and may still
// hold messages that no provider would accept. last is the index of the group that
// holds the log's last message, or -1.
func split(log []storedMessage) (b *grouping, last int) {
	b = &grouping{groups: make([][]storedMessage, 0, len(log)/2+1), ends: make([]suffix, 0, len(log)/2+1)}
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
			at = b.resume(ids, false)
		}
		if at < 0 {
			b.groups, b.ends = append(b.groups, log[i:i]), append(b.ends, suffix{start: none})
			at = len(b.groups) - 1
		} else if g := b.groups[at]; &g[len(g)-1] != &log[i-1] {
			b.groups[at] = slices.Clip(g) // or append would overwrite the log
		}
		b.add(at, s)
	}
	return b, at
}

// add appends a message to a group.
func (b *grouping) add(at int, s *storedMessage) {
	b.ends[at].add(s)
	s.validFrom = b.ends[at].start
	for _, id := range s.calls {
		if b.calls == nil {
			b.calls = make(map[string][]site)
		}
		b.calls[id] = append(b.calls[id], site{at, len(b.groups[at]), s.exchange, s.message})
	}
	b.groups[at] = append(b.groups[at], *s)
}

// cut shortens a group to n messages.
func (b *grouping) cut(at, n int) {
	g := b.groups[at][:n]
	b.groups[at], b.ends[at] = g, suffix{start: none}
	from := n - 1 // of the results at the end, or the message that they follow
	for from > 0 && g[from].isResult() {
		from--
	}
	if from < 0 {
		return
	}
	end := suffix{start: g[from].validFrom, length: from + 1}
	if end.start <= from {
		end.await(g[from].calls)
	}
	for i := from + 1; i < n; i++ {
		end.add(&g[i])
	}
	b.ends[at] = end
}

// resume returns the index of the newest group with the calls of these ids, and cuts
// the group so that their results can follow. It returns -1 where there is none. A
// group whose calls are pending is preferred: some models reuse the ids of calls.
// With valid, calls that no provider would accept don't count. They are cut off, too.
func (b *grouping) resume(ids []string, valid bool) int {
	sites := b.calls[ids[0]]
	if len(sites) == 0 {
		return -1
	}
	wanted := make(map[string]int, len(ids)) // each id, and the last of the sites that was seen to have it
	for _, id := range ids {
		wanted[id] = 0
	}
	newest := -1
	for _, s := range sites {
		if s.group > newest && b.ends[s.group].awaits(wanted) {
			newest = s.group
		}
	}
	if newest >= 0 {
		return newest
	}
	sites = slices.Clone(sites)
	slices.SortFunc(sites, func(x, y site) int { return cmp.Or(y.group-x.group, y.index-x.index) })
	for k, s := range sites {
		if g := b.groups[s.group]; s.index >= len(g) || g[s.index].exchange != s.exchange || g[s.index].message != s.message {
			continue // it was cut off
		}
		found := 0
		for _, id := range b.groups[s.group][s.index].calls {
			if seen, ok := wanted[id]; ok && seen <= k {
				wanted[id] = k + 1
				found++
			}
		}
		if found < len(wanted) {
			continue
		}
		b.cut(s.group, s.index+1)
		if !valid || b.ends[s.group].start <= s.index {
			return s.group
		}
		if b.cut(s.group, s.index); b.ends[s.group].awaits(wanted) {
			return s.group
		}
	}
	return -1
}

// suffix is the longest suffix of a group that a provider accepts. It begins with a
// user message, results follow every call, in any order, and a call precedes every
// result.
type suffix struct {
	start   int            // of the suffix, in the group; none: it is empty
	length  int            // of the group
	pending map[string]int // how often the calls at its end are still to be answered, by id
	left    int            // their number
}

// none is the start of an empty suffix.
const none = math.MaxInt

// add takes in the group's next message.
func (x *suffix) add(s *storedMessage) {
	i := x.length
	x.length++
	if s.isResult() {
		if x.left > 0 && x.pending[s.answersCall] > 0 {
			x.pending[s.answersCall]--
			x.left--
		} else {
			x.start, x.left = none, 0
		}
		return
	}
	if x.left > 0 {
		x.start = none
	}
	if s.role == "user" {
		x.start = min(x.start, i)
	}
	if x.left = 0; x.start <= i {
		x.await(s.calls)
	}
}

// await makes calls pending.
func (x *suffix) await(calls []string) {
	if len(calls) == 0 {
		return
	}
	x.pending = make(map[string]int, len(calls)) // clearing one that was large would take longer
	for _, id := range calls {
		x.pending[id]++
	}
	x.left = len(calls)
}

// awaits reports whether calls of all these ids are pending.
func (x *suffix) awaits(ids map[string]int) bool {
	if len(ids) > x.left {
		return false
	}
	for id := range ids {
		if x.pending[id] == 0 {
			return false
		}
	}
	return true
}

// validSuffix returns the longest suffix of a group that a provider accepts, and
// whether calls at its end have no result.
func validSuffix(g []storedMessage) (end []storedMessage, pending bool) {
	x := suffix{start: none}
	for i := range g {
		x.add(&g[i])
	}
	return g[min(x.start, len(g)):], x.left > 0
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
		if g, pending := validSuffix(g); len(g) > 0 && (answered || !pending) {
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
	for i := first; i <= last && n <= len(g); i++ { // the exchanges of others may be in between
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
		e.Offset += g[from].ahead
		e.Messages = e.Messages[start:end:end]
		out = append(out, e)
		from = to
	}
	return out
}
