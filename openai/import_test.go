package openai_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/openai"
)

var importedAt = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func TestImportedMessagesKeepTheirMembers(t *testing.T) {
	for name, c := range map[string]struct{ in, message, created string }{
		"as they came":      {`{ "role" : "user", "content":"h\u0069", "x":[1.50] }`, `{ "role" : "user", "content":"h\u0069", "x":[1.50] }`, "none"},
		"less the time":     {`{"role":"user","created_at":1700000000,"content":"hi"}`, `{"role":"user","content":"hi"}`, "2023-11-14T22:13:20Z"},
		"with a fraction":   {`{"created_at":1.25,"role":"user","content":"hi"}`, `{"role":"user","content":"hi"}`, "1970-01-01T00:00:01.25Z"},
		"at the beginning":  {`{"role":"user","content":"hi","created_at":0}`, `{"role":"user","content":"hi"}`, "1970-01-01T00:00:00Z"},
		"without a time":    {`{"role":"user","content":"hi","created_at":null}`, `{"role":"user","content":"hi"}`, "none"},
		"an escaped name":   {`{"role":"user","content":"hi","created\u005fat":7}`, `{"role":"user","content":"hi"}`, "1970-01-01T00:00:07Z"},
		"an id of its own":  {`{"id":"m","object":"chat.completion.message","role":"user","content":"hi"}`, `{"id":"m","object":"chat.completion.message","role":"user","content":"hi"}`, "none"},
		"as we list them":   {`{"id":"msg_1_0","object":"session.message","created_at":7,"role":"user","content":"hi"}`, `{"role":"user","content":"hi"}`, "1970-01-01T00:00:07Z"},
		"calls":             {`{"role":"assistant","content":null,"tool_calls":[{"id":"c"}]}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"c"}]}`, "none"},
		"nothing but times": {`{"role":"assistant","created_at":7}`, `{"role":"assistant"}`, "1970-01-01T00:00:07Z"},
	} {
		t.Run(name, func(t *testing.T) {
			array, err := openai.ParseImport([]byte(`{"messages":[`+c.in+`]}`), importedAt)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := openai.ParseImportLines([]byte("\n"+c.in+"\r\n\n"), importedAt)
			if err != nil {
				t.Fatal(err)
			}
			for _, list := range [][]openai.Imported{array, lines} {
				created := "none"
				if !list[0].Created.IsZero() {
					created = list[0].Created.Format(time.RFC3339Nano)
				}
				if len(list) != 1 || string(list[0].JSON) != c.message || created != c.created {
					t.Errorf("got %d: %s at %s", len(list), list[0].JSON, created)
				}
				if list[0].Role == "user" && list[0].Text() != "hi" {
					t.Errorf("it says %q", list[0].Text())
				}
			}
		})
	}
}

func TestInvalidImportsNameTheParameter(t *testing.T) {
	ahead := fmt.Sprint(importedAt.Add(25 * time.Hour).Unix())
	for body, param := range map[string]string{
		``:                                "",
		`[]`:                              "",
		`{"messages":`:                    "",
		`{}`:                              "messages",
		`{"messages":null}`:               "messages",
		`{"messages":[]}`:                 "messages",
		`{"messages":[],"messages":[]}`:   "messages",
		`{"messages":[],"sessionId":"s"}`: "sessionId",
		`{"messages":[{"role":"user","content":"a"},3]}`:                                                      "messages[1]",
		`{"messages":[{"role":"user","content":"a"},{"content":"b"}]}`:                                        "messages[1].role",
		`{"messages":[{"role":"user"}]}`:                                                                      "messages[0].content",
		`{"messages":[{"role":"assistant","tool_calls":[` + strings.Repeat(`{},`, openai.MaxCalls) + `{}]}]}`: "messages[0].tool_calls",
		`{"messages":[{"role":"user","content":"a","created_at":"1700000000"}]}`:                              "messages[0].created_at",
		`{"messages":[{"role":"user","content":"a","created_at":1700000000000}]}`:                             "messages[0].created_at",
		`{"messages":[{"role":"user","content":"a","created_at":` + ahead + `}]}`:                             "messages[0].created_at",
		`{"messages":[{"role":"user","content":"a","created_at":-1}]}`:                                        "messages[0].created_at",
		`{"messages":[{"role":"user","content":"a","created_at":1e999}]}`:                                     "messages[0].created_at",
		`{"messages":[{"role":"user","content":"a","created_at":1,"created_at":2}]}`:                          "messages[0].created_at",
	} {
		_, err := openai.ParseImport([]byte(body), importedAt)
		var e *openai.Error
		if !errors.As(err, &e) || e.Status != 400 || e.Param != param {
			t.Errorf("%s: got %+v", body, err)
		}
	}
	for body, param := range map[string]string{
		"\n \n": "messages",
		"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\n\"user\"}\n": "messages[1]",
		"{\"role\":\"user\",\"content\":\"a\"}\n{}":                      "messages[1].role",
		"[{\"role\":\"user\",\"content\":\"a\"}]":                        "messages[0]",
		"{\"role\":\"user\",\"content\":\"a\"}],\"messages\":[{}":        "messages[0]",
	} {
		_, err := openai.ParseImportLines([]byte(body), importedAt)
		var e *openai.Error
		if !errors.As(err, &e) || e.Status != 400 || e.Param != param {
			t.Errorf("%q: got %+v", body, err)
		}
	}
}

// What is accepted is a message that says the same, less the time.
func FuzzParseImport(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":"hi","created_at":7},{"created\u005fat":null,"role":"assistant","x":{}}]}`))
	f.Add([]byte("{\"role\":\"user\",\"content\":\"hi\"}\n{\"object\":\"session.message\",\"id\":1,\"role\":\"tool\",\"content\":[]}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		before := string(body)
		for _, parse := range []func([]byte, time.Time) ([]openai.Imported, error){openai.ParseImport, openai.ParseImportLines} {
			list, err := parse(body, importedAt)
			if string(body) != before {
				t.Fatal("the body was changed")
			}
			var e *openai.Error
			if err != nil && (!errors.As(err, &e) || e.Status != 400) {
				t.Fatalf("got %v", err)
			}
			for _, m := range list {
				if openai.CheckJSON(m.JSON) != nil || m.Role == "" || openai.ParseMessage(m.JSON).Role != m.Role {
					t.Fatalf("%q became %q", body, m.JSON)
				}
				if m.Get("created_at").Exists() && !strings.Contains(string(m.JSON), `\`) {
					t.Fatalf("the time is left in %q", m.JSON)
				}
				if m.Created.After(importedAt.Add(25 * time.Hour)) {
					t.Fatalf("%v", m.Created)
				}
			}
		}
	})
}
