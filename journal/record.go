package journal

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
)

// errCorrupt says that an entry can't be read back. It tells nothing of what it
// holds.
var errCorrupt = errors.New("a journaled exchange is corrupt")

// encode packs an entry. A gob goes by the names of the fields: those that are
// added later are kept without a word of ours, and entries of an older version
// can still be read.
func encode(e *Entry) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(e); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b.Bytes(), nil
}

// decode undoes encode.
func decode(record []byte) (*Entry, error) {
	e := new(Entry)
	if err := gob.NewDecoder(bytes.NewReader(record)).Decode(e); err != nil {
		return nil, errCorrupt
	}
	d := &e.Draft
	if own := len(d.Said) - d.New; e.Session == "" || d.New < 0 || own < 0 || own > len(d.Exchange.Messages) {
		return nil, errCorrupt
	}
	return e, nil
}
