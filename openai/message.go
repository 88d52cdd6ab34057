package openai

import (
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"
)

// Message is one message of a chat request.
type Message struct {
	Role string
	JSON []byte // the message object

	content    gjson.Result
	start, end int // offsets of JSON in the body
}

// ParseMessage reads a message object that stands alone, such as a stored one.
// JSON must not change afterwards.
func ParseMessage(json []byte) Message {
	v := gjson.Parse(unsafeString(json))
	return Message{Role: v.Get("role").String(), JSON: json, content: v.Get("content"), end: len(json)}
}

// System reports whether the message instructs the model rather than speaks in
// the conversation. Such messages are never saved. Case and anything but letters
// make no difference: a router may take " System" for the role that it looks like.
func (m *Message) System() bool {
	switch m.Role {
	case "user", "assistant", "tool", "function":
		return false
	}
	role := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, m.Role)
	return strings.EqualFold(role, "system") || strings.EqualFold(role, "developer")
}

// ToolResult reports whether the message answers a call of the assistant.
func (m *Message) ToolResult() bool { return m.Role == "tool" || m.Role == "function" }

// Get returns a member of the message object.
func (m *Message) Get(path string) gjson.Result {
	return gjson.Parse(unsafeString(m.JSON)).Get(path)
}

// Each calls f for every member of the message object, null ones excepted.
func (m *Message) Each(f func(name string, v gjson.Result)) {
	gjson.Parse(unsafeString(m.JSON)).ForEach(func(key, v gjson.Result) bool {
		if v.Type != gjson.Null {
			f(key.Str, v)
		}
		return true
	})
}

// Content returns the content member.
func (m *Message) Content() gjson.Result { return m.content }

// Text is what the message says in words: the content, or its text parts
// joined by line ends.
func (m *Message) Text() string {
	if m.content.Type == gjson.String {
		return strings.Clone(m.content.Str)
	}
	var b strings.Builder
	for _, part := range m.content.Array() {
		if t := part.Get("text"); part.Get("type").Str == "text" && t.Type == gjson.String {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(t.Str)
		}
	}
	return b.String()
}

// MaxMessages is how many messages a request may hold. Each takes some 200 bytes
// beside its own; no model takes that many.
const MaxMessages = 20_000

// MaxCalls is how many tools one assistant message may call, in a request and in a
// reply that is kept. OpenAI takes 128 tool definitions, and models call a few
// dozen at once.
const MaxCalls = 1000

func readMessages(body []byte, v gjson.Result) ([]Message, error) {
	if !v.IsArray() {
		return nil, Invalid("messages", "Invalid type for 'messages': expected an array of messages.")
	}
	text := unsafeString(body)
	var messages []Message
	var err error
	v.ForEach(func(_, m gjson.Result) bool {
		i := len(messages)
		if i == MaxMessages {
			err = Invalid("messages", "Invalid 'messages': more than %d messages.", MaxMessages)
			return false
		}
		if !m.IsObject() {
			err = Invalid(elementName(i, ""), "Invalid type for '%s': expected an object.", elementName(i, ""))
			return false
		}
		start := offset(text, m.Raw)
		msg := Message{JSON: body[start : start+len(m.Raw)], start: start, end: start + len(m.Raw)}
		if err = msg.read(i, m); err != nil {
			return false
		}
		messages = append(messages, msg)
		return true
	})
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 {
		return nil, Invalid("messages", "Invalid 'messages': empty array. Expected at least one message.")
	}
	return messages, nil
}

// memberNames are the members of a message that we read. See known.
var memberNames = [...]string{"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal"}

// read checks one message and takes from it what is needed later. A message that
// names a member twice, or in another case, is refused: see known.
func (msg *Message) read(i int, m gjson.Result) error {
	var role gjson.Result
	var seen [len(memberNames)]bool
	var err error
	m.ForEach(func(key, value gjson.Result) bool {
		name := key.String()
		k := slices.IndexFunc(memberNames[:], func(member string) bool { return strings.EqualFold(member, name) })
		if k < 0 {
			return true
		}
		switch {
		case memberNames[k] != name:
			full := elementName(i, "."+name)
			err = Invalid(full, "'%s' is no member of a message: it is '%s'.", full, memberNames[k])
		case seen[k]:
			full := elementName(i, "."+name)
			err = Invalid(full, "'%s' is given more than once.", full)
		case name == "role":
			role = value
		case name == "content":
			msg.content = value
		case name == "tool_calls" && !fewCalls(value):
			full := elementName(i, "."+name)
			err = Invalid(full, "Invalid '%s': more than %d calls.", full, MaxCalls)
		}
		seen[k] = true
		return err == nil
	})
	if err != nil {
		return err
	}
	if role.Type != gjson.String || role.Str == "" {
		return Invalid(elementName(i, ".role"), "Missing or invalid '%s': expected a string.", elementName(i, ".role"))
	}
	msg.Role = role.Str
	return msg.checkContent(i)
}

// fewCalls reports whether a list of calls holds no more than MaxCalls.
func fewCalls(calls gjson.Result) bool {
	n := 0
	calls.ForEach(func(_, _ gjson.Result) bool {
		n++
		return n <= MaxCalls
	})
	return n <= MaxCalls
}

// checkContent enforces that content is a string or an array of parts; it may
// be null or absent where the format allows that, and in roles that we don't
// know.
func (msg *Message) checkContent(i int) error {
	switch {
	case msg.content.Type == gjson.String:
		return nil
	case msg.content.IsArray():
		var err error
		msg.content.ForEach(func(_, part gjson.Result) bool {
			if !part.IsObject() {
				err = Invalid(elementName(i, ".content"), "Invalid '%s': each part must be an object with a 'type'.", elementName(i, ".content"))
			}
			return err == nil
		})
		return err
	case msg.content.Type == gjson.Null: // or absent
		switch msg.Role {
		case "system", "developer", "user", "tool":
			return Invalid(elementName(i, ".content"), "Missing '%s': a %s message needs a string or an array of parts.", elementName(i, ".content"), msg.Role)
		}
		return nil
	}
	return Invalid(elementName(i, ".content"), "Invalid type for '%s': expected a string or an array of parts.", elementName(i, ".content"))
}
