package journal

import (
	"bytes"
	"encoding/gob"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/store"
)

// gobRecord is a record of version 1: a gob of what an entry was made of then. A gob
// finds fields by their names, which must stay.
type gobRecord struct {
	Tenant, Session string
	Draft           struct {
		Exchange gobExchange
		Said     []gobSaid
		New      int
		Replaces int64
	}
	Saved bool
	Mark  struct{ Seq, Epoch int64 }
	Usage struct {
		Month  int32
		Tokens int64
	}
	TTL time.Duration
}

type gobExchange struct {
	ID, Parent  string
	Seq, Offset int64
	Created     time.Time
	Model       string
	Finish      string
	Hidden      bool
	Carried     [16]byte
	Passages    []struct {
		FileID string
		N      int
	}
	Recalled []struct {
		Seq         int64
		N, From, To int
	}
	Messages []struct {
		JSON    []byte
		Tokens  int
		Digest  [16]byte
		Created time.Time
	}
}

type gobSaid struct {
	Index  int
	Role   string
	Digest [16]byte
}

// decodeGob reads a record of version 1.
func decodeGob(packed []byte) (*Entry, error) {
	var r gobRecord
	if err := gob.NewDecoder(bytes.NewReader(packed)).Decode(&r); err != nil {
		return nil, errCorrupt
	}
	x := &r.Draft.Exchange
	d := memory.Draft{New: r.Draft.New, Replaces: r.Draft.Replaces, Exchange: store.Exchange{
		ID: x.ID, Parent: x.Parent, Seq: x.Seq, Offset: x.Offset, Created: x.Created,
		Model: x.Model, Finish: x.Finish, Hidden: x.Hidden, Carried: x.Carried,
	}}
	for _, p := range x.Passages {
		d.Exchange.Passages = append(d.Exchange.Passages, store.ChunkRef{FileID: p.FileID, N: p.N})
	}
	for _, m := range x.Recalled {
		d.Exchange.Recalled = append(d.Exchange.Recalled, store.MessageRef{Seq: m.Seq, N: m.N, From: m.From, To: m.To})
	}
	for _, m := range x.Messages {
		d.Exchange.Messages = append(d.Exchange.Messages, store.Message{JSON: m.JSON, Tokens: m.Tokens, Digest: m.Digest, Created: m.Created})
	}
	for _, m := range r.Draft.Said {
		d.Said = append(d.Said, memory.RequestMessage{Index: m.Index, Role: m.Role, Digest: m.Digest})
	}
	return &Entry{
		Scope: store.Scope{Tenant: r.Tenant}, Session: r.Session, Draft: d, Saved: r.Saved,
		Mark: store.Mark{Seq: r.Mark.Seq, Epoch: r.Mark.Epoch}, Usage: store.Used{Month: store.Month(r.Usage.Month), Tokens: r.Usage.Tokens}, TTL: r.TTL,
	}, nil
}
