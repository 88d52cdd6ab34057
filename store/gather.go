package store

// GatherRequest names what a chat request needs before the model is called.
type GatherRequest struct {
	Scope Scope
	// Limit is the tenant's requests per RateWindow, whoever of its users asks;
	// the request is counted as by Limiter.Take.
	Limit int
	// Counted says that Take has counted the request already: Rate is then not
	// told, but for Rate.Allowed.
	Counted bool
	// Session to read; empty for none.
	Session string
	// Tokens and Messages size the tail: the newest exchanges are returned
	// until they hold at least Tokens tokens and at least Messages messages,
	// or the session ends. Two exchanges more come with them, so that the
	// caller sees where a cut falls. Hidden exchanges come too. Where the
	// exchanges reach TailBytes before, the tail ends there.
	Tokens, Messages int
	// Saves says that the request wants to save something. A store that knows
	// that it can't refuses it then, with ErrFull where it has no room, instead of
	// answering: the model is not to be paid for what can't be kept.
	Saves bool
	// Month, where set, is the one whose usage is to be told, by a store that
	// is a Usage.
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
