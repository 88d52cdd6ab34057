package tokens

import (
	"os"
	"testing"
)

func TestForModel(t *testing.T) {
	o, c := O200K(), CL100K()
	for name, want := range map[string]Model{
		"openai/gpt-4o":                 {o, 1},
		"gpt-4o-mini-2024-07-18":        {o, 1},
		"gpt-4.1":                       {o, 1},
		"openai/gpt-4.1-nano":           {o, 1},
		"gpt-4.5-preview":               {o, 1},
		"GPT-5":                         {o, 1},
		"gpt-5.1-codex":                 {o, 1},
		"gpt-5-mini":                    {o, 1},
		"o1":                            {o, 1},
		"openai/o1-preview":             {o, 1},
		"o3-mini":                       {o, 1},
		"o4-mini-high":                  {o, 1},
		"chatgpt-4o-latest":             {o, 1},
		"openai/gpt-oss-120b":           {o, 1},
		"openai/gpt-oss-20b:free":       {o, 1},
		"ft:gpt-4o-mini:org::8fJ":       {o, 1},
		"codex-mini-latest":             {o, 1},
		"gpt-4":                         {c, 1},
		"openai/gpt-4-turbo":            {c, 1},
		"gpt-4-0613":                    {c, 1},
		"openai/gpt-3.5-turbo":          {c, 1},
		"ft:gpt-3.5-turbo-0125:org::x":  {c, 1},
		"azure/gpt-35-turbo":            {c, 1},
		"openai/text-embedding-3-small": {c, 1},
		"text-embedding-ada-002":        {c, 1},
		"demo/echo":                     {o, 1},
		"demo/claude":                   {o, 1},

		"anthropic/claude-3.5-sonnet":                  {o, marginClaude4},
		"claude-3-opus-20240229":                       {o, marginClaude4},
		"claude-2.1":                                   {o, marginClaude4},
		"claude-instant-1.2":                           {o, marginClaude4},
		"claude-sonnet-4-20250514":                     {o, marginClaude4},
		"anthropic/claude-opus-4.5":                    {o, marginClaude4},
		"claude-opus-4-1-20250805":                     {o, marginClaude4},
		"openrouter/anthropic/claude-sonnet-4.6":       {o, marginClaude4},
		"us.anthropic.claude-3-5-sonnet-20240620-v1:0": {o, marginClaude4},
		"claude-opus-4-7":                              {o, marginClaude},
		"anthropic/claude-opus-4.8":                    {o, marginClaude},
		"anthropic/claude-sonnet-5":                    {o, marginClaude},
		"anthropic.claude-opus-4-7-v1:0":               {o, marginClaude},
		"claude-opus-10":                               {o, marginClaude},
		"claude-latest":                                {o, marginClaude},
		"google/gemini-2.5-pro":                        {o, marginGemini},
		"google/gemma-3-27b-it":                        {o, marginGemini},
		"meta-llama/llama-3.3-70b-instruct":            {o, marginLlama},
		"meta-llama/Meta-Llama-3-8B":                   {o, marginUnknown},
		"meta-llama/llama-2-70b-chat":                  {o, marginMistral},
		"qwen/qwen3-32b":                               {o, marginLlama},
		"deepseek/deepseek-r1":                         {o, marginDeepSeek},
		"mistralai/mistral-large-2411":                 {o, marginMistral},
		"mistralai/Mixtral-8x7B-Instruct-v0.1":         {o, marginMistral},
		"x-ai/grok-4":                                  {o, marginUnknown},
		"gpt-4x-alpaca":                                {o, marginUnknown},
		"o1something":                                  {o, marginUnknown},
		"":                                             {o, marginUnknown},
		"/":                                            {o, marginUnknown},
		"claude":                                       {o, marginClaude},
		"claude-3":                                     {o, marginClaude4},
		"gpt-4o/":                                      {o, marginUnknown},
	} {
		if got := ForModel(name); got != want {
			t.Errorf("ForModel(%q) = {%s, %v}, want {%s, %v}", name, got.Encoding.Name(), got.Margin, want.Encoding.Name(), want.Margin)
		}
	}
}

func TestModelRaisesCounts(t *testing.T) {
	for _, c := range []struct {
		margin      float64
		count, want int
	}{
		{1, 10, 10}, {0, 10, 10}, {1.1, 10, 11}, {1.1, 11, 13}, {1.25, 1, 2}, {1.25, 0, 0}, {1.6, 1_000_000, 1_600_000}, {1.15, 100, 115},
	} {
		if got := (Model{O200K(), c.margin}).Raise(c.count); got != c.want {
			t.Errorf("%d × %v = %d, want %d", c.count, c.margin, got, c.want)
		}
	}
	const text = "Hello, world!"
	if got, want := ForModel("anthropic/claude-sonnet-4").Count(text), 5; got != want { // ceil(4 × 1.25)
		t.Errorf("Count = %d, want %d", got, want)
	}
}

// TestMarginOfLlama backs the margin's reason: cl100k, which Llama 3 and Qwen
// extend, counts little more than o200k.
func TestMarginOfLlama(t *testing.T) {
	for _, name := range []string{"english", "code", "json", "markdown"} {
		data, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		ratio := float64(CL100K().Count(text)) / float64(O200K().Count(text))
		t.Logf("%s: cl100k is %.3f of o200k", name, ratio)
		if ratio > marginLlama {
			t.Errorf("%s: above the margin of %v", name, marginLlama)
		}
	}
}
