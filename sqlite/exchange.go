package sqlite

import (
	"crypto/sha256"
	"database/sql"
	"errors"

	"github.com/backstory-proxy/backstory/store"
)

// exchangeColumns are what exchangeRow scans, of exchanges named e joined to
// their bodies.
const exchangeColumns = `e.id, e.name, e.parent, e.position, e.created, e.model, e.finish, e.hidden, e.carried, e.passages, b.messages, e.meta`

const joinBodies = ` LEFT JOIN bodies b ON b.id = e.body `

// inSession selects the exchanges of a session named s: one range of rowids.
const inSession = `e.id BETWEEN s.id << 32 AND (s.id << 32) + 4294967295`

// seqMask takes the Seq out of an exchange's id.
const seqMask = 1<<32 - 1

// exchangeRow receives an exchange's columns. They are all NULL where a session
// without exchanges was joined to nothing.
type exchangeRow struct {
	id, position, created             sql.NullInt64
	name, parent, model, finish       sql.NullString
	hidden                            sql.NullBool
	carried, passages, messages, meta []byte
}

func (r *exchangeRow) columns() []any {
	return []any{&r.id, &r.name, &r.parent, &r.position, &r.created, &r.model, &r.finish, &r.hidden, &r.carried, &r.passages, &r.messages, &r.meta}
}

// exchange makes an Exchange of the row. It owns the row's slices from then on.
func (r *exchangeRow) exchange() (store.Exchange, error) {
	messages, err := store.DecodeMessages(r.messages, r.meta)
	if err != nil {
		return store.Exchange{}, err
	}
	passages, recalled, err := store.DecodeRefs(r.passages)
	if err != nil {
		return store.Exchange{}, err
	}
	e := store.Exchange{
		ID:       r.name.String,
		Parent:   r.parent.String,
		Seq:      r.id.Int64 & seqMask,
		Offset:   r.position.Int64,
		Created:  fromMilli(r.created.Int64),
		Model:    r.model.String,
		Finish:   r.finish.String,
		Hidden:   r.hidden.Bool,
		Passages: passages,
		Recalled: recalled,
		Messages: messages,
	}
	if copy(e.Carried[:], r.carried) != len(e.Carried) {
		return store.Exchange{}, errors.New("an exchange's digest is corrupt")
	}
	return e, nil
}

// sessionDigest is what a session is found by, whatever its name holds.
func sessionDigest(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:]
}
