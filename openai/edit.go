package openai

import (
	"cmp"
	"slices"

	"github.com/tidwall/gjson"
)

// Edit is what is added to a chat request on its way to the router.
type Edit struct {
	// History are message objects that go behind the leading system and
	// developer messages.
	History [][]byte
	// Quoted is text that goes into the message with the index QuotedIn,
	// ahead of its own; empty for none. A message without content stays
	// as it is.
	Quoted   string
	QuotedIn int
	// IncludeUsage asks the router for the usage in a stream.
	IncludeUsage bool
}

// LeadingSystem is the number of system and developer messages with which the
// request begins.
func (c *Chat) LeadingSystem() int {
	n := 0
	for n < len(c.Messages) && c.Messages[n].System() {
		n++
	}
	return n
}

// LastUser is the index of the last user message, or -1.
func (c *Chat) LastUser() int {
	for i := len(c.Messages) - 1; i >= 0; i-- {
		if c.Messages[i].Role == "user" {
			return i
		}
	}
	return -1
}

// splice is a replacement of the bytes [start, end) of a body.
type splice struct {
	start, end int
	with       [][]byte // one behind the other
}

// Upstream is the body for the router: the client's bytes without the
// extension fields and with the edit. The body is built once; what isn't
// edited is copied as it came. Where there is nothing to change, it is the
// client's own slice.
func (c *Chat) Upstream(e Edit) []byte {
	splices := c.cutExtension()
	if e.IncludeUsage {
		splices = append(splices, c.askForUsage()...)
	}
	if s, ok := c.insertHistory(e.History); ok {
		splices = append(splices, s)
	}
	if e.Quoted != "" && c.Messages[e.QuotedIn].quotable() {
		splices = append(splices, c.insertQuoted(e))
	}
	if len(splices) == 0 {
		return c.body
	}
	// What is inserted where something is cut goes ahead of the cut.
	slices.SortFunc(splices, func(a, b splice) int { return cmp.Or(a.start-b.start, a.end-b.end) })
	size := len(c.body)
	for _, s := range splices {
		size -= s.end - s.start
		for _, w := range s.with {
			size += len(w)
		}
	}
	out, at := make([]byte, 0, size), 0
	for _, s := range splices {
		out = append(out, c.body[at:s.start]...)
		for _, w := range s.with {
			out = append(out, w...)
		}
		at = s.end
	}
	return append(out, c.body[at:]...)
}

// cutExtension removes the extension fields, each with one comma: up to the
// next member, or, at the end of the object, from the last member that stays.
func (c *Chat) cutExtension() []splice {
	cuts := make([]splice, 0, len(extensionFields)+2) // and room for the edit
	kept := 0                                         // the last member that stays; a chat has a model and messages
	for i, f := range c.fields {
		if !extensionFields[f.name] {
			kept = i
		}
	}
	for i, f := range c.fields {
		switch {
		case !extensionFields[f.name]:
		case i < kept:
			cuts = append(cuts, splice{start: f.key, end: c.fields[i+1].key})
		default: // nothing stays behind this one: cut the rest of the object in one go
			return append(cuts, splice{start: c.fields[kept].end, end: c.fields[len(c.fields)-1].end})
		}
	}
	return cuts
}

func (c *Chat) insertHistory(history [][]byte) (splice, bool) {
	if len(history) == 0 {
		return splice{}, false
	}
	comma := []byte{','}
	with := make([][]byte, 0, 2*len(history))
	at := c.LeadingSystem()
	if at == len(c.Messages) { // nothing but system messages: behind the last one
		for _, m := range history {
			with = append(with, comma, m)
		}
		end := c.Messages[at-1].end
		return splice{start: end, end: end, with: with}, true
	}
	for _, m := range history {
		with = append(with, m, comma)
	}
	start := c.Messages[at].start
	return splice{start: start, end: start, with: with}, true
}

func (c *Chat) insertQuoted(e Edit) splice {
	m := &c.Messages[e.QuotedIn]
	at, with := m.quote(e.Quoted)
	return splice{start: m.start + at, end: m.start + at, with: [][]byte{with}}
}

// Quote returns the message object with text put ahead of its own. A message
// without content is returned as it is.
func (m *Message) Quote(text string) []byte {
	if !m.quotable() {
		return m.JSON
	}
	at, with := m.quote(text)
	return slices.Concat(m.JSON[:at], with, m.JSON[at:])
}

// quotable reports whether the message has content to put text ahead of.
func (m *Message) quotable() bool { return m.content.Type == gjson.String || m.content.IsArray() }

// quote says what has to be inserted where in the message object. A string and
// an array of parts both begin with one byte, behind which the text goes.
func (m *Message) quote(text string) (at int, with []byte) {
	at = offset(unsafeString(m.JSON), m.content.Raw) + 1
	quoted := appendString(make([]byte, 0, len(text)+len(text)/16+2), text)
	if m.content.Type == gjson.String {
		return at, quoted[1 : len(quoted)-1]
	}
	with = append([]byte(`{"type":"text","text":`), quoted...)
	with = append(with, '}')
	if m.content.Get("0").Exists() {
		with = append(with, ',')
	}
	return at, with
}

// less is a copy of an object without some members. All of a name go, in one
// pass: a client that repeats a member a million times costs no more than
// another.
func less(object gjson.Result, dropped func(name string, v gjson.Result) bool) []byte {
	b := append(make([]byte, 0, len(object.Raw)), '{')
	object.ForEach(func(key, v gjson.Result) bool {
		if dropped(key.String(), v) {
			return true
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(b, key.Raw...), ':')
		b = append(b, v.Raw...)
		return true
	})
	return append(b, '}')
}

// Lead is an object with members ahead of its own: members is their JSON, without
// braces. Where the object has members of the names itself, those ahead stand.
func Lead(object []byte, members string, names ...string) []byte {
	rest := less(gjson.ParseBytes(object), func(name string, _ gjson.Result) bool { return slices.Contains(names, name) })
	if string(rest) == "{}" {
		return []byte("{" + members + "}")
	}
	return append([]byte("{"+members+","), rest[1:]...)
}
