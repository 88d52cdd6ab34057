package redis

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// What appendScript answers.
const (
	appendSaved     = iota // and each one's Seq
	appendDuplicate        // and each one's Seq that it has already
	appendDeleted
	appendConflict // and the session's Seq, and the exchanges that are newer than the mark
)

// Append saves an exchange, in one trip.
func (s *Store) Append(ctx context.Context, a store.Append) (int64, error) {
	if a.Session == "" {
		return 0, errors.New("redis: append to a session without a name")
	}
	if err := s.enter(ctx, a.Scope); err != nil {
		return 0, err
	}
	defer s.end()
	b := s.beside(&a)
	reply, err := s.appendAll(ctx, &a, []store.Exchange{a.Exchange}, b)
	if err != nil {
		if !errors.Is(err, errTooFewReplicas) || reply.outcome != appendSaved {
			s.uncount(ctx, b)
		}
		return 0, failure(ctx, err)
	}
	switch reply.outcome {
	case appendDeleted:
		s.unlistDeleted(ctx, b, a.Scope)
		return 0, store.ErrDeleted
	case appendConflict:
		s.uncount(ctx, b)
		return 0, &store.Conflict{Newer: after(reply.newer, a.Mark.Seq), Seq: reply.seq}
	case appendDuplicate:
		s.uncount(ctx, b)
	}
	return reply.seqs[0], nil
}

// after drops the exchanges up to seq: where some were replaced, more were read
// than are newer.
func after(list []store.Exchange, seq int64) []store.Exchange {
	for i := range list {
		if list[i].Seq > seq {
			return list[i:]
		}
	}
	return nil
}

type appendReply struct {
	outcome int64
	seq     int64   // of the session, where the outcome is appendConflict
	seqs    []int64 // else those of the exchanges
	newer   []store.Exchange
}

// appendAll runs the script: all of a counts but its exchange.
func (s *Store) appendAll(ctx context.Context, a *store.Append, list []store.Exchange, b *beside) (appendReply, error) {
	now := s.now()
	tag := sessionTag(a.Scope, a.Session)
	c := &call{
		script: appendScript,
		keys: []string{
			s.layout.tagged(sessionKey, tag), s.layout.tagged(logKey, tag), s.layout.tagged(seenKey, tag), s.layout.tagged(epochKey, tag),
			s.layout.tagged(vectorsKey, tag),
		},
		args: []any{
			a.Mark.Epoch, max(a.Mark.Seq, 0), max(a.Known(), 0), flag(a.Anyway), a.Session, now.UnixMilli(),
			a.Replaces, flag(s.opts.WaitReplicas > 0), a.TTL.Milliseconds(),
		},
	}
	for i := range list {
		e := &list[i]
		c.args = append(c.args, idDigest(e.ID), len(e.Messages), e.Tokens(), encodeExchange(e))
	}
	s.list(a, b, now)
	err := s.save(ctx, c, b)
	if err != nil && !errors.Is(err, errTooFewReplicas) { // which come on top of a reply
		return appendReply{}, err
	}
	reply, badReply := readAppend(c.cmd)
	if reply.outcome == appendDeleted || reply.outcome == appendConflict {
		err = nil // nothing was written that replicas could confirm
	}
	return reply, cmp.Or(err, badReply)
}

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

// save runs the append, and writes what goes with it in the same trip.
func (s *Store) save(ctx context.Context, c *call, b *beside) error {
	if s.opts.WaitReplicas > 0 {
		return s.saveAndWait(ctx, c, b)
	}
	pipe := s.client.Pipeline()
	b.queue(ctx, pipe)
	c.queue(ctx, pipe)
	_, err := pipe.Exec(ctx)
	if b.sent(); err == nil {
		return nil
	}
	if err := s.again(ctx, c); err != nil {
		return err
	}
	s.writeLater(b)
	return nil
}

func readAppend(cmd *goredis.Cmd) (r appendReply, err error) {
	reply, err := cmd.Slice()
	if err != nil {
		return r, err
	}
	if len(reply) == 0 {
		return r, errors.New("the script for appending answered nothing")
	}
	r.outcome, _ = reply[0].(int64)
	if r.outcome == appendDeleted {
		return r, nil
	}
	if len(reply) < 2 {
		return r, errCorrupt
	}
	if r.outcome == appendConflict {
		if r.seq, err = readSeq(reply[1]); err == nil && len(reply) == 3 {
			elements, _ := reply[2].([]any)
			r.newer, err = decodeExchanges(elements)
		}
		return r, err
	}
	seqs, _ := reply[1].([]any)
	for _, v := range seqs {
		seq, err := readSeq(v)
		if err != nil {
			return r, err
		}
		r.seqs = append(r.seqs, seq)
	}
	if len(r.seqs) == 0 {
		err = errCorrupt
	}
	return r, err
}

func readSeq(v any) (int64, error) {
	text, _ := v.(string)
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errCorrupt
	}
	return seq, nil
}
