package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/openai"
)

// awkward is text that needs every kind of escape.
const awkward = "a \"quote\" \\ back\nline\r\ttab \x00\x1f </script> & é 😀 \u2028"

func TestMessageText(t *testing.T) {
	for in, want := range map[string]string{
		`{"role":"user","content":"a\n\"b\" \ud83d\ude00"}`: "a\n\"b\" 😀",
		`{"role":"user","c\u006fntent":"escaped key"}`:      "escaped key",
		`{"role":"user","content":""}`:                      "",
		`{"role":"user","content":null}`:                    "",
		`{"role":"user"}`:                                   "",
		`{"role":"user","content":[]}`:                      "",
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"},"text":"no"},{"text":"b","type":"text"},{"type":"text","text":1}]}`: "a\nb",
	} {
		m := openai.ParseMessage([]byte(in))
		if got := m.Text(); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestMessageEachLeavesOutNull(t *testing.T) {
	m := openai.ParseMessage([]byte(` {"role":"assistant" , "content":null,"\u0061":[1, 2],"b":{"c":null},"d":""}`))
	var got []string
	m.Each(func(name string, v gjson.Result) { got = append(got, name+"="+v.Raw) })
	if s := strings.Join(got, ";"); s != `role="assistant";a=[1, 2];b={"c":null};d=""` {
		t.Errorf("got %s", s)
	}
	if m.Role != "assistant" || m.Get("b.c").Type != gjson.Null || m.Get("a.1").Int() != 2 {
		t.Errorf("got role %q, b.c %s, a.1 %s", m.Role, m.Get("b.c"), m.Get("a.1"))
	}
}

func TestMessageQuote(t *testing.T) {
	for in, want := range map[string]string{
		`{"role":"user","content":"hi"}`:                          `{"role":"user","content":"Q\"hi"}`,
		`{"content" :  "" ,"role":"user"}`:                        `{"content" :  "Q\"" ,"role":"user"}`,
		`{"c\u006fntent":"hi"}`:                                   `{"c\u006fntent":"Q\"hi"}`,
		`{"x":"hi","content":"hi"}`:                               `{"x":"hi","content":"Q\"hi"}`,
		`{"content":[]}`:                                          `{"content":[{"type":"text","text":"Q\""}]}`,
		`{"content":[ ]}`:                                         `{"content":[{"type":"text","text":"Q\""} ]}`,
		`{"content":[ {"type":"image_url"}]}`:                     `{"content":[{"type":"text","text":"Q\""}, {"type":"image_url"}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{}]}`:   `{"role":"assistant","content":null,"tool_calls":[{}]}`,
		`{"role":"assistant","tool_calls":[{"content":"inner"}]}`: `{"role":"assistant","tool_calls":[{"content":"inner"}]}`,
	} {
		m := openai.ParseMessage([]byte(in))
		got := string(m.Quote(`Q"`))
		if got != want || !json.Valid([]byte(got)) {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		if string(m.JSON) != in {
			t.Errorf("the message itself was changed: %s", m.JSON)
		}
	}
	for _, in := range []string{`{"content":"x\ty"}`, `{"content":[{"type":"text","text":"x\ty"}]}`} {
		m := openai.ParseMessage([]byte(in))
		quoted := openai.ParseMessage(m.Quote(awkward))
		if got := strings.ReplaceAll(quoted.Text(), "\nx", "x"); got != awkward+"x\ty" {
			t.Errorf("%s: got %q", in, got)
		}
	}
}

func TestQuotedTextComesBackAsItWas(t *testing.T) {
	m := openai.ParseMessage([]byte(`{"content":""}`))
	for c := range rune(0x3000) {
		if got := m.Quote("a" + string(c)); !json.Valid(got) {
			t.Fatalf("no JSON: %q", got)
		} else if q := openai.ParseMessage(got); q.Text() != "a"+string(c) {
			t.Fatalf("%U: got %q", c, got)
		}
	}
	for in, want := range map[string]string{"\xff": "\ufffd", "a\xc3": "a\ufffd", "\xe2\x82b\ufffd": "\ufffd\ufffdb\ufffd", "<&>": "<&>"} {
		if got := string(m.Quote(in)); got != `{"content":"`+want+`"}` {
			t.Errorf("%q: got %q", in, got)
		}
	}
}
