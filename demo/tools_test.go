package demo_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func tool(name string, parameters string) map[string]any {
	return map[string]any{"type": "function", "function": map[string]any{
		"name": name, "parameters": gjson.Parse(parameters).Value(),
	}}
}

var weather = tool("get_weather", `{"type":"object","properties":{"city":{"type":"string"},"unit":{"type":"string"}},"required":["city"]}`)
var clock = tool("clock", `{"type":"object","properties":{}}`)

func TestToolCalls(t *testing.T) {
	for name, tc := range map[string]struct {
		words string
		more  map[string]any
		want  string // names and arguments
	}{
		"a tool that is named":        {"Use get_weather for Oslo", nil, `get_weather{"city":"Use get_weather for Oslo"}`},
		"a tool without parameters":   {"CLOCK, please", nil, `clock{}`},
		"two tools that are named":    {"clock, get_weather", nil, `get_weather{"city":"clock, get_weather"} clock{}`},
		"one tool at a time":          {"clock, get_weather", map[string]any{"parallel_tool_calls": false}, `get_weather{"city":"clock, get_weather"}`},
		"no tool that isn't named":    {"hello", nil, ""},
		"no tool where none may":      {"clock", map[string]any{"tool_choice": "none"}, ""},
		"a tool where one must":       {"hello", map[string]any{"tool_choice": "required"}, `get_weather{"city":"hello"}`},
		"the tool that is chosen":     {"hello", map[string]any{"tool_choice": map[string]any{"type": "function", "function": map[string]any{"name": "clock"}}}, `clock{}`},
		"directives are no arguments": {"get_weather demo:slow 1ms", nil, `get_weather{"city":"get_weather"}`},
	} {
		t.Run(name, func(t *testing.T) {
			more := map[string]any{"tools": []any{weather, clock}}
			for k, v := range tc.more {
				more[k] = v
			}
			got := complete(t, request(t, more, msg("user", tc.words))).Get("choices.0")
			var calls []string
			for _, c := range got.Get("message.tool_calls").Array() {
				calls = append(calls, c.Get("function.name").String()+c.Get("function.arguments").String())
			}
			if joined := strings.Join(calls, " "); joined != tc.want {
				t.Errorf("got %q, want %q", joined, tc.want)
			}
			called := tc.want != ""
			if (got.Get("finish_reason").String() == "tool_calls") != called || (got.Get("message.content").Type == gjson.Null) != called {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestToolCallsStreamInFragments(t *testing.T) {
	more := map[string]any{"tools": []any{weather, clock}, "n": 2}
	ask := msg("user", "get_weather and clock for Oslo")
	whole := complete(t, request(t, more, ask))
	more["stream"] = true
	type part struct{ id, name, arguments string }
	var calls [2][2]part
	for _, e := range stream(t, request(t, more, ask)) {
		choice := gjson.Get(e, "choices.0")
		for _, d := range choice.Get("delta.tool_calls").Array() {
			if !d.Get("index").Exists() {
				t.Fatalf("a delta without index: %s", d)
			}
			at := &calls[choice.Get("index").Int()][d.Get("index").Int()]
			if (at.id == "") != d.Get("id").Exists() {
				t.Errorf("the id doesn't come first and once: %s", d)
			}
			at.id += d.Get("id").String()
			at.name += d.Get("function.name").String()
			at.arguments += d.Get("function.arguments").String()
		}
	}
	for i, choice := range whole.Get("choices").Array() {
		for k, c := range choice.Get("message.tool_calls").Array() {
			got := calls[i][k]
			want := part{got.id, c.Get("function.name").String(), c.Get("function.arguments").String()}
			if got != want || got.id == "" {
				t.Errorf("choice %d, call %d: got %+v, want %+v", i, k, got, want)
			}
		}
	}
	if calls[0][0].id == calls[1][0].id || calls[0][0].id == calls[0][1].id {
		t.Errorf("ids that are no ids: %+v", calls)
	}
}

func assistantCalls(ids ...string) map[string]any {
	var calls []any
	for _, id := range ids {
		calls = append(calls, map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "tool_" + id, "arguments": "{}"}})
	}
	return map[string]any{"role": "assistant", "content": nil, "tool_calls": calls}
}

func toolResult(id, content string) map[string]any {
	return map[string]any{"role": "tool", "tool_call_id": id, "content": content}
}

func TestToolResultsAreSummarised(t *testing.T) {
	got := complete(t, request(t, map[string]any{"tools": []any{tool("tool_a", `{}`)}},
		msg("user", "tool_a, please"), assistantCalls("a", "b"), toolResult("b", "rain"), toolResult("a", "sun\nand wind"),
	)).Get("choices.0.message.content").String()
	if !strings.Contains(got, "The tool tool_b returned: “rain” The tool tool_a returned: “sun and wind”") {
		t.Errorf("got %q", got)
	}
}

func TestCallsAndResultsBelongTogether(t *testing.T) {
	ask := msg("user", "hello")
	base := serve(t)
	for name, tc := range map[string]struct {
		messages []map[string]any
		want     int
	}{
		"a call with its results":           {[]map[string]any{ask, assistantCalls("a", "b"), toolResult("a", "x"), toolResult("b", "x"), ask}, 200},
		"a result without its call":         {[]map[string]any{ask, toolResult("a", "x")}, 400},
		"a result of another call":          {[]map[string]any{ask, assistantCalls("a"), toolResult("b", "x")}, 400},
		"a result that comes twice":         {[]map[string]any{ask, assistantCalls("a"), toolResult("a", "x"), toolResult("a", "x")}, 400},
		"a call that lacks a result":        {[]map[string]any{ask, assistantCalls("a", "b"), toolResult("a", "x"), ask}, 400},
		"a call without results at the end": {[]map[string]any{ask, assistantCalls("a")}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := call(t, "POST", base+"/chat/completions", request(t, nil, tc.messages...))
			if tc.want == 400 {
				wantError(t, resp, body, 400, "messages")
			} else if resp.StatusCode != tc.want {
				t.Errorf("got %d %s", resp.StatusCode, body)
			}
		})
	}
}
