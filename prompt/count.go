package prompt

import (
	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/openai"
)

// The tokens that the chat format itself takes, for the models since gpt-3.5:
// 3 and the role for every message, 1 more for a name, and 3 that prime the
// reply. (OpenAI cookbook, "How to count tokens with tiktoken".)
const (
	perMessage = 4
	perName    = 1
	priming    = 3
)

// The tokens of an image by the published rules for gpt-4o: 85 in low detail;
// else 85 and 170 for each tile of 512 pixels, of which an image of 1024 by
// 1024, the usual one, has four. Its size isn't known here.
const (
	imageLow  = 85
	imageHigh = 765
)

// Data that is sent inline costs tokens by what is in it, which isn't known
// here. It is weighed by its bytes, for a session of documents or recordings
// would otherwise be included whole: a PDF of 1 MB has some ten pages, about
// 5,000 tokens; a minute of sound as WAV has 4 MB, and an image of 4 MB is cut
// down before it is looked at.
const (
	fileBytesPerToken = 256
	dataBytesPerToken = 1024
)

// MessageTokens counts a message: its words, its calls, its images and other
// inline data, and the format's own tokens.
func MessageTokens(m *openai.Message, count func(string) int) int {
	n := perMessage
	c := m.Content()
	if c.Type == gjson.String {
		n += count(c.Str)
	} else {
		c.ForEach(func(_, part gjson.Result) bool {
			n += partTokens(part, count)
			return true
		})
	}
	m.Each(func(name string, v gjson.Result) {
		switch name {
		case "name":
			n += perName + count(v.String())
		case "tool_calls", "function_call", "tool_call_id":
			n += count(v.Raw)
		case "refusal", "reasoning", "reasoning_content":
			n += count(v.String())
		case "audio":
			n += len(v.Raw) / dataBytesPerToken
		case "reasoning_details":
			n += count(v.Raw)
		}
	})
	return n
}

func partTokens(part gjson.Result, count func(string) int) int {
	switch part.Get("type").Str {
	case "text":
		return count(part.Get("text").String())
	case "refusal":
		return count(part.Get("refusal").String())
	case "image_url":
		n := imageHigh
		if part.Get("image_url.detail").Str == "low" {
			n = imageLow
		}
		return max(n, len(part.Raw)/dataBytesPerToken)
	case "file":
		return len(part.Raw) / fileBytesPerToken
	}
	return len(part.Raw) / dataBytesPerToken
}

// RequestTokens counts what a request takes beside its messages: the tool
// definitions, as the JSON that they are, and the priming of the reply.
func RequestTokens(c *openai.Chat, count func(string) int) int {
	n := priming
	if len(c.Tools) > 0 {
		n += count(string(c.Tools))
	}
	return n
}
