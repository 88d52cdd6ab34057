package redis

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// beside is what is written along with an append: the session is put first in
// its tenant's list, and the tokens are counted. It lies in the tenant's slot, so
// that it isn't atomic with the session. Where an append is refused, or the list
// can't be reached, listing puts it right; the tokens are put right here.
type beside struct {
	list   string
	listed goredis.Z
	// expiring is the key of the list of sessions that end, in ttl after the
	// session was listed where that isn't 0.
	expiring string
	ttl      time.Duration
	usage    string // its key; empty where there is nothing to be counted
	tokens   int64

	// counted says that the tokens were, by an earlier try. The commands are
	// those of the last one, and nil where there was none since sent.
	counted bool
	touch   *goredis.IntCmd
	count   *goredis.IntCmd
	// missed says that the list, or the count, was not written.
	missedList, missedCount bool
}

func (s *Store) beside(a *store.Append) *beside {
	b := &beside{list: s.layout.tenant(sessionsKey, a.Scope), listed: goredis.Z{Member: a.Session}, expiring: s.layout.tenant(expiringKey, a.Scope)}
	if a.Usage.Tokens > 0 {
		b.usage, b.tokens = s.layout.usage(a.Scope, a.Usage.Month), a.Usage.Tokens
	}
	return b
}

// list has b say when the session was appended to, and for how long it stays.
func (s *Store) list(a *store.Append, b *beside, now time.Time) {
	b.listed.Score, b.ttl = float64(now.UnixMicro()), a.TTL
	if a.TTL > 0 {
		s.ending.LoadOrStore(a.Scope.Tenant, nil)
	}
}

// queue adds the commands to a pipeline, ahead of the append: where that says
// that it was done before, because its reply was lost, the tokens were counted
// before too, and uncount takes one of the two back.
func (b *beside) queue(ctx context.Context, p goredis.Pipeliner) {
	b.sent()
	b.touch = p.ZAddGT(ctx, b.list, b.listed)
	b.unlist(ctx, p)
	if b.usage != "" && !b.counted {
		b.count = countTokens(ctx, p, b.usage, b.tokens)
	}
}

// unlist keeps the list of sessions that end. It is no loss if it fails: what is
// listed and isn't there is found out when the list is read.
func (b *beside) unlist(ctx context.Context, p goredis.Pipeliner) {
	if b.ttl == 0 {
		p.ZRem(ctx, b.expiring, b.listed.Member)
		return
	}
	now := int64(b.listed.Score) / 1000
	p.Eval(ctx, unlistScript, []string{b.expiring, b.list}, b.listed.Member, now+b.ttl.Milliseconds(), now-settled.Milliseconds())
}

// sent takes note of what became of the commands that were queued.
func (b *beside) sent() {
	b.missedList = b.touch != nil && b.touch.Err() != nil
	b.missedCount = b.count != nil && b.count.Err() != nil
	b.counted = b.counted || b.count != nil && b.count.Err() == nil
	b.touch, b.count = nil, nil
}

// writeLater goes on trying to write what could not be written beside an
// exchange that was saved.
func (s *Store) writeLater(b *beside) {
	if b.missedList {
		list, listed := b.list, b.listed
		s.later(func(ctx context.Context) error { return s.client.ZAddGT(ctx, list, listed).Err() })
	}
	if b.missedCount {
		b.missedCount, b.counted = false, true
		s.later(func(ctx context.Context) error { return s.addTokens(ctx, b.usage, b.tokens) })
	}
}

// uncount takes back what was counted for an exchange that wasn't saved, or that
// was there already.
func (s *Store) uncount(ctx context.Context, b *beside) {
	if !b.counted {
		return
	}
	b.counted = false
	if s.addTokens(ctx, b.usage, -b.tokens) != nil {
		s.later(func(ctx context.Context) error { return s.addTokens(ctx, b.usage, -b.tokens) })
	}
}

// later does in the background what failed just now, and tries for about two
// minutes.
func (s *Store) later(do func(context.Context) error) {
	s.background(func(ctx context.Context) {
		for wait := 100 * time.Millisecond; wait < time.Minute; wait *= 2 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			if do(ctx) == nil {
				return
			}
		}
	})
}
