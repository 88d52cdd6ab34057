package sqlite

import (
	"context"
	"errors"
	"strconv"

	"github.com/backstory-proxy/backstory/store"
)

var putVector = `
	INSERT INTO turns (id, model, vector)
	SELECT e.id, ?5, ?6
	FROM sessions s JOIN exchanges e ON e.id = (s.id << 32) + ?3 AND e.name = ?4
	WHERE s.tenant = ?1 AND s.digest = ?2 AND ` + alive(`?7`) + `
	ON CONFLICT (id) DO UPDATE SET model = excluded.model, vector = excluded.vector`

// PutVectors keeps vectors of exchanges that are there.
func (s *Store) PutVectors(ctx context.Context, scope store.Scope, session string, list []store.ExchangeVector) error {
	id, err := s.tenant(ctx, scope)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	digest := sessionDigest(session)
	return s.writer.add(ctx, func(c *conn) error {
		for i := range list {
			v := &list[i]
			if v.Seq < 0 || v.Seq > seqMask {
				continue // it would be another session's
			}
			if err := c.exec(putVector, id, digest, v.Seq, v.ID, v.Model, store.EncodeVector(v.Vector), s.now().UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
}

var vectorsOfQuery = `SELECT t.id, t.model, t.vector
	FROM sessions s JOIN turns t ON t.id IN (SELECT (s.id << 32) + value FROM json_each(?3))
	WHERE s.tenant = ?1 AND s.digest = ?2 AND ` + alive(`?4`)

// Vectors returns the vectors of exchanges.
func (s *Store) Vectors(ctx context.Context, scope store.Scope, session string, seqs []int64) ([]store.ExchangeVector, error) {
	id, err := s.tenant(ctx, scope)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rows, err := s.query(ctx, vectorsOfQuery, id, sessionDigest(session), seqList(seqs), s.now().UnixMilli())
	if err != nil {
		return nil, err
	}
	var list []store.ExchangeVector
	err = each(ctx, rows, func() (bool, error) {
		var v store.ExchangeVector
		var vector []byte
		err := rows.Scan(&v.Seq, &v.Model, &vector)
		if err == nil {
			v.Vector, err = store.DecodeVector(vector)
		}
		v.Seq &= seqMask
		list = append(list, v)
		return true, err
	})
	return list, err
}

// seqList is an array of JSON with the Seqs that an exchange may have.
func seqList(seqs []int64) string {
	list := append(make([]byte, 0, 8*len(seqs)), '[')
	for _, seq := range seqs {
		if seq < 0 || seq > seqMask {
			continue // it would be another session's
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = strconv.AppendInt(list, seq, 10)
	}
	return string(append(list, ']'))
}

var _ store.Vectors = (*Store)(nil)
