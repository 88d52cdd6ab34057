package redis

import (
	"context"
	"encoding/binary"
	"strconv"

	"github.com/backstory-proxy/backstory/store"
)

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
		args = append(args, v.Seq, idDigest(v.ID), encodeKept(v))
	}
	keys := []string{s.layout.tagged(logKey, tag), s.layout.tagged(vectorsKey, tag), s.layout.tagged(sessionKey, tag)}
	return failure(ctx, s.run(ctx, putVectorsScript, keys, args...).Err())
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
	values, err := s.client.HMGet(ctx, s.layout.tagged(vectorsKey, sessionTag(scope, session)), fields...).Result()
	if err != nil {
		return nil, failure(ctx, err)
	}
	var list []store.ExchangeVector
	for i, value := range values {
		text, ok := value.(string)
		if !ok {
			continue
		}
		v, err := decodeKept(text)
		if err != nil {
			return nil, failure(ctx, err)
		}
		v.Seq = seqs[i]
		list = append(list, v)
	}
	return list, nil
}

// encodeKept is the value of a vector: its model behind the length of that, and
// the vector.
func encodeKept(v *store.ExchangeVector) []byte {
	vector := store.EncodeVector(v.Vector)
	b := make([]byte, 0, binary.MaxVarintLen32+len(v.Model)+len(vector))
	b = binary.AppendUvarint(b, uint64(len(v.Model)))
	return append(append(b, v.Model...), vector...)
}

func decodeKept(value string) (v store.ExchangeVector, err error) {
	r := reader{b: []byte(value)}
	v.Model = string(r.field())
	if r.failed {
		return v, errCorrupt
	}
	v.Vector, err = store.DecodeVector(r.b)
	return v, err
}

var _ store.Vectors = (*Store)(nil)
