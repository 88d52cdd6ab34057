package redis

import (
	"context"
	"errors"

	"github.com/backstory-proxy/backstory/store"
)

// Import saves exchanges with one run of the script, or, where they are so many
// that it would hold up others, with several: see staging. Where too few replicas
// confirm them, it returns their Seqs too.
func (s *Store) Import(ctx context.Context, i store.Import) ([]int64, error) {
	if i.Session == "" {
		return nil, errors.New("redis: import into a session without a name")
	}
	if err := s.enter(ctx, i.Scope); err != nil {
		return nil, err
	}
	defer s.end()
	if len(i.Exchanges) == 0 {
		return nil, nil
	}
	a := store.Append{Scope: i.Scope, Session: i.Session, Mark: i.Mark, Anyway: true, TTL: i.TTL}
	b := s.beside(&a)
	var reply appendReply
	var err error
	if isSmall(i.Exchanges) {
		reply, err = s.appendAll(ctx, &a, i.Exchanges, b)
	} else {
		reply, err = s.appendStaged(ctx, &a, i.Exchanges, b)
	}
	if err != nil {
		return reply.seqs, failure(ctx, err)
	}
	if reply.outcome == appendDeleted {
		s.unlistDeleted(ctx, b, i.Scope)
		return nil, store.ErrDeleted
	}
	return reply.seqs, nil
}
