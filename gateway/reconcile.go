package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// reconciled is what the request resends of the session, held against what is
// stored.
type reconciled struct {
	memory.Reconciliation
	said []memory.RequestMessage
	// unread is how many tokens of the session are older than what was read of it.
	unread int64
	// continues says that the request brings the results of tools to an exchange
	// under way. It is given what that one was given; no new search is made.
	continues bool
}

// reconcile finds what the request resends of the session. That is nearly always
// its end, which was loaded. A client whose user goes back to an early message of
// a long session resends the beginning: where the end doesn't show all that is
// resent, the beginning is read too.
func (ca *chatAPI) reconcile(ctx context.Context, req *request, l *loaded) (*reconciled, error) {
	said, now := memory.Conversation(req.chat.Messages), time.Now()
	h := &reconciled{Reconciliation: memory.Reconcile(l.Tail, said, req.retries > 0, now), said: said}
	if hasOlder(l.Tail, l.asked) {
		h.unread = l.Tail[0].Offset
	}
	if n := len(said); n > 0 {
		h.continues = req.chat.Messages[said[n-1].Index].ToolResult()
	}
	if h.Unmatched == 0 || h.unread == 0 {
		return h, h.checkSize(req)
	}
	head, err := ca.head(ctx, req, h.Unmatched)
	if errors.Is(err, store.ErrNotFound) { // deleted meanwhile
		return h, h.checkSize(req)
	}
	if err != nil {
		return nil, &unavailable{err}
	}
	var found bool
	if h.Reconciliation, found = h.WithHead(head, l.Tail, said, now); found {
		h.unread = 0
	}
	return h, h.checkSize(req)
}

// head reads the first exchanges of a session: as many as there are messages to be
// found among them, or as are as large as the request that resends them.
func (ca *chatAPI) head(ctx context.Context, req *request, n int) (head []store.Exchange, err error) {
	after, room := int64(0), int64(store.PageBytes)
	for i := range req.chat.Messages {
		room += int64(len(req.chat.Messages[i].JSON))
	}
	for len(head) < n && room > 0 {
		page, err := ca.shared.Exchanges(ctx, req.caller.scope, req.chat.SessionID, after, n-len(head), store.Ascending)
		if err != nil {
			return nil, err
		}
		head = append(head, page...)
		if !store.Full(page, store.PageBytes) {
			break
		}
		after = page[len(page)-1].Seq
		for i := range page {
			room -= page[i].Bytes()
		}
	}
	return head, nil
}

// checkSize refuses a request that would make too large an exchange.
func (h *reconciled) checkSize(req *request) error {
	if n := len(h.said) - h.New; req.saves() && n > memory.MaxExchange {
		return openai.Invalid("messages", "Invalid 'messages': %d of them are new to the session, more than %d. Import the history first: POST /sessions/{id}/messages.", n, memory.MaxExchange)
	}
	return nil
}

// hasOlder reports whether the session goes back beyond the tail that was
// asked for: a tail that is shorter than that is all there is.
func hasOlder(tail []store.Exchange, asked store.GatherRequest) bool {
	const extra = 2 // exchanges that come with a tail of the size asked for
	switch {
	case len(tail) == 0 || tail[0].Offset == 0:
		return false
	case store.Full(tail, store.TailBytes):
		return true
	case len(tail) <= extra:
		return false
	}
	n, messages := 0, 0
	for i := range tail[extra:] {
		n += tail[extra+i].Tokens()
		messages += len(tail[extra+i].Messages)
	}
	return n >= asked.Tokens && messages >= asked.Messages
}
