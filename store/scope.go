package store

import "errors"

// Scope is whose data a call is about: a tenant's, or a user's of the tenant. The
// data of every scope stands apart: a tenant's own is not its users', nor theirs
// the tenant's.
type Scope struct {
	Tenant string
	// User is an end user of the tenant: any string; empty for what is the
	// tenant's own.
	User string
}

// ErrUsers says that the store keeps nothing for single users.
var ErrUsers = errors.New("the store doesn't tell a tenant's users apart")

// Whole returns ErrUsers for the scope of a user. A store that has no rooms for
// users calls it first in every method: what is a user's must not be taken for
// the tenant's.
func (s Scope) Whole() error {
	if s.User != "" {
		return ErrUsers
	}
	return nil
}
