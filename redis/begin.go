package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

const (
	// firstTry is how long a patient Open waits for the servers itself.
	firstTry = 5 * time.Second
	// awaitPause is between two tries to reach them afterwards, and awaitTry
	// how long one may take: the making of an index waits for its turn.
	awaitPause = time.Second
	awaitTry   = 30 * time.Second
)

// begun readies the servers, or, where they can't be reached and the store is
// patient, goes on with that in the background.
func (s *Store) begun(ctx context.Context, t Target) error {
	told := func(err error) error {
		return fmt.Errorf("redis: open %s: %w", strings.Join(t.Addrs, ","), explainOpen(t, err))
	}
	first, cancel := ctx, func() {}
	if s.opts.Patient {
		first, cancel = context.WithTimeout(ctx, firstTry)
	}
	err := s.ready(first)
	cancel()
	if err != nil && (!s.opts.Patient || !isAway(err)) {
		return told(err)
	}
	if err != nil {
		s.wait(told(err))
	}
	s.background(func(ctx context.Context) {
		if err == nil {
			s.advise(ctx)
		} else if !s.await(ctx, told) {
			return
		}
		s.sweep(ctx)
	})
	return nil
}

// wait has all calls fail until the servers are ready.
func (s *Store) wait(why error) {
	known := s.away.Load()
	err := fmt.Errorf("%w: %w", store.ErrNotReady, why)
	s.away.Store(&err)
	if known == nil || (*known).Error() != err.Error() {
		s.opts.notify(Event{What: Waiting, Err: why})
	}
}

// await tries until the servers are ready; false where the store is closed
// before. What else is wrong with them by then can be put right there, too.
func (s *Store) await(ctx context.Context, told func(error) error) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(awaitPause):
		}
		try, cancel := context.WithTimeout(ctx, awaitTry)
		err := s.ready(try)
		cancel()
		if err == nil {
			s.away.Store(nil)
			s.opts.notify(Event{What: Reached})
			s.advise(ctx)
			return true
		}
		s.wait(told(err))
	}
}

// isAway tells the errors of servers that aren't there, or not yet, from what
// those say that are.
func isAway(err error) bool {
	var (
		reply    goredis.Error
		dial     *net.OpError
		dns      *net.DNSError
		untrusty *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &reply):
		return slices.ContainsFunc([]string{"LOADING", "MASTERDOWN", "CLUSTERDOWN", "BUSY", "MISCONF", "NOREPLICAS", "TRYAGAIN"}, func(prefix string) bool {
			return goredis.HasErrorPrefix(reply, prefix)
		})
	case errors.As(err, &untrusty):
		return false
	case errors.As(err, &dial) && (dial.Op == "dial" || dial.Op == "read" || dial.Op == "write"), errors.As(err, &dns):
		return true
	}
	return errors.Is(err, errHangs) || isTimeout(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "all sentinels specified in configuration are unreachable")
}

// ready finds out whether the servers do what is asked of them later.
func (s *Store) ready(ctx context.Context) error {
	if err := s.client.Ping(ctx).Err(); err != nil {
		return err
	}
	if err := s.writable(ctx); err != nil {
		return err
	}
	if err := s.loadScripts(ctx); err != nil {
		return err
	}
	if s.opts.NoFiles || s.opts.unindexed {
		return nil
	}
	err := s.createText(ctx)
	if err == nil && s.opts.Model != "" && s.opts.Dimensions != 0 {
		err = s.createVector(ctx, s.opts.Model, s.opts.Dimensions)
	}
	if errors.Is(explain(err), store.ErrFull) {
		return nil // an index that is missing is made by the first search that misses it
	}
	return err
}

// advise tells the operator of a server that searches on the thread that answers
// everyone. Where the server doesn't say, because its user may not ask, nothing is
// told.
func (s *Store) advise(ctx context.Context) {
	if s.opts.NoFiles || s.opts.unindexed {
		return
	}
	reply, err := s.client.Do(ctx, "FT.CONFIG", "GET", "WORKERS").Slice()
	if err != nil || len(reply) != 1 {
		return
	}
	if option, _ := reply[0].([]any); len(option) == 2 && fmt.Sprint(option[1]) == "0" {
		s.opts.notify(Event{What: SearchBlocks})
	}
}
