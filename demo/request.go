package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"

	"github.com/tidwall/gjson"
)

// maxChoices is the most that n may ask for.
const maxChoices = 128

// chat is a chat request, and what the user asks in it.
type chat struct {
	digest       string // of the body, in hexadecimal
	model        string
	messages     []message
	stream       bool
	includeUsage bool
	n            int
	maxTokens    int // 0: no limit
	tools        []gjson.Result
	toolChoice   gjson.Result
	oneTool      bool // parallel_tool_calls is false
	format       gjson.Result

	lastUser int       // index of the last user message; -1: none
	chunks   []block   // of files, in the last user message
	quotes   []message // of earlier messages, there too
	question string    // the user's own words, without directives
	directives
}

// message is one message of a chat request.
type message struct {
	role, name, text string
	others           int            // content parts that aren't text
	calls            []gjson.Result // tool_calls
	callID           string         // tool_call_id
}

// parseChat reads a chat request, or returns what is wrong with it.
func parseChat(raw []byte) (*chat, *apiError) {
	body := gjson.ParseBytes(raw)
	sum := sha256.Sum256(raw)
	c := &chat{
		digest:       hex.EncodeToString(sum[:]),
		model:        body.Get("model").String(),
		stream:       body.Get("stream").Bool(),
		includeUsage: body.Get("stream_options.include_usage").Bool(),
		n:            1,
		toolChoice:   body.Get("tool_choice"),
		oneTool:      body.Get("parallel_tool_calls").Type == gjson.False,
		format:       body.Get("response_format"),
		lastUser:     -1,
	}
	if body.Get("model").Type != gjson.String || c.model == "" {
		return nil, errParam("model", "You must provide a model parameter.")
	}
	for _, field := range []struct {
		name string
		most int
		into *int
	}{
		{"max_tokens", math.MaxInt32, &c.maxTokens},
		{"max_completion_tokens", math.MaxInt32, &c.maxTokens},
		{"n", maxChoices, &c.n},
	} {
		v := body.Get(field.name)
		if v.Type == gjson.Null {
			continue
		}
		n := int(v.Int())
		if v.Type != gjson.Number || float64(n) != v.Num || n < 1 || n > field.most {
			return nil, errParam(field.name, "Invalid '%s': expected an integer from 1 to %d.", field.name, field.most)
		}
		*field.into = n
	}
	for _, tool := range body.Get("tools").Array() {
		if tool.Get("type").String() == "function" {
			c.tools = append(c.tools, tool.Get("function"))
		}
	}
	if err := c.parseMessages(body.Get("messages")); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *chat) parseMessages(list gjson.Result) *apiError {
	if !list.IsArray() || len(list.Array()) == 0 {
		return errParam("messages", "Invalid 'messages': expected an array with at least one message.")
	}
	for i, m := range list.Array() {
		role := m.Get("role")
		if role.Type != gjson.String {
			return errParam("messages", "Invalid 'messages[%d]': expected an object with a string 'role'.", i)
		}
		msg := message{
			role:   role.String(),
			name:   m.Get("name").String(),
			calls:  m.Get("tool_calls").Array(),
			callID: m.Get("tool_call_id").String(),
		}
		switch content := m.Get("content"); {
		case content.Type == gjson.String:
			msg.text = content.String()
		case content.IsArray():
			msg.text, msg.others = joinParts(content)
		case content.Type != gjson.Null:
			return errParam("messages", "Invalid 'messages[%d].content': expected a string, an array of parts or null.", i)
		}
		if msg.role == "user" {
			c.lastUser = i
		}
		c.messages = append(c.messages, msg)
	}
	if c.lastUser >= 0 {
		blocks, own := cutBlocks(c.messages[c.lastUser].text)
		for _, b := range blocks {
			if b.quotes {
				c.quotes = append(c.quotes, cutQuotes(b.text)...)
			} else {
				c.chunks = append(c.chunks, b)
			}
		}
		c.directives, c.question = cutDirectives(own)
	}
	return checkTools(c.messages)
}

// joinParts returns the text of content parts, and how many hold none.
func joinParts(parts gjson.Result) (text string, others int) {
	var texts []string
	for _, p := range parts.Array() {
		switch p.Get("type").String() {
		case "text":
			texts = append(texts, p.Get("text").String())
		case "refusal":
			texts = append(texts, p.Get("refusal").String())
		default:
			others++
		}
	}
	return strings.Join(texts, "\n"), others
}

// checkTools refuses what every provider refuses: a tool message without its
// call, and a call without its results right behind it.
func checkTools(messages []message) *apiError {
	open := make(map[string]bool)
	for i, m := range messages {
		if m.role == "tool" {
			if !open[m.callID] {
				return errParam("messages", "Invalid 'messages[%d]': a message with role 'tool' must answer a call in the 'tool_calls' before it.", i)
			}
			delete(open, m.callID)
			continue
		}
		if len(open) > 0 {
			return errParam("messages", "Invalid 'messages[%d]': the 'tool_calls' before it lack %d of their results.", i, len(open))
		}
		for _, call := range m.calls {
			open[call.Get("id").String()] = true
		}
	}
	if len(open) > 0 {
		return errParam("messages", "Invalid 'messages': the last 'tool_calls' lack %d of their results.", len(open))
	}
	return nil
}
