package store

import (
	"context"
	"time"
)

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

// Keys keeps service keys, for a store that does; others leave them to the
// configuration.
type Keys interface {
	// Key returns the key with the digest, valid or not, or ErrNotFound.
	Key(ctx context.Context, digest [32]byte) (Key, error)
	// PutKey adds the key, or replaces the one with the same digest.
	PutKey(ctx context.Context, key Key) error
	// ListKeys returns a tenant's keys, oldest first; of all tenants where
	// tenant is empty.
	ListKeys(ctx context.Context, tenant string) ([]Key, error)
}
