package store

import (
	"context"
	"time"
)

// Digest identifies a message by what it says, whatever its bytes: see package
// memory, which computes it. The zero digest means none.
type Digest [16]byte

// Message is one chat message as it came, with what is known of it.
type Message struct {
	JSON   []byte // the message object; only read, where a store returned it
	Tokens int    // as counted when it was saved; see tokens.Tally for what is very long
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
	// Parent is the ID of the exchange that this one goes on from; empty: the
	// one before it in the session.
	Parent string
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

// What one read returns of exchanges, in bytes. A read goes on until it has that
// much, so that it holds no more than this and one exchange: those may hold a word
// or an album of photos.
const (
	// PageBytes bounds Exchanges and ExchangesAt: what a client waits for, and a
	// store is busy with, for some tens of milliseconds.
	PageBytes = 4 << 20
	// TailBytes bounds Gathered.Tail. It is about what a prompt can hold: of images,
	// which are what is large in it, providers take 20 to 50 MB in a request, with
	// those that the request brings itself.
	TailBytes = 16 << 20
)

// Size is what the exchange takes up, in bytes, and at least what any store takes
// for it.
func (e *Exchange) Size() int64 {
	const fixed, message, reference = 256, 64, 64 // and their strings
	n := int64(fixed + len(e.ID) + len(e.Parent) + len(e.Model) + len(e.Finish))
	for i := range e.Passages {
		n += int64(reference + len(e.Passages[i].FileID))
	}
	return n + int64(reference*len(e.Recalled)+message*len(e.Messages)) + e.Bytes()
}

// Full reports whether exchanges may have been read only so far because they
// reached a bound, in bytes, rather than the session's end.
func Full(list []Exchange, bound int64) bool {
	for i := range list {
		bound -= list[i].Size()
	}
	return bound <= 0
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
	// Session describes a session, or returns ErrNotFound.
	Session(ctx context.Context, scope Scope, session string) (Session, error)
	// ListSessions returns at most limit sessions, the most recently updated
	// first, that follow the one named after (ErrNotFound if it isn't there;
	// empty: from the start).
	ListSessions(ctx context.Context, scope Scope, after string, limit int) ([]Session, error)
	// Exchanges returns at most limit exchanges of a session in the given
	// order that follow the one with Seq after (0: from the start), hidden
	// ones included; ErrNotFound where there is no such session. It returns
	// fewer where they reach PageBytes, and at least one: Full tells.
	Exchanges(ctx context.Context, scope Scope, session string, after int64, limit int, order Order) ([]Exchange, error)
	// ExchangesAt returns the exchanges of a session with the given Seqs, in
	// rising order and once each, less those that are no longer there. Where
	// they reach PageBytes it ends, as Exchanges does: see EachExchangeAt.
	ExchangesAt(ctx context.Context, scope Scope, session string, seqs []int64) ([]Exchange, error)
	// DeleteSession removes a session with all its exchanges and their
	// vectors, and voids the appends of requests that began before;
	// ErrNotFound where there is none (those appends are voided all the same).
	DeleteSession(ctx context.Context, scope Scope, session string) error
}
