package openai

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// maxReply bounds the deltas that are kept of one reply. Replies are some
// hundred KB; one without end must not take the memory of all.
const maxReply = 32 << 20

// collector assembles a reply from the chunks of a stream.
type collector struct {
	message   object
	size      int  // of the deltas taken in
	seen      bool // a choice 0 was seen
	finish    string
	model     string
	failed    bool
	truncated bool
	usage     Usage
}

// add takes one event in, an object; choices is its member of that name.
func (c *collector) add(event, choices gjson.Result) {
	if truthy(event.Get("error")) {
		c.failed = true
	}
	if c.model == "" {
		c.model = strings.Clone(event.Get("model").Str)
	}
	c.takeUsage(event)
	if !choices.IsArray() {
		return
	}
	choices.ForEach(func(_, choice gjson.Result) bool {
		if !choice.IsObject() || choice.Get("index").Int() != 0 {
			return true
		}
		c.seen = true
		if f := choice.Get("finish_reason"); f.Type == gjson.String && f.Str != "" {
			c.finish = strings.Clone(f.Str)
			c.failed = c.failed || f.Str == "error"
		}
		if delta := choice.Get("delta"); delta.IsObject() && !c.truncated {
			if c.size += len(delta.Raw); c.size > maxReply {
				c.giveUp()
				return true
			}
			if c.message.merge(delta); !c.message.fewCalls() {
				c.giveUp()
			}
		}
		return true
	})
}

// giveUp says that the reply can't be kept.
func (c *collector) giveUp() {
	c.truncated = true
	c.message = object{}
}

func (c *collector) reply() *Reply {
	r := &Reply{Finish: c.finish, Model: c.model, Failed: c.failed, Truncated: c.truncated, Usage: c.usage}
	if !c.seen || c.truncated {
		return r
	}
	m := object{slices.Clone(c.message.members)} // more deltas may follow
	r.HasText = m.says("content") || m.says("refusal") || m.find("audio") != nil
	r.HasCalls = m.find("tool_calls") != nil || m.find("function_call") != nil
	if len(m.text("role")) == 0 {
		m.set("role", `"assistant"`)
	}
	if m.find("content") == nil {
		m.set("content", "null")
	}
	r.Message = m.appendJSON(nil)
	return r
}

// object is a JSON object that grows by deltas: text grows at its end, lists
// by element, objects by member; anything else is replaced.
type object struct{ members []member }

type member struct {
	name string
	value
}

// value is a JSON value that grows by deltas.
type value struct {
	kind    kind
	bytes   []byte  // text, unescaped, or raw JSON
	balance balance // of the text of arguments
	object  object
	list    []value
	newest  map[string]int // of tool calls: where the newest with an index is in the list
}

type kind byte

const (
	none kind = iota
	text
	raw
	objects
	list
)

// once are the members that come in one piece. Some routers tell them with
// every chunk, and some make up another id each time: the first one stays,
// which is the one that clients answer to.
var once = map[string]bool{"role": true, "id": true, "type": true, "format": true}

func (o *object) find(name string) *value {
	for i := range o.members {
		if o.members[i].name == name {
			return &o.members[i].value
		}
	}
	return nil
}

// text is the text of a member, where it is one.
func (o *object) text(name string) []byte {
	if v := o.find(name); v != nil && v.kind == text {
		return v.bytes
	}
	return nil
}

// says reports whether a member has text or parts.
func (o *object) says(name string) bool {
	v := o.find(name)
	return v != nil && (v.kind == text && len(v.bytes) > 0 || v.kind == list && len(v.list) > 0)
}

// fewCalls reports whether the message makes no more than MaxCalls.
func (o *object) fewCalls() bool {
	v := o.find("tool_calls")
	return v == nil || len(v.list) <= MaxCalls
}

// set puts raw JSON in the place of a member.
func (o *object) set(name, json string) {
	v := value{kind: raw, bytes: []byte(json)}
	if old := o.find(name); old != nil {
		*old = v
		return
	}
	o.members = append(o.members, member{name, v})
}

func (o *object) merge(delta gjson.Result) {
	delta.ForEach(func(key, d gjson.Result) bool {
		name := key.Str
		// A message with an empty list of calls is refused by providers.
		if d.Type == gjson.Null || name == "tool_calls" && isEmptyArray(d) {
			return true
		}
		v := o.find(name)
		if v == nil {
			o.members = append(o.members, member{name: strings.Clone(name)})
			v = &o.members[len(o.members)-1].value
		}
		v.merge(name, d)
		return true
	})
}

// merge takes in the delta of the member called name.
func (v *value) merge(name string, d gjson.Result) {
	switch {
	case d.Type == gjson.String:
		v.mergeText(name, deltaText(d))
	case d.IsObject():
		if v.kind != objects {
			*v = value{kind: objects}
		}
		v.object.merge(d)
	case d.IsArray():
		if v.kind != list {
			before := string(v.bytes)
			isContent := name == "content" && v.kind == text
			*v = value{kind: list}
			if isContent && before != "" {
				v.addText(before)
			}
		}
		d.ForEach(func(_, e gjson.Result) bool {
			v.element(name, e).merge("", e)
			return true
		})
	case gjson.Valid(d.Raw):
		*v = value{kind: raw, bytes: []byte(d.Raw)}
	default: // such as NaN, which Python writes
		*v = value{kind: raw, bytes: []byte("null")}
	}
}

func (v *value) mergeText(name, s string) {
	switch {
	case s == "" && v.kind != none: // nothing new
	case v.kind == list && name == "content": // parts first, then words
		v.addText(s)
	case v.kind != text || len(v.bytes) == 0 || name == "signature":
		*v = value{kind: text, bytes: []byte(s)}
		v.follow(name, s)
	case once[name]:
	case name == "name" && string(v.bytes) == s: // told with every chunk
	default:
		v.bytes = joinText(v.bytes, s)
		v.follow(name, s)
	}
}

// follow follows the arguments of a call.
func (v *value) follow(name, s string) {
	if name == "arguments" {
		v.balance.write(s)
	}
}

// addText puts text at the end of a list of content parts.
func (v *value) addText(s string) {
	if n := len(v.list); n > 0 && string(v.list[n-1].object.text("type")) == "text" {
		if t := v.list[n-1].object.find("text"); t != nil && t.kind == text {
			t.bytes = joinText(t.bytes, s)
			return
		}
	}
	v.list = append(v.list, value{kind: objects, object: object{[]member{
		{"type", value{kind: text, bytes: []byte("text")}},
		{"text", value{kind: text, bytes: []byte(s)}},
	}}})
}

// element is the element that e continues, or a new one. Tool calls may come
// in turn, told apart by their index; of other lists only the last element can
// go on, where the index, the type and the id are the same.
func (v *value) element(name string, e gjson.Result) *value {
	calls := name == "tool_calls"
	index := e.Get("index").Raw
	if i := v.last(calls, index); i >= 0 && e.IsObject() {
		o := &v.list[i].object
		if at := o.find("index"); at != nil && string(at.bytes) == index {
			if calls && !o.startsCall(e) || !calls && o.agrees("type", e) && o.agrees("id", e) {
				return &v.list[i]
			}
		}
	}
	v.list = append(v.list, value{})
	if calls {
		if v.newest == nil {
			v.newest = make(map[string]int)
		}
		v.newest[strings.Clone(index)] = len(v.list) - 1
	}
	return &v.list[len(v.list)-1]
}

// last is the place in the list of the element that may go on, or -1.
func (v *value) last(calls bool, index string) int {
	if !calls {
		return len(v.list) - 1
	}
	if i, ok := v.newest[index]; ok {
		return i
	}
	return -1
}

// startsCall reports whether e begins a call of its own, although it has the
// index of this one: Gemini's calls all have the index 0, each in one piece.
func (o *object) startsCall(e gjson.Result) bool {
	f := o.find("function")
	if f == nil || e.Get("function.name").Str == "" || e.Get("function.arguments").Str == "" {
		return false
	}
	if id := o.text("id"); len(id) > 0 && e.Get("id").Str == string(id) {
		return false
	}
	arguments := f.object.find("arguments")
	return arguments != nil && arguments.balance.whole
}

// balance follows the brackets of an object that comes in pieces: some routers
// tell a call's name with each of them, and its arguments may be long.
type balance struct {
	depth             int
	inString, escaped bool
	whole             bool // it is there to its last bracket, and nothing else is
	broken            bool // there is more, or something else
}

func (b *balance) write(s string) {
	for i := 0; i < len(s) && !b.broken; i++ {
		switch c := s[i]; {
		case b.escaped:
			b.escaped = false
		case b.inString:
			b.escaped, b.inString = c == '\\', c != '"'
		case b.depth == 0 && (b.whole || c != '{'):
			b.broken = !b.whole || c != ' ' && c != '\n' && c != '\r' && c != '\t'
			b.whole = b.whole && !b.broken
		case c == '"':
			b.inString = true
		case c == '{' || c == '[':
			b.depth++
		case c == '}' || c == ']':
			b.depth--
			b.whole = b.depth == 0
		}
	}
}

// agrees reports whether the member has the value it has in e, or one of both
// is unknown.
func (o *object) agrees(name string, e gjson.Result) bool {
	a, b := o.text(name), e.Get(name).Str
	return len(a) == 0 || b == "" || string(a) == b
}

func (o *object) appendJSON(b []byte) []byte {
	b = append(b, '{')
	for i := range o.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, o.members[i].name)
		b = append(b, ':')
		b = o.members[i].appendJSON(o.members[i].name, b)
	}
	return append(b, '}')
}

func (v *value) appendJSON(name string, b []byte) []byte {
	switch v.kind {
	case text:
		return appendString(b, unsafeString(withoutHalves(v.bytes)))
	case objects:
		return v.object.appendJSON(b)
	case list:
		b = append(b, '[')
		for i := range v.list {
			if i > 0 {
				b = append(b, ',')
			}
			e := &v.list[i]
			if name == "tool_calls" && e.kind == objects {
				b = e.object.without("index").appendJSON(b) // a delta's, unknown in a message
				continue
			}
			b = e.appendJSON("", b)
		}
		return append(b, ']')
	}
	return append(b, v.bytes...)
}

// without is the object less one member.
func (o *object) without(name string) *object {
	return &object{slices.DeleteFunc(slices.Clone(o.members), func(m member) bool { return m.name == name })}
}
