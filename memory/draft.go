package memory

import (
	"slices"

	"github.com/backstory-proxy/backstory/store"
)

// Draft is an exchange that is to be saved, with all that it takes to hold it
// against what others save first. It needs neither the request nor the reply any
// more: it can be kept, and saved later.
type Draft struct {
	Exchange store.Exchange
	// Said is the request's conversation. Exchange holds its messages from New
	// on, and then the reply, where there is one.
	Said []Said
	New  int
	// Replaces is the Seq of the exchange that the request repeats, or 0.
	Replaces int64
}

// Draft is the turn's exchange as it is to be saved; save is as of Exchange.
func (t *Turn) Draft() (d Draft, save bool) {
	e, save := t.Exchange()
	return Draft{Exchange: e, Said: t.Said, New: min(t.View.New, len(t.Said)), Replaces: t.View.Replaces}, save
}

// Rebase is the exchange for a session that others have appended to since the
// request saw it: what they saved of the same conversation isn't saved again.
// newer is all that the session holds beyond that; see store.Conflict. replaces
// takes the place of Replaces. An exchange without messages means that
// there is nothing left to save.
//
// A client that leaves and asks again at once has two requests under way, and
// either may end first: the one whose reply it never got gives way.
func (d *Draft) Rebase(newer []store.Exchange) (e store.Exchange, replaces int64) {
	e, replaces = d.Exchange, d.Replaces
	closed := e.Finish == FinishClientClosed
	for i := range newer {
		n := &newer[i]
		if n.Carried != e.Carried || !asks(n, d.Said) {
			continue
		}
		switch {
		case n.Finish == FinishClientClosed && (n.Hidden || !closed):
			replaces = n.Seq
		case closed:
			return store.Exchange{}, 0
		}
	}
	others := slices.DeleteFunc(slices.Clone(newer), func(n store.Exchange) bool { return n.Seq == replaces })
	e.Messages = e.Messages[Remainder(others, d.Said, d.New)-d.New:]
	return e, replaces
}
