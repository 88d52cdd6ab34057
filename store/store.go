// Package store says what Backstory asks of a store: keys, rates, usage, sessions,
// files and search, each a small interface. Package sqlite and others implement
// them; package store/storetest holds the suite that every one of them passes.
//
// Every method that touches a caller's data is asked for a Scope: nothing of one
// is ever returned to another. Slices that a store
// returns belong to the caller, except that the JSON of messages may be the
// store's own: it is only read. Slices that it is given are not kept.
package store

import (
	"context"
	"errors"
	"time"
)

var (
	// ErrNotFound says that there is no such key, session or file.
	ErrNotFound = errors.New("not found")
	// ErrExists says that the tenant already has this file; CreateFile returns it.
	ErrExists = errors.New("already exists")
	// ErrFilesOff says that the store was told to do without files.
	ErrFilesOff = errors.New("files are off")
	// ErrDeleted says that the session was deleted after the request that
	// wants to save into it began, or that the file was deleted while its
	// chunks were being added.
	ErrDeleted = errors.New("deleted meanwhile")
	// ErrUnconfirmed says that an exchange was saved, and everyone sees it,
	// but that a failover may still lose it. Appending it again tries again to
	// make it safe.
	ErrUnconfirmed = errors.New("saved, but not on as many servers as asked for")
)

// Store is all of it. Implementations are safe for concurrent use.
//
// An error that is none of the sentinels above and does not come from the
// context means that the store could not do its work at the moment.
type Store interface {
	Keys
	Limiter
	Usage
	Tenants
	Sessions
	Vectors
	Files
	Searcher

	// Ping tells whether the store answers.
	Ping(ctx context.Context) error
	// Close waits for writes under way and releases the store.
	Close() error
}

// Key is a service key: who holds it, and until when. The key itself is never
// stored, only its SHA-256 digest.
type Key struct {
	Digest  [32]byte
	Tenant  string
	Plan    string
	Name    string // chosen by the operator; may be empty
	Created time.Time
	Expires time.Time // zero: never
	Revoked time.Time // zero: not revoked
}

// Valid reports whether the key is good at the given time.
func (k Key) Valid(now time.Time) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || now.Before(k.Expires))
}

// Keys keeps the service keys.
type Keys interface {
	// Key returns the key with the digest, valid or not, or ErrNotFound.
	Key(ctx context.Context, digest [32]byte) (Key, error)
	// PutKey adds the key, or replaces the one with the same digest.
	PutKey(ctx context.Context, key Key) error
	// ListKeys returns a tenant's keys, oldest first; of all tenants where
	// tenant is empty.
	ListKeys(ctx context.Context, tenant string) ([]Key, error)
}

// RateWindow is the span over which requests are counted (contract, section 4).
const RateWindow = time.Minute

// Rate is what the count of a tenant's requests came to.
type Rate struct {
	Allowed    bool
	Limit      int           // requests per RateWindow
	Remaining  int           // requests left now, this one counted
	Reset      time.Duration // until all of Limit is there again
	RetryAfter time.Duration // until the next request will be allowed; 0 where one is now
}

// Limiter counts requests.
type Limiter interface {
	// Take counts one request if fewer than limit were counted within the
	// last RateWindow, and refuses it otherwise: never more than limit in
	// any window. Refused requests aren't counted. The limit is that of the
	// tenant's plan: its users share it.
	Take(ctx context.Context, tenant string, limit int) (Rate, error)
}
