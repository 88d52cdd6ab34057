package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/journal"
	"github.com/backstory-proxy/backstory/store"
)

// JournalOptions say where a journal is.
type JournalOptions struct {
	// Path of its file; empty: there is none.
	Path string
	// Location tells the data of stores apart, however they are reached: what
	// waits in the journal still finds its store when a password or a timeout
	// has changed.
	Location string
	// Optional says that the service goes on without one if it can't be opened.
	Optional bool
}

// openJournal opens the journal of a store.
func openJournal(ctx context.Context, s store.Store, o JournalOptions, logger func() *zap.Logger) (*journal.Journal, error) {
	if o.Path == "" {
		return nil, nil
	}
	n := &journalNotes{logger}
	j, err := journal.Open(ctx, o.Path, s, journal.Options{Location: o.Location, Notify: n.take})
	if err != nil && o.Optional {
		logger().Warn("there is no journal: exchanges that the store can't take will be lost, and clients told so; name a file with the option journal, or turn it off", zap.Error(err))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if depth := j.Depth(); depth > 0 {
		logger().Info("exchanges of an earlier run wait in the journal for the store", zap.Int("exchanges", depth))
	}
	return j, nil
}

// journalNotes tell the operator of the journal.
type journalNotes struct{ logger func() *zap.Logger }

// take counts what becomes of journaled exchanges, and tells the operator
// when there are any and when there are none any more.
func (n *journalNotes) take(e journal.Event) {
	journalEvents.WithLabelValues(e.What.String()).Inc()
	switch {
	case e.What == journal.SetAside:
		n.logger().Error("an exchange can't be saved; it stays in the journal's file, and isn't tried again", zap.Error(e.Err))
	case e.What == journal.Newer:
		n.logger().Error("an exchange stays in the journal", zap.Error(e.Err))
	case e.What == journal.Journaled && e.Depth == 1:
		n.logger().Warn("the store can't take exchanges; the journal keeps them until it is back")
	}
	if e.What != journal.Journaled && e.What != journal.Newer && e.Depth == 0 {
		n.logger().Info("the journal is empty again")
	}
}

// journalTimeout is how long an exchange may wait for its turn to be written to the
// journal: with too little CPU that is long, and there is no other place for it.
const journalTimeout = 30 * time.Second

// keep saves an exchange: in the store, or where that can't take it now, in the
// journal.
func (s *Shared) keep(ctx context.Context, e journal.Entry) error {
	err := s.append(ctx, e)
	if s.journal == nil || errors.Is(err, store.ErrDeleted) {
		return err
	}
	if err == nil {
		s.journal.Saved()
		s.losses.end()
		return nil
	}
	e.Saved = errors.Is(err, store.ErrUnconfirmed)
	if unjournaled := s.addToJournal(ctx, e); unjournaled != nil {
		s.losses.begin()
		return errors.Join(err, unjournaled)
	}
	s.losses.end()
	level := zap.DebugLevel
	if s.journal.Depth() == 1 { // the first says why; the others would say the same
		level = zap.WarnLevel
	}
	s.logger().Log(level, "an exchange went into the journal", zap.Error(err))
	return nil
}

// append gives an exchange to the store, behind what the journal has of its
// session.
func (s *Shared) append(ctx context.Context, e journal.Entry) error {
	timeout := saveTimeout
	if s.journal == nil {
		timeout = lastSaveTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := s.catchUp(ctx, e.Scope, e.Session); err != nil {
		return err
	}
	return e.Save(ctx, s.Store)
}

func (s *Shared) addToJournal(ctx context.Context, e journal.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, journalTimeout)
	defer cancel()
	return s.journal.Add(ctx, e)
}

// catchUp makes sure that who reads a session, or adds to it, finds in the store
// what this process has journaled of it.
func (s *Shared) catchUp(ctx context.Context, scope store.Scope, session string) error {
	if s.journal == nil || !s.journal.Holds(scope, session) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := s.journal.Replay(ctx, scope, session); err != nil {
		return &unavailable{fmt.Errorf("replay the journal: %w", err)}
	}
	return nil
}

// DropJournaled forgets what is journaled of a session, or of a tenant where
// session is empty.
func (s *Shared) DropJournaled(ctx context.Context, scope store.Scope, session string) error {
	if s.journal == nil {
		return nil
	}
	return s.journal.Drop(ctx, scope, session)
}

var (
	journalEvents = func() *prometheus.CounterVec {
		c := stats.CounterVec("journal_exchanges_total",
			"What became of exchanges that the store couldn't take: journaled, then replayed, void (the session was deleted), set_aside (they can't be saved) or newer (they wait for the newer version that wrote them).",
			"event")
		for _, w := range []journal.What{journal.Journaled, journal.Replayed, journal.Void, journal.SetAside, journal.Newer} {
			c.WithLabelValues(w.String())
		}
		return c
	}()
	journalDepth = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: stats.Namespace, Name: "journal_depth", Help: "Exchanges that wait in the journal for the store.",
	}, func() float64 {
		depth := 0
		opened.Range(func(s, _ any) bool {
			if j := s.(*Shared).journal; j != nil {
				depth += j.Depth()
			}
			return true
		})
		return float64(depth)
	})
)
