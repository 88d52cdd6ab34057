package memory

import (
	"slices"

	"github.com/backstory-proxy/backstory/store"
)

// Draft is an exchange to be saved, with what Rebase needs to compare it with what
// others have saved. It refers to neither the request nor the reply, so that it can
// be kept and saved later: package journal does.
type Draft struct {
	Exchange store.Exchange
	// Said is the request's conversation. Exchange holds its messages from New on,
	// followed by the reply, where there is one.
	Said []RequestMessage
	New  int
	// Replaces is the Seq of the exchange that the request repeats, or 0.
	Replaces int64
}

// Rebase returns the exchange for a session that others have appended to since the
// request read it. It drops the messages that they have saved already. newer is as in
// store.Conflict; replaces takes the place of Replaces. Where the exchange has no
// messages, nothing is left to save.
//
// A client that leaves and asks again at once has two requests in flight, and either
// may end first. The one whose reply the client never got gives way: the one that
// the client left, or else, since a connection may be dead without anyone's notice,
// the earlier try of one that is marked as a retry. Requests that happen to say the
// same, and show no sign of a retry, both stay.
func (d *Draft) Rebase(newer []store.Exchange) (e store.Exchange, replaces int64) {
	e, replaces = d.Exchange, d.Replaces
	closed, retries := e.Finish == FinishClientClosed, retriesOf(&e)
	for i := range newer {
		n := &newer[i]
		if n.Carried != e.Carried || !sameNewMessages(n, d.Said) {
			continue
		}
		switch {
		case n.Finish == FinishClientClosed && (n.Hidden || !closed):
			replaces = n.Seq
		case closed || retriesOf(n) > retries:
			return store.Exchange{}, 0
		case retriesOf(n) < retries && n.Finish != FinishImported:
			replaces = n.Seq
		}
	}
	others := slices.DeleteFunc(slices.Clone(newer), func(n store.Exchange) bool { return n.Seq == replaces })
	e.Messages = e.Messages[remainder(others, d.Said, d.New)-d.New:]
	return e, replaces
}

// remainder returns the index of the first message of the conversation, from the
// given one on, that the exchanges don't hold: the first that is left to save once
// others have saved the exchanges. Messages count only in an unbroken run from the
// given one on. An equal message further on proves nothing, and neither does one
// equal to the new message.
func remainder(exchanges []store.Exchange, conv []RequestMessage, from int) int {
	carried := carriedUntil(conv)
	for i := range exchanges {
		if exchanges[i].Hidden {
			continue
		}
		for j := range exchanges[i].Messages {
			if from < carried && exchanges[i].Messages[j].Digest == conv[from].Digest {
				from++
			}
		}
	}
	return from
}
