package migrate

import (
	"context"

	"github.com/backstory-proxy/backstory/store"
)

// copyVectors copies the vectors of some exchanges, to where they are in the
// target.
func (m *migrator) copyVectors(ctx context.Context, scope store.Scope, session string, list []store.Exchange, there map[string]int64) error {
	vectors, err := m.from.Vectors(ctx, scope, session, seqsOf(list))
	if err != nil || len(vectors) == 0 {
		return err
	}
	ids := make(map[int64]string, len(list))
	for i := range list {
		ids[list[i].Seq] = list[i].ID
	}
	for i := range vectors {
		v := &vectors[i]
		v.ID = ids[v.Seq]
		v.Seq = there[v.ID]
	}
	return m.to.PutVectors(ctx, scope, session, vectors)
}

func seqsOf(list []store.Exchange) []int64 {
	seqs := make([]int64, len(list))
	for i := range list {
		seqs[i] = list[i].Seq
	}
	return seqs
}

// vectorsOf returns the vectors of some exchanges, by Seq.
func vectorsOf(ctx context.Context, s store.Migrator, scope store.Scope, session string, list []store.Exchange) (map[int64]store.ExchangeVector, error) {
	found, err := s.Vectors(ctx, scope, session, seqsOf(list))
	vectors := make(map[int64]store.ExchangeVector, len(found))
	for _, v := range found {
		vectors[v.Seq] = v
	}
	return vectors, err
}

// vector writes the vector of an exchange; the zero one where it has none.
func (w digester) vector(v store.ExchangeVector) {
	w.texts(v.Model)
	w.bytes(store.EncodeVector(v.Vector))
}
