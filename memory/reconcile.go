package memory

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// RequestMessage is a message of a request that belongs to the conversation: any but
// a system or developer message. Package journal keeps its exported fields.
type RequestMessage struct {
	Index  int // in the request's messages
	Role   string
	Digest store.Digest

	answersCall string // id of the call whose result it is
}

// Conversation returns the messages of a request that belong to the conversation.
func Conversation(messages []openai.Message) []RequestMessage {
	conv := make([]RequestMessage, 0, len(messages))
	w := canonical{hash: sha256.New()}
	for i := range messages {
		if m := &messages[i]; !m.System() {
			conv = append(conv, RequestMessage{Index: i, Role: m.Role, Digest: w.message(m), answersCall: answeredCall(m)})
		}
	}
	return conv
}

// Reconciliation is the result of comparing a request with its session.
type Reconciliation struct {
	// Groups are the earlier exchanges that the request doesn't carry itself, oldest
	// first.
	Groups []Group
	// New is the index in the conversation of the first message that the session doesn't
	// hold.
	New int
	// Unmatched is how many messages the request resends ahead of the first one that was
	// found. If they are history, they may stand further back in the session.
	Unmatched int
	// Replaces is the Seq of the exchange that this request repeats, or 0.
	Replaces int64
	// Carried is the digest of what the request carries ahead of its last user message.
	// It is saved with the exchange.
	Carried store.Digest
	// Stored is set for a request that continues an exchange, which means that its last
	// message isn't a user message. It is the stored exchange with the user message that
	// the request continues; nil where the session holds none.
	Stored *store.Exchange

	template bool // the messages ahead of the last user message are a template, see isTemplate
}

// Reconcile compares a request's conversation with the tail of its session. retried
// says that the client marked the request as a retry.
func Reconcile(tail []store.Exchange, conv []RequestMessage, retried bool, now time.Time) Reconciliation {
	user := lastUser(conv)
	r := Reconciliation{Carried: digestAll(conv[:user])}
	if i := findRetried(tail, conv, r.Carried, retried, now); i >= 0 {
		r.Replaces = tail[i].Seq
		tail = slices.Delete(slices.Clone(tail), i, i+1)
	}
	log := flatten(tail)
	whole := log
	history := 0 // where the conversation begins, behind a template
	if isTemplate(tail, log, conv, user, r.Carried) {
		history, r.template = user, true
		log = withoutTemplate(log, conv[:user])
	}
	r.New = history
	cut := false
	if carried := history + resentUntil(tail, log, conv[history:]); carried > history {
		var a alignment
		unmatched := carried
		if a, cut = align(log, conv[history:carried]); cut {
			unmatched = a.resent
			r.New += a.known
			if a.stored > 0 && rewritten(tail, log, a.stored-1) {
				a.stored--
			}
			log = log[:a.stored]
		}
		if !r.template {
			r.Unmatched = unmatched
		}
	}

	r.Stored = continuedExchange(tail, whole, conv, r.New)

	b, last := split(log)
	groups, calling := b.groups, false
	switch {
	case last < 0 || len(conv) == 0:
	case isResult(conv[0].Role):
		var ids []string
		for i := 0; i < len(conv) && isResult(conv[i].Role); i++ {
			ids = append(ids, conv[i].answersCall)
		}
		if i := b.resume(ids, true); i >= 0 {
			groups, calling = groups[:i+1], true
			if conv[lastUser(conv)].Role != "user" {
				r.Stored = lastUserExchange(tail, groups[i])
			}
		}
	case cut && conv[0].Role == "user":
		groups[last] = untilReply(groups[last])
	}
	for i := range groups {
		groups[i] = withoutRewritten(tail, groups[i])
	}
	r.Groups = validGroups(tail, groups, calling)
	return r
}

// WithHead completes a Reconciliation, made from a session's tail, of a request that
// resends messages which the tail doesn't hold. It looks for them in the session's
// head. What followed them is history that the client left behind, except for what it
// resends of the tail. WithHead returns false where the head doesn't hold them
// either.
func (r Reconciliation) WithHead(head, tail []store.Exchange, conv []RequestMessage, now time.Time) (Reconciliation, bool) {
	fromHead := Reconcile(beforeTail(head, tail, max(r.Unmatched, maxAligned)), conv, false, now)
	if fromHead.template { // which is no history
		r.New = max(r.New, lastUser(conv))
		return r, false
	}
	if fromHead.Unmatched >= r.Unmatched {
		return r, false
	}
	// The exchange that this request repeats isn't part of its history.
	tail = slices.DeleteFunc(slices.Clone(tail), func(e store.Exchange) bool { return e.Seq == r.Replaces })
	rest := Reconcile(tail, conv[fromHead.New:], false, now)
	r.Groups, r.Unmatched, r.New = fromHead.Groups, fromHead.Unmatched, fromHead.New+rest.New
	switch {
	case r.Stored != nil:
	case lastUser(conv) < fromHead.New:
		r.Stored = fromHead.Stored
	default:
		r.Stored = rest.Stored
	}
	return r, true
}

// beforeTail returns the exchanges of the head that precede the tail: as many as it
// takes to hold so many messages.
func beforeTail(head, tail []store.Exchange, messages int) []store.Exchange {
	for i := range head {
		if messages <= 0 || len(tail) > 0 && head[i].Seq >= tail[0].Seq {
			return head[:i]
		}
		messages -= len(head[i].Messages)
	}
	return head
}

// resentUntil returns how many messages of the conversation the client may have sent
// or received before: those up to the last assistant message that another message
// follows. An assistant message at the very end is a prefix of the reply that the
// client asks for, unless the session holds it as a reply.
func resentUntil(tail []store.Exchange, log []storedMessage, conv []RequestMessage) int {
	n := len(conv)
	if n > 0 && conv[n-1].Role == "assistant" && holdsReply(tail, log, conv[max(0, n-2):]) {
		return n
	}
	return carriedUntil(conv)
}

// carriedUntil returns the number of messages up to the last assistant message that
// another message follows.
func carriedUntil(conv []RequestMessage) int {
	n := len(conv)
	for n > 0 && conv[n-1].Role == "assistant" {
		n--
	}
	for n > 0 && conv[n-1].Role != "assistant" {
		n--
	}
	return n
}

// lastUser returns the index of the last user message, or 0.
func lastUser(conv []RequestMessage) int {
	for i := len(conv) - 1; i > 0; i-- {
		if conv[i].Role == "user" {
			return i
		}
	}
	return 0
}

// continuedExchange returns the stored exchange with the user message that the
// request continues. It returns nil unless the request carries that message and the
// session holds it.
func continuedExchange(tail []store.Exchange, log []storedMessage, conv []RequestMessage, fresh int) *store.Exchange {
	u := lastUser(conv)
	if u >= min(fresh, len(conv)-1) || conv[u].Role != "user" {
		return nil
	}
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].role == "user" && log[i].digest == conv[u].Digest {
			return &tail[log[i].exchange]
		}
	}
	return nil
}

// lastUserExchange returns the exchange with the group's last user message.
func lastUserExchange(tail []store.Exchange, group []storedMessage) *store.Exchange {
	for i := len(group) - 1; i >= 0; i-- {
		if group[i].role == "user" {
			return &tail[group[i].exchange]
		}
	}
	return nil
}
