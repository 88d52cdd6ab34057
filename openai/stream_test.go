package openai_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/openai"
)

const (
	meta     = `{"rag":{"enabled":false}}`
	inserted = `"_metadata":` + meta + `,`
)

// recorder is a Stream with a client.
type recorder struct {
	openai.Stream
	got   bytes.Buffer
	ends  int
	reply *openai.Reply // what End was called with
	atEnd string        // what the client had by then
}

func newRecorder(metadata, lines string) *recorder {
	r := new(recorder)
	r.Metadata = []byte(metadata)
	r.Forward = func(p []byte) error { r.got.Write(p); return nil }
	r.End = func(reply *openai.Reply) []byte {
		r.ends++
		r.reply, r.atEnd = reply, r.got.String()
		return []byte(lines)
	}
	return r
}

func (r *recorder) write(t testing.TB, pieces ...string) *recorder {
	t.Helper()
	for _, p := range pieces {
		if err := r.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *recorder) close(t testing.TB) *recorder {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *recorder) want(t testing.TB, want string) {
	t.Helper()
	if got := r.got.String(); got != want {
		t.Errorf("the client got\n%q\nwant\n%q", got, want)
	}
}

// chunk is the data of a chunk of choice 0.
func chunk(delta, finish string) string {
	if finish != "" {
		finish = strconv.Quote(finish)
	} else {
		finish = "null"
	}
	return `{"id":"c","model":"a/b-1","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

func content(s string) string { return chunk(`{"content":`+strconv.Quote(s)+`}`, "") }

// events makes a stream of events with these data, with \n for its line ends.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		fmt.Fprintf(&b, "data: %s\n\n", d)
	}
	return b.String()
}

// streamed is the reply of a stream.
func streamed(t testing.TB, stream string) *openai.Reply {
	t.Helper()
	r := newRecorder("", "").write(t, stream).close(t)
	if r.reply != nil {
		return r.reply
	}
	return r.Reply()
}

func TestStreamGolden(t *testing.T) {
	// What comes in, and what goes out: the same but for the mark, where the
	// metadata goes.
	hello, stop := content("hello"), chunk(`{}`, "stop")
	marked := "{<M>" + hello[1:]
	for _, tt := range []struct{ name, stream, text string }{
		{"LF", events(marked, stop, "[DONE]"), "hello"},
		{"no space behind the colon", "data:" + marked + "\n\ndata:" + stop + "\n\ndata:[DONE]\n\n", "hello"},
		{"space ahead of the object", "data:   " + marked + "\n\n" + events("[DONE]"), "hello"},
		{"multi-line data", "data: {<M>\"choices\":[\ndata: {\"delta\":{\"content\":\"hello\"}}\ndata:]}\n\n" + events("[DONE]"), "hello"},
		{"an empty line of data ahead of the object", "data:\ndata\ndata: \ndata: " + marked + "\n\n" + events("[DONE]"), "hello"},
		{"a byte order mark", "\ufeff" + events(marked, "[DONE]"), "hello"},
		{"other fields around", "event: message\nid: 7\ndata: " + marked + "\nretry: 5\nfoo\n\n" + events("[DONE]"), "hello"},
		{"comments before, inside and between", ": a\n\n:b\nevent: x\n: c\ndata: " + marked + "\n: {\"choices\":[]}\n\n: d\n" + events("[DONE]"), "hello"},
		{"an error event first", events(`{"error":{"message":"x"}}`, marked, "[DONE]"), "hello"},
		{"other JSON first", events(`{"choices":{}}`, `{"x":{"choices":[]}}`, `[{"choices":[]}]`, `"{\"choices\":[]}"`, `7`, ``, marked, "[DONE]"), "hello"},
		{"a chunk without choices first", events(`{<M>"usage":null,"choices":[]}`, hello, "[DONE]"), "hello"},
		{"a field name that begins with data", "database: {\"choices\":[]}\n\n" + events(marked, "[DONE]"), "hello"},
		{"a usage chunk last", events(marked, stop, `{"choices":[],"usage":{"total_tokens":5}}`, "[DONE]"), "hello"},
		{"bytes behind the end", events(marked, "[DONE]") + "data: " + content("more") + "\n\n\r\n: x", "hello"},
		{"an end without an empty line", events(marked) + "data: [DONE]\n", "hello"},
		{"an end without a line end", events(marked) + "data: [DONE]", "hello"},
		{"an end with more behind", events(marked) + "data: [DONE] \n\n", "hello"},
		{"an end with other fields", events(marked) + "event: done\ndata: [DONE]\n\n", "hello"},
		{"no empty line ahead of the end", "data: " + marked + "\ndata: [DONE]\n\n", "hello"},
		{"an escaped name", events(`{<M>"ch\u006fices":[{"d\u0065lta":{"cont\u0065nt":"hello"}}]}`, "[DONE]"), "hello"},
		{"an escape at the end of a string", events(marked, content(`\`), "[DONE]"), `hello\`},
	} {
		for end, ending := range map[string]string{"LF": "\n", "CR": "\r", "CRLF": "\r\n"} {
			t.Run(tt.name+" "+end, func(t *testing.T) {
				stream := strings.ReplaceAll(tt.stream, "\n", ending)
				in, want := strings.ReplaceAll(stream, "<M>", ""), strings.ReplaceAll(stream, "<M>", inserted)
				if strings.Count(stream, "<M>") != 1 {
					t.Fatal("the test has no mark")
				}
				for _, size := range []int{len(in), 1, 2, 3, 7} {
					r := newRecorder(meta, "")
					for at := 0; at < len(in); at += size {
						r.write(t, in[at:min(at+size, len(in))])
					}
					r.close(t)
					r.want(t, want)
					if r.ends != 1 || !r.Ended() {
						t.Fatalf("End was called %d times, Ended is %v", r.ends, r.Ended())
					}
					m := openai.ParseMessage(r.reply.Message)
					if m.Text() != tt.text || r.reply.Finish != "stop" {
						t.Errorf("reply %s, finish %q; want %q", r.reply.Message, r.reply.Finish, tt.text)
					}
				}
			})
		}
	}
}

func TestStreamWithoutMetadataIsUntouched(t *testing.T) {
	in := ": hi\r\n\r\n" + events(content("a"), chunk(`{}`, "stop"), "[DONE]") + "rest"
	newRecorder("", "").write(t, in).close(t).want(t, in)
}

func TestStreamForwardsCommentsAtOnce(t *testing.T) {
	r := newRecorder(meta, "")
	sent := ""
	send := func(s string) {
		t.Helper()
		r.write(t, s)
		sent += s
		r.want(t, strings.Replace(sent, `{"id"`, "{"+inserted+`"id"`, 1))
	}
	send(": OPENROUTER PROCESSING\n\n")
	send(":\r\n")
	send("event: x\n")
	send(": between fields\n")
	send(events(content("a")))
	send(": between events\n")
	send("data: " + content("b") + "\n")
	send(": inside an event\n")
	send(": half a comm")
	send("ent\n\n")
	send("data: {\"half")
}

func TestStreamHoldsTheFirstChunkUntilItIsWhole(t *testing.T) {
	r := newRecorder(meta, "")
	first := "data: " + content("a") + "\n"
	for _, b := range first {
		r.write(t, string(b))
		r.want(t, "")
	}
	r.write(t, "\n").want(t, "data: {"+inserted+first[7:]+"\n")
}

func TestStreamHoldsTheEndUntilEndWasCalled(t *testing.T) {
	for _, tt := range []struct{ name, before, end, after string }{
		{"LF", events(content("a")), "data: [DONE]\n", "\n"},
		{"tight", events(content("a")), "data:[DONE]\n", "\n"},
		{"CR", events(content("a")), "data: [DONE]\r", "\n\r\n"},
		{"first of all", "", "data: [DONE]\n", "\n"},
		{"behind another field, first of all", ": x\nevent: e\n", "data: [DONE]\n", "\n"},
		{"behind another field", events(content("a")) + "event: e\n", "data: [DONE]\n", "\n"},
		{"behind an open event, first of all", "data: " + content("a") + "\n", "data: [DONE]\n", "\n"},
		{"behind an open event", events(content("a")) + "data: " + content("b") + "\n", "data: [DONE]\n", "\n"},
		{"with a tail", events(content("a")), "data: [DONE] bye\n", "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{1, 1000} {
				r := newRecorder("", ": said at the end\n\n")
				all := tt.before + tt.end + tt.after
				for at := 0; at < len(all); at += size {
					r.write(t, all[at:min(at+size, len(all))])
					if r.ends == 0 && strings.Contains(r.got.String(), "DONE") {
						t.Fatal("[DONE] was forwarded ahead of End")
					}
				}
				r.close(t)
				if r.atEnd != tt.before {
					t.Errorf("at End the client had\n%q\nwant\n%q", r.atEnd, tt.before)
				}
				r.want(t, tt.before+": said at the end\n\n"+tt.end+tt.after)

				r = newRecorder(meta, ": said at the end\n\n").write(t, all)
				r.want(t, strings.Replace(tt.before, "{", "{"+inserted, 1)+": said at the end\n\n"+tt.end+tt.after)
			}
		})
	}
}

func TestStreamThatIsNotTheEndIsReleased(t *testing.T) {
	for _, line := range []string{"data: [DONE", "data: [", "da", "data:[D", "data: [DONe", "event: [DONE]", ": data: [DONE]", " data: [DONE]", "data:  [DONE]", `data: "[DONE]"`} {
		in := events(content("a")) + line + "\n\n"
		r := newRecorder("", "").write(t, in)
		r.want(t, in)
		if r.Ended() || r.ends != 0 {
			t.Errorf("%q ended the stream", line)
		}
	}
}

func TestStreamWithoutDone(t *testing.T) {
	in := events(content("a"), chunk(`{}`, "length"))
	r := newRecorder("", "never").write(t, in).close(t)
	r.want(t, in)
	if r.ends != 0 || r.Ended() {
		t.Errorf("End was called %d times, Ended is %v", r.ends, r.Ended())
	}
	if reply := r.Reply(); reply.Finish != "length" || !reply.HasText {
		t.Errorf("got %+v", reply)
	}
}

func TestStreamCloseReadsAnEventWithoutItsEmptyLineUnlessItIsTorn(t *testing.T) {
	whole := "data: " + content("b")
	for tail, want := range map[string]string{
		"": "a", whole: "ab", whole + "\n": "ab", whole[:len(whole)-1]: "a", whole[:60]: "a", whole[:60] + "\n": "a", "dat": "a",
	} {
		in := events(content("a")) + tail
		r := newRecorder("", "").write(t, in).close(t)
		r.want(t, in)
		if m := openai.ParseMessage(r.Reply().Message); m.Text() != want {
			t.Errorf("%q: got %q, want %q", tail, m.Text(), want)
		}
	}
	r := newRecorder(meta, "").write(t, whole).close(t)
	r.want(t, "data: {"+inserted+whole[7:])
	r = newRecorder(meta, "").write(t, whole[:60]).close(t)
	r.want(t, whole[:60])
}

func TestStreamFailure(t *testing.T) {
	for name, tt := range map[string]struct {
		stream string
		want   bool
	}{
		"none":                     {events(content("a"), chunk(`{}`, "stop")), false},
		"error object":             {events(content("a"), `{"error":{"code":502}}`), true},
		"error beside choices":     {events(content("a"), `{"error":{"code":502},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), true},
		"error string":             {events(`{"error":"x"}`), true},
		"error event":              {"event: error\n" + events(`{"error":{}}`), true},
		"finish_reason error":      {events(chunk(`{}`, "error")), true},
		"of another choice":        {events(`{"choices":[{"index":1,"delta":{},"finish_reason":"error"}]}`), false},
		"null error":               {events(`{"error":null,"choices":[]}`), false},
		"empty and false errors":   {events(`{"error":""}`, `{"error":false}`, `{"error":0}`), false},
		"inner error":              {events(`{"x":{"error":1},"choices":[{"delta":{"error":1}}]}`), false},
		"error in a string":        {events(`"{\"error\":1}"`), false},
		"error in an array":        {events(`[{"error":1}]`), false},
		"error in words":           {events(`oops {"error":1}`), false},
		"error behind the end":     {events("[DONE]", `{"error":1}`), false},
		"error without empty line": {"data: {\"error\":1}", true},
	} {
		if got := streamed(t, tt.stream).Failed; got != tt.want {
			t.Errorf("%s: Failed is %v", name, got)
		}
	}
}

func TestStreamEndsWithoutFinishReason(t *testing.T) {
	if r := streamed(t, events(content("a"), "[DONE]")); r.Finish != "stop" || r.Model != "a/b-1" {
		t.Errorf("got finish %q, model %q", r.Finish, r.Model)
	}
	if r := streamed(t, events(content("a"))); r.Finish != "" {
		t.Errorf("without [DONE]: got finish %q", r.Finish)
	}
	if r := streamed(t, events("[DONE]")); r.Message != nil {
		t.Errorf("without a chunk: got %s", r.Message)
	}
}

func TestStreamStopsWhereTheClientIsGone(t *testing.T) {
	gone := errors.New("gone")
	r := newRecorder("", "")
	r.Forward = func([]byte) error { return gone }
	if err := r.Write([]byte(events(content("a"), "[DONE]"))); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if r.ends != 0 {
		t.Error("End was called, although the client didn't get what is ahead of [DONE]")
	}
	if m := openai.ParseMessage(r.Reply().Message); m.Text() != "a" {
		t.Errorf("got %s", r.Reply().Message)
	}
}

func TestStreamReadsOneHugeChunk(t *testing.T) {
	text := strings.Repeat("é😀\n", 150_000)
	for _, ending := range []string{"\n", "\r", "\r\n"} {
		in := strings.ReplaceAll(events(content(text))+strings.Repeat(": x\n", 50_000)+events(content("!"), "[DONE]"), "\n", ending)
		for _, size := range []int{len(in), 32<<10 + 1} {
			r := newRecorder("", "")
			for at := 0; at < len(in); at += size {
				r.write(t, in[at:min(at+size, len(in))])
			}
			r.close(t)
			if r.got.String() != in {
				t.Errorf("ending %q, writes of %d: other bytes came out", ending, size)
			}
			if m := openai.ParseMessage(r.reply.Message); m.Text() != text+"!" {
				t.Errorf("ending %q, writes of %d: another reply", ending, size)
			}
		}
	}
}

func TestStreamForwardsAnEventTooLargeToBeRead(t *testing.T) {
	const size = 48 << 20 // three times what is kept
	piece := bytes.Repeat([]byte("x"), 64<<10)
	for _, tt := range []struct{ name, before, start, each, end string }{
		{"behind the first chunk", events(content("a")), `data: {"choices":[{"delta":{"content":"`, "", "\"}}]}\n\n"},
		{"first of all", "", `data: {"choices":[{"delta":{"content":"`, "", "\"}}]}\n\n"},
		{"in lines", "", "data: {\n", "\ndata: {\"choices\":[],\"error\":1}\ndata: ", "\n\n"},
		{"as a comment", "", ": ", "", "\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sum, most := 0, 0
			tail := events(content("b"), "[DONE]")
			last := ""
			r := newRecorder(meta, "")
			r.Forward = func(p []byte) error {
				sum += len(p)
				most = max(most, len(p))
				n := len(tail) + len(inserted)
				last += string(p[max(0, len(p)-n):])
				last = last[max(0, len(last)-n):]
				return nil
			}
			in := 0
			write := func(p string) { r.write(t, p); in += len(p) }
			write(tt.before)
			write(tt.start)
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			before := m.TotalAlloc
			for n := 0; n < size; n += len(piece) {
				if err := r.Write(piece); err != nil {
					t.Fatal(err)
				}
				in += len(piece)
				write(tt.each)
			}
			write(tt.end)
			runtime.ReadMemStats(&m)
			// Buffers that double up to 16 MB, of which there are four.
			if got := m.TotalAlloc - before; got > 400<<20 {
				t.Errorf("allocated %d MB", got>>20)
			}
			if sum != in && sum != in+len(inserted) {
				t.Errorf("%d bytes came out of %d before the end", sum, in)
			}
			if most > 17<<20 {
				t.Errorf("%d MB were held", most>>20)
			}
			write(tail)
			if sum != in+len(inserted) {
				t.Errorf("%d bytes came out of %d; want the metadata added", sum, in)
			}
			if tt.before == "" && last != tail[:7]+inserted+tail[7:] {
				t.Errorf("the client got %.200q at the end; want the metadata in the next chunk", last)
			}
			if r.ends != 1 || !r.reply.Truncated || r.reply.Message != nil || r.reply.Failed {
				t.Errorf("End was called %d times, with %+v; want Truncated", r.ends, r.reply)
			}
		})
	}
}

func TestStreamGivesUpAReplyWithoutEnd(t *testing.T) {
	r := newRecorder("", "")
	r.Forward = func([]byte) error { return nil }
	event := events(content(strings.Repeat("x", 1<<20)))
	for range 31 {
		r.write(t, event)
	}
	if r.Reply().Truncated {
		t.Fatal("gave up below 32 MB")
	}
	for range 2 {
		r.write(t, event)
	}
	if reply := r.Reply(); !reply.Truncated || reply.Message != nil {
		t.Error("a reply beyond 32 MB was kept")
	}
}

func TestStreamBoundsDepth(t *testing.T) {
	const n = 1 << 20
	for _, data := range []string{strings.Repeat("[", n), strings.Repeat(`{"choices":`, n/8), `{"choices":[{"delta":` + strings.Repeat(`{"a":`, n)} {
		in := events(data, content("b"), "[DONE]")
		r := newRecorder("", "").write(t, in).close(t)
		r.want(t, in)
		if !r.reply.Truncated {
			t.Errorf("%.30s: want Truncated", data)
		}
	}
}

func TestStreamReplyOutlivesTheBuffers(t *testing.T) {
	long := `{"pad":"` + strings.Repeat("!", 1000) + `","choices":[]}`
	for _, delta := range []string{`{"content":"text","a":1,"b":{"c":["d"]}}`, `{"tool_calls":[{"index":0,"id":"call","function":{"name":"n","arguments":"{}"}}]}`} {
		want := streamed(t, events(chunk(delta, "length")))
		got := streamed(t, events(long, chunk(delta, "length"), long))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v (%s)\nwant %+v (%s)", got, got.Message, want, want.Message)
		}
	}
}

func TestStreamReplyMidwayChangesNothing(t *testing.T) {
	transcript := events(
		chunk(`{"tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"f","arguments":""}}]}`, ""),
		chunk(`{"tool_calls":[{"index":1,"id":"c1","type":"function","function":{"name":"g","arguments":""}}]}`, ""),
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`, ""),
		chunk(`{"tool_calls":[{"index":1,"function":{"arguments":"[]"}}],"role":"assistant","content":"x"}`, ""),
	)
	r := newRecorder("", "")
	for _, b := range []byte(transcript) {
		r.write(t, string(rune(b)))
		r.Reply()
	}
	sameJSON(t, r.Reply().Message, streamed(t, transcript).Message)
	if !reflect.DeepEqual(r.Reply(), streamed(t, transcript)) {
		t.Errorf("got %+v", r.Reply())
	}
}

// TestArgumentsInManyPieces has a router tell a call's name with each piece of its
// arguments, some of which could be an end.
func TestArgumentsInManyPieces(t *testing.T) {
	call := func(id, arguments string) string {
		return chunk(`{"tool_calls":[{"index":0,"id":`+strconv.Quote(id)+`,"function":{"name":"f","arguments":`+strconv.Quote(arguments)+`}}]}`, "")
	}
	for name, c := range map[string]struct {
		pieces []string
		want   []string
	}{
		"brackets in a string":    {[]string{`{"a":"}`, `}`, `\"}`, `\\"`, `,"b":[{}`, `]}`}, []string{`{"a":"}}\"}\\","b":[{}]}`}},
		"whole ones":              {[]string{`{"a":1}`, `{"a":2}`}, []string{`{"a":1}`, `{"a":2}`}},
		"white space behind":      {[]string{"{\"a\":1}\n", `{}`, `{}`}, []string{"{\"a\":1}\n", `{}`, `{}`}},
		"more behind a whole one": {[]string{`{}x`, `{}`}, []string{`{}x{}`}},
		"no object":               {[]string{`[1]`, `{}`}, []string{`[1]{}`}},
	} {
		t.Run(name, func(t *testing.T) {
			var data []string
			for _, p := range c.pieces {
				data = append(data, call("", p))
			}
			r := streamed(t, events(append(data, "[DONE]")...))
			var got []string
			for _, v := range gjson.GetBytes(r.Message, "tool_calls.#.function.arguments").Array() {
				got = append(got, v.Str)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAReplyWithTooManyCallsIsNotKept(t *testing.T) {
	var calls []string
	for i := range openai.MaxCalls + 1 {
		calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"c%d","function":{"name":"f","arguments":"{}"}}`, i, i))
	}
	for n, truncated := range map[int]bool{openai.MaxCalls: false, openai.MaxCalls + 1: true} {
		list := strings.Join(calls[:n], ",")
		if r := streamed(t, events(chunk(`{"tool_calls":[`+list+`]}`, "tool_calls"), "[DONE]")); r.Truncated != truncated {
			t.Errorf("a stream with %d calls: truncated %t", n, r.Truncated)
		}
		if r := openai.ParseReply([]byte(`{"choices":[{"message":{"role":"assistant","tool_calls":[` + list + `]}}]}`)); r.Truncated != truncated {
			t.Errorf("a reply with %d calls: truncated %t", n, r.Truncated)
		}
	}
}
