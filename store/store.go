// Package store says what Backstory asks of a store.
//
// Store is the core, all that memory takes: sessions and rates. What a store can
// do beyond it are interfaces of their own, each in its file: Keys, Usage, Tenants,
// Importer, Vectors, and for documents Files with Searcher. Who needs one asks a
// store for it once, when it is opened, and does without or says so. A store that
// is a Migrator can do all of it, and can be copied into another.
//
// Packages sqlite and redis implement everything, store/memstore the core alone,
// in memory: it is the one to read first. Package store/storetest holds the suite
// that every store passes, as far as it goes.
//
// Every method that touches a caller's data is asked for a Scope: nothing of one
// is ever returned to another. Slices that a store returns belong to the caller,
// except that the JSON of messages may be the store's own: it is only read. Slices
// that it is given are not kept.
package store

import (
	"context"
	"errors"
)

var (
	// ErrNotFound says that there is no such key, session or file.
	ErrNotFound = errors.New("not found")
	// ErrExists says that the tenant already has this file; CreateFile returns it.
	ErrExists = errors.New("already exists")
	// ErrFilesOff says that the store keeps no files, or was told to do without.
	ErrFilesOff = errors.New("files are off")
	// ErrDeleted says that the session was deleted after the request that
	// wants to save into it began, or that the file was deleted while its
	// chunks were being added.
	ErrDeleted = errors.New("deleted meanwhile")
	// ErrUnconfirmed says that an exchange was saved, and everyone sees it,
	// but that a failover may still lose it. Appending it again tries again to
	// make it safe.
	ErrUnconfirmed = errors.New("saved, but not on as many servers as asked for")
	// ErrFull says that the store can be read but has no room to write.
	ErrFull = errors.New("the store is full")
	// ErrNotReady says that the store's servers have not been there, or ready,
	// since it was opened. It does its work when they are.
	ErrNotReady = errors.New("the store isn't ready yet")
	// ErrUnsupported says that the store isn't made for what it is asked.
	ErrUnsupported = errors.New("this store can't do that")
)

// Store is what memory takes. Implementations are safe for concurrent use.
//
// An error that is none of the sentinels above, no Conflict, and does not come from
// the context means that the store could not do its work at the moment.
type Store interface {
	Sessions
	Limiter

	// Ping tells whether the store answers.
	Ping(ctx context.Context) error
	// Close waits for writes under way and releases the store.
	Close() error
}
