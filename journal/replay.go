package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

const (
	// tryTimeout is how long the store may take for one exchange. It is more
	// than a client is made to wait.
	tryTimeout = 10 * time.Second
	// sweepEvery is how often what others left is looked for: dead processes,
	// and the journal of a configuration that this one has taken the place of.
	sweepEvery = 5 * time.Second
	// patience is how long an exchange that the store refuses, while it takes
	// others, keeps its session waiting. A part of a cluster may be down for
	// as long as that.
	patience = 6 * time.Hour
	// maxAge is how old an exchange may become: stores remember for 30 days
	// that a session was deleted, and it must not come back.
	maxAge = 29 * 24 * time.Hour
)

var errTooOld = errors.New("it waited for so long that the store no longer knows whether its session was deleted")

// loop replays in the background, with growing pauses while the store is down.
func (j *Journal) loop() {
	defer close(j.stopped)
	pause, waiting := j.opts.First, true
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-j.stopping.Done():
			return
		case <-j.added:
			if !waiting { // else the pause is running already
				waiting = true
				timer.Reset(pause)
			}
			continue
		case <-j.back:
		case <-timer.C:
		}
		switch done := j.pass(); {
		case done && j.Depth() == 0:
			if waiting {
				j.file.tidy(j.stopping)
			}
			pause, waiting = j.opts.First, false
			timer.Reset(sweepEvery)
		case done: // more came meanwhile
			pause, waiting = j.opts.First, true
			timer.Reset(pause)
		default:
			waiting = true
			timer.Reset(pause)
			pause = min(2*pause, j.opts.Longest)
		}
	}
}

// pass replays every session, and reports whether all of them went well.
func (j *Journal) pass() bool {
	ctx := j.stopping
	done := j.file.take(ctx, j.more, j.less) == nil
	j.mu.Lock()
	queues := make([]*queue, 0, len(j.queues))
	for _, q := range j.queues {
		queues = append(queues, q)
	}
	j.mu.Unlock()
	for _, q := range queues {
		if err := j.replay(ctx, q, false); err != nil {
			done = false
			ping, cancel := context.WithTimeout(ctx, tryTimeout)
			down := j.store.Ping(ping)
			cancel()
			if down != nil {
				return false // the others would fare no better
			}
		}
	}
	return done
}

// Replay gives the store what waits of a session. If it returns nil, who reads
// the session finds all that was added before.
func (j *Journal) Replay(ctx context.Context, scope store.Scope, session string) error {
	j.mu.Lock()
	q := j.queues[name{scope, session}]
	j.mu.Unlock()
	if q == nil {
		return nil
	}
	return j.replay(ctx, q, true)
}

// replay gives the store what waits of a session, in order; for a reader, less
// what can be read already.
func (j *Journal) replay(ctx context.Context, q *queue, reader bool) error {
	select {
	case q.replaying <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-q.replaying }()
	var after int64
	if reader {
		after = q.visible
	}
	var stays error
	for {
		r, ok, err := j.file.next(ctx, q.name, after)
		switch {
		case err != nil:
			return fmt.Errorf("journal: %w", err)
		case !ok && reader:
			return nil
		case !ok:
			return stays
		}
		settled, err := j.settle(ctx, q, &r, reader)
		if settled && err != nil {
			q.visible = max(q.visible, r.id)
			stays, after = err, q.visible
			continue
		}
		if err != nil {
			return err
		}
		if reader { // the store is back, for others too
			poke(j.back)
		}
	}
}

// settle has the store save a session's first exchange, or sets it aside. An
// error means that it is to be tried again; where settled is true, nobody has to
// wait for that.
func (j *Journal) settle(ctx context.Context, q *queue, r *row, reader bool) (settled bool, err error) {
	e, err := decode(r.record)
	if errors.Is(err, errNewer) { // it waits for one who can read it; nobody else does
		if r.id > q.visible {
			j.opts.Notify(Event{What: Newer, Depth: j.Depth(), Err: err})
		}
		return true, err
	}
	if err == nil && j.opts.Now().Sub(r.added) > maxAge {
		err = errTooOld
	}
	if err != nil {
		return true, j.setAside(q, r, err)
	}
	if reader && e.Saved {
		return true, store.ErrUnconfirmed // to ask for it takes long, and tells a reader nothing
	}
	try, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	err = e.Save(try, j.store)
	what := Replayed
	switch {
	case errors.Is(err, store.ErrDeleted):
		what = Void
	case errors.Is(err, store.ErrUnconfirmed):
		return true, err
	case err != nil && ctx.Err() == nil && j.hopeless(q, r.id):
		return true, j.setAside(q, r, err)
	case err != nil:
		return false, err
	default:
		j.saved.Add(1)
	}
	// The store has it: that the request, say, is over by now changes nothing.
	removed, err := j.file.remove(context.WithoutCancel(ctx), r.id)
	return true, j.gone(q, removed, err, Event{What: what})
}

// hopeless reports whether the store has refused an exchange for long, counted
// from when it was first seen to take others: an outage says nothing of an
// exchange.
func (j *Journal) hopeless(q *queue, id int64) bool {
	saved, now := j.saved.Load(), j.opts.Now()
	if q.head != id {
		q.head, q.since, q.seen = id, time.Time{}, saved
		return false
	}
	up := saved > q.seen
	q.seen = saved
	if up && q.since.IsZero() {
		q.since = now
	}
	return up && now.Sub(q.since) >= patience
}

func (j *Journal) setAside(q *queue, r *row, why error) error {
	aside, err := j.file.setAside(context.WithoutCancel(j.stopping), r.id)
	return j.gone(q, aside, err, Event{What: SetAside, Err: why})
}

// gone tells of an exchange that no longer waits, unless it was gone before.
func (j *Journal) gone(q *queue, really bool, err error, e Event) error {
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if really {
		e.Depth = j.less(q.name)
		j.opts.Notify(e)
	}
	return nil
}
