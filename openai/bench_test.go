package openai_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/backstory-proxy/backstory/openai"
)

// sizedRequest is a request of about size bytes, with the extension fields
// spread over it.
func sizedRequest(size int) []byte {
	exchange := `{"role":"user","content":` + strconv.Quote(strings.Repeat("What is the refund window?\n", 8)) + `},` +
		`{"role":"assistant","content":` + strconv.Quote(strings.Repeat("Thirty days, it says \"here\".", 12)) + `},`
	return []byte(`{"model":"openai/gpt-4o-mini","sessionId":"s-1","temperature":0.7,"useRAG":true,"messages":[{"role":"system","content":"Be brief."},` +
		strings.Repeat(exchange, max(1, size/len(exchange))) + `{"role":"user","content":"And now?"}],"saveToMemory":true,"stream":true,"ragQuery":"refund window"}`)
}

func benchmarkEdit(c *openai.Chat) openai.Edit {
	return openai.Edit{
		History:  [][]byte{[]byte(`{"role":"user","content":"earlier question"}`), []byte(`{"role":"assistant","content":"earlier answer"}`)},
		Quoted:   strings.Repeat("A chunk of a file. ", 100),
		QuotedIn: c.LastUser(),
	}
}

var sizes = []int{10 << 10, 100 << 10, 1 << 20}

func BenchmarkUpstream(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			body := sizedRequest(size)
			c := parse(b, string(body))
			e := benchmarkEdit(c)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				c.Upstream(e)
			}
		})
	}
}

// BenchmarkUpstreamBySjson makes the same edit a field at a time, for
// comparison with BenchmarkUpstream.
func BenchmarkUpstreamBySjson(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			body := sizedRequest(size)
			e := benchmarkEdit(parse(b, string(body)))
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				out := body
				for _, field := range []string{"sessionId", "useRAG", "saveToMemory", "ragQuery"} {
					out, _ = sjson.DeleteBytes(out, field)
				}
				messages := gjson.GetBytes(out, "messages").Array()
				list := []byte{'['}
				for i, m := range messages {
					if i == 1 {
						list = append(append(append(append(list, e.History[0]...), ','), e.History[1]...), ',')
					}
					raw := m.Raw
					if i == len(messages)-1 {
						raw, _ = sjson.Set(raw, "content", e.Quoted+m.Get("content").String())
					}
					list = append(append(list, raw...), ',')
				}
				list[len(list)-1] = ']'
				if _, err := sjson.SetRawBytes(out, "messages", list); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseChat(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			body := sizedRequest(size)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := openai.ParseChat(body, defaults); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStream measures one chunk of a stream under way, in a write of its
// own.
func BenchmarkStream(b *testing.B) {
	event := []byte(events(`{"id":"chatcmpl-A1b2C3","object":"chat.completion.chunk","created":1746900985,"model":"openai/gpt-4o-mini","service_tier":"default","system_fingerprint":"fp_79b79be41f","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}`))
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	newStream := func() *openai.Stream {
		return &openai.Stream{Metadata: []byte(meta), Forward: func([]byte) error { return nil }}
	}
	s := newStream()
	for i := 0; b.Loop(); i++ {
		if i%1000 == 0 { // a long reply
			s = newStream()
		}
		if err := s.Write(event); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseReply(b *testing.B) {
	body := []byte(`{"id":"c","model":"a/b","choices":[{"index":0,"message":{"role":"assistant","content":` + strconv.Quote(strings.Repeat("Some words.\n", 300)) + `},"finish_reason":"stop"}],"usage":{"total_tokens":900}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		openai.AddMetadata(body, []byte(meta))
		openai.ParseReply(body)
	}
}
