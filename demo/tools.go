package demo

import (
	"strings"

	"github.com/tidwall/gjson"
)

// maxResult is the most bytes of a tool's result that are quoted.
const maxResult = 300

// toolCall is a call, or in a stream what a delta has of one, with an index then.
type toolCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// callTools returns calls of the tools that the last message, the user's, holds
// the names of. A tool_choice overrules it.
func (c *chat) callTools() []toolCall {
	named := c.toolChoice.Get("function.name").String()
	choice := c.toolChoice.String()
	if choice == "none" || c.lastUser != len(c.messages)-1 {
		return nil
	}
	said := strings.ToLower(c.question)
	var calls []toolCall
	for _, tool := range c.tools {
		name := tool.Get("name").String()
		if name == named || named == "" && name != "" && strings.Contains(said, strings.ToLower(name)) {
			calls = append(calls, c.call(tool))
		}
	}
	if choice == "required" && len(calls) == 0 && len(c.tools) > 0 {
		calls = append(calls, c.call(c.tools[0]))
	}
	if c.oneTool && len(calls) > 1 {
		calls = calls[:1]
	}
	return calls
}

// call calls a tool with its required parameters, the user's words in those
// that are strings.
func (c *chat) call(tool gjson.Result) toolCall {
	return toolCall{
		ID:   "call_" + c.digest[:16],
		Type: "function",
		Function: functionCall{
			Name:      tool.Get("name").String(),
			Arguments: fill(tool.Get("parameters"), c.question),
		},
	}
}

// toolResults says what the tools returned whose results end the request; it is
// empty where none do.
func (c *chat) toolResults() string {
	first := len(c.messages)
	for first > 0 && c.messages[first-1].role == "tool" {
		first--
	}
	if first == 0 || first == len(c.messages) {
		return ""
	}
	names := make(map[string]string)
	for _, call := range c.messages[first-1].calls {
		names[call.Get("id").String()] = call.Get("function.name").String()
	}
	var said []string
	for _, m := range c.messages[first:] {
		said = append(said, "The tool "+names[m.callID]+" returned: “"+clip(m.text, maxResult)+"”")
	}
	return strings.Join(said, " ")
}
