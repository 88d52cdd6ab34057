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

// appendScript saves exchanges at the end of their session, those that it has
// already excepted: by the digests of their IDs.
//
// KEYS: session, log, seen, epoch, turn. ARGV: the mark's epoch and seq; the seq
// up to which the session is known; 1 if it may have passed that; the session's
// name; now in ms; the seq to be replaced or 0; 1 if duplicates must write too,
// so that there is something for the replicas to confirm; the time to live in ms
// or 0; and for each exchange: the digest of its ID, messages, tokens, the record.
//
// A session that holds less than is known of it, and wasn't deleted, has lost
// some: its time was up, or a replica took over that hadn't got all. What is
// saved then replaces nothing: the seq may be another exchange's by now.
//
// The means follow the last exchanges, about sixteen: what a session was like
// long ago says little of how much of it a request needs.
var appendScript = newScript(`
local session, log, seen = KEYS[1], KEYS[2], KEYS[3]
local d = redis.call('HMGET', session, 'seq', 'ever', 'messages', 'tokens', 'mean_tokens', 'mean_messages', 'sent')
local seq, ever = tonumber(d[1] or '0'), tonumber(d[2] or '0')
local epoch, mark, expected = tonumber(redis.call('GET', KEYS[4]) or '0'), tonumber(ARGV[2]), tonumber(ARGV[3])
local ttl = tonumber(ARGV[9])
if epoch > tonumber(ARGV[1]) then return {2} end

local known, fresh = {}, false
for i = 10, #ARGV, 4 do
	known[i] = redis.call('HGET', seen, ARGV[i])
	fresh = fresh or not known[i]
end
if fresh and ARGV[4] ~= '1' and seq > expected then
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
				redis.call('HDEL', KEYS[5], string.format('%.0f', at))
				messages, tokens = messages - m, tokens - t
			end
			if at <= target then return end
		end
		if #part < 16 then return end
		last = last - 16
	end
end
local replaces = tonumber(ARGV[7])
if fresh and replaces > 0 and replaces <= seq and seq >= expected then remove(replaces) end

local function text(n) return string.format('%.0f', n) end
local mm, mt = d[6] and tonumber(d[6]), d[5] and tonumber(d[5])
local function push(digest, m, t, record)
	redis.call('RPUSH', log, text(seq + 1) .. ':' .. text(ever) .. ':' .. text(sent) .. ':' .. m .. ':' .. t .. ':' .. digest .. record)
	redis.call('HSET', seen, digest, text(seq + 1))
	m, t = tonumber(m), tonumber(t)
	if not mm then mm, mt = m, t end
	seq, ever, sent, messages, tokens = seq + 1, ever + t, sent + m, messages + m, tokens + t
	mm, mt = mm + (m - mm) / 16, mt + (t - mt) / 16
end
local seqs = {}
for i = 10, #ARGV, 4 do
	local same = known[i] or redis.call('HGET', seen, ARGV[i]) -- twice in the list
	if not same then push(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]) end
	seqs[#seqs + 1] = same or text(seq)
end
if fresh then
	redis.call('HSET', session, 'seq', text(seq), 'ever', text(ever), 'sent', text(sent), 'updated', ARGV[6],
		'messages', text(messages), 'tokens', text(tokens), 'mean_messages', mm, 'mean_tokens', mt, 'ttl', ARGV[9])
	for _, key in ipairs({KEYS[5], session, log, seen}) do
		if ttl > 0 then redis.call('PEXPIRE', key, ARGV[9]) else redis.call('PERSIST', key) end
	end
	if not d[1] then redis.call('HSET', session, 'id', ARGV[5], 'created', ARGV[6]) end
elseif ARGV[8] == '1' and d[1] then
	redis.call('HSET', session, 'seq', d[1])
end
return {fresh and 0 or 1, seqs}
`)

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
			s.layout.tagged(turnKey, tag),
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
	b.listed.Score = float64(now.UnixMicro())
	b.ttl = a.TTL
	err := s.save(ctx, c, b)
	if err != nil && !errors.Is(err, errTooFewReplicas) { // which come on top of a reply
		return appendReply{}, err
	}
	reply, badReply := readAppend(c.cmd)
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
