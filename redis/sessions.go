package redis

import (
	"context"
	"slices"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// voidFor is how long a deletion is remembered: longer than a journaled append
// may wait for its store.
const voidFor = 30 * 24 * time.Hour

// Session describes a session.
func (s *Store) Session(ctx context.Context, scope store.Scope, session string) (store.Session, error) {
	if err := s.enter(ctx, scope); err != nil {
		return store.Session{}, err
	}
	defer s.end()
	d, ok, err := readSession(s.describe(ctx, s.client, scope, session))
	switch {
	case err != nil:
		return store.Session{}, failure(ctx, err)
	case !ok:
		return store.Session{}, store.ErrNotFound
	}
	return d, nil
}

func (s *Store) describe(ctx context.Context, c goredis.Cmdable, scope store.Scope, session string) *goredis.SliceCmd {
	return c.HMGet(ctx, s.layout.tagged(sessionKey, sessionTag(scope, session)), "id", "created", "updated", "messages", "tokens", "ttl")
}

func readSession(cmd *goredis.SliceCmd) (d store.Session, ok bool, err error) {
	values, err := cmd.Result()
	if err != nil || len(values) != 6 || values[0] == nil {
		return d, false, err
	}
	var n [5]int64
	for i := range n {
		text, ok := values[i+1].(string)
		if !ok && i == len(n)-1 {
			break // it was kept before there were times to live
		}
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return d, false, errCorrupt
		}
	}
	d.ID, _ = values[0].(string)
	d.Created, d.Updated, d.Messages, d.Tokens = fromMilli(n[0]), fromMilli(n[1]), n[2], n[3]
	d.TTL = time.Duration(n[4]) * time.Millisecond
	return d, true, nil
}

// Exchanges returns exchanges of a session.
func (s *Store) Exchanges(ctx context.Context, scope store.Scope, session string, after int64, limit int, order store.Order) ([]store.Exchange, error) {
	if err := s.enter(ctx, scope); err != nil {
		return nil, err
	}
	defer s.end()
	tag := sessionTag(scope, session)
	keys := []string{s.layout.tagged(sessionKey, tag), s.layout.tagged(logKey, tag)}
	descending := 0
	if order == store.Descending {
		descending = 1
	}
	elements, err := s.run(ctx, pageScript, keys, after, min(limit, maxPage), descending, store.PageBytes).Slice()
	if err == goredis.Nil {
		return nil, store.ErrNotFound
	}
	if err != nil {
		return nil, failure(ctx, err)
	}
	list, err := decodeExchanges(elements)
	return list, failure(ctx, err)
}

// ExchangesAt returns the exchanges with the given Seqs.
func (s *Store) ExchangesAt(ctx context.Context, scope store.Scope, session string, seqs []int64) ([]store.Exchange, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	if err := s.enter(ctx, scope); err != nil {
		return nil, err
	}
	defer s.end()
	rising := slices.Compact(slices.Sorted(slices.Values(seqs)))
	args := make([]any, 0, 1+len(rising))
	args = append(args, store.PageBytes)
	for _, seq := range rising {
		args = append(args, seq)
	}
	keys := []string{s.layout.tagged(logKey, sessionTag(scope, session))}
	elements, err := s.run(ctx, atScript, keys, args...).Slice()
	if err != nil {
		return nil, failure(ctx, err)
	}
	list, err := decodeExchanges(elements)
	return list, failure(ctx, err)
}

// maxPage keeps the arithmetic of scripts within what they write as integers.
const maxPage = 1 << 24

// DeleteSession removes a session, and voids the appends of requests that began
// before.
func (s *Store) DeleteSession(ctx context.Context, scope store.Scope, session string) error {
	if session == "" {
		return store.ErrNotFound
	}
	if err := s.enter(ctx, scope); err != nil {
		return err
	}
	defer s.end()
	// Off the list first: a name that is left on it is found out when it is
	// read, a session that isn't on it is not.
	pipe := s.client.Pipeline()
	pipe.ZRem(ctx, s.layout.tenant(sessionsKey, scope), session)
	pipe.ZRem(ctx, s.layout.tenant(expiringKey, scope), session)
	if _, err := pipe.Exec(ctx); err != nil {
		return failure(ctx, err)
	}
	tag := sessionTag(scope, session)
	keys := []string{
		s.layout.tagged(sessionKey, tag), s.layout.tagged(logKey, tag), s.layout.tagged(seenKey, tag), s.layout.tagged(epochKey, tag),
		s.layout.tagged(vectorsKey, tag),
	}
	existed, err := s.run(ctx, deleteSessionScript, keys, s.micros(), voidFor.Milliseconds()).Bool()
	if err != nil {
		return failure(ctx, err)
	}
	if !existed {
		return store.ErrNotFound
	}
	return nil
}

var _ store.Sessions = (*Store)(nil)
