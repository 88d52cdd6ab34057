package redis

import (
	"context"
	"encoding/binary"
	"strconv"

	"github.com/backstory-proxy/backstory/store"
)

// findInLog is the beginning of scripts that look for exchanges by their Seqs:
// find returns the element of the log, KEYS[1], or nil. As many places as
// replaced exchanges are missing from the log are looked through.
const findInLog = `
local log, length = KEYS[1], redis.call('LLEN', KEYS[1])
if length == 0 then return {} end
local function seq(at) return tonumber(string.match(redis.call('LINDEX', log, at), '^%d+')) end
local first = seq(0)
local gaps = seq(-1) - first + 1 - length
local function find(wanted)
	local low, high = math.max(wanted - first - gaps, 0), math.min(wanted - first, length - 1)
	while low < high do
		local middle = math.floor((low + high) / 2)
		if seq(middle) < wanted then low = middle + 1 else high = middle end
	end
	if low ~= high then return nil end
	local e = redis.call('LINDEX', log, low)
	if tonumber(string.match(e, '^%d+')) == wanted then return e end
end
`

// putTurnsScript keeps vectors of exchanges that are in the log, for as long as
// their session lives: never longer, by a millisecond that passes meanwhile.
//
// KEYS: log, turn, session. ARGV: for each vector the Seq, the digest of the
// exchange's ID, the value.
var putTurnsScript = newScript(findInLog + `
for i = 1, #ARGV, 3 do
	local e = find(tonumber(ARGV[i]))
	local digest = e and string.match(e, '^%d+:%-?%d+:%d+:%d+:%-?%d+:()')
	if digest and string.sub(e, digest, digest + 15) == ARGV[i + 1] then
		redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 2])
	end
end
local left = redis.call('PTTL', KEYS[3])
if left ~= -1 then redis.call('PEXPIRE', KEYS[2], left - 1) end
return {}
`)

// PutVectors keeps vectors of exchanges that are there.
func (s *Store) PutVectors(ctx context.Context, scope store.Scope, session string, list []store.ExchangeVector) error {
	if err := s.enter(ctx, scope); err != nil {
		return err
	}
	defer s.end()
	tag := sessionTag(scope, session)
	args := make([]any, 0, 3*len(list))
	for i := range list {
		v := &list[i]
		args = append(args, v.Seq, idDigest(v.ID), encodeTurn(v))
	}
	keys := []string{s.layout.tagged(logKey, tag), s.layout.tagged(turnKey, tag), s.layout.tagged(sessionKey, tag)}
	return failure(ctx, s.run(ctx, putTurnsScript, keys, args...).Err())
}

// Vectors returns the vectors of exchanges.
func (s *Store) Vectors(ctx context.Context, scope store.Scope, session string, seqs []int64) ([]store.ExchangeVector, error) {
	if err := s.enter(ctx, scope); err != nil {
		return nil, err
	}
	defer s.end()
	if len(seqs) == 0 {
		return nil, nil
	}
	fields := make([]string, len(seqs))
	for i, seq := range seqs {
		fields[i] = strconv.FormatInt(seq, 10)
	}
	values, err := s.client.HMGet(ctx, s.layout.tagged(turnKey, sessionTag(scope, session)), fields...).Result()
	if err != nil {
		return nil, failure(ctx, err)
	}
	var list []store.ExchangeVector
	for i, value := range values {
		text, ok := value.(string)
		if !ok {
			continue
		}
		v, err := decodeTurn(text)
		if err != nil {
			return nil, failure(ctx, err)
		}
		v.Seq = seqs[i]
		list = append(list, v)
	}
	return list, nil
}

// encodeTurn is the value of a vector: its model behind the length of that, and
// the vector.
func encodeTurn(v *store.ExchangeVector) []byte {
	vector := store.EncodeVector(v.Vector)
	b := make([]byte, 0, binary.MaxVarintLen32+len(v.Model)+len(vector))
	b = binary.AppendUvarint(b, uint64(len(v.Model)))
	return append(append(b, v.Model...), vector...)
}

func decodeTurn(value string) (v store.ExchangeVector, err error) {
	r := reader{b: []byte(value)}
	v.Model = string(r.field())
	if r.failed {
		return v, errCorrupt
	}
	v.Vector, err = store.DecodeVector(r.b)
	return v, err
}

var _ store.Vectors = (*Store)(nil)
