package prompt_test

import (
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/prompt"
)

func TestMessageTokens(t *testing.T) {
	long := strings.Repeat("A ", 10_000)
	for _, c := range []struct {
		name, json string
		want       int // beside the 4 of every message
	}{
		{"text", `{"role":"user","content":"one two three"}`, 3},
		{"escaped text", `{"role":"user","content":"one\ntwo \u0033"}`, 3},
		{"no text", `{"role":"assistant","content":null}`, 0},
		{"an empty text", `{"role":"user","content":""}`, 0},
		{"parts", `{"role":"user","content":[{"type":"text","text":"one two"},{"type":"text","text":"three"}]}`, 3},
		{"an image", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + long + `"}}]}`, 765},
		{"an image in high detail", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"x","detail":"high"}}]}`, 765},
		{"an image in low detail beside text", `{"role":"user","content":[{"type":"text","text":"one"},{"type":"image_url","image_url":{"url":"x","detail":"low"}}]}`, 86},
		{"inline sound", `{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"` + long + `","format":"wav"}}]}`, 20_076 / 1024},
		{"an inline file", `{"role":"user","content":[{"type":"file","file":{"filename":"a b","file_data":"` + long + `"}}]}`, 20_063 / 256},
		{"a spoken reply", `{"role":"assistant","content":null,"audio":{"id":"1","data":"` + long + `"}}`, 20_020 / 1024},
		{"a name", `{"role":"user","name":"ann","content":"one"}`, 3},
		{"a refusal", `{"role":"assistant","content":null,"refusal":"I can not"}`, 3},
		{"a refusal as a part", `{"role":"assistant","content":[{"type":"refusal","refusal":"I can not"}]}`, 3},
		{"null members", `{"role":"assistant","content":"one","name":null,"refusal":null,"tool_calls":null,"function_call":null,"tool_call_id":null,"reasoning":null}`, 1},
		{"a tool call", `{"role":"assistant","content":null,"tool_calls":[{"id":"1", "function":{"name":"f", "arguments":"{}"}}]}`, 3},
		{"a function call", `{"role":"assistant","content":null,"function_call":{"name":"f", "arguments":"{}"}}`, 2},
		{"a tool result", `{"role":"tool","tool_call_id":"1","content":"one two"}`, 3},
		{"reasoning", `{"role":"assistant","content":"one","reasoning":"two three"}`, 3},
		{"members that we don't know", `{"role":"assistant","content":"one","annotations":[` + `"a b c"` + `],"id":"x y z"}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := openai.ParseMessage([]byte(c.json))
			if got := prompt.MessageTokens(&m, count); got != c.want+4 {
				t.Errorf("got %d, want %d", got-4, c.want)
			}
		})
	}
}

func TestRequestTokens(t *testing.T) {
	if got := prompt.RequestTokens(&openai.Chat{}, count); got != 3 {
		t.Errorf("%d without tools", got)
	}
	if got := prompt.RequestTokens(&openai.Chat{Tools: []byte(`[{"type": "function"}]`)}, count); got != 5 {
		t.Errorf("%d with tools", got)
	}
}
