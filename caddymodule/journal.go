package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/journal"
	"github.com/backstory-proxy/backstory/store"
)

// defaultJournal stands beside the embedded store's file. journalOff in place
// of a path means none.
const (
	defaultJournal = "data/backstory-journal.db"
	journalOff     = "off"
)

// journalPath is where exchanges are kept that the store couldn't take; empty
// for nowhere. The embedded store gets none by default: what keeps it from
// writing, such as a full disk, keeps a file beside it from being written, too.
func (a *App) journalPath() string {
	path := caddy.NewReplacer().ReplaceAll(a.Journal, "")
	if path == "" {
		if _, embedded := a.opener.(*SQLite); embedded {
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

// dataNamer is what a StoreOpener may be, too: Data tells the data of stores
// apart, however they are reached. What waits in the journal still finds its
// store when a password or a timeout has changed, and with it the Location.
type dataNamer interface{ Data() string }

// openJournal opens the journal of a store. One that nobody asked for by name
// may fail: a proxy that has run without goes on so.
func (a *App) openJournal(ctx context.Context, s store.Store) (*journal.Journal, error) {
	path := a.journalPath()
	if path == "" {
		return nil, nil
	}
	location := a.opener.Location()
	if named, ok := a.opener.(dataNamer); ok {
		location = named.Data()
	}
	j, err := journal.Open(ctx, path, s, journal.Options{Location: location, Notify: noteJournal})
	if err != nil && a.Journal == "" {
		a.logger.Warn("there is no journal: exchanges that the store can't take will be lost, and clients told so; name a file with the option journal, or turn it off", zap.Error(err))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if n := j.Depth(); n > 0 {
		journalLogger().Info("exchanges of an earlier run wait in the journal for the store", zap.Int("exchanges", n))
	}
	return j, nil
}

// journalLogger is the process's own: a journal outlives configurations.
func journalLogger() *zap.Logger { return caddy.Log().Named("backstory.journal") }

// noteJournal counts what becomes of journaled exchanges, and tells the operator
// when there are any and when there are none any more.
func noteJournal(e journal.Event) {
	journalEvents.WithLabelValues(e.What.String()).Inc()
	switch {
	case e.What == journal.SetAside:
		journalLogger().Error("an exchange can't be saved; it stays in the journal's file, and isn't tried again", zap.Error(e.Err))
	case e.What == journal.Journaled && e.Depth == 1:
		journalLogger().Warn("the store can't take exchanges; the journal keeps them until it is back")
	}
	if e.What != journal.Journaled && e.Depth == 0 {
		journalLogger().Info("the journal is empty again")
	}
}

// keep saves an exchange: in the store, or where that can't take it now, in the
// journal.
func (s *sharedStore) keep(ctx context.Context, e journal.Entry) error {
	err := s.append(ctx, e)
	if s.journal == nil || errors.Is(err, store.ErrDeleted) {
		return err
	}
	if err == nil {
		s.journal.Saved()
		return nil
	}
	e.Saved = errors.Is(err, store.ErrUnconfirmed)
	if unjournaled := s.addToJournal(ctx, e); unjournaled != nil {
		return errors.Join(err, unjournaled)
	}
	level := zap.DebugLevel
	if s.journal.Depth() == 1 { // the first says why; the others would say the same
		level = zap.WarnLevel
	}
	journalLogger().Log(level, "an exchange went into the journal", zap.Error(err))
	return nil
}

// append gives an exchange to the store, behind what the journal has of its
// session. They may take saveTimeout for it.
func (s *sharedStore) append(ctx context.Context, e journal.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := s.catchUp(ctx, e.Tenant, e.Session); err != nil {
		return err
	}
	_, err := s.Append(ctx, e.Append())
	return err
}

func (s *sharedStore) addToJournal(ctx context.Context, e journal.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	return s.journal.Add(ctx, e)
}

// catchUp makes sure that who reads a session, or adds to it, finds in the store
// what this process has journaled of it.
func (s *sharedStore) catchUp(ctx context.Context, tenant, session string) error {
	if s.journal == nil || !s.journal.Holds(tenant, session) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := s.journal.Replay(ctx, tenant, session); err != nil {
		return &unavailable{fmt.Errorf("replay the journal: %w", err)}
	}
	return nil
}

// dropJournaled forgets what is journaled of a session, or of a tenant where
// session is empty.
func (s *sharedStore) dropJournaled(ctx context.Context, tenant, session string) error {
	if s.journal == nil {
		return nil
	}
	return s.journal.Drop(ctx, tenant, session)
}

// closeAll closes the journal, and then the store that it replays to.
func (s *sharedStore) closeAll() error {
	var err error
	if s.journal != nil {
		err = s.journal.Close()
	}
	return errors.Join(err, s.Close())
}

var (
	journalEvents = func() *prometheus.CounterVec {
		c := counterVec("journal_exchanges_total",
			"What became of exchanges that the store couldn't take: journaled, then replayed, void (the session was deleted) or set_aside (they can't be saved).",
			"event")
		for _, w := range []journal.What{journal.Journaled, journal.Replayed, journal.Void, journal.SetAside} {
			c.WithLabelValues(w.String())
		}
		return c
	}()
	journalDepth = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "journal_depth", Help: "Exchanges that wait in the journal for the store.",
	}, func() float64 {
		depth := 0
		opened.Range(func(s, _ any) bool {
			if j := s.(*sharedStore).journal; j != nil {
				depth += j.Depth()
			}
			return true
		})
		return float64(depth)
	})
)
