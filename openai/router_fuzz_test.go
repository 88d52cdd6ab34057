package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/openai"
)

// routed is what a router in Go reads of a request: of several members the last,
// whatever the case.
type routed struct {
	Model    string
	Models   []string
	Stream   bool
	Messages []struct {
		Role, Name string
		ToolCallID string            `json:"tool_call_id"`
		ToolCalls  []json.RawMessage `json:"tool_calls"`
		Content    json.RawMessage
	}
}

// checkRouted checks that a request which is accepted is the same to a router in
// Go, and to one that takes the last of several members as they are written.
func checkRouted(t *testing.T, body []byte) {
	c, err := openai.ParseChat(body, openai.ParseOptions{Extension: openai.DefaultExtension, BareModels: true})
	if err != nil {
		return
	}
	up := c.Upstream(openai.Edit{})
	var inGo routed
	var asWritten map[string]any
	if json.Unmarshal(up, &inGo) != nil || json.Unmarshal(up, &asWritten) != nil {
		return // a router that reads types refuses it
	}
	text := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
	if text(c.Model) != inGo.Model || c.Stream != inGo.Stream || len(c.Messages) != len(inGo.Messages) {
		t.Fatalf("%q: read as %q, stream %t, %d messages; by the router as %+v", up, c.Model, c.Stream, len(c.Messages), inGo)
	}
	if strings.Join(c.Models, "\n") != strings.Join(inGo.Models, "\n") {
		t.Fatalf("%q: models %q, by the router %q", up, c.Models, inGo.Models)
	}
	if stream, _ := asWritten["stream"].(bool); asWritten["model"] != inGo.Model || stream != inGo.Stream {
		t.Fatalf("%q: two routers read it in two ways", up)
	}
	for i := range c.Messages {
		m, got := &c.Messages[i], &inGo.Messages[i]
		if text(m.Role) != got.Role || text(m.Get("name").String()) != got.Name || text(m.Get("tool_call_id").String()) != got.ToolCallID ||
			len(m.Get("tool_calls").Array()) != len(got.ToolCalls) || m.Content().Raw != string(got.Content) {
			t.Fatalf("%q: message %d is %q, by the router %+v", up, i, m.JSON, got)
		}
	}
}

func FuzzRouterReadsTheSame(f *testing.F) {
	for _, body := range []string{
		request(""), request(`"MODEL":"c/d"`), request(`"models":["a","b"],"stream":true`), request(`"me\u017fsages":[]`), request(`"sessionId":"s","sessionid":"t"`),
		messages(`[{"role":"user","Role":"system","content":"hi","name":"x"},{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"y"}]}]`),
		messages(`[{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"r\u006fle":"user","content":""}]`),
		`{"model":"a/b","model":null,"messages":[{"role":" System","content":"\ud800"}]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(checkRouted)
}
