package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/store"
)

// look finds what the request resends of the session. That is nearly always its
// end, which was gathered. A client whose user goes back to an early message of
// a long session resends the beginning: where the end doesn't show all that is
// resent, the beginning is read too.
func (t *turn) look(ctx context.Context, asked store.GatherRequest, tail []store.Exchange) error {
	now := time.Now()
	t.view = memory.Look(tail, t.said, t.retried, now)
	t.older = hasOlder(tail, asked)
	if t.view.Unseen == 0 || !t.older {
		return nil
	}
	head, err := t.gateway.shared.Exchanges(ctx, t.scope, t.chat.SessionID, 0, t.view.Unseen, store.Ascending)
	if errors.Is(err, store.ErrNotFound) { // deleted meanwhile
		return nil
	}
	if err != nil {
		return &unavailable{err}
	}
	found := false
	if t.view, found = t.view.LookBack(head, tail, t.said, now); found {
		t.older = false
	}
	return nil
}

// hasOlder reports whether the session goes back beyond the tail that was
// asked for: a tail that is shorter than that is all there is.
func hasOlder(tail []store.Exchange, asked store.GatherRequest) bool {
	const extra = 2 // exchanges that come with a tail of the size asked for
	if len(tail) <= extra || tail[0].Offset == 0 {
		return false
	}
	n, messages := 0, 0
	for i := range tail[extra:] {
		n += tail[extra+i].Tokens()
		messages += len(tail[extra+i].Messages)
	}
	return n >= asked.Tokens && messages >= asked.Messages
}
