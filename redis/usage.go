package redis

import (
	"context"
	"errors"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// usageFor is how long a month's usage is kept after the last addition: about
// thirteen months.
const usageFor = 400 * 24 * time.Hour

// AddUsage adds to what the tenant has used. Where the server's reply is lost it
// is added again, so that a failing network may count it twice.
func (s *Store) AddUsage(ctx context.Context, scope store.Scope, u store.Used) error {
	if err := s.enter(ctx, scope); err != nil {
		return err
	}
	defer s.end()
	if u.Tokens < 1 {
		return nil
	}
	return failure(ctx, s.addTokens(ctx, s.layout.usage(scope, u.Month), u.Tokens))
}

func (s *Store) addTokens(ctx context.Context, key string, n int64) error {
	pipe := s.client.Pipeline()
	countTokens(ctx, pipe, key, n)
	_, err := pipe.Exec(ctx)
	return err
}

func countTokens(ctx context.Context, p goredis.Pipeliner, key string, n int64) *goredis.IntCmd {
	count := p.IncrBy(ctx, key, n)
	p.Expire(ctx, key, usageFor)
	return count
}

// Usage returns the tokens that the tenant used in a month.
func (s *Store) Usage(ctx context.Context, scope store.Scope, month store.Month) (int64, error) {
	if err := s.enter(ctx, scope); err != nil {
		return 0, err
	}
	defer s.end()
	n, err := s.client.Get(ctx, s.layout.usage(scope, month)).Int64()
	if errors.Is(err, goredis.Nil) {
		return 0, nil
	}
	return n, failure(ctx, err)
}

// ListUsage returns what the tenant used, month by month.
func (s *Store) ListUsage(ctx context.Context, scope store.Scope) ([]store.Used, error) {
	if err := s.enter(ctx, scope); err != nil {
		return nil, err
	}
	defer s.end()
	list, err := s.listUsage(ctx, scope)
	return list, failure(ctx, err)
}

func (s *Store) listUsage(ctx context.Context, scope store.Scope) (list []store.Used, err error) {
	months, keys := s.usageKeys(scope)
	values, err := s.client.MGet(ctx, keys...).Result() // they share a slot
	if err != nil {
		return nil, err
	}
	for i, value := range values {
		text, ok := value.(string)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, errCorrupt
		}
		list = append(list, store.Used{Month: months[i], Tokens: n})
	}
	return list, nil
}

// usageKeys are the months that may have usage, and their keys. Clocks differ:
// the next month may have begun elsewhere.
func (s *Store) usageKeys(scope store.Scope) (months []store.Month, keys []string) {
	now := store.MonthOf(s.now())
	for m := now - store.UsageMonths; m <= now+1; m++ {
		months = append(months, m)
		keys = append(keys, s.layout.usage(scope, m))
	}
	return months, keys
}

// RestoreUsage raises what the tenant used. It is for a store that nobody else
// writes to.
func (s *Store) RestoreUsage(ctx context.Context, scope store.Scope, list []store.Used) error {
	if err := s.enter(ctx, scope); err != nil {
		return err
	}
	defer s.end()
	pipe := s.client.Pipeline()
	for _, u := range list {
		key := s.layout.usage(scope, u.Month)
		known, err := s.client.Get(ctx, key).Int64()
		if err != nil && !errors.Is(err, goredis.Nil) {
			return failure(ctx, err)
		}
		if u.Tokens > known {
			pipe.Set(ctx, key, u.Tokens, usageFor)
		}
	}
	_, err := pipe.Exec(ctx)
	return failure(ctx, err)
}

var _ store.Usage = (*Store)(nil)
