package redis

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"
	"time"
	"unsafe"

	"github.com/backstory-proxy/backstory/store"
)

// An exchange is one element of the log:
//
//	<seq>:<offset>:<before>:<messages>:<tokens>:<digest of the ID, 16 bytes><record>
//
// Offset and before are the tokens and messages appended to the session before
// it. The script that appends it writes the first three numbers; scripts tell by
// them how far back to read, and which exchange to replace. The record is ours alone: a version, fixed
// fields, strings behind their lengths, and last the messages as they came, which
// redis-cli shows as they are.

// What opens a record, so that its layout can change. An exchange without a parent
// is written as it always was: a proxy of an older version on the same servers
// reads it. It refuses any other, and so does this one what is newer.
const (
	recordPlain  = 1
	recordParent = 2 // the parent's ID follows the exchange's
)

// errNewer says that a record was written by a version that knows more.
var errNewer = errors.New("an exchange was written by a newer version of Backstory; run that on every proxy")

// idDigest stands for an exchange's ID, which may be long, in its session.
func idDigest(id string) []byte {
	digest := sha256.Sum256([]byte(id))
	return digest[:16]
}

// encodeExchange returns the record of an exchange.
func encodeExchange(e *store.Exchange) []byte {
	array, meta := store.EncodeMessages(e.Messages)
	refs := store.EncodeRefs(e.Passages, e.Recalled)
	b := make([]byte, 0, 64+len(e.ID)+len(e.Parent)+len(e.Model)+len(e.Finish)+len(refs)+len(meta)+len(array))
	version, texts := byte(recordPlain), []string{e.ID, e.Model, e.Finish}
	if e.Parent != "" {
		version, texts = recordParent, []string{e.ID, e.Parent, e.Model, e.Finish}
	}
	b = append(b, version)
	b = binary.AppendVarint(b, e.Created.UnixMilli())
	if e.Hidden {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = append(b, e.Carried[:]...)
	for _, s := range texts {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	for _, s := range [][]byte{refs, meta} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return append(b, array...)
}

// decodeExchange reads an element of the log. The exchange takes the element's
// memory over: nothing else may hold it.
func decodeExchange(element string) (e store.Exchange, err error) {
	r := reader{b: unsafe.Slice(unsafe.StringData(element), len(element))}
	e.Seq, e.Offset = r.number(), r.number()
	for range 3 {
		r.number() // scripts alone want these
	}
	r.bytes(len(idDigest("")))
	version := r.bytes(1)
	switch {
	case r.failed || version[0] < recordPlain:
		return store.Exchange{}, errCorrupt
	case version[0] > recordParent:
		return store.Exchange{}, errNewer
	}
	e.Created = time.UnixMilli(r.varint()).UTC()
	e.Hidden = bytes.Equal(r.bytes(1), []byte{1})
	copy(e.Carried[:], r.bytes(len(e.Carried)))
	// Copies: the JSON that shares the memory belongs to the caller, who may
	// write to it.
	e.ID = string(r.field())
	if version[0] >= recordParent {
		e.Parent = string(r.field())
	}
	e.Model, e.Finish = string(r.field()), string(r.field())
	refs, meta := r.field(), r.field()
	if r.failed {
		return store.Exchange{}, errCorrupt
	}
	if e.Passages, e.Recalled, err = store.DecodeRefs(refs); err != nil {
		return store.Exchange{}, err
	}
	if e.Messages, err = store.DecodeMessages(r.b, meta); err != nil {
		return store.Exchange{}, err
	}
	return e, nil
}

// decodeExchanges reads elements of the log, in their order.
func decodeExchanges(elements []any) ([]store.Exchange, error) {
	list := make([]store.Exchange, 0, len(elements))
	for _, element := range elements {
		text, _ := element.(string)
		e, err := decodeExchange(text)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// reader takes fields off the front of b. Once one isn't there, it has failed
// and returns zeros.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) fail() {
	r.b, r.failed = nil, true
}

// number reads decimal digits up to a colon.
func (r *reader) number() int64 {
	end := bytes.IndexByte(r.b, ':')
	if end < 1 {
		r.fail()
		return 0
	}
	digits, negative := bytes.CutPrefix(r.b[:end], []byte("-"))
	var n int64
	for _, c := range digits {
		if !strings.ContainsRune("0123456789", rune(c)) {
			r.fail()
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	r.b = r.b[end+1:]
	if negative {
		return -n
	}
	return n
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) field() []byte {
	length, n := binary.Uvarint(r.b)
	if n <= 0 || length > uint64(len(r.b)-n) {
		r.fail()
		return nil
	}
	r.b = r.b[n:]
	return r.bytes(int(length))
}
