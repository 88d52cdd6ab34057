package openai_test

import (
	"testing"

	"github.com/backstory-proxy/backstory/openai"
)

func TestUsageIsReadWhereTheRouterTellsIt(t *testing.T) {
	for _, c := range []struct {
		name, usage string
		want        openai.Usage
	}{
		{"as OpenAI writes it", `{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}`, openai.Usage{Prompt: 12, Completion: 3}},
		{"with details", `{"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 9}}`, openai.Usage{Prompt: 12, Completion: 3}},
		{"of the prompt alone", `{"prompt_tokens":12}`, openai.Usage{Prompt: 12}},
		{"null", `null`, openai.Usage{}},
		{"nonsense", `{"prompt_tokens":-1,"completion_tokens":"3"}`, openai.Usage{}},
		{"too much to be true", `{"prompt_tokens":1e300,"completion_tokens":1e10}`, openai.Usage{}},
		{"a list", `[12]`, openai.Usage{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := openai.ParseReply([]byte(`{"choices":[{"message":{"role":"assistant","content":"a"}}],"usage":` + c.usage + `}`))
			if whole.Usage != c.want {
				t.Errorf("of a JSON reply %+v, want %+v", whole.Usage, c.want)
			}
			const said = `{"choices":[{"index":0,"delta":{"content":"a \"usage\": 7"}}],"usage":null}`
			for where, events := range map[string]string{
				"in a chunk of its own": events(said, `{"choices":[],"usage":`+c.usage+`}`, "[DONE]"),
				"on the last chunk":     events(said, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":`+c.usage+`}`, "[DONE]"),
				"without choices":       events(said, `{"usage":`+c.usage+`}`, "[DONE]"),
			} {
				r := newRecorder("", "").write(t, events).close(t)
				r.reply = r.Reply()
				if r.reply.Usage != c.want {
					t.Errorf("%s %+v, want %+v", where, r.reply.Usage, c.want)
				}
			}
		})
	}
}
