package redis

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// What appendScript answers.
const (
	appendSaved     = iota // and the Seq
	appendDuplicate        // and the Seq that it has already
	appendDeleted
	appendNewer // and the session's Seq, and the exchanges that are newer than the mark
)

// appendScript saves an exchange at the end of its session.
//
// KEYS: session, log, seen, epoch. ARGV: the mark's epoch and seq; the seq that
// the session must not have passed, or nothing; the digests of two IDs, the one
// asked for and the one to be saved; the session's name; now in ms; messages;
// tokens; the seq to be replaced or 0; 1 if a duplicate must write too, so that
// there is something for the replicas to confirm; the record.
//
// The means follow the last exchanges, about sixteen: what a session was like
// long ago says little of how much of it a request needs.
var appendScript = newScript(`
local session, log, seen = KEYS[1], KEYS[2], KEYS[3]
local d = redis.call('HMGET', session, 'seq', 'ever', 'messages', 'tokens', 'mean_tokens', 'mean_messages', 'sent')
local seq, ever = tonumber(d[1] or '0'), tonumber(d[2] or '0')
local epoch, mark = tonumber(redis.call('GET', KEYS[4]) or '0'), tonumber(ARGV[2])
if epoch > tonumber(ARGV[1]) or seq < mark then return {2} end
local same = redis.call('HGET', seen, ARGV[4])
if not same and ARGV[5] ~= ARGV[4] then same = redis.call('HGET', seen, ARGV[5]) end
if same then
	if ARGV[11] == '1' then redis.call('HSET', session, 'seq', d[1]) end
	return {1, same}
end
if ARGV[3] ~= '' and seq > tonumber(ARGV[3]) then
	return {3, d[1], redis.call('LRANGE', log, string.format('%.0f', mark - seq), -1)}
end

local messages, tokens, sent = tonumber(d[3] or '0'), tonumber(d[4] or '0'), tonumber(d[7] or '0')
local function remove(target)
	local last = -1
	while true do
		local part = redis.call('LRANGE', log, last - 15, last)
		for i = #part, 1, -1 do
			local at, m, t, digest = string.match(part[i], '^(%d+):%-?%d+:%d+:(%d+):(%-?%d+):()')
			at = tonumber(at)
			if at == target then
				redis.call('LREM', log, -1, part[i])
				redis.call('HDEL', seen, string.sub(part[i], digest, digest + 15))
				messages, tokens = messages - m, tokens - t
			end
			if at <= target then return end
		end
		if #part < 16 then return end
		last = last - 16
	end
end
local replaces = tonumber(ARGV[10])
if replaces > 0 and replaces <= seq then remove(replaces) end

local function text(n) return string.format('%.0f', n) end
local m, t = tonumber(ARGV[8]), tonumber(ARGV[9])
local mm, mt = tonumber(d[6] or ARGV[8]), tonumber(d[5] or ARGV[9])
redis.call('RPUSH', log, text(seq + 1) .. ':' .. text(ever) .. ':' .. text(sent) .. ':' .. ARGV[8] .. ':' .. ARGV[9] .. ':' .. ARGV[5] .. ARGV[12])
redis.call('HSET', seen, ARGV[5], text(seq + 1))
redis.call('HSET', session, 'seq', text(seq + 1), 'ever', text(ever + t), 'sent', text(sent + m), 'updated', ARGV[7],
	'messages', text(messages + m), 'tokens', text(tokens + t),
	'mean_messages', mm + (m - mm) / 16, 'mean_tokens', mt + (t - mt) / 16)
if not d[1] then redis.call('HSET', session, 'id', ARGV[6], 'created', ARGV[7]) end
return {0, text(seq + 1)}
`)

// Append saves an exchange, in one trip unless it has to be rebased.
func (s *Store) Append(ctx context.Context, a store.Append) (int64, error) {
	if a.Session == "" {
		return 0, errors.New("redis: append to a session without a name")
	}
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.end()
	e, replaces, expected := a.Exchange, a.Replaces, a.Mark.Seq
	b := s.beside(&a)
	for {
		reply, err := s.tryAppend(ctx, &a, &e, replaces, expected, b)
		if err != nil {
			if !errors.Is(err, errTooFewReplicas) { // there it is saved
				s.uncount(ctx, b)
			}
			return 0, failure(ctx, err)
		}
		switch reply.outcome {
		case appendDuplicate:
			s.uncount(ctx, b)
			return reply.seq, nil
		case appendSaved:
			return reply.seq, nil
		case appendDeleted:
			return 0, store.ErrDeleted
		}
		// Somebody was faster. Nothing comes between what Rebase sees now and
		// the append, or the script says so again.
		expected = reply.seq
		if e, replaces = a.Rebase(after(reply.newer, a.Mark.Seq)); len(e.Messages) == 0 {
			return 0, nil
		}
	}
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
	seq     int64
	newer   []store.Exchange
}

func (s *Store) tryAppend(ctx context.Context, a *store.Append, e *store.Exchange, replaces, expected int64, b *beside) (appendReply, error) {
	now := s.now()
	tag := sessionTag(a.Tenant, a.Session)
	var limit any = ""
	if a.Rebase != nil {
		limit = max(expected, 0)
	}
	wait := 0
	if s.opts.WaitReplicas > 0 {
		wait = 1
	}
	c := &call{
		script: appendScript,
		keys: []string{
			s.layout.tagged(sessionKey, tag), s.layout.tagged(logKey, tag), s.layout.tagged(seenKey, tag), s.layout.tagged(epochKey, tag),
		},
		args: []any{
			a.Mark.Epoch, max(a.Mark.Seq, 0), limit, idDigest(a.Exchange.ID), idDigest(e.ID), a.Session, now.UnixMilli(),
			len(e.Messages), e.Tokens(), replaces, wait, encodeExchange(e),
		},
	}
	b.listed.Score = float64(now.UnixMicro())
	if err := s.save(ctx, c, b); err != nil {
		return appendReply{}, err
	}
	return readAppend(c.cmd)
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
	if len(reply) > 1 {
		if _, err := fmt.Sscan(fmt.Sprint(reply[1]), &r.seq); err != nil {
			return r, errCorrupt
		}
	}
	if r.outcome == appendNewer && len(reply) == 3 {
		elements, _ := reply[2].([]any)
		r.newer, err = decodeExchanges(elements)
	}
	return r, err
}
