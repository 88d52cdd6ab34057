package openai

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
)

// Reply is what a router answered to a chat request: choice 0.
type Reply struct {
	// Message is the assistant message, an object that can be sent back in a
	// later request; nil where there was no choice 0.
	Message []byte
	// Finish is the finish_reason; empty while the reply goes on.
	Finish string
	// Model is the model that answered.
	Model string
	// HasText says whether the message has anything to show: content, a
	// refusal or audio.
	HasText bool
	// HasCalls says whether it calls tools.
	HasCalls bool
	// Failed says that the router reported an error in place of a reply, or
	// in the middle of one.
	Failed bool
	// Truncated says that the reply was too large to be kept, or that it makes
	// more than MaxCalls.
	Truncated bool
	// Usage is what the router says that it took.
	Usage Usage
}

// finishUnsaid stands for the finish_reason of a reply that is complete but
// names none.
const finishUnsaid = "stop"

// ParseReply reads a whole JSON reply.
func ParseReply(body []byte) *Reply {
	root := gjson.Parse(unsafeString(body))
	if !root.IsObject() {
		return &Reply{Finish: finishUnsaid}
	}
	r := new(Reply)
	var message gjson.Result
	root.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "model":
			r.Model = strings.Clone(v.String())
		case "error":
			r.Failed = truthy(v)
		case "usage":
			r.Usage = readUsage(v)
		case "choices":
			message, r.Finish = firstChoice(v)
		}
		return true
	})
	r.Failed = r.Failed || r.Finish == "error"
	if r.Finish == "" {
		r.Finish = finishUnsaid
	}
	// A message that isn't JSON would spoil every later request.
	if raw := withoutEmptyCalls(message); message.IsObject() && wellFormed(raw) {
		r.Message = raw
		r.HasText = hasContent(message.Get("content")) || message.Get("refusal").Str != "" || message.Get("audio").IsObject()
		r.Truncated = !fewCalls(message.Get("tool_calls"))
		r.HasCalls = message.Get("tool_calls.0").Exists() || message.Get("function_call").IsObject()
	}
	return r
}

// firstChoice returns the message and the finish_reason of choice 0: the first
// one with that index, or with none; where there is no such, the first one.
func firstChoice(choices gjson.Result) (message gjson.Result, finish string) {
	for i, choice := range choices.Array() {
		var index int64
		var m, f gjson.Result
		choice.ForEach(func(key, v gjson.Result) bool {
			switch key.Str {
			case "index":
				index = v.Int()
			case "message":
				m = v
			case "finish_reason":
				f = v
			}
			return true
		})
		if i == 0 || index == 0 {
			message, finish = m, strings.Clone(f.String())
		}
		if index == 0 {
			break
		}
	}
	return message, finish
}

// withoutEmptyCalls is a copy of the message less an empty list of tool calls:
// vLLM writes one, and other providers refuse the message with it.
func withoutEmptyCalls(message gjson.Result) []byte {
	if calls := message.Get("tool_calls"); !isEmptyArray(calls) {
		return []byte(message.Raw)
	}
	return less(message, func(name string, v gjson.Result) bool { return name == "tool_calls" && isEmptyArray(v) })
}

func isEmptyArray(v gjson.Result) bool { return v.IsArray() && !v.Get("0").Exists() }

func hasContent(v gjson.Result) bool {
	return v.Type == gjson.String && v.Str != "" || v.Get("0").Exists()
}

// truthy is what the SDKs ask of a top-level "error".
func truthy(v gjson.Result) bool {
	switch v.Type {
	case gjson.Null, gjson.False:
		return false
	case gjson.String:
		return v.Str != ""
	case gjson.Number:
		return v.Num != 0
	}
	return true
}

// PrependMetadata puts "_metadata" as the first member into the beginning of a
// JSON object that isn't whole yet. What doesn't begin with an object, or holds
// nothing else, is returned as it is.
func PrependMetadata(start, metadata []byte) []byte {
	at := bytes.IndexByte(start, '{') + 1
	rest := bytes.TrimSpace(start[at:])
	if at == 0 || len(bytes.TrimSpace(start[:at])) != 1 || len(rest) == 0 || rest[0] == '}' {
		return start
	}
	out := make([]byte, 0, len(start)+len(metadata)+16)
	out = append(out, start[:at]...)
	out = append(out, `"_metadata":`...)
	out = append(out, metadata...)
	out = append(out, ',')
	return append(out, start[at:]...)
}

// AddMetadata puts "_metadata" as the last member into a JSON object. It
// returns nil where body is no object.
func AddMetadata(body, metadata []byte) []byte {
	end := bytes.LastIndexByte(body, '}')
	start := bytes.IndexByte(body, '{')
	if start < 0 || end < start || !gjson.Parse(unsafeString(body)).IsObject() {
		return nil
	}
	out := make([]byte, 0, len(body)+len(metadata)+16)
	out = append(out, body[:end]...)
	if len(bytes.TrimSpace(body[start+1:end])) > 0 {
		out = append(out, ',')
	}
	out = append(out, `"_metadata":`...)
	out = append(out, metadata...)
	return append(out, body[end:]...)
}
