package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// rates counts requests exactly: it remembers when each one of the last
// RateWindow was counted. What a tenant takes up is bounded by its limit, and
// given back when it has been idle for a window.
type rates struct {
	now   func() time.Time
	start time.Time // times are kept as durations since, by the monotonic clock

	mu    sync.Mutex
	logs  map[string]*rateLog
	last  time.Duration // the latest time seen: clocks may be set back
	swept time.Duration
}

func newRates(now func() time.Time) *rates {
	return &rates{now: now, start: now(), logs: make(map[string]*rateLog)}
}

// rateLog holds the times of the requests counted, oldest first.
type rateLog struct {
	times []time.Duration
	head  int // of times: what comes before has left the window
}

// Take counts one request of the tenant.
func (s *Store) Take(ctx context.Context, tenant string, limit int) (store.Rate, error) {
	if err := ctx.Err(); err != nil {
		return store.Rate{}, err
	}
	return s.rates.take(tenant, limit), nil
}

func (r *rates) take(tenant string, limit int) store.Rate {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Within the lock, so that a log's times never fall.
	now := max(r.now().Sub(r.start), r.last)
	r.last = now
	r.sweep(now)

	log := r.logs[tenant]
	if log == nil {
		if limit <= 0 {
			return store.Rate{RetryAfter: store.RateWindow}
		}
		log = &rateLog{}
		r.logs[tenant] = log
	}
	log.expire(now)
	rate := store.Rate{Limit: max(limit, 0), Allowed: log.len() < limit}
	if rate.Allowed {
		log.add(now)
	}
	rate.Remaining = max(limit-log.len(), 0)
	if n := log.len(); n > 0 {
		rate.Reset = log.at(n-1) + store.RateWindow - now
	}
	switch n := log.len(); {
	case limit <= 0:
		rate.RetryAfter = store.RateWindow // never; a plan may yet change
	case n >= limit:
		rate.RetryAfter = log.at(n-limit) + store.RateWindow - now
	}
	return rate
}

// sweep forgets the tenants that were idle for a window, once in a window.
func (r *rates) sweep(now time.Duration) {
	if now-r.swept < store.RateWindow {
		return
	}
	r.swept = now
	for tenant, log := range r.logs {
		if log.expire(now); log.len() == 0 {
			delete(r.logs, tenant)
		}
	}
}

func (l *rateLog) len() int               { return len(l.times) - l.head }
func (l *rateLog) at(i int) time.Duration { return l.times[l.head+i] }

// expire drops what was counted a whole window ago.
func (l *rateLog) expire(now time.Duration) {
	for l.head < len(l.times) && now-l.times[l.head] >= store.RateWindow {
		l.head++
	}
}

// add appends a time. The room of those that have left is used again once they
// are half of it, so that the slice stays within twice what it holds.
func (l *rateLog) add(now time.Duration) {
	if l.head > 0 && l.head >= len(l.times)/2 {
		l.times = l.times[:copy(l.times, l.times[l.head:])]
		l.head = 0
	}
	l.times = append(l.times, now)
}

var _ store.Limiter = (*Store)(nil)
