// Package memory reconciles a request with its session. It decides which earlier
// exchanges the prompt includes, and which messages of the request are new to the
// session.
//
// Reconcile takes a request and the session's tail, and returns the exchanges to
// include. A Completed turns the request and its reply into the Draft to save. A
// Recaller finds the older messages that a request is about. Package store keeps the
// exchanges, and package prompt fits them into the token budget.
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

// Digest identifies a message by its role, its content and its tool fields. Clients
// resend a message with its members in another order, with added nulls, with its text
// as a string or as a single part, or with its tool arguments encoded anew. The
// digest stays the same. It is the start of a SHA-256.
func Digest(m *openai.Message) store.Digest {
	w := canonical{hash: sha256.New()}
	return w.message(m)
}

// digestAll identifies a list of messages. The digest of an empty list is zero.
func digestAll(conv []RequestMessage) store.Digest {
	if len(conv) == 0 {
		return store.Digest{}
	}
	w := canonical{hash: sha256.New()}
	for i := range conv {
		w.buf = append(w.buf, conv[i].Digest[:]...)
	}
	return w.sum()
}

// canonical hashes fields in a form in which different lists of fields have different
// bytes. It can be reused for one message after the other.
type canonical struct {
	hash hash.Hash
	buf  []byte // bytes that are still to be hashed
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
	if m.Role == "function" { // its name alone tells which call it answers
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

// content writes the content of a message. None, null and an empty string are the
// same.
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

// text writes a text, trimmed: some clients drop the white space around it.
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

// maxDepth is how deep value sorts members. Each level is parsed once more for every
// level above it.
const maxDepth = 32

// value writes a JSON value. White space, escapes, the order of members and members
// that are null make no difference.
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
