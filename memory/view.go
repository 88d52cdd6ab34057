package memory

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// Said is one message of a request that belongs to the conversation: all but
// the system and developer messages.
type Said struct {
	Index  int // in the request's messages
	Role   string
	Digest store.Digest

	answers string // id of the call whose result it is
}

// Conversation returns what a request says.
func Conversation(messages []openai.Message) []Said {
	said := make([]Said, 0, len(messages))
	w := canonical{hash: sha256.New()}
	for i := range messages {
		if m := &messages[i]; !m.System() {
			said = append(said, Said{Index: i, Role: m.Role, Digest: w.message(m), answers: answers(m)})
		}
	}
	return said
}

// View is a session as one request sees it.
type View struct {
	// Groups are the earlier exchanges that the request doesn't carry itself,
	// oldest first.
	Groups []Group
	// New is the index in the conversation of the first message that the
	// session doesn't hold.
	New int
	// Unseen is how many messages the request resends ahead of the first one
	// that was found: of a history, they may stand further back in the session.
	Unseen int
	// Replaces is the Seq of the exchange that this request repeats, or 0.
	Replaces int64
	// Carried identifies what the request carries ahead of its last user
	// message, for the exchange to be saved.
	Carried store.Digest
	// Stored is, for a request that goes on with a turn (its last message is
	// no user message), the exchange that holds the turn's user message; nil
	// where there is none.
	Stored *store.Exchange

	template bool // stands ahead of the request's last user message
}

// Look aligns a request with the end of its session. retried says that the
// client marked the request as a retry.
func Look(tail []store.Exchange, said []Said, retried bool, now time.Time) View {
	user := lastUser(said)
	v := View{Carried: digestAll(said[:user])}
	if i := repeated(tail, said, v.Carried, retried, now); i >= 0 {
		v.Replaces = tail[i].Seq
		tail = slices.Delete(slices.Clone(tail), i, i+1)
	}
	log := read(tail)
	whole := log
	history := 0 // the index of the first message that isn't a template's
	if isTemplate(tail, log, said, user, v.Carried) {
		history, v.template = user, true
		log = withoutTemplate(log, said[:user])
	}
	v.New = history
	cut := false
	if carried := history + resent(tail, log, said[history:]); carried > history {
		var a alignment
		unseen := carried
		if a, cut = align(log, said[history:carried]); cut {
			unseen = a.first
			v.New += a.known
			if a.line > 0 && rewritten(tail, log, a.line-1) {
				a.line--
			}
			log = log[:a.line]
		}
		if !v.template {
			v.Unseen = unseen
		}
	}

	v.Stored = turnOf(tail, whole, said, v.New)

	turns, last := split(log)
	calling := false
	switch {
	case last < 0 || len(said) == 0:
	case isResult(said[0].Role):
		var ids []string
		for i := 0; i < len(said) && isResult(said[i].Role); i++ {
			ids = append(ids, said[i].answers)
		}
		for i := resume(turns, ids); i >= 0; i = resume(turns, ids) {
			if end, _ := sound(turns[i]); len(end) > 0 {
				turns, calling = turns[:i+1], true
				if said[lastUser(said)].Role != "user" {
					v.Stored = userOf(tail, turns[i])
				}
				break
			}
			// No provider would take this call: an earlier one of the name.
			turns[i] = turns[i][:len(turns[i])-1]
		}
	case cut && said[0].Role == "user":
		turns[last] = untilAnswer(turns[last])
	}
	for i := range turns {
		turns[i] = withoutRewritten(tail, turns[i])
	}
	v.Groups = groups(tail, turns, calling)
	return v
}

// LookBack completes a View, made from a session's end, of a request that
// resends messages which don't stand there: it looks for them at the session's
// beginning. What stood behind them was left behind by the client, except for
// what it resends of the end. false: they don't stand there either.
func (v View) LookBack(head, tail []store.Exchange, said []Said, now time.Time) (View, bool) {
	begun := Look(ahead(head, tail, max(v.Unseen, maxAligned)), said, false, now)
	if begun.template { // and no history
		v.New = max(v.New, lastUser(said))
		return v, false
	}
	if begun.Unseen >= v.Unseen {
		return v, false
	}
	// What this request repeats is no history of it.
	tail = slices.DeleteFunc(slices.Clone(tail), func(e store.Exchange) bool { return e.Seq == v.Replaces })
	rest := Look(tail, said[begun.New:], false, now)
	v.Groups, v.Unseen, v.New = begun.Groups, begun.Unseen, begun.New+rest.New
	switch {
	case v.Stored != nil:
	case lastUser(said) < begun.New:
		v.Stored = begun.Stored
	default:
		v.Stored = rest.Stored
	}
	return v, true
}

// ahead returns the exchanges that stand ahead of the tail, up to some messages.
func ahead(head, tail []store.Exchange, messages int) []store.Exchange {
	for i := range head {
		if messages <= 0 || len(tail) > 0 && head[i].Seq >= tail[0].Seq {
			return head[:i]
		}
		messages -= len(head[i].Messages)
	}
	return head
}

// resent is the number of messages, of those said, that the client may have
// sent or got before: up to the last one of the assistant which another
// message follows. A message of the assistant at the end is the beginning of
// the reply that is asked for, unless the session knows it as a reply.
func resent(tail []store.Exchange, log []line, said []Said) int {
	n := len(said)
	if n > 0 && said[n-1].Role == "assistant" && replied(tail, log, said[max(0, n-2):]) {
		return n
	}
	return carriedUntil(said)
}

// carriedUntil is the number of messages up to the last one of the assistant
// which another message follows.
func carriedUntil(said []Said) int {
	n := len(said)
	for n > 0 && said[n-1].Role == "assistant" {
		n--
	}
	for n > 0 && said[n-1].Role != "assistant" {
		n--
	}
	return n
}

// lastUser is the index of the last user message; 0 where there is none.
func lastUser(said []Said) int {
	for i := len(said) - 1; i > 0; i-- {
		if said[i].Role == "user" {
			return i
		}
	}
	return 0
}

// turnOf is the stored exchange with the user message of the turn that the
// request goes on with, where the request carries that message and the session
// holds it.
func turnOf(tail []store.Exchange, log []line, said []Said, fresh int) *store.Exchange {
	u := lastUser(said)
	if u >= min(fresh, len(said)-1) || said[u].Role != "user" {
		return nil
	}
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].role == "user" && log[i].digest == said[u].Digest {
			return &tail[log[i].exchange]
		}
	}
	return nil
}

// userOf is the exchange with the turn's last user message.
func userOf(tail []store.Exchange, turn []line) *store.Exchange {
	for i := len(turn) - 1; i >= 0; i-- {
		if turn[i].role == "user" {
			return &tail[turn[i].exchange]
		}
	}
	return nil
}
