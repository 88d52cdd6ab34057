package journal

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/store"
)

// errCorrupt says that an entry can't be read back. It tells nothing of what it
// holds.
var errCorrupt = errors.New("a journaled exchange is corrupt")

// record is an entry as it is written. A gob identifies fields by their names, here
// and in memory.Draft, memory.RequestMessage and store.Exchange: those names must
// stay. A field that is added is kept without further code; entries of an older
// version can still be read, and an older version reads ours.
type record struct {
	Tenant, Session string
	Draft           memory.Draft
	Saved           bool
	Mark            store.Mark
	Usage           store.Used
	TTL             time.Duration
}

// encode packs an entry. A user's is refused: an older version, which may be the
// one that replays it, would take it for the tenant's.
func encode(e *Entry) ([]byte, error) {
	if err := e.Scope.Whole(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(record{e.Scope.Tenant, e.Session, e.Draft, e.Saved, e.Mark, e.Usage, e.TTL})
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b.Bytes(), nil
}

// decode undoes encode.
func decode(packed []byte) (*Entry, error) {
	var r record
	if err := gob.NewDecoder(bytes.NewReader(packed)).Decode(&r); err != nil {
		return nil, errCorrupt
	}
	d := &r.Draft
	if own := len(d.Said) - d.New; r.Session == "" || d.New < 0 || own < 0 || own > len(d.Exchange.Messages) {
		return nil, errCorrupt
	}
	return &Entry{store.Scope{Tenant: r.Tenant}, r.Session, r.Draft, r.Saved, r.Mark, r.Usage, r.TTL}, nil
}
