package store

import "context"

// Migrator is a store that can do everything, and what it takes beside that to
// copy one into another: see package store/migrate. Its own methods are for
// stores that nobody else writes to meanwhile.
type Migrator interface {
	Store
	Keys
	Usage
	Tenants
	Importer
	Vectors
	Files
	Searcher

	// RestoreSessions gives sessions the times and the TTL in list, and puts them into
	// its order, the one first in list being last in ListSessions. Sessions
	// that aren't there stay so.
	RestoreSessions(ctx context.Context, scope Scope, list []Session) error
	// RemoveFile removes a file in any state, and what an earlier removal has
	// left of it: after it, CreateFile can take the ID. It is no error if
	// there is nothing.
	RemoveFile(ctx context.Context, scope Scope, id string) error
	// ListUsage returns what a tenant used in the current month and in the
	// UsageMonths before it, oldest first; months without any are left out.
	ListUsage(ctx context.Context, scope Scope) ([]Used, error)
	// RestoreUsage raises what a tenant used in the months to what list says;
	// more than that stays.
	RestoreUsage(ctx context.Context, scope Scope, list []Used) error
}
