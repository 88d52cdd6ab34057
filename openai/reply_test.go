package openai_test

import (
	"encoding/json"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/openai"
)

func sameJSON(t testing.TB, got, want []byte) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatalf("%v in %s", err, want)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStreamedReplyEqualsTheWholeOne(t *testing.T) {
	for _, tt := range []struct {
		name            string
		chunks          []string
		message         string // as the same router sends it without a stream, less null members
		finish          string
		hasText, hasCal bool
	}{
		{"text", []string{
			chunk(`{"role":"assistant","content":"","refusal":null}`, ""),
			content("Hel"), content("lo \"you\"\n"), content("é😀 </b>"),
			chunk(`{}`, "stop"),
			`{"id":"c","choices":[],"usage":{"prompt_tokens":1}}`,
		}, `{"role":"assistant","content":"Hello \"you\"\né😀 </b>"}`, "stop", true, false},

		{"text with fields that we don't know", []string{
			`{"id":"c","obfuscation":"xx","service_tier":"default","choices":[{"index":0,"delta":{"role":"assistant","content":"a","mood":"good","score":1,"deep":{"x":"1","n":null}},"logprobs":{"content":[{"token":"a","logprob":-1}]},"finish_reason":null,"native_finish_reason":null}]}`,
			chunk(`{"content":"b","mood":" still","score":2,"deep":{"x":"2","ok":true}}`, "stop"),
		}, `{"role":"assistant","content":"ab","mood":"good still","score":2,"deep":{"x":"12","ok":true}}`, "stop", true, false},

		{"the role told with every chunk", []string{
			chunk(`{"role":"assistant","content":"a"}`, ""), chunk(`{"role":"assistant","content":"b"}`, ""), chunk(`{"role":"assistant","content":""}`, "stop"),
		}, `{"role":"assistant","content":"ab"}`, "stop", true, false},

		{"no role, or an empty one", []string{chunk(`{"role":"","content":"a"}`, "stop")}, `{"role":"assistant","content":"a"}`, "stop", true, false},

		{"empty lists of calls", []string{
			chunk(`{"role":"assistant","content":"a","tool_calls":[]}`, ""), chunk(`{"content":"","tool_calls":[ ],"name":null}`, "stop"),
		}, `{"role":"assistant","content":"a"}`, "stop", true, false},

		{"several choices, in any order", []string{
			`{"choices":[{"index":1,"delta":{"role":"assistant","content":"no"}}]}`,
			`{"choices":[{"index":2,"delta":{"content":"no"}},{"index":0,"delta":{"role":"assistant","content":"y"}}]}`,
			`{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}`,
			`{"choices":[{"index":0,"delta":{"content":"es"},"finish_reason":"stop"},{"index":1,"delta":{"content":"no"}}]}`,
			`{"choices":[{"index":2,"delta":{},"finish_reason":"length"}]}`,
		}, `{"role":"assistant","content":"yes"}`, "stop", true, false},

		{"a call", []string{
			chunk(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":""}}],"refusal":null}`, ""),
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"ci"}}]}`, ""),
			chunk(`{"tool_calls":[{"index":0,"id":"","type":"function","function":{"name":"","arguments":"ty\":\"Rome\"}"}}]}`, ""),
			chunk(`{}`, "tool_calls"),
		}, `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}}]}`, "tool_calls", false, true},

		{"parallel calls, one after the other", []string{
			chunk(`{"role":"assistant","content":null}`, ""),
			chunk(`{"tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]}`, ""),
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`, ""),
			chunk(`{"tool_calls":[{"index":1,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]}`, ""),
			chunk(`{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}`, "tool_calls"),
		}, `{"role":"assistant","content":null,"tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, "tool_calls", false, true},

		{"parallel calls, interleaved", []string{
			chunk(`{"role":"assistant","tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"f","arguments":""}},{"index":1,"id":"c1","type":"function","function":{"name":"g","arguments":""}}]}`, ""),
			chunk(`{"tool_calls":[{"index":1,"function":{"arguments":"{\"b\""}},{"index":0,"function":{"arguments":"{\"a\""}}]}`, ""),
			chunk(`{"tool_calls":[{"index":0,"function":{"arguments":":0}"}}]}`, ""),
			chunk(`{"tool_calls":[{"index":1,"function":{"arguments":":1}"}}]}`, "tool_calls"),
		}, `{"role":"assistant","content":null,"tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{\"a\":0}"}},{"id":"c1","type":"function","function":{"name":"g","arguments":"{\"b\":1}"}}]}`, "tool_calls", false, true},

		{"parallel calls in one piece each, without an index", []string{
			chunk(`{"role":"assistant","tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{}"}}]}`, ""),
			chunk(`{"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, "tool_calls"),
		}, `{"role":"assistant","content":null,"tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, "tool_calls", false, true},

		{"parallel calls in one piece each, all with the index 0", []string{ // Gemini
			chunk(`{"role":"assistant","tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"f","arguments":"{\"a\":0}"}}]}`, ""),
			chunk(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"index":0,"id":"","type":"function","function":{"name":"g","arguments":"{}"}}]}`, "tool_calls"),
		}, `{"role":"assistant","content":null,"tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{\"a\":0}"}},{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"","type":"function","function":{"name":"g","arguments":"{}"}}]}`, "tool_calls", false, true},

		{"another id with every chunk", []string{ // Poolside, old vLLM
			chunk(`{"role":"assistant","tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"f","arguments":""}}]}`, ""),
			chunk(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"arguments":"{\"a\":"}}]}`, ""),
			chunk(`{"tool_calls":[{"index":0,"id":"c2","type":"function","function":{"arguments":"0}"}}]}`, "tool_calls"),
		}, `{"role":"assistant","content":null,"tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{\"a\":0}"}}]}`, "tool_calls", false, true},

		{"the name told with every chunk", []string{ // MiniMax
			chunk(`{"role":"assistant","tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"read_file","arguments":"{"}}]}`, ""),
			chunk(`{"tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"read_file","arguments":"\"a\":"}}]}`, ""),
			chunk(`{"tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"read_file","arguments":"0}"}}]}`, "tool_calls"),
		}, `{"role":"assistant","content":null,"tool_calls":[{"id":"c0","type":"function","function":{"name":"read_file","arguments":"{\"a\":0}"}}]}`, "tool_calls", false, true},

		{"a name in pieces", []string{
			chunk(`{"role":"assistant","tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"read_"}}]}`, ""),
			chunk(`{"tool_calls":[{"index":0,"function":{"name":"file","arguments":"{}"}}]}`, "tool_calls"),
		}, `{"role":"assistant","content":null,"tool_calls":[{"id":"c0","type":"function","function":{"name":"read_file","arguments":"{}"}}]}`, "tool_calls", false, true},

		{"a function call of old", []string{
			chunk(`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":""}}`, ""),
			chunk(`{"function_call":{"arguments":"{}"}}`, "function_call"),
		}, `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, "function_call", false, true},

		{"a refusal", []string{
			chunk(`{"role":"assistant","content":null,"refusal":""}`, ""), chunk(`{"refusal":"I'm "}`, ""), chunk(`{"refusal":"sorry"}`, "stop"),
		}, `{"role":"assistant","content":null,"refusal":"I'm sorry"}`, "stop", true, false},

		{"reasoning, its signature later", []string{
			chunk(`{"role":"assistant","content":"","reasoning":"Let","reasoning_details":[{"type":"reasoning.text","text":"Let","format":"anthropic-claude-v1","index":0}]}`, ""),
			chunk(`{"content":"","reasoning":" me","reasoning_details":[{"type":"reasoning.text","text":" me","format":"anthropic-claude-v1","index":0}]}`, ""),
			chunk(`{"content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.text","signature":"sig==","format":"anthropic-claude-v1","index":0}]}`, ""),
			chunk(`{"content":"Hi"}`, ""),
			chunk(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"abc","id":"r1","index":1},{"type":"reasoning.encrypted","data":"def","id":"r2","index":1}]}`, ""),
			chunk(`{"content":"!"}`, "stop"),
		}, `{"role":"assistant","content":"Hi!","reasoning":"Let me","reasoning_details":[
			{"type":"reasoning.text","text":"Let me","format":"anthropic-claude-v1","index":0,"signature":"sig=="},
			{"type":"reasoning.encrypted","data":"abc","id":"r1","index":1},{"type":"reasoning.encrypted","data":"def","id":"r2","index":1}]}`, "stop", true, false},

		{"reasoning of two types with one index, its signature told twice", []string{
			chunk(`{"content":"a","reasoning_details":[{"type":"reasoning.summary","summary":"s","index":0}]}`, ""),
			chunk(`{"reasoning_details":[{"type":"reasoning.text","text":"t","signature":"","index":0}]}`, ""),
			chunk(`{"reasoning_details":[{"type":"reasoning.text","signature":"x","index":0},{"type":"reasoning.text","signature":"x","index":0}]}`, "stop"),
		}, `{"role":"assistant","content":"a","reasoning_details":[{"type":"reasoning.summary","summary":"s","index":0},{"type":"reasoning.text","text":"t","signature":"x","index":0}]}`, "stop", true, false},

		{"reasoning alone", []string{
			chunk(`{"role":"assistant","reasoning_content":"hm"}`, ""), chunk(`{"reasoning_content":"..."}`, "length"),
		}, `{"role":"assistant","content":null,"reasoning_content":"hm..."}`, "length", false, false},

		{"annotations", []string{
			chunk(`{"role":"assistant","content":"see"}`, ""),
			chunk(`{"content":"","annotations":[{"type":"url_citation","url_citation":{"url":"u1","start_index":0}}]}`, ""),
			chunk(`{"annotations":[{"type":"url_citation","url_citation":{"url":"u2","start_index":1}}]}`, "stop"),
		}, `{"role":"assistant","content":"see","annotations":[{"type":"url_citation","url_citation":{"url":"u1","start_index":0}},{"type":"url_citation","url_citation":{"url":"u2","start_index":1}}]}`, "stop", true, false},

		{"audio", []string{
			chunk(`{"role":"assistant","audio":{"id":"audio_1","transcript":"He"}}`, ""),
			chunk(`{"audio":{"data":"AAAA"}}`, ""), chunk(`{"audio":{"data":"BBBB","transcript":"y"}}`, ""),
			chunk(`{"audio":{"expires_at":17}}`, "stop"),
		}, `{"role":"assistant","content":null,"audio":{"id":"audio_1","transcript":"Hey","data":"AAAABBBB","expires_at":17}}`, "stop", true, false},

		{"content in parts, then in words", []string{ // Mistral's reasoning models
			chunk(`{"role":"assistant","content":""}`, ""),
			chunk(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`, ""),
			content("Hel"), content("lo"), chunk(`{"content":""}`, "stop"),
		}, `{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Hello"}]}`, "stop", true, false},

		{"content in words, then in parts", []string{
			content("Hello"), chunk(`{"content":[{"type":"image_url","image_url":{"url":"u"}}]}`, "stop"),
		}, `{"role":"assistant","content":[{"type":"text","text":"Hello"},{"type":"image_url","image_url":{"url":"u"}}]}`, "stop", true, false},

		{"a character in halves", []string{
			chunk(`{"content":"a \ud83d"}`, ""), chunk(`{"content":"\ude00\ud83d"}`, ""), chunk(`{"content":"\ude00!"}`, ""),
			chunk(`{"content":" \\ud83d"}`, ""), chunk(`{"content":"\\ude00"}`, "stop"),
		}, `{"role":"assistant","content":"a 😀😀! \\ud83d\\ude00"}`, "stop", true, false},

		{"halves that stay alone", []string{
			chunk(`{"content":"\ud83d"}`, ""), chunk(`{"content":"x\ude00"}`, ""), chunk(`{"content":"\ude00 한\ud83d"}`, "stop"),
		}, `{"role":"assistant","content":"\ufffdx\ufffd\ufffd 한\ufffd"}`, "stop", true, false},

		{"a character in halves, behind parts", []string{
			chunk(`{"content":[{"type":"text","text":"\ud83d"}]}`, ""), chunk(`{"content":"\ude00"}`, "stop"),
		}, `{"role":"assistant","content":[{"type":"text","text":"😀"}]}`, "stop", true, false},

		{"nothing", []string{chunk(`{"role":"assistant","content":""}`, ""), chunk(`{}`, "stop")}, `{"role":"assistant","content":""}`, "stop", false, false},

		{"numbers that are none", []string{chunk(`{"content":"a","x":NaN,"y":-Infinity,"z":[NaN]}`, "stop")}, `{"role":"assistant","content":"a","x":null,"y":null,"z":[null]}`, "stop", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := streamed(t, events(append(tt.chunks, "[DONE]")...))
			sameJSON(t, r.Message, []byte(tt.message))
			if r.Finish != tt.finish || r.HasText != tt.hasText || r.HasCalls != tt.hasCal || r.Failed || r.Truncated {
				t.Errorf("got %+v; want finish %q, text %v, calls %v", r, tt.finish, tt.hasText, tt.hasCal)
			}
			whole := openai.ParseReply([]byte(`{"choices":[{"index":0,"message":` + tt.message + `,"finish_reason":"` + tt.finish + `"}]}`))
			if whole.Finish != r.Finish || whole.HasText != r.HasText || whole.HasCalls != r.HasCalls {
				t.Errorf("the whole reply is read as %+v, the stream as %+v", whole, r)
			}
			// It can be sent back.
			if _, err := openai.ParseChat([]byte(messages("["+string(r.Message)+"]")), defaults); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestParseReply(t *testing.T) {
	const m = `{"role":"assistant","content":"a"}`
	for _, tt := range []struct {
		name, body string
		want       openai.Reply
	}{
		{"text", `{"model":"x","choices":[{"index":0,"message":` + m + `,"finish_reason":"length"}]}`, openai.Reply{Message: []byte(m), Finish: "length", Model: "x", HasText: true}},
		{"bytes as they came", `{"choices":[{"index":0,"message":{ "content" : "\u00e9","x":1.0 }}]}`, openai.Reply{Message: []byte(`{ "content" : "\u00e9","x":1.0 }`), Finish: "stop", HasText: true}},
		{"no index", `{"choices":[{"message":` + m + `,"finish_reason":"stop"}]}`, openai.Reply{Message: []byte(m), Finish: "stop", HasText: true}},
		{"choices in another order", `{"choices":[{"index":1,"message":{"content":"b"},"finish_reason":"length"},{"index":0,"message":` + m + `,"finish_reason":"stop"}]}`, openai.Reply{Message: []byte(m), Finish: "stop", HasText: true}},
		{"no finish_reason", `{"choices":[{"index":0,"message":` + m + `}]}`, openai.Reply{Message: []byte(m), Finish: "stop", HasText: true}},
		{"a null finish_reason", `{"choices":[{"index":0,"message":` + m + `,"finish_reason":null}]}`, openai.Reply{Message: []byte(m), Finish: "stop", HasText: true}},
		{"an error", `{"error":{"message":"x","code":429}}`, openai.Reply{Finish: "stop", Failed: true}},
		{"an error beside choices", `{"error":{"message":"x"},"choices":[{"index":0,"message":` + m + `}]}`, openai.Reply{Message: []byte(m), Finish: "stop", HasText: true, Failed: true}},
		{"finish_reason error", `{"choices":[{"index":0,"message":` + m + `,"finish_reason":"error"}]}`, openai.Reply{Message: []byte(m), Finish: "error", HasText: true, Failed: true}},
		{"a null error", `{"error":null,"choices":[{"index":0,"message":` + m + `}]}`, openai.Reply{Message: []byte(m), Finish: "stop", HasText: true}},
		{"calls", `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"x"}]},"finish_reason":"tool_calls"}]}`, openai.Reply{Message: []byte(`{"content":null,"tool_calls":[{"id":"x"}]}`), Finish: "tool_calls", HasCalls: true}},
		{"no calls", `{"choices":[{"message":{"tool_calls":[ ],"content":"a", "x":1,"function_call":null}}]}`, openai.Reply{Message: []byte(`{"content":"a","x":1,"function_call":null}`), Finish: "stop", HasText: true}},
		{"a refusal", `{"choices":[{"message":{"content":null,"refusal":"no"}}]}`, openai.Reply{Message: []byte(`{"content":null,"refusal":"no"}`), Finish: "stop", HasText: true}},
		{"parts", `{"choices":[{"message":{"content":[{"type":"text","text":"a"}]}}]}`, openai.Reply{Message: []byte(`{"content":[{"type":"text","text":"a"}]}`), Finish: "stop", HasText: true}},
		{"empty parts", `{"choices":[{"message":{"content":[]}}]}`, openai.Reply{Message: []byte(`{"content":[]}`), Finish: "stop"}},
		{"no message", `{"choices":[{"index":0,"message":null}]}`, openai.Reply{Finish: "stop"}},
		{"no choices", `{"choices":[]}`, openai.Reply{Finish: "stop"}},
		{"a message that isn't JSON", `{"choices":[{"message":{"content":"a" "b"}}]}`, openai.Reply{Finish: "stop"}},
		{"a torn reply", `{"choices":[{"message":{"content":"a"`, openai.Reply{Finish: "stop"}},
		{"a reply too deep to be kept", `{"choices":[{"message":{"content":"a","x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}]}`, openai.Reply{Finish: "stop"}},
		{"no object", `"{\"error\":1,\"choices\":[{\"message\":{}}]}"`, openai.Reply{Finish: "stop"}},
		{"no JSON", `<html>{"error":1}`, openai.Reply{Finish: "stop"}},
		{"nothing", ``, openai.Reply{Finish: "stop"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := openai.ParseReply([]byte(tt.body)); !reflect.DeepEqual(*got, tt.want) {
				t.Errorf("got %+v (%s)\nwant %+v (%s)", *got, got.Message, tt.want, tt.want.Message)
			}
		})
	}
}

func TestParseReplyOutlivesItsBody(t *testing.T) {
	body := []byte(`{"model":"x","choices":[{"index":0,"message":{"content":"a"},"finish_reason":"length"}]}`)
	r := openai.ParseReply(body)
	clear(body)
	if r.Model != "x" || r.Finish != "length" || string(r.Message) != `{"content":"a"}` {
		t.Errorf("got %+v", r)
	}
}

func TestAddMetadata(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1}`:                `{"a":1,"_metadata":M}`,
		`{}`:                     `{"_metadata":M}`,
		"{ \n}":                  "{ \n\"_metadata\":M}",
		" {\"a\":\"}\"\n} \r\n ": " {\"a\":\"}\"\n,\"_metadata\":M} \r\n ",
		`{"a":{}}`:               `{"a":{},"_metadata":M}`,
		``:                       "", " ": "", `[]`: "", `[{"a":1}]`: "", `"{}"`: "", `null`: "", `7`: "", `{`: "", `}{`: "", `oops {}`: "",
	} {
		body := []byte(in)
		got := openai.AddMetadata(body, []byte(`M`))
		if string(got) != want || (want == "") != (got == nil) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if string(body) != in {
			t.Errorf("the body was changed to %q", body)
		}
	}
}

func TestMetadataJSON(t *testing.T) {
	saved := false
	for _, tt := range []struct {
		in   openai.Metadata
		want string
	}{
		{openai.Metadata{}, `{"rag":{"enabled":false},"context":{"totalTokens":0,"includedMessages":0,"includedChunks":0,"truncated":false}}`},
		{openai.Metadata{
			Memory:  &openai.MemoryMetadata{SessionID: "s\n", HistoryMessages: 6, Saved: &saved},
			RAG:     openai.RAGMetadata{Enabled: true, Query: "q"},
			Context: openai.ContextMetadata{TotalTokens: 1, IncludedMessages: 2, IncludedChunks: 3, Truncated: true},
		}, `{"memory":{"sessionId":"s\n","historyMessages":6,"saved":false},"rag":{"enabled":true,"resultsFound":0,"query":"q","sources":[]},"context":{"totalTokens":1,"includedMessages":2,"includedChunks":3,"truncated":true}}`},
		{openai.Metadata{RAG: openai.RAGMetadata{Enabled: true, Degraded: "vector", ResultsFound: 2, Sources: []openai.Source{{FileID: "f", Filename: "p.pdf", Chunk: 12, Page: 3, Score: 0.5}, {Score: math.NaN()}, {Score: math.Inf(1)}}}},
			`{"rag":{"enabled":true,"degraded":"vector","resultsFound":2,"query":"","sources":[{"fileId":"f","filename":"p.pdf","chunk":12,"page":3,"score":0.5},{"fileId":"","filename":"","chunk":0,"score":0},{"fileId":"","filename":"","chunk":0,"score":0}]},"context":{"totalTokens":0,"includedMessages":0,"includedChunks":0,"truncated":false}}`},
		{openai.Metadata{RAG: openai.RAGMetadata{Query: "not told where it's off", ResultsFound: 1}}, `{"rag":{"enabled":false},"context":{"totalTokens":0,"includedMessages":0,"includedChunks":0,"truncated":false}}`},
	} {
		got := tt.in.JSON()
		sameJSON(t, got, []byte(tt.want))
		if strings.ContainsAny(string(got), "\r\n") {
			t.Errorf("%q would break a line of a stream", got)
		}
	}
}

func TestErrorJSONHasAllFourKeys(t *testing.T) {
	for _, tt := range []struct {
		err  *openai.Error
		want string
	}{
		{openai.Invalid("temperature", "no %s", `"x"`), `{"message":"no \"x\"","type":"invalid_request_error","param":"temperature","code":null}`},
		{openai.Invalid("", "%s", awkward), `{"message":` + mustMarshal(awkward) + `,"type":"invalid_request_error","param":null,"code":null}`},
		{openai.StatusError(http.StatusUnauthorized, "x"), `{"message":"x","type":"invalid_request_error","param":null,"code":"invalid_api_key"}`},
		{openai.StatusError(http.StatusNotFound, "x"), `{"message":"x","type":"invalid_request_error","param":null,"code":null}`},
		{openai.StatusError(http.StatusTooManyRequests, "x"), `{"message":"x","type":"requests","param":null,"code":"rate_limit_exceeded"}`},
		{openai.StatusError(http.StatusBadGateway, "x"), `{"message":"x","type":"server_error","param":null,"code":null}`},
		{&openai.Error{}, `{"message":"","type":"","param":null,"code":null}`},
	} {
		sameJSON(t, tt.err.JSON(), []byte(`{"error":`+tt.want+`}`))
		if tt.err.Error() != tt.err.Message {
			t.Errorf("Error() is %q", tt.err.Error())
		}
	}
}

func mustMarshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestNewList(t *testing.T) {
	for _, tt := range []struct {
		in   []string
		want string
	}{
		{nil, `{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}`},
		{[]string{"a"}, `{"object":"list","data":["a"],"first_id":"a","last_id":"a","has_more":false}`},
		{[]string{"a", "b"}, `{"object":"list","data":["a","b"],"first_id":"a","last_id":"b","has_more":false}`},
		{[]string{"a", "b", "c"}, `{"object":"list","data":["a","b"],"first_id":"a","last_id":"b","has_more":true}`},
	} {
		l := openai.NewList(tt.in, 2, func(s string) string { return s })
		sameJSON(t, []byte(mustMarshal(l)), []byte(tt.want))
	}
}

func TestFileObjects(t *testing.T) {
	sameJSON(t, []byte(mustMarshal(openai.File{ID: "file-1", Object: "file", Bytes: 5, CreatedAt: 7, Filename: "a.md", Purpose: "assistants", Status: "processed"})),
		[]byte(`{"id":"file-1","object":"file","bytes":5,"created_at":7,"filename":"a.md","purpose":"assistants","status":"processed"}`))
	sameJSON(t, []byte(mustMarshal(openai.Deleted{ID: "file-1", Object: "file", Deleted: true})), []byte(`{"id":"file-1","object":"file","deleted":true}`))
}
