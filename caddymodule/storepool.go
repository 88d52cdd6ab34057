package caddymodule

import (
	"context"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/gateway"
)

// stores are the open stores by location, shared by all configurations that
// name them.
var stores = caddy.NewUsagePool()

// pooled is a store in the pool.
type pooled struct{ *gateway.Shared }

func (a *App) openShared(ctx context.Context) (*gateway.Shared, error) {
	v, _, err := stores.LoadOrNew(a.opener.Location(), func() (caddy.Destructor, error) {
		s, err := a.opener.Open(ctx, a.embedder)
		if err != nil {
			return nil, err
		}
		shared, err := gateway.Share(ctx, s, a.journalOptions(), journalLogger)
		if err != nil {
			return nil, err
		}
		return pooled{shared}, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(pooled).Shared, nil
}

// Destruct closes the store when no request uses it any more. A process that
// exits doesn't wait for requests; a reload does, behind its back.
func (p pooled) Destruct() error {
	if caddy.Exiting() {
		p.CutOff()
		return p.Close()
	}
	go func() { _ = p.Close() }() // nobody is left to be told
	return nil
}

// defaultJournal stands beside the embedded store's file. journalOff in place
// of a path means none.
const (
	defaultJournal = "data/backstory-journal.db"
	journalOff     = "off"
)

// journalPath is where exchanges are kept that the store couldn't take; empty
// for nowhere.
func (a *App) journalPath() string {
	path := caddy.NewReplacer().ReplaceAll(a.Journal, "")
	if path == "" {
		if _, local := a.opener.(localStore); local {
			return ""
		}
		path = defaultJournal
	}
	if path == journalOff {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}

// journalOptions say where the journal of the store is. One that nobody asked for
// by name may fail to open: a proxy that has run without goes on so.
func (a *App) journalOptions() gateway.JournalOptions {
	o := gateway.JournalOptions{Path: a.journalPath(), Location: a.opener.Location(), Optional: a.Journal == ""}
	if named, ok := a.opener.(dataNamer); ok {
		o.Location = named.Data()
	}
	return o
}

// journalLogger is the process's own.
func journalLogger() *zap.Logger { return caddy.Log().Named("backstory.journal") }

// localStore is what a StoreOpener is, too, whose store gets no journal by
// default: what keeps it from writing, such as a full disk, would keep a file
// beside it from being written, too.
type localStore interface{ Local() }

// dataNamer is what a StoreOpener may be, too: Data tells the data of stores
// apart, however they are reached. What waits in the journal still finds its
// store when a password or a timeout has changed, and with it the Location.
type dataNamer interface{ Data() string }
