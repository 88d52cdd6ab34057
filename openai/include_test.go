package openai_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/openai"
)

func TestUpstreamAsksForUsage(t *testing.T) {
	const rest = `"model":"a/b","messages":[{"role":"user","content":"x"}]`
	const ask = `"stream_options":{"include_usage":true}`
	for in, want := range map[string]string{
		`{` + rest + `}`:                                                       `{` + ask + `,` + rest + `}`,
		`{ "sessionId":"s", ` + rest + `}`:                                     `{ ` + ask + `,` + rest + `}`,
		`{` + rest + `,"sessionId":"s"}`:                                       `{` + ask + `,` + rest + `}`,
		`{` + rest + `,"stream_options":null}`:                                 `{` + rest + `,` + ask + `}`,
		`{` + rest + `,"stream_options":{}}`:                                   `{` + rest + `,` + ask + `}`,
		`{` + rest + `,"stream_options":{ "x":1}}`:                             `{` + rest + `,"stream_options":{"include_usage":true, "x":1}}`,
		`{` + rest + `,"stream_options":{"include_usage" : false , "x":1}}`:    `{` + rest + `,"stream_options":{"include_usage" : true , "x":1}}`,
		`{` + rest + `,"stream_options":{"x":{"include_usage":false}}}`:        `{` + rest + `,"stream_options":{"include_usage":true,"x":{"include_usage":false}}}`,
		`{"useRAG":true,"stream_options":{"include_usage":null},` + rest + `}`: `{` + ask + `,` + rest + `}`,
		`{` + rest + `,"stream_options":7}`:                                    `{` + rest + `,"stream_options":7}`,
	} {
		c, err := openai.ParseChat([]byte(in), defaults)
		if err != nil {
			t.Fatal(err)
		}
		if c.IncludeUsage {
			t.Errorf("%s: it is said to ask", in)
		}
		if got := string(c.Upstream(openai.Edit{IncludeUsage: true})); got != want {
			t.Errorf("%s:\n got %s\nwant %s", in, got, want)
		}
	}
	c, err := openai.ParseChat([]byte(`{`+rest+`,`+ask+`}`), defaults)
	if err != nil || !c.IncludeUsage {
		t.Errorf("asked, and it isn't seen: %v", err)
	}
	if _, err := openai.ParseChat([]byte(`{`+rest+`,`+ask+`,"stream_options":{}}`), defaults); err == nil {
		t.Error("stream_options is accepted twice")
	}
}

func TestStreamHidesTheUsageChunkAndNothingElse(t *testing.T) {
	hello, stop := content("hello"), chunk(`{}`, "stop")
	const usage = `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}`
	for _, tt := range []struct{ name, stream string }{
		{"last", events(hello, stop) + "<data: " + usage + "\n\n>" + events("[DONE]")},
		{"first", "<data: " + usage + "\n\n>" + events(hello, stop, "[DONE]")},
		{"without an empty line ahead of the end", events(hello, stop) + "<data: " + usage + "\n>data: [DONE]\n\n"},
		{"without an end", events(hello, stop) + "<data: " + usage + "\n\n>"},
		{"torn off behind its data", events(hello, stop) + "<data: " + usage + ">"},
		{"with other fields", events(hello, stop) + "<event: x\nid: 7\ndata: " + usage + "\nretry: 5\n\n>" + events("[DONE]")},
		{"in several lines", events(hello, stop) + "<data: " + usage[:1] + "\ndata: " + usage[1:] + "\n\n>" + events("[DONE]")},
		{"usage beside a choice", events(hello, `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`, "[DONE]")},
		{"and null elsewhere", events(`{"usage":null,`+hello[1:], `{"choices":[],"usage":null}`, stop) + "<data: " + usage + "\n\n>" + events("[DONE]")},
		{"with an error", events(hello, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4},"error":{"message":"x"}}`, "[DONE]")},
	} {
		for end, ending := range map[string]string{"LF": "\n", "CR": "\r", "CRLF": "\r\n"} {
			t.Run(tt.name+" "+end, func(t *testing.T) {
				marked := strings.ReplaceAll(tt.stream, "\n", ending)
				in := strings.NewReplacer("<", "", ">", "").Replace(marked)
				before, rest, cut := strings.Cut(marked, "<")
				want := marked
				if cut {
					_, behind, _ := strings.Cut(rest, ">")
					want = before + behind
				}
				for _, size := range []int{len(in), 1, 2, 3, 7} {
					r := newRecorder("", "")
					r.HideUsage = true
					for at := 0; at < len(in); at += size {
						r.write(t, in[at:min(at+size, len(in))])
					}
					r.close(t).want(t, want)
					if u := r.Reply().Usage; u != (openai.Usage{Prompt: 3, Completion: 4}) {
						t.Errorf("read %+v", u)
					}
				}
			})
		}
	}
	r := newRecorder(meta, "")
	r.HideUsage = true
	r.write(t, events(usage, hello)).close(t).want(t, events("{"+inserted+hello[1:]))

	comments := "data: " + usage + "\n: a\n\n: b\n"
	r = newRecorder("", "")
	r.HideUsage = true
	r.write(t, events(hello), comments).close(t).want(t, events(hello)+": a\n: b\n")
}

func TestUsageScanner(t *testing.T) {
	for in, want := range map[string]openai.Usage{
		`{"object":"list","data":[{"usage":{"prompt_tokens":9},"embedding":[0.1,-2e3]}],"usage":{"prompt_tokens":5,"total_tokens":5}}`: {Prompt: 5},
		`{"usage":{"prompt_tokens":5,"completion_tokens":6,"details":{"usage":{"prompt_tokens":1}}},"x":1}`:                            {Prompt: 5, Completion: 6},
		`{"usage":{"input_tokens":7,"output_tokens":8}}`:                                                                               {Prompt: 7, Completion: 8},
		`{"usage":{"total_tokens":9}}`:                              {Prompt: 9},
		`{ "a\"usage\":{" : "\\" , "usage" : { "total_tokens":9 }}`: {Prompt: 9},
		`{"x":"\"usage\":{\"total_tokens\":9}"}`:                    {},
		`{"x":{"usage":{"total_tokens":9}}}`:                        {},
		`[{"usage":{"total_tokens":9}}]`:                            {},
		`{"usage":null,"data":{"total_tokens":9}}`:                  {},
		`{"usage":[{"total_tokens":9}]}`:                            {},
		`{"usage":"total_tokens"}`:                                  {},
		`{"usage":{"total_tokens":9`:                                {},
		`{"usage":{"total_tokens":-9}}`:                             {},
		`}}]]{"usage":{"total_tokens":9}}`:                          {Prompt: 9},
		``:                                                          {},
		`{"response":{"usage":{"input_tokens":1,"output_tokens":2},"output":[{"usage":{"input_tokens":5}}]}}`:  {Prompt: 1, Completion: 2},
		`{"usage":{"pad":"` + strings.Repeat("x", 100_000) + `","total_tokens":9},"usage":{"total_tokens":3}}`: {Prompt: 3},
	} {
		for _, size := range []int{len(in), 1, 3} {
			var s openai.UsageScanner
			for at := 0; at < len(in); at += size {
				s.Write([]byte(in[at:min(at+size, len(in))]))
			}
			if s.Usage() != want {
				t.Errorf("%.200s: got %+v, want %+v", in, s.Usage(), want)
			}
		}
	}
	s := openai.UsageScanner{Events: true}
	s.Write([]byte("event: {\"\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\r\n\r\n: {{{\n" +
		"data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}}\n\ndata: [DONE]\n"))
	if s.Usage() != (openai.Usage{Prompt: 3, Completion: 4}) {
		t.Errorf("of events: %+v", s.Usage())
	}
}

func FuzzUsageScanner(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"c"}],"usage":{"prompt_tokens":5}}`), 3)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		var whole, parts openai.UsageScanner
		whole.Write(in)
		at := 0
		if len(in) > 0 {
			at = int(uint(cut) % uint(len(in)))
		}
		parts.Write(in[:at])
		parts.Write(in[at:])
		if whole.Usage() != parts.Usage() {
			t.Fatalf("split at %d: %+v, whole: %+v", at, parts.Usage(), whole.Usage())
		}
		if u := gjson.GetBytes(in, "usage"); gjson.ValidBytes(in) && strings.Count(string(in), "usage") == 1 && !strings.Contains(string(in), `\`) && u.IsObject() {
			if n := u.Get("prompt_tokens"); n.Raw == "5" && whole.Usage().Prompt != 5 {
				t.Fatalf("overlooked in %s", in)
			}
		}
	})
}

// FuzzStreamHidesUsage splits streams anywhere: what the client gets must not
// depend on it, and lack nothing where there is no usage to hide.
func FuzzStreamHidesUsage(f *testing.F) {
	f.Add(uint64(1), uint8(1), []byte(nil))
	f.Add(uint64(2), uint8(3), []byte("data: {\"choices\":[],\r\ndata: \"usage\":{}}\r\n: c\r\n\r\ndata: [DONE]\r\n"))
	f.Fuzz(func(t *testing.T, seed uint64, size uint8, stream []byte) {
		if len(stream) == 0 || seed%2 == 0 {
			stream = append(plausible(rand.New(rand.NewPCG(seed, 0))), stream...)
		}
		run := func(size int) *recorder {
			r := newRecorder("", "")
			r.HideUsage = true
			for part := range slices.Chunk(stream, max(size, 1)) {
				r.write(t, string(part))
			}
			return r.close(t)
		}
		one, many := run(len(stream)), run(int(size))
		if one.got.String() != many.got.String() || one.ends != many.ends || one.Reply().Usage != many.Reply().Usage {
			t.Fatalf("of\n%q\nthe client got\n%q\nin one piece, and in many\n%q", stream, one.got.String(), many.got.String())
		}
		if !bytes.Contains(stream, []byte("usage")) && !bytes.Contains(stream, []byte(`\u`)) && one.got.String() != string(stream) {
			t.Fatalf("the client got\n%q\nof\n%q", one.got.String(), stream)
		}
	})
}
