// Package memstore keeps sessions in the memory of the process: for tests, and to
// be read by whoever writes a store. It is a store.Store and nothing beyond, with
// one lock for all of it; what it holds is gone with it.
package memstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// Store is a store.Store in memory. End users have rooms of their own.
type Store struct {
	now       func() time.Time
	mu        sync.Mutex
	closed    bool
	sessions  map[name]*session
	requests  map[string][]time.Time // by tenant: those of the last RateWindow
	deletions int64                  // ever: a Mark's Epoch
	deleted   map[name]int64         // each session's, by that count
	appends   int64                  // ever: the order of ListSessions
}

type name struct {
	scope   store.Scope
	session string
}

type session struct {
	store.Session
	seq, tokens int64 // of the newest exchange; ever appended
	log         []store.Exchange
	touched     int64     // Store.appends at its last append
	expires     time.Time // zero: never
}

// New returns an empty store. It tells the time by now; nil is time.Now.
func New(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{now: now, sessions: map[name]*session{}, requests: map[string][]time.Time{}, deleted: map[name]int64{}}
}

// begin admits a call, which ends with s.mu.Unlock.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errors.New("memstore: the store is closed")
	}
	return nil
}

// Ping tells whether the store is open.
func (s *Store) Ping(ctx context.Context) error {
	err := s.begin(ctx)
	if err == nil {
		s.mu.Unlock()
	}
	return err
}

// Close forgets everything.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.sessions, s.requests, s.deleted = true, nil, nil, nil
	return nil
}

// Take counts one request of the tenant.
func (s *Store) Take(ctx context.Context, tenant string, limit int) (store.Rate, error) {
	if err := s.begin(ctx); err != nil {
		return store.Rate{}, err
	}
	defer s.mu.Unlock()
	return s.take(tenant, limit), nil
}

func (s *Store) take(tenant string, limit int) store.Rate {
	now := s.now()
	times := slices.DeleteFunc(s.requests[tenant], func(t time.Time) bool { return now.Sub(t) >= store.RateWindow })
	rate := store.Rate{Limit: max(limit, 0), Allowed: len(times) < limit}
	if rate.Allowed {
		times = append(times, now)
	}
	s.requests[tenant] = times
	n := len(times)
	if rate.Remaining = max(limit-n, 0); n > 0 {
		rate.Reset = times[n-1].Add(store.RateWindow).Sub(now)
	}
	if limit <= 0 {
		rate.RetryAfter = store.RateWindow
	} else if n >= limit {
		rate.RetryAfter = times[n-limit].Add(store.RateWindow).Sub(now)
	}
	return rate
}

// find returns a session; nil where there is none, or its time is up.
func (s *Store) find(n name) *session {
	d := s.sessions[n]
	if d != nil && !d.expires.IsZero() && !s.now().Before(d.expires) {
		delete(s.sessions, n)
		return nil
	}
	return d
}

// Gather counts the request and reads the end of its session.
func (s *Store) Gather(ctx context.Context, req store.GatherRequest) (g store.Gathered, err error) {
	if err := s.begin(ctx); err != nil {
		return g, err
	}
	defer s.mu.Unlock()
	if g.Rate.Allowed = req.Counted; !req.Counted {
		if g.Rate = s.take(req.Scope.Tenant, req.Limit); !g.Rate.Allowed {
			return g, nil
		}
	}
	g.Cached, g.Mark.Epoch = true, s.deletions
	d := s.find(name{req.Scope, req.Session})
	if d == nil {
		return g, nil
	}
	g.Mark.Seq, g.Tokens = d.seq, d.tokens
	first, left := len(d.log), 2 // more than asked for
	for tokens, messages := req.Tokens, req.Messages; first > 0 && (tokens > 0 || messages > 0 || left > 0) && !store.Full(d.log[first:], store.TailBytes); {
		if tokens <= 0 && messages <= 0 {
			left--
		}
		first--
		tokens -= d.log[first].Tokens()
		messages -= len(d.log[first].Messages)
	}
	g.Tail = copied(d.log[first:])
	return g, nil
}

// Append saves an exchange.
func (s *Store) Append(ctx context.Context, a store.Append) (int64, error) {
	if a.Session == "" {
		return 0, errors.New("memstore: append to a session without a name")
	}
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	n := name{a.Scope, a.Session}
	if s.deleted[n] > a.Mark.Epoch {
		return 0, store.ErrDeleted
	}
	now := s.now().Truncate(time.Millisecond)
	d := s.find(n)
	if d == nil {
		d = &session{Session: store.Session{ID: a.Session, Created: now}}
	}
	if i := slices.IndexFunc(d.log, func(e store.Exchange) bool { return e.ID == a.Exchange.ID }); i >= 0 {
		return d.log[i].Seq, nil
	}
	if d.seq > a.Known() && !a.Anyway {
		return 0, &store.Conflict{Newer: copied(d.log[d.after(a.Mark.Seq):]), Seq: d.seq}
	}
	if i := slices.IndexFunc(d.log, func(e store.Exchange) bool { return e.Seq == a.Replaces }); i >= 0 && d.seq >= a.Known() {
		d.count(&d.log[i], -1)
		d.log = slices.Delete(d.log, i, i+1)
	}
	e := copied([]store.Exchange{a.Exchange})[0]
	e.Seq, e.Offset, e.Created = d.seq+1, d.tokens, e.Created.Truncate(time.Millisecond)
	d.count(&e, 1)
	s.appends++
	d.log, d.seq, d.tokens, d.touched = append(d.log, e), e.Seq, d.tokens+int64(e.Tokens()), s.appends
	if d.Updated, d.TTL, d.expires = now, a.TTL, (time.Time{}); a.TTL > 0 {
		d.expires = now.Add(a.TTL)
	}
	s.sessions[n] = d
	return e.Seq, nil
}

func (d *session) count(e *store.Exchange, sign int64) {
	d.Messages += sign * int64(len(e.Messages))
	d.Tokens += sign * int64(e.Tokens())
}

// after is where the exchanges begin that are newer than the Seq.
func (d *session) after(seq int64) int {
	return sort.Search(len(d.log), func(i int) bool { return d.log[i].Seq > seq })
}

// Session describes a session.
func (s *Store) Session(ctx context.Context, scope store.Scope, session string) (store.Session, error) {
	if err := s.begin(ctx); err != nil {
		return store.Session{}, err
	}
	defer s.mu.Unlock()
	d := s.find(name{scope, session})
	if d == nil {
		return store.Session{}, store.ErrNotFound
	}
	return d.Session, nil
}

// ListSessions returns sessions, the most recently updated first.
func (s *Store) ListSessions(ctx context.Context, scope store.Scope, after string, limit int) ([]store.Session, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	last := s.find(name{scope, after})
	if after != "" && last == nil {
		return nil, store.ErrNotFound
	}
	var found []*session
	for n, d := range s.sessions {
		if n.scope == scope && s.find(n) != nil && (last == nil || d.touched < last.touched) {
			found = append(found, d)
		}
	}
	slices.SortFunc(found, func(a, b *session) int { return cmp.Compare(b.touched, a.touched) })
	var list []store.Session
	for _, d := range found[:min(max(limit, 0), len(found))] {
		list = append(list, d.Session)
	}
	return list, nil
}

// Exchanges returns exchanges of a session.
func (s *Store) Exchanges(ctx context.Context, scope store.Scope, session string, after int64, limit int, order store.Order) ([]store.Exchange, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	d := s.find(name{scope, session})
	if d == nil {
		return nil, store.ErrNotFound
	}
	list := d.log[d.after(after):]
	if order == store.Descending {
		list = slices.Clone(d.log)
		if after != 0 {
			list = list[:d.after(after-1)]
		}
		slices.Reverse(list)
	}
	return copied(page(list[:min(max(limit, 0), len(list))])), nil
}

// ExchangesAt returns the exchanges with the given Seqs.
func (s *Store) ExchangesAt(ctx context.Context, scope store.Scope, session string, seqs []int64) ([]store.Exchange, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	d := s.find(name{scope, session})
	if d == nil {
		return nil, nil
	}
	return copied(page(slices.DeleteFunc(slices.Clone(d.log), func(e store.Exchange) bool { return !slices.Contains(seqs, e.Seq) }))), nil
}

// page is what one read returns of a list.
func page(list []store.Exchange) []store.Exchange {
	n := 0
	for n < len(list) && !store.Full(list[:n], store.PageBytes) {
		n++
	}
	return list[:n]
}

// DeleteSession removes a session, and voids the appends of requests that began
// before, whether it is there or not.
func (s *Store) DeleteSession(ctx context.Context, scope store.Scope, session string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	n := name{scope, session}
	s.deletions++
	s.deleted[n] = s.deletions
	if s.find(n) == nil {
		return store.ErrNotFound
	}
	delete(s.sessions, n)
	return nil
}

// copied is a list apart from the memory of whoever gave it.
func copied(list []store.Exchange) []store.Exchange {
	list = slices.Clone(list)
	for i, e := range list {
		e.Messages, e.Passages, e.Recalled = slices.Clone(e.Messages), slices.Clone(e.Passages), slices.Clone(e.Recalled)
		for j := range e.Messages {
			e.Messages[j].JSON = slices.Clone(e.Messages[j].JSON)
		}
		list[i] = e
	}
	return list
}

var _ store.Store = (*Store)(nil)
