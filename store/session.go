package store

import (
	"context"
	"fmt"
	"time"
)

// Digest identifies a message by what it says, whatever its bytes: see package
// memory, which computes it. The zero digest means none.
type Digest [16]byte

// Message is one chat message as it came, with what is known of it.
type Message struct {
	JSON   []byte // the message object; only read, where a store returned it
	Tokens int    // as counted when it was saved
	Digest Digest
	// Created is when it was said, to the millisecond, where that is known
	// apart from its exchange; else zero.
	Created time.Time
}

// Exchange is what one request brought to a session: its new messages and the
// reply. It is saved and supplied whole.
type Exchange struct {
	// ID is unique in the session; appending it again changes nothing.
	ID string
	// Seq is the position in the session, rising, set by Append.
	Seq int64
	// Offset is the number of tokens appended to the session before this
	// exchange, set by Append.
	Offset int64
	// Created is when the reply ended, to the millisecond.
	Created time.Time
	// Model is the model that replied.
	Model string
	// Finish is the reply's finish_reason, or "client_closed".
	Finish string
	// Hidden exchanges are kept but never supplied to a model.
	Hidden bool
	// Carried identifies the messages that the request carried ahead of its
	// last user message; zero where there were none.
	Carried Digest
	// Passages are the chunks of files that were quoted in the exchange's
	// user message, in that order.
	Passages []ChunkRef
	// Recalled are the earlier messages that were quoted there, in that order.
	Recalled []MessageRef
	// Messages are the request's new messages and the reply, oldest first.
	Messages []Message
}

// Tokens is the sum over the exchange's messages.
func (e *Exchange) Tokens() int {
	n := 0
	for i := range e.Messages {
		n += e.Messages[i].Tokens
	}
	return n
}

// Bytes is the length of the exchange's messages.
func (e *Exchange) Bytes() (n int64) {
	for i := range e.Messages {
		n += int64(len(e.Messages[i].JSON))
	}
	return n
}

// SaidAt is when the message with the given index was said, as far as it is
// known.
func (e *Exchange) SaidAt(i int) time.Time {
	if t := e.Messages[i].Created; !t.IsZero() {
		return t
	}
	return e.Created
}

// MessageRef names a message of a session, or a part of what it says.
type MessageRef struct {
	Seq int64 // of its exchange
	N   int   // its index in Exchange.Messages
	// From and To bound the part in the message's text, in bytes; where To is
	// 0 it is all of it.
	From, To int
}

// Session is what is known of a session besides its exchanges.
type Session struct {
	ID       string // as the client named it: any string but the empty one
	Created  time.Time
	Updated  time.Time // when the newest exchange was appended
	Messages int64     // in the exchanges that are kept
	Tokens   int64     // likewise
	// TTL is how long after Updated the session is kept; 0: for good.
	TTL time.Duration
}

// GatherRequest names what a chat request needs before the model is called.
type GatherRequest struct {
	Scope Scope
	// Limit is the tenant's requests per RateWindow, whoever of its users asks;
	// the request is counted as by Limiter.Take.
	Limit int
	// Session to read; empty for none.
	Session string
	// Tokens and Messages size the tail: the newest exchanges are returned
	// until they hold at least Tokens tokens and at least Messages messages,
	// or the session ends. Two exchanges more come with them, so that the
	// caller sees where a cut falls. Hidden exchanges come too.
	Tokens, Messages int
	// Month, where set, is the one whose usage is to be told.
	Month Month
}

// Gathered answers a GatherRequest. Where Rate.Allowed is false the rest is
// empty.
type Gathered struct {
	Rate Rate
	// Tail is the end of the session, oldest exchange first.
	Tail []Exchange
	// Tokens is the number of tokens ever appended to the session: the
	// Offset that the next exchange will get.
	Tokens int64
	// Mark is the session's state, to be given to Append.
	Mark Mark
	// Files says whether the tenant has a processed file.
	Files bool
	// Used is how many tokens the tenant used in the month asked for.
	Used int64
	// Cached says that the store had all of it in its memory.
	Cached bool
}

// Mark is a session's state as a request saw it.
type Mark struct {
	Seq   int64 // of the newest exchange; 0 where there is none
	Epoch int64 // changes when the session is deleted
}

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
	// Usage is added to what has been used, unless the exchange was there
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

// Import is a wish to save exchanges that were had elsewhere.
type Import struct {
	Scope   Scope
	Session string
	// Exchanges in their order, all but Seq and Offset as they are to be read
	// again.
	Exchanges []Exchange
	// Mark is the session's state when the request began: see Append.
	Mark Mark
	// TTL is as in Append.
	TTL time.Duration
}

// Order is the direction of a listing.
type Order bool

// The directions of a listing.
const (
	Ascending  Order = false
	Descending Order = true
)

// Sessions keeps the exchanges of sessions.
type Sessions interface {
	// Gather answers all that a chat request asks before the model is
	// called, in one trip to the store.
	Gather(ctx context.Context, req GatherRequest) (Gathered, error)
	// Append saves an exchange durably, and creates the session if need be:
	// all of it or nothing, visible to every Gather that begins after Append
	// returned. It returns the exchange's Seq, also where the session has it
	// already, by its ID; or a *Conflict, where others were faster. Exchanges
	// stand in the order in which they were appended.
	Append(ctx context.Context, a Append) (int64, error)
	// Import saves exchanges at the end of a session as Append does, one after
	// the other with nothing in between: all of them or nothing. Those that
	// the session has already, by ID, are skipped. It returns each one's Seq.
	Import(ctx context.Context, i Import) ([]int64, error)
	// Session describes a session, or returns ErrNotFound.
	Session(ctx context.Context, scope Scope, session string) (Session, error)
	// ListSessions returns at most limit sessions, the most recently updated
	// first, that follow the one named after (ErrNotFound if it isn't there;
	// empty: from the start).
	ListSessions(ctx context.Context, scope Scope, after string, limit int) ([]Session, error)
	// Exchanges returns at most limit exchanges of a session in the given
	// order that follow the one with Seq after (0: from the start), hidden
	// ones included; ErrNotFound where there is no such session.
	Exchanges(ctx context.Context, scope Scope, session string, after int64, limit int, order Order) ([]Exchange, error)
	// ExchangesAt returns the exchanges of a session with the given Seqs, in
	// rising order and once each, less those that are no longer there.
	ExchangesAt(ctx context.Context, scope Scope, session string, seqs []int64) ([]Exchange, error)
	// DeleteSession removes a session with all its exchanges and their
	// vectors, and voids the appends of requests that began before;
	// ErrNotFound where there is none (those appends are voided all the same).
	DeleteSession(ctx context.Context, scope Scope, session string) error
}
