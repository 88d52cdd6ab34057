package store

import "context"

// Tenants knows who has something in the store, for one that is Keys and Usage,
// too.
type Tenants interface {
	// Tenants lists all tenants that the store has anything of, sorted. It
	// also makes sure that ListSessions leaves no session out. It may read
	// much: it is for operators, not for requests.
	Tenants(ctx context.Context) ([]string, error)
	// ForgetTenant removes a tenant's keys, valid or not, and its usage, and
	// returns how many keys there were. It leaves its sessions and files: they
	// have methods of their own, to be called afterwards.
	ForgetTenant(ctx context.Context, tenant string) (keys int, err error)
}
