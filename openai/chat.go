package openai

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

// MaxDepth is how deeply a request body may nest. Parsers recurse; without a
// bound a body of brackets would exhaust the stack.
const MaxDepth = 1000

// MaxFields is how many members the top level of a request body may have. The
// format has about forty.
const MaxFields = 1000

// Extension is what a chat request asks of Backstory, beyond the OpenAI format.
type Extension struct {
	SessionID    string // empty: no session
	SaveToMemory bool
	UseRAG       bool
	RAGQuery     string // empty: the text of the last user message
}

// DefaultExtension is what a request that names none of the fields asks for.
var DefaultExtension = Extension{SaveToMemory: true, UseRAG: true}

// Chat is a parsed chat request. It refers to the body that it was parsed
// from, which must not change.
type Chat struct {
	Extension
	Model string
	// Models are others that the router may choose, as OpenRouter takes them.
	Models []string
	Stream bool
	// IncludeUsage says that the client asked for the usage in a stream.
	IncludeUsage bool
	MaxTokens    int // room asked for the answer, in tokens; 0 where the request names none
	Messages     []Message

	// Tools is the raw JSON of the tool definitions; empty where there are none.
	Tools []byte

	body   []byte
	fields []field // the top-level members, in their order

	sessionNamed bool // by the body's sessionId, which may be empty
}

// field is a member of the top-level object, as offsets into the body.
type field struct {
	name            string
	key, start, end int // of the opening quote of the name; of the value
}

// ParseOptions say what ParseChat accepts.
type ParseOptions struct {
	// Extension gives the extension fields that the body doesn't name.
	Extension Extension
	// BareModels allows model names without a provider.
	BareModels bool
	// Session names the session of a request whose body has no sessionId;
	// nil: none. It must not keep a part of body.
	Session func(body gjson.Result) string
}

// ParseChat reads a chat request and checks it. The error is one for the
// client: a 400 that names the parameter.
func ParseChat(body []byte, opts ParseOptions) (*Chat, error) {
	if err := CheckJSON(body); err != nil {
		return nil, err
	}
	text := unsafeString(body)
	root := gjson.Parse(text)
	if !root.IsObject() {
		return nil, Invalid("", "The request body must be a JSON object.")
	}
	c := &Chat{Extension: opts.Extension, body: body}
	var err error
	root.ForEach(func(key, value gjson.Result) bool {
		f := field{name: key.String(), key: offset(text, key.Raw), start: offset(text, value.Raw)}
		f.end = f.start + len(value.Raw)
		if c.fields = append(c.fields, f); len(c.fields) > MaxFields {
			err = Invalid("", "The request body has more than %d members.", MaxFields)
			return false
		}
		err = c.read(f.name, value, opts)
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	if err := c.checkNames(); err != nil {
		return nil, err
	}
	if c.Model == "" {
		return nil, Invalid("model", "You must provide a model parameter.")
	}
	if c.Messages == nil {
		return nil, Invalid("messages", "Missing required parameter: 'messages'.")
	}
	if opts.Session != nil && !c.sessionNamed {
		c.SessionID = opts.Session(root)
	}
	return c, nil
}

// CheckJSON refuses a body, with a 400, that is no JSON or nests too deeply.
func CheckJSON(body []byte) error {
	if tooDeep(body) {
		return Invalid("", "The request body nests more than %d levels deep.", MaxDepth)
	}
	if !gjson.ValidBytes(body) {
		return Invalid("", "We could not parse the JSON body of your request.")
	}
	return nil
}

// tooDeep reports whether body nests more than MaxDepth levels deep.
func tooDeep(body []byte) bool {
	return bytes.Count(body, []byte{'['})+bytes.Count(body, []byte{'{'}) > MaxDepth && depth(body) > MaxDepth
}

// wellFormed reports whether body is JSON that doesn't nest too deeply.
func wellFormed(body []byte) bool { return !tooDeep(body) && gjson.ValidBytes(body) }

// depth is the deepest nesting of brackets outside of strings.
func depth(body []byte) int {
	deepest, now, inString := 0, 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			now++
			deepest = max(deepest, now)
		case c == ']' || c == '}':
			now--
		}
	}
	return deepest
}

// offset is where part, a substring of text, begins in it.
func offset(text, part string) int {
	return int(uintptr(unsafe.Pointer(unsafe.StringData(part))) - uintptr(unsafe.Pointer(unsafe.StringData(text))))
}

// known are the top-level fields that we read. A body that names one of them
// twice, or in another case, could mean one thing to us and another to the
// router: JSON doesn't say which of two members counts, and a router in Go takes
// a member for its field whatever the case.
var known = [...]string{
	"model", "models", "messages", "stream", "temperature", "top_p",
	"max_tokens", "max_completion_tokens", "tools", "stream_options",
	"sessionId", "saveToMemory", "useRAG", "ragQuery",
}

// extensionFields are removed before the request goes upstream.
var extensionFields = map[string]bool{
	"sessionId": true, "saveToMemory": true, "useRAG": true, "ragQuery": true,
}

func (c *Chat) checkNames() error {
	var seen [len(known)]bool
	for _, f := range c.fields {
		i := slices.IndexFunc(known[:], func(name string) bool { return strings.EqualFold(name, f.name) })
		switch {
		case i < 0 || known[i] != f.name && extensionFields[known[i]]: // no router reads ours
		case known[i] != f.name:
			return Invalid(f.name, "The request body names '%s': the parameter is '%s'.", f.name, known[i])
		case seen[i]:
			return Invalid(f.name, "The request body names '%s' more than once.", f.name)
		default:
			seen[i] = true
		}
	}
	return nil
}

// read takes one top-level field in. null means absent everywhere.
func (c *Chat) read(name string, v gjson.Result, opts ParseOptions) (err error) {
	if v.Type == gjson.Null && name != "messages" && name != "model" {
		return nil
	}
	switch name {
	case "model":
		c.Model, err = readModel(v, opts.BareModels)
	case "models":
		for _, model := range v.Array() {
			c.Models = append(c.Models, strings.Clone(model.String()))
		}
	case "messages":
		c.Messages, err = readMessages(c.body, v)
	case "stream":
		c.Stream, err = readBool(name, v)
	case "stream_options":
		c.IncludeUsage = v.Get(includeUsage).Bool()
	case "temperature":
		err = checkRange(name, v, 2)
	case "top_p":
		err = checkRange(name, v, 1)
	case "max_tokens", "max_completion_tokens":
		var n int
		if n, err = readPositive(name, v); err == nil {
			c.MaxTokens = max(c.MaxTokens, n)
		}
	case "tools":
		if v.IsArray() {
			start := offset(unsafeString(c.body), v.Raw)
			c.Tools = c.body[start : start+len(v.Raw)]
		}
	case "sessionId":
		c.sessionNamed = true
		c.SessionID, err = readString(name, v)
	case "saveToMemory":
		c.SaveToMemory, err = readBool(name, v)
	case "useRAG":
		c.UseRAG, err = readBool(name, v)
	case "ragQuery":
		c.RAGQuery, err = readString(name, v)
	}
	return err
}

func readModel(v gjson.Result, bare bool) (string, error) {
	if v.Type != gjson.String || v.Str == "" {
		return "", Invalid("model", "You must provide a model parameter: a non-empty string.")
	}
	provider, name, ok := strings.Cut(v.Str, "/")
	if !bare && (!ok || provider == "" || name == "") {
		return "", Invalid("model", "The model must have the form '<provider>/<model_name>', such as 'openai/gpt-4o-mini'.")
	}
	return strings.Clone(v.Str), nil
}

func readString(name string, v gjson.Result) (string, error) {
	if v.Type != gjson.String {
		return "", Invalid(name, "Invalid type for '%s': expected a string.", name)
	}
	return strings.Clone(v.Str), nil
}

func readBool(name string, v gjson.Result) (bool, error) {
	if !v.IsBool() {
		return false, Invalid(name, "Invalid type for '%s': expected a boolean.", name)
	}
	return v.Bool(), nil
}

func checkRange(name string, v gjson.Result, highest float64) error {
	if v.Type != gjson.Number {
		return Invalid(name, "Invalid type for '%s': expected a number.", name)
	}
	if n := v.Num; math.IsNaN(n) || n < 0 || n > highest {
		return Invalid(name, "Invalid value for '%s': expected a number from 0 to %g.", name, highest)
	}
	return nil
}

// readPositive reads an integer of at least 1. Values beyond what an int holds
// are as good as no bound.
func readPositive(name string, v gjson.Result) (int, error) {
	if v.Type != gjson.Number || v.Num != math.Trunc(v.Num) {
		return 0, Invalid(name, "Invalid type for '%s': expected an integer.", name)
	}
	if v.Num < 1 {
		return 0, Invalid(name, "Invalid value for '%s': expected an integer of at least 1.", name)
	}
	if v.Num >= math.MaxInt32 {
		return math.MaxInt32, nil
	}
	return int(v.Num), nil
}

// elementName names an element of an array field, as in "messages[3].role".
func elementName(i int, member string) string {
	return "messages[" + strconv.Itoa(i) + "]" + member
}
