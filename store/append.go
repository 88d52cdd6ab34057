package store

import (
	"fmt"
	"time"
)

// Append is a wish to save an exchange.
type Append struct {
	Scope    Scope
	Session  string
	Exchange Exchange
	// Mark is the session's state when the request began. If the session was
	// deleted since, nothing is saved and ErrDeleted returned. If it holds less
	// than it did, and wasn't deleted, the store has lost some, as a replica
	// does that takes over too early: the exchange is saved, and Replaces means
	// nothing any more.
	Mark Mark
	// Seen is the Seq of the Conflict that the exchange was rebased on, and 0 at
	// the first try. The session is taken to be known up to it, as it is up to
	// Mark.Seq.
	Seen int64
	// Anyway has the exchange appended behind whatever the session holds: there
	// is no Conflict.
	Anyway bool
	// Replaces, where not 0, is the Seq of an exchange of the session that
	// is removed in the same step; one that is no longer there is no error.
	Replaces int64
	// TTL is how long the session is kept if nothing more is appended to it,
	// whatever it was before; 0: for good. A session whose time is up is gone
	// as if it were deleted, except that requests which began before are not
	// void: they begin it anew.
	TTL time.Duration
	// Usage is added to what has been used, by a store that is a Usage, unless the exchange was there
	// already, by its ID: also where nothing is saved because of ErrDeleted,
	// since it was used all the same. A Conflict adds nothing. Where Append
	// returns another error it may be added or not, and appending again puts it
	// right.
	Usage Used
}

// Known is the Seq up to which who appends knows the session.
func (a *Append) Known() int64 { return max(a.Mark.Seq, a.Seen) }

// Conflict says that others have appended to the session since the request saw
// it, so that nothing was saved. The caller decides what is left to save, and
// appends that with Seen set to Seq. Each time that an append ends so, another
// one has succeeded.
type Conflict struct {
	// Newer are the exchanges that the session holds beyond Append.Mark, oldest
	// first: all of them each time, since one may replace another.
	Newer []Exchange
	// Seq is the newest one's: the next append must have Seen it.
	Seq int64
}

func (c *Conflict) Error() string {
	return fmt.Sprintf("others have appended %d exchanges meanwhile", len(c.Newer))
}
