package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/openai"
)

func TestUpstreamWithoutChangesIsTheSameSlice(t *testing.T) {
	body := []byte(" " + request(`"x" : 1.0e+01 , "y":"\u00e9\/"`) + "\n")
	c, err := openai.ParseChat(body, defaults)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Upstream(openai.Edit{})
	if &got[0] != &body[0] || len(got) != len(body) {
		t.Error("the body was copied")
	}
}

func TestUpstreamCutsExtensionFieldsAlone(t *testing.T) {
	const m = `"messages":[{"role":"user","content":"hi"}]`
	for _, tt := range []struct{ name, body, want string }{
		{"first", `{"sessionId":"s","model":"a/b",` + m + `}`, `{"model":"a/b",` + m + `}`},
		{"middle", `{"model":"a/b", "useRAG" : true , ` + m + `}`, `{"model":"a/b", ` + m + `}`},
		{"last", `{"model":"a/b",` + m + `,"ragQuery":"}"}`, `{"model":"a/b",` + m + `}`},
		{"several at the end", "{\"model\":\"a/b\"," + m + " ,\n\t\"ragQuery\":\"q\" ,\r\n \"useRAG\":false,\"sessionId\":\"s\"\n}", "{\"model\":\"a/b\"," + m + "\n}"},
		{"several at the start", "{ \"ragQuery\":\"q\" ,\n \"useRAG\":false,\n\"model\":\"a/b\"," + m + "}", "{ \"model\":\"a/b\"," + m + "}"},
		{"all of them, everywhere", `{"sessionId":"s","model":"a/b","saveToMemory":false,"useRAG":true,` + m + `,"ragQuery":""}`, `{"model":"a/b",` + m + `}`},
		{"null", `{"model":"a/b","sessionId":null,` + m + `,"useRAG":null}`, `{"model":"a/b",` + m + `}`},
		{"escaped", `{"model":"a/b","sess\u0069onId":"s",` + m + `,"\u0075seRAG":true}`, `{"model":"a/b",` + m + `}`},
		{"look-alikes stay", `{"model":"a/b","sessionid":"s","session_id":"t","x":{"sessionId":"u"},` + m + `}`, `{"model":"a/b","sessionid":"s","session_id":"t","x":{"sessionId":"u"},` + m + `}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := parse(t, tt.body)
			if got := string(c.Upstream(openai.Edit{})); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestUpstreamInsertsHistoryBehindTheLeadingSystemMessages(t *testing.T) {
	const s, d, u = `{"role":"system","content":"s"}`, `{"role":"developer","content":"d"}`, `{"role":"user","content":"u"}`
	history := [][]byte{[]byte(`{"role":"user","content":"h1"}`), []byte(`{"role":"assistant","content":"h2"}`)}
	const h = `{"role":"user","content":"h1"},{"role":"assistant","content":"h2"}`
	for _, tt := range []struct{ name, messages, want string }{
		{"none", `[` + u + `]`, `[` + h + `,` + u + `]`},
		{"some", `[ ` + s + ` , ` + d + ` , ` + u + `,` + s + `]`, `[ ` + s + ` , ` + d + ` , ` + h + `,` + u + `,` + s + `]`},
		{"all", `[` + s + `,` + d + "\n]", `[` + s + `,` + d + `,` + h + "\n]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := parse(t, messages(tt.messages))
			if got, want := string(c.Upstream(openai.Edit{History: history})), messages(tt.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestUpstreamQuotesAheadOfTheOwnText(t *testing.T) {
	for _, tt := range []struct{ name, content, want string }{
		{"in a string", `"own"`, `"Q\n\"own"`},
		{"in an empty string", `""`, `"Q\n\""`},
		{"in parts", `[{"type":"image_url","image_url":{}}]`, `[{"type":"text","text":"Q\n\""},{"type":"image_url","image_url":{}}]`},
		{"in no parts", `[ ]`, `[{"type":"text","text":"Q\n\""} ]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := func(content string) string {
				return messages(`[{"role":"user","content":"own"},{"content":` + content + `,"role":"user"}]`)
			}
			c := parse(t, body(tt.content))
			got := string(c.Upstream(openai.Edit{Quoted: "Q\n\"", QuotedIn: 1}))
			if want := body(tt.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestUpstreamLeavesAMessageWithoutContentAsItIs(t *testing.T) {
	for _, m := range []string{`{"role":"assistant","content":null}`, `{"role":"assistant"}`} {
		body := messages(`[` + m + `]`)
		if got := string(parse(t, body).Upstream(openai.Edit{Quoted: "Q"})); got != body {
			t.Errorf("got %s, want %s", got, body)
		}
	}
}

func TestUpstreamDoesAllAtOnce(t *testing.T) {
	c := parse(t, `{"useRAG":true,"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}],"sessionId":"s","model":"a/b","ragQuery":"q"}`)
	got := string(c.Upstream(openai.Edit{History: [][]byte{[]byte(`{"role":"user","content":"h"}`)}, Quoted: awkward, QuotedIn: 1}))
	var back struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal([]byte(got), &back); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if s := fmt.Sprintf("%q", back.Messages); s != fmt.Sprintf(`[{"system" "s"} {"user" "h"} {"user" %q}]`, awkward+"u") {
		t.Errorf("got %s", s)
	}
	if strings.Contains(got, "RAG") || strings.Contains(got, "sessionId") || strings.Contains(got, "ragQuery") {
		t.Errorf("extension fields left in %s", got)
	}
}

// randomBody writes a random request from seeds. kept are its members without
// the extension fields, as raw text from the quote of the name to the end of
// the value.
func randomBody(r *rand.Rand) (body []byte, kept []string) {
	space := func() string { return []string{"", "", "", " ", "\n", "\r\n\t", "  "}[r.IntN(7)] }
	var value func(depth int) string
	value = func(depth int) string {
		n := 9
		if depth > 3 {
			n = 6
		}
		switch r.IntN(n) {
		case 0:
			return "null"
		case 1:
			return []string{"true", "false"}[r.IntN(2)]
		case 2:
			return []string{"0", "-1.50", "1E+2", "12345678901234567890"}[r.IntN(4)]
		case 3, 4, 5:
			return []string{`""`, `"a\"b\\"`, `"},{"`, `"\u00e9é\ud83d\ude00"`, `",\"sessionId\":1"`}[r.IntN(5)]
		case 6:
			return "{" + space() + "}"
		case 7:
			return "[" + space() + value(depth+1) + space() + "," + value(depth+1) + "]"
		}
		return "{" + space() + `"sessionId"` + space() + ":" + value(depth+1) + space() + "}"
	}
	type field struct {
		text string
		ours bool
	}
	member := func(name, value string, ours bool) field {
		if r.IntN(4) == 0 { // an escaped name
			i := r.IntN(len(name))
			name = fmt.Sprintf(`%s\u%04x%s`, name[:i], name[i], name[i+1:])
		}
		return field{`"` + name + `"` + space() + ":" + space() + value, ours}
	}
	fields := []field{
		member("model", `"a/b"`, false),
		member("messages", `[`+space()+`{"role":"user","content":"hi","x":`+value(0)+`}`+space()+`]`, false),
	}
	for i := range r.IntN(5) {
		fields = append(fields, member(fmt.Sprintf("x%d", i), value(0), false))
	}
	for name, v := range map[string]string{"sessionId": `"s\"}"`, "saveToMemory": "true", "useRAG": "null", "ragQuery": `"[,"`} {
		if r.IntN(2) == 0 {
			fields = append(fields, member(name, v, true))
		}
	}
	r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	var b bytes.Buffer
	b.WriteString(space() + "{" + space())
	for i, f := range fields {
		if i > 0 {
			b.WriteString(space() + "," + space())
		}
		b.WriteString(f.text)
		if !f.ours {
			kept = append(kept, f.text)
		}
	}
	b.WriteString(space() + "}" + space())
	return b.Bytes(), kept
}

func checkUpstreamOfRandomBody(t *testing.T, a, b uint64) {
	t.Helper()
	body, kept := randomBody(rand.New(rand.NewPCG(a, b)))
	before := string(body)
	c, err := openai.ParseChat(body, defaults)
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	got := c.Upstream(openai.Edit{})
	if string(body) != before {
		t.Fatalf("the body was changed: %s", body)
	}
	var in, out map[string]any
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &out); err != nil {
		t.Fatalf("%v in %s, from %s", err, got, body)
	}
	for _, name := range []string{"sessionId", "saveToMemory", "useRAG", "ragQuery"} {
		delete(in, name)
	}
	if !reflect.DeepEqual(in, out) {
		t.Fatalf("got %s from %s", got, body)
	}
	rest := string(got) // holds each kept member, in order, and nothing else but commas and space
	for _, k := range kept {
		skipped, after, ok := strings.Cut(rest, k)
		if !ok || strings.Trim(skipped, " \r\n\t,{") != "" {
			t.Fatalf("member %s isn't in its place in %s, from %s", k, got, body)
		}
		rest = after
	}
	if strings.TrimSpace(rest) != "}" {
		t.Fatalf("%q behind the last member of %s", rest, got)
	}
}

func TestUpstreamOfRandomBodies(t *testing.T) {
	for seed := range uint64(2000) {
		checkUpstreamOfRandomBody(t, seed, 0)
	}
}

func FuzzUpstreamCuts(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(checkUpstreamOfRandomBody)
}

// FuzzUpstream edits arbitrary bodies: whatever is accepted stays JSON, and
// says what it said.
func FuzzUpstream(f *testing.F) {
	f.Add([]byte(request(`"sessionId":"s","x":1`)), "quoted")
	f.Add([]byte(messages(`[{"role":"system","content":[]}]`)), awkward)
	f.Add([]byte(`{"useRAG":null,"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"model":"a/b"}`), "\xff")
	f.Fuzz(func(t *testing.T, body []byte, quoted string) {
		c, err := openai.ParseChat(body, defaults)
		if err != nil {
			return
		}
		e := openai.Edit{History: [][]byte{[]byte(`{"role":"user","content":"h"}`)}, Quoted: quoted, QuotedIn: len(c.Messages) - 1}
		got := c.Upstream(e)
		if json.Valid(body) && !json.Valid(got) {
			t.Fatalf("no JSON: %s", got)
		}
		back, err := openai.ParseChat(got, defaults)
		if err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		if back.Extension != openai.DefaultExtension {
			t.Fatalf("extension fields left: %s", got)
		}
		if len(back.Messages) != len(c.Messages)+1 || back.Model != c.Model {
			t.Fatalf("got %s from %s", got, body)
		}
		at := c.LeadingSystem()
		if string(back.Messages[at].JSON) != string(e.History[0]) {
			t.Fatalf("history not at %d in %s", at, got)
		}
		for i := range c.Messages {
			j := i
			if i >= at {
				j++
			}
			want := c.Messages[i].JSON
			if i == e.QuotedIn && quoted != "" {
				want = c.Messages[i].Quote(quoted)
			}
			if !bytes.Equal(back.Messages[j].JSON, want) {
				t.Fatalf("message %d is %s, want %s", i, back.Messages[j].JSON, want)
			}
		}
	})
}

func TestLead(t *testing.T) {
	for in, want := range map[string]string{
		`{}`: `{"id":1}`, `{"id":2}`: `{"id":1}`, `{ "a" : [1, 2],"id":3,"b":"é" }`: `{"id":1,"a":[1, 2],"b":"é"}`, `{"i\u0064":2,"c":0}`: `{"id":1,"c":0}`,
	} {
		if got := string(openai.Lead([]byte(in), `"id":1`, "id")); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}
