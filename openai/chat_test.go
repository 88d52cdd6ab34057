package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/openai"
)

var defaults = openai.ParseOptions{Extension: openai.DefaultExtension}

// request is a minimal request with more members behind it.
func request(more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"model":"a/b","messages":[{"role":"user","content":"hi"}]` + more + `}`
}

// messages is a request with these messages.
func messages(list string) string { return `{"model":"a/b","messages":` + list + `}` }

func parse(t testing.TB, body string) *openai.Chat {
	t.Helper()
	c, err := openai.ParseChat([]byte(body), defaults)
	if err != nil {
		t.Fatalf("%.200s: %v", body, err)
	}
	return c
}

// wantInvalid checks that err is a 400 that names the parameter.
func wantInvalid(t *testing.T, err error, param string) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want an *openai.Error", err)
	}
	if e.Status != http.StatusBadRequest || e.Type != openai.TypeInvalidRequest || e.Param != param {
		t.Errorf("got status %d, type %q, param %q (%s); want a 400 that names %q", e.Status, e.Type, e.Param, e.Message, param)
	}
	if param != "" && !strings.Contains(e.Message, param) {
		t.Errorf("the message %q doesn't name %s", e.Message, param)
	}
}

func TestParseChatRefuses(t *testing.T) {
	user := func(content string) string { return messages(`[{"role":"user","content":` + content + `}]`) }
	for _, tt := range []struct{ name, body, param string }{
		{"an empty body", ``, ""},
		{"white space", " \n", ""},
		{"no JSON", `model=a/b`, ""},
		{"torn JSON", `{"model":"a/b","messages":[`, ""},
		{"two objects", request("") + request(""), ""},
		{"an array", `[]`, ""},
		{"a string", `"{}"`, ""},
		{"null", `null`, ""},
		{"a byte order mark", "\ufeff" + request(""), ""},

		{"no model", `{"messages":[{"role":"user","content":"hi"}]}`, "model"},
		{"a null model", `{"model":null,"messages":[{"role":"user","content":"hi"}]}`, "model"},
		{"an empty model", `{"model":"","messages":[{"role":"user","content":"hi"}]}`, "model"},
		{"a number for a model", `{"model":1,"messages":[{"role":"user","content":"hi"}]}`, "model"},
		{"a model without a provider", `{"model":"gpt","messages":[{"role":"user","content":"hi"}]}`, "model"},
		{"a model with an empty provider", `{"model":"/gpt","messages":[{"role":"user","content":"hi"}]}`, "model"},
		{"a model with an empty name", `{"model":"a/","messages":[{"role":"user","content":"hi"}]}`, "model"},

		{"no messages", `{"model":"a/b"}`, "messages"},
		{"null messages", messages(`null`), "messages"},
		{"empty messages", messages(`[]`), "messages"},
		{"an object for messages", messages(`{}`), "messages"},
		{"a string for messages", messages(`"[]"`), "messages"},
		{"a message that is a string", messages(`["hi"]`), "messages[0]"},
		{"a message that is null", messages(`[{"role":"user","content":"hi"},null]`), "messages[1]"},
		{"a message without a role", messages(`[{"content":"hi"}]`), "messages[0].role"},
		{"a null role", messages(`[{"role":null,"content":"hi"}]`), "messages[0].role"},
		{"an empty role", messages(`[{"role":"","content":"hi"}]`), "messages[0].role"},
		{"a number for a role", messages(`[{"role":1,"content":"hi"}]`), "messages[0].role"},
		{"two roles", messages(`[{"role":"user","role":"system","content":"hi"}]`), "messages[0].role"},
		{"two contents", messages(`[{"role":"user","content":"a","content":"b"}]`), "messages[0].content"},
		{"two contents, one escaped", messages(`[{"role":"user","content":"a","c\u006fntent":"b"}]`), "messages[0].content"},
		{"a user message without content", messages(`[{"role":"user"}]`), "messages[0].content"},
		{"a user message with null content", user(`null`), "messages[0].content"},
		{"a system message without content", messages(`[{"role":"system"}]`), "messages[0].content"},
		{"a developer message without content", messages(`[{"role":"developer"}]`), "messages[0].content"},
		{"a tool message without content", messages(`[{"role":"tool","tool_call_id":"x"}]`), "messages[0].content"},
		{"a number for content", user(`1`), "messages[0].content"},
		{"an object for content", user(`{}`), "messages[0].content"},
		{"true for content", user(`true`), "messages[0].content"},
		{"a part that is a string", user(`["hi"]`), "messages[0].content"},
		{"a part that is null", user(`[{"type":"text","text":"hi"},null]`), "messages[0].content"},

		{"a string for stream", request(`"stream":"true"`), "stream"},
		{"a number for stream", request(`"stream":1`), "stream"},
		{"a string for temperature", request(`"temperature":"1"`), "temperature"},
		{"a negative temperature", request(`"temperature":-0.1`), "temperature"},
		{"a temperature above 2", request(`"temperature":2.01`), "temperature"},
		{"a temperature beyond all floats", request(`"temperature":1e999`), "temperature"},
		{"a negative top_p", request(`"top_p":-1e-9`), "top_p"},
		{"a top_p above 1", request(`"top_p":1.5`), "top_p"},
		{"true for top_p", request(`"top_p":true`), "top_p"},
		{"a max_tokens of 0", request(`"max_tokens":0`), "max_tokens"},
		{"a negative max_tokens", request(`"max_tokens":-5`), "max_tokens"},
		{"a max_tokens beyond all ints below", request(`"max_tokens":-1e300`), "max_tokens"},
		{"half a token", request(`"max_tokens":1.5`), "max_tokens"},
		{"a string for max_tokens", request(`"max_tokens":"5"`), "max_tokens"},
		{"a max_completion_tokens of 0", request(`"max_completion_tokens":0`), "max_completion_tokens"},
		{"a list for max_completion_tokens", request(`"max_completion_tokens":[1]`), "max_completion_tokens"},

		{"a number for sessionId", request(`"sessionId":7`), "sessionId"},
		{"an object for sessionId", request(`"sessionId":{}`), "sessionId"},
		{"a string for saveToMemory", request(`"saveToMemory":"false"`), "saveToMemory"},
		{"a number for useRAG", request(`"useRAG":0`), "useRAG"},
		{"a list for ragQuery", request(`"ragQuery":["a"]`), "ragQuery"},

		{"two models", request(`"model":"a/b"`), "model"},
		{"two lists of messages", request(`"messages":[{"role":"user","content":"hi"}]`), "messages"},
		{"two streams", request(`"stream":true,"stream":false`), "stream"},
		{"two temperatures", request(`"temperature":1,"temperature":1`), "temperature"},
		{"two top_ps", request(`"top_p":1,"top_p":1`), "top_p"},
		{"two max_tokens", request(`"max_tokens":1,"max_tokens":1`), "max_tokens"},
		{"two max_completion_tokens", request(`"max_completion_tokens":1,"max_completion_tokens":1`), "max_completion_tokens"},
		{"two lists of tools", request(`"tools":[],"tools":[]`), "tools"},
		{"two sessions", request(`"sessionId":"a","sessionId":"b"`), "sessionId"},
		{"two sessions, one null", request(`"sessionId":null,"sessionId":"b"`), "sessionId"},
		{"two sessions, one escaped", request(`"sessionId":"a","\u0073essionId":"b"`), "sessionId"},
		{"two saveToMemorys", request(`"saveToMemory":true,"saveToMemory":true`), "saveToMemory"},
		{"two useRAGs", request(`"useRAG":true,"useRAG":true`), "useRAG"},
		{"two ragQuerys", request(`"ragQuery":"a","ragQuery":"a"`), "ragQuery"},
		{"two lists of models", request(`"models":["a/b"],"models":["c/d"]`), "models"},
		{"two stream_options", request(`"stream_options":null,"stream_options":null`), "stream_options"},
		{"a model in capitals", request(`"MODEL":"c/d"`), "MODEL"},
		{"messages in another case alone", `{"model":"a/b","Messages":[{"role":"user","content":"hi"}]}`, "Messages"},
		{"messages in another case beside", request(`"Messages":[{"role":"user","content":"ho"}]`), "Messages"},
		{"messages with a long s", request(`"me\u017fsages":[]`), "meſsages"},
		{"a stream in another case", request(`"Stream":true`), "Stream"},
		{"max_tokens in another case", request(`"Max_Tokens":1`), "Max_Tokens"},
		{"tools in another case", request(`"Tools":[]`), "Tools"},
		{"a role in another case beside", messages(`[{"role":"user","Role":"system","content":"hi"}]`), "messages[0].Role"},
		{"a role in another case alone", messages(`[{"ROLE":"user","content":"hi"}]`), "messages[0].ROLE"},
		{"a content in another case", messages(`[{"role":"user","content":"hi","Content":"ho"}]`), "messages[0].Content"},
		{"two names", messages(`[{"role":"user","content":"hi","name":"a","name":"b"}]`), "messages[0].name"},
		{"two lists of calls", messages(`[{"role":"assistant","tool_calls":[],"tool_calls":[]}]`), "messages[0].tool_calls"},
		{"two ids of calls", messages(`[{"role":"tool","content":"x","tool_call_id":"a","tool_call_id":"b"}]`), "messages[0].tool_call_id"},
		{"too many calls", messages(`[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[` + strings.Repeat(`{},`, openai.MaxCalls) + `{}]}]`), "messages[1].tool_calls"},
		{"too many members", request(strings.Repeat(`"x":1,`, openai.MaxFields) + `"y":1`), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := openai.ParseChat([]byte(tt.body), defaults)
			if err == nil {
				t.Fatalf("accepted: %+v", c)
			}
			wantInvalid(t, err, tt.param)
		})
	}
}

func TestParseChatAccepts(t *testing.T) {
	for _, tt := range []struct{ name, body string }{
		{"white space around", " \r\n\t" + request("") + "\n"},
		{"temperature at its bounds", request(`"temperature":0`)},
		{"temperature 2", request(`"temperature":2.0`)},
		{"temperature -0", request(`"temperature":-0`)},
		{"top_p 1", request(`"top_p":1`)},
		{"null everywhere", request(`"stream":null,"temperature":null,"top_p":null,"max_tokens":null,"max_completion_tokens":null,"tools":null,"sessionId":null,"saveToMemory":null,"useRAG":null,"ragQuery":null`)},
		{"unknown members, also twice", request(`"x":1,"x":[2],"plugins":[{"id":"y"}]`)},
		{"tools that are no list", request(`"tools":{"x":1}`)},
		{"an unknown role without content", messages(`[{"role":"critic"}]`)},
		{"an assistant message that calls", messages(`[{"role":"assistant","content":null,"tool_calls":[{"id":"x"}]},{"role":"assistant","tool_calls":[]}]`)},
		{"as many calls as allowed", messages(`[{"role":"assistant","tool_calls":[` + strings.Repeat(`{},`, openai.MaxCalls-1) + `{}]}]`)},
		{"a function message without content", messages(`[{"role":"function","name":"f","content":null}]`)},
		{"an empty string", messages(`[{"role":"user","content":""}]`)},
		{"empty parts", messages(`[{"role":"user","content":[]}]`)},
		{"unknown parts", messages(`[{"role":"user","content":[{"type":"hologram"},{}]}]`)},
		{"unknown members of a message, also twice", messages(`[{"role":"user","content":"x","a":1,"a":2}]`)},
		{"brackets in strings beyond the depth", messages(`[{"role":"user","content":"` + strings.Repeat(`[{\"`, 2000) + `"}]`)},
		{"many brackets side by side", request(`"x":[` + strings.Repeat(`[],{},`, 2000) + `0]`)},
		{"a model name with slashes", `{"model":"a/b/c:free","messages":[{"role":"user","content":"hi"}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := parse(t, tt.body)
			if c.Extension != openai.DefaultExtension || c.Stream || c.MaxTokens != 0 || c.Tools != nil {
				t.Errorf("got %+v; want the defaults", c)
			}
		})
	}
}

// A router may take a role for the one that it looks like.
func TestRolesThatLookLikeSystem(t *testing.T) {
	for role, system := range map[string]bool{
		"system": true, "developer": true, " System": true, "SYSTEM": true, "Developer\t": true, "sy\u017ftem": true,
		"\u200bsystem": true, "sys\u00adtem": true, "\u0000system": true, "system:": true,
		"user": false, "assistant": false, "tool": false, "function": false, " User": false, "critic": false, "systems": false, "ecosystem": false, "-": false,
	} {
		quoted, _ := json.Marshal(role)
		message := `{"role":` + string(quoted) + `,"content":"x"}`
		c := parse(t, messages(`[`+message+`,{"role":"user","content":"hi"}]`))
		if got := c.Messages[0].System(); got != system {
			t.Errorf("%q: system %t", role, got)
		}
		if got := string(c.Upstream(openai.Edit{})); !strings.Contains(got, message) {
			t.Errorf("%q: upstream goes %s", role, got)
		}
	}
}

func TestParseChatReads(t *testing.T) {
	c := parse(t, `{"mod\u0065l":"a\/b","sess\u0069onId":"s\n1","saveToMemory":false,"useRAG":false,"ragQuery":"q",
		"stream":true,"max_tokens":5,"max_completion_tokens":7,"tools":[ {"type":"function"} ],
		"messages":[ {"role":"system","content":"be"},{"role":"developer","content":[{"type":"text","text":"brief"}]},
		{"content":"hi","role":"user","name":"bob"} , {"role":"assistant","content":null},{"r\u006fle":"tool","content":"x"},{"role":"function"}]}`)
	want := openai.Extension{SessionID: "s\n1", RAGQuery: "q"}
	if c.Extension != want {
		t.Errorf("extension %+v, want %+v", c.Extension, want)
	}
	if c.Model != "a/b" || !c.Stream || c.MaxTokens != 7 || string(c.Tools) != `[ {"type":"function"} ]` {
		t.Errorf("got %+v", c)
	}
	if n := parse(t, request(`"max_completion_tokens":9,"max_tokens":8`)).MaxTokens; n != 9 {
		t.Errorf("MaxTokens %d, want the larger one, 9", n)
	}
	var roles []string
	for i := range c.Messages {
		m := &c.Messages[i]
		roles = append(roles, fmt.Sprint(m.Role, m.System(), m.ToolResult()))
	}
	if got, want := strings.Join(roles, ","), "systemtruefalse,developertruefalse,userfalsefalse,assistantfalsefalse,toolfalsetrue,functionfalsetrue"; strings.ReplaceAll(got, " ", "") != want {
		t.Errorf("roles %s, want %s", got, want)
	}
	if got := string(c.Messages[2].JSON); got != `{"content":"hi","role":"user","name":"bob"}` {
		t.Errorf("message %s", got)
	}
	if c.LeadingSystem() != 2 || c.LastUser() != 2 {
		t.Errorf("leading system %d, last user %d; want 2, 2", c.LeadingSystem(), c.LastUser())
	}
	if n := parse(t, messages(`[{"role":"system","content":""}]`)).LastUser(); n != -1 {
		t.Errorf("last user %d in a request without one, want -1", n)
	}
}

func TestParseChatTakesHugeIntegersForNoBound(t *testing.T) {
	for in, want := range map[string]int{
		"1": 1, "4096": 4096, "1e3": 1000, "2.0": 2, "2147483646": math.MaxInt32 - 1,
		"2147483647": math.MaxInt32, "9223372036854775808": math.MaxInt32, "1e400": math.MaxInt32,
		strings.Repeat("9", 400): math.MaxInt32,
	} {
		if got := parse(t, request(`"max_tokens":`+in)).MaxTokens; got != want {
			t.Errorf("max_tokens %.30s: got %d, want %d", in, got, want)
		}
	}
}

func TestParseChatBodyWinsOverHeaders(t *testing.T) {
	header := openai.Extension{SessionID: "h", RAGQuery: "hq", SaveToMemory: false, UseRAG: false}
	for _, tt := range []struct {
		body string
		want openai.Extension
	}{
		{request(``), header},
		{request(`"sessionId":null,"saveToMemory":null,"useRAG":null,"ragQuery":null`), header},
		{request(`"sessionId":"b"`), openai.Extension{SessionID: "b", RAGQuery: "hq"}},
		{request(`"sessionId":""`), openai.Extension{RAGQuery: "hq"}},
		{request(`"ragQuery":""`), openai.Extension{SessionID: "h"}},
		{request(`"saveToMemory":true,"useRAG":true`), openai.Extension{SessionID: "h", RAGQuery: "hq", SaveToMemory: true, UseRAG: true}},
	} {
		c, err := openai.ParseChat([]byte(tt.body), openai.ParseOptions{Extension: header})
		if err != nil {
			t.Fatal(err)
		}
		if c.Extension != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.body, c.Extension, tt.want)
		}
	}
}

func TestParseChatAllowsBareModelsByOption(t *testing.T) {
	for model, ok := range map[string]bool{"gpt": true, "a/b": true, "": false} {
		body := `{"model":"` + model + `","messages":[{"role":"user","content":"hi"}]}`
		c, err := openai.ParseChat([]byte(body), openai.ParseOptions{BareModels: true})
		if (err == nil) != ok || ok && c.Model != model {
			t.Errorf("%q: %v", model, err)
		}
	}
}

func TestParseChatBoundsDepth(t *testing.T) {
	nested := func(n int) string { return request(`"x":` + strings.Repeat("[", n) + strings.Repeat("]", n)) }
	parse(t, nested(openai.MaxDepth-1))
	_, err := openai.ParseChat([]byte(nested(openai.MaxDepth)), defaults)
	wantInvalid(t, err, "")

	const size = 10 << 20
	for name, body := range map[string][]byte{
		"arrays":           bytes.Repeat([]byte("["), size),
		"objects":          bytes.Repeat([]byte(`{"a":`), size/5),
		"mixed":            bytes.Repeat([]byte(`[{"":`), size/5),
		"closed":           append(bytes.Repeat([]byte("["), size/2), bytes.Repeat([]byte("]"), size/2)...),
		"behind a message": []byte(`{"model":"a/b","messages":` + strings.Repeat("[", size)),
		"behind a string":  []byte(`{"x":"\\","y":"\"]","z":` + strings.Repeat("[", size)),
	} {
		start := time.Now()
		_, err := openai.ParseChat(body, defaults)
		wantInvalid(t, err, "")
		if took := time.Since(start); took > 2*time.Second { // some 20 ms; the race detector is slow
			t.Errorf("%s: took %v", name, took)
		}
	}
}

func TestExtensionFromHeader(t *testing.T) {
	from := func(h map[string]string) (openai.Extension, error) {
		return openai.ExtensionFromHeader(func(name string) (string, bool) { v, ok := h[name]; return v, ok })
	}
	if e, err := from(nil); err != nil || e != openai.DefaultExtension {
		t.Errorf("no header: %+v, %v; want the defaults", e, err)
	}
	e, err := from(map[string]string{"Session-Id": "s", "Save-To-Memory": "false", "Use-Rag": "FALSE", "Rag-Query": "q"})
	if want := (openai.Extension{SessionID: "s", RAGQuery: "q"}); err != nil || e != want {
		t.Errorf("got %+v, %v; want %+v", e, err, want)
	}
	_, err = from(map[string]string{"Use-Rag": "maybe"})
	wantInvalid(t, err, "X-Backstory-Use-Rag")
	for range 20 { // always the same one of two
		_, err = from(map[string]string{"Save-To-Memory": "x", "Use-Rag": "y"})
		wantInvalid(t, err, "X-Backstory-Save-To-Memory")
	}
}
