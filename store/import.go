package store

import (
	"context"
	"time"
)

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

// Importer takes in exchanges that were had elsewhere.
type Importer interface {
	// Import saves exchanges at the end of a session as Append does, one after
	// the other with nothing in between: all of them or nothing. Those that
	// the session has already, by ID, are skipped. It returns each one's Seq,
	// also with ErrUnconfirmed.
	Import(ctx context.Context, i Import) ([]int64, error)
}
