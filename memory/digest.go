// Package memory decides what of a session a request is given, and what of the
// request is new to the session. A request and the session's tail go in; out
// come the exchanges to supply and the exchange to save. It does no I/O of its
// own: package store keeps the exchanges, package prompt fits them into the
// budget.
package memory

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"io"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// Digest identifies a message by its role, its content and its tool fields.
// Clients resend messages with other member orders, added nulls, text as a
// string or as one part, and tool arguments re-encoded; none of that makes
// another message. The result is the start of a SHA-256.
func Digest(m *openai.Message) store.Digest {
	w := canonical{hash: sha256.New()}
	return w.message(m)
}

// digestAll identifies a run of messages; of an empty one it is zero.
func digestAll(said []Said) store.Digest {
	if len(said) == 0 {
		return store.Digest{}
	}
	w := canonical{hash: sha256.New()}
	for i := range said {
		w.buf = append(w.buf, said[i].Digest[:]...)
	}
	return w.sum()
}

// canonical writes fields so that no two lists of fields give the same bytes.
// It can be used for one message after the other.
type canonical struct {
	hash hash.Hash
	buf  []byte // what the hash hasn't seen yet
}

func (w *canonical) message(m *openai.Message) store.Digest {
	var calls, call, id, name, refusal gjson.Result
	m.Each(func(member string, v gjson.Result) {
		switch member {
		case "tool_calls":
			calls = v
		case "function_call":
			call = v
		case "tool_call_id":
			id = v
		case "name":
			name = v
		case "refusal":
			refusal = v
		}
	})
	w.string(m.Role)
	w.content(m.Content())
	if refusal.Type == gjson.String {
		w.text(refusal.Str)
	}
	calls.ForEach(func(_, c gjson.Result) bool {
		w.string("call")
		w.string(c.Get("id").String())
		if custom := c.Get("custom"); custom.IsObject() {
			w.value(custom, 0)
		} else {
			w.function(c.Get("function"))
		}
		return true
	})
	if call.IsObject() {
		w.string("function_call")
		w.function(call)
	}
	if id.Exists() {
		w.string("answers")
		w.string(id.String())
	}
	if m.Role == "function" { // the name is all that says which call it answers
		w.string("answers")
		w.string(name.String())
	}
	return w.sum()
}

func (w *canonical) sum() store.Digest {
	w.flush()
	w.buf = w.hash.Sum(w.buf)
	d := store.Digest(w.buf[:16])
	w.hash.Reset()
	w.buf = w.buf[:0]
	return d
}

func (w *canonical) flush() {
	w.hash.Write(w.buf)
	w.buf = w.buf[:0]
}

func (w *canonical) string(s string) {
	w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(len(s)))
	const long = 4096 // an image, say: not worth a copy
	if len(s) < long {
		w.buf = append(w.buf, s...)
		return
	}
	w.flush()
	io.WriteString(w.hash, s)
}

// content writes what a message says; nothing, an empty string and null are
// the same.
func (w *canonical) content(c gjson.Result) {
	if c.Type == gjson.String {
		w.text(c.Str)
		return
	}
	c.ForEach(func(_, part gjson.Result) bool {
		if part.Get("type").Str == "text" {
			w.text(part.Get("text").String())
		} else if part.IsObject() {
			w.string("part")
			w.value(part, 0)
		}
		return true
	})
}

// text writes words. White space around them is dropped by some clients.
func (w *canonical) text(s string) {
	if s = strings.TrimSpace(s); s != "" {
		w.string("text")
		w.string(s)
	}
}

func (w *canonical) function(f gjson.Result) {
	w.string(f.Get("name").String())
	switch args := f.Get("arguments").String(); {
	case strings.TrimSpace(args) == "": // a call without arguments; some clients make it {}
		w.value(gjson.Parse("{}"), 0)
	case json.Valid([]byte(args)):
		w.value(gjson.Parse(args), 0)
	default:
		w.string("text")
		w.string(args)
	}
}

// maxDepth is how deep value looks for the order of members: every level is
// read once more for each one above it.
const maxDepth = 32

// value writes a JSON value whatever its white space, its escapes, the order
// of its members and the null ones among them.
func (w *canonical) value(v gjson.Result, depth int) {
	type member struct {
		name  string
		value gjson.Result
	}
	switch {
	case v.Type == gjson.String:
		w.string("string")
		w.string(v.Str)
	case v.Type != gjson.JSON || depth == maxDepth:
		w.string("raw")
		w.string(v.Raw)
	case v.IsArray():
		w.string("[")
		v.ForEach(func(_, e gjson.Result) bool {
			w.value(e, depth+1)
			return true
		})
		w.string("]")
	default:
		var members []member
		v.ForEach(func(key, e gjson.Result) bool {
			if e.Type != gjson.Null {
				members = append(members, member{key.Str, e})
			}
			return true
		})
		slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
		w.string("{")
		for _, m := range members {
			w.string(m.name)
			w.value(m.value, depth+1)
		}
		w.string("}")
	}
}
