package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/store"
)

var (
	// errCorrupt says that an entry can't be read back. It tells nothing of what it
	// holds.
	errCorrupt = errors.New("a journaled exchange is corrupt")
	// errNewer says that an entry was written by a version that knows more.
	errNewer = errors.New("a journaled exchange was written by a newer version of Backstory; run that")
)

// A record is an entry as it is written: a zero byte, the version of its form, and
// that form. A gob, as records were up to version 1, never begins with a zero.
const (
	recordMark    = 0
	recordVersion = 2
)

// record is the form of version 2, in JSON. It is apart from the types that it is
// made of, so that those can change: a new field here is left out by an older
// version, and is zero in an older record; what no longer means the same takes a
// new version. Texts are bytes: they may be any, and JSON has only valid UTF-8.
type record struct {
	Tenant   []byte         `json:"tenant"`
	User     []byte         `json:"user,omitempty"`
	Session  []byte         `json:"session"`
	Exchange recordExchange `json:"exchange"`
	Said     []recordSaid   `json:"said,omitempty"`
	New      int            `json:"new,omitempty"`
	Replaces int64          `json:"replaces,omitempty"`
	Saved    bool           `json:"saved,omitempty"`
	Seq      int64          `json:"mark_seq,omitempty"`
	Epoch    int64          `json:"mark_epoch,omitempty"`
	Month    int32          `json:"usage_month,omitempty"`
	Tokens   int64          `json:"usage_tokens,omitempty"`
	TTL      int64          `json:"ttl_ns,omitempty"`
}

type recordExchange struct {
	ID       []byte           `json:"id"`
	Parent   []byte           `json:"parent,omitempty"`
	Seq      int64            `json:"seq,omitempty"`
	Offset   int64            `json:"offset,omitempty"`
	Created  *int64           `json:"created_ms,omitempty"`
	Model    []byte           `json:"model,omitempty"`
	Finish   []byte           `json:"finish,omitempty"`
	Hidden   bool             `json:"hidden,omitempty"`
	Carried  []byte           `json:"carried,omitempty"`
	Passages []recordPassage  `json:"passages,omitempty"`
	Recalled []recordRecalled `json:"recalled,omitempty"`
	Messages []recordMessage  `json:"messages,omitempty"`
}

type recordPassage struct {
	FileID []byte `json:"file"`
	N      int    `json:"n"`
}

type recordRecalled struct {
	Seq  int64 `json:"seq"`
	N    int   `json:"n"`
	From int   `json:"from,omitempty"`
	To   int   `json:"to,omitempty"`
}

type recordMessage struct {
	JSON    []byte `json:"json"`
	Tokens  int    `json:"tokens"`
	Digest  []byte `json:"digest"`
	Created *int64 `json:"created_ms,omitempty"`
}

type recordSaid struct {
	Index  int    `json:"index"`
	Role   []byte `json:"role"`
	Digest []byte `json:"digest"`
}

// encode packs an entry. A user's is refused: the file finds entries by their
// tenant and session alone.
func encode(e *Entry) ([]byte, error) {
	if err := e.Scope.Whole(); err != nil {
		return nil, err
	}
	x := &e.Draft.Exchange
	r := record{
		Tenant: []byte(e.Scope.Tenant), User: []byte(e.Scope.User), Session: []byte(e.Session),
		New: e.Draft.New, Replaces: e.Draft.Replaces, Saved: e.Saved,
		Seq: e.Mark.Seq, Epoch: e.Mark.Epoch, Month: int32(e.Usage.Month), Tokens: e.Usage.Tokens, TTL: int64(e.TTL),
		Exchange: recordExchange{
			ID: []byte(x.ID), Parent: []byte(x.Parent), Seq: x.Seq, Offset: x.Offset, Created: fromTime(x.Created),
			Model: []byte(x.Model), Finish: []byte(x.Finish), Hidden: x.Hidden, Carried: x.Carried[:],
		},
	}
	for _, p := range x.Passages {
		r.Exchange.Passages = append(r.Exchange.Passages, recordPassage{[]byte(p.FileID), p.N})
	}
	for _, m := range x.Recalled {
		r.Exchange.Recalled = append(r.Exchange.Recalled, recordRecalled(m))
	}
	for i := range x.Messages {
		m := &x.Messages[i]
		r.Exchange.Messages = append(r.Exchange.Messages, recordMessage{m.JSON, m.Tokens, m.Digest[:], fromTime(m.Created)})
	}
	for i := range e.Draft.Said {
		m := &e.Draft.Said[i]
		r.Said = append(r.Said, recordSaid{m.Index, []byte(m.Role), m.Digest[:]})
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return append([]byte{recordMark, recordVersion}, text...), nil
}

// decode undoes encode, of this version and of those before it.
func decode(packed []byte) (e *Entry, err error) {
	switch {
	case len(packed) < 2:
		return nil, errCorrupt
	case packed[0] != recordMark:
		e, err = decodeGob(packed)
	case packed[1] > recordVersion:
		return nil, errNewer
	case packed[1] == recordVersion:
		e, err = decodeJSON(packed[2:])
	default:
		return nil, errCorrupt
	}
	if err != nil {
		return nil, err
	}
	d := &e.Draft
	if own := len(d.Said) - d.New; e.Session == "" || d.New < 0 || own < 0 || own > len(d.Exchange.Messages) {
		return nil, errCorrupt
	}
	return e, nil
}

func decodeJSON(text []byte) (*Entry, error) {
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, errCorrupt
	}
	x := &r.Exchange
	e := &Entry{
		Scope: store.Scope{Tenant: string(r.Tenant), User: string(r.User)}, Session: string(r.Session), Saved: r.Saved,
		Mark: store.Mark{Seq: r.Seq, Epoch: r.Epoch}, Usage: store.Used{Month: store.Month(r.Month), Tokens: r.Tokens}, TTL: time.Duration(r.TTL),
		Draft: memory.Draft{New: r.New, Replaces: r.Replaces, Exchange: store.Exchange{
			ID: string(x.ID), Parent: string(x.Parent), Seq: x.Seq, Offset: x.Offset, Created: toTime(x.Created),
			Model: string(x.Model), Finish: string(x.Finish), Hidden: x.Hidden,
		}},
	}
	whole := toDigest(&e.Draft.Exchange.Carried, x.Carried)
	for _, p := range x.Passages {
		e.Draft.Exchange.Passages = append(e.Draft.Exchange.Passages, store.ChunkRef{FileID: string(p.FileID), N: p.N})
	}
	for _, m := range x.Recalled {
		e.Draft.Exchange.Recalled = append(e.Draft.Exchange.Recalled, store.MessageRef(m))
	}
	for _, m := range x.Messages {
		message := store.Message{JSON: m.JSON, Tokens: m.Tokens, Created: toTime(m.Created)}
		whole = toDigest(&message.Digest, m.Digest) && whole
		e.Draft.Exchange.Messages = append(e.Draft.Exchange.Messages, message)
	}
	for _, m := range r.Said {
		said := memory.RequestMessage{Index: m.Index, Role: string(m.Role)}
		whole = toDigest(&said.Digest, m.Digest) && whole
		e.Draft.Said = append(e.Draft.Said, said)
	}
	if !whole {
		return nil, errCorrupt
	}
	return e, nil
}

// fromTime is a time in milliseconds; nil where there is none.
func fromTime(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

func toTime(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return time.UnixMilli(*ms).UTC()
}

func toDigest(d *store.Digest, b []byte) bool { return copy(d[:], b) == len(d) && len(b) == len(d) }
