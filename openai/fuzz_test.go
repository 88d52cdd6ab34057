package openai_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// plausible writes a stream as a router might send it, and breaks it a little.
func plausible(r *rand.Rand) []byte {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	eol := pick("\n", "\n", "\r", "\r\n")
	space := pick(" ", " ", "")
	var b bytes.Buffer
	line := func(s string) { b.WriteString(s + eol) }
	for range r.IntN(8) {
		if r.IntN(8) == 0 {
			eol = pick("\n", "\r", "\r\n") // mixed
		}
		switch r.IntN(10) {
		case 0:
			line(pick(": OPENROUTER PROCESSING", ":", ": {\"choices\":[]}", "event: x", "id", "retry: 7", "data", "database: x", "da"))
			continue
		case 1:
			line("data:" + space + pick(`{"error":{"code":1}}`, `{"x":1}`, `[1]`, `"s {\"choices\":[]}"`, `{}`, `nonsense {`, `{"choices":[],"usage":{}}`))
		case 2: // in several lines
			line("data:" + pick("", " ", "{"))
			line("data:" + space + `{"choices":[`)
			line(pick("data: "+`{"delta":{"content":"`+"é😀"+`"}}`, ": comment", "event: y"))
			line("data:" + space + `]}`)
		default:
			line("data:" + space + chunk(pick(
				`{"role":"assistant","content":""}`, `{"content":"é😀\n\"x\""}`, `{"content":null}`, `{"refusal":"no"}`, `{}`,
				`{"content":[{"type":"text","text":"p"}]}`, `{"tool_calls":[]}`, `{"audio":{"data":"AA"}}`, `{"x":NaN}`,
				`{"tool_calls":[{"index":0,"id":"c0","function":{"name":"f","arguments":"{}"}}]}`,
				`{"tool_calls":[{"index":1,"function":{"arguments":"{"}},{"index":0,"function":{"arguments":"}"}}]}`,
				`{"reasoning_details":[{"index":0,"type":"t","text":"a"},{"index":0,"type":"u","signature":"s"}]}`,
			), pick("", "", "", "stop", "error")))
		}
		if r.IntN(12) > 0 {
			line("")
		}
	}
	switch r.IntN(4) {
	case 0, 1:
		b.WriteString("data:" + space + "[DONE]" + pick(eol+eol, eol, "", " x"+eol+eol))
	case 2:
		b.WriteString("data:" + space + "[DON" + eol + eol)
	}
	b.WriteString(pick("", "", "tail", "data: [DONE]\n\n"))
	out := b.Bytes()
	for range r.IntN(8) - 5 { // mutations
		if len(out) == 0 {
			break
		}
		i := r.IntN(len(out))
		switch r.IntN(4) {
		case 0:
			out = append(out[:i:i], out[i+1:]...)
		case 1:
			out[i] = byte(r.IntN(256))
		case 2:
			out = append(out[:i:i], append([]byte(pick("\n", "\r", "\r\n", "{", "}", `"`, "data:", "[DONE]", "\x00", "\xff")), out[i:]...)...)
		case 3:
			out = out[:i]
		}
	}
	return out
}

// mayHold reports whether a line with this beginning may have to wait.
func mayHold(line string) bool {
	for _, done := range []string{"data: [DONE]", "data:[DONE]"} {
		if strings.HasPrefix(done, line) || strings.HasPrefix(line, done) {
			return true
		}
	}
	return false
}

// lastLine is what stands behind the last line end.
func lastLine(s string) string { return s[strings.LastIndexAny(s, "\r\n")+1:] }

func checkSplits(t *testing.T, stream []byte, cuts []byte) {
	t.Helper()
	marked := bytes.Contains(stream, []byte(`"_metadata"`)) // by itself
	run := func(metadata string, split bool) *recorder {
		r := newRecorder(metadata, "")
		fed := 0
		feed := func(p []byte) {
			t.Helper()
			buffer := bytes.Clone(p) // as the proxy's, used again for the next read
			if err := r.Write(buffer); err != nil {
				t.Fatal(err)
			}
			for i := range buffer {
				buffer[i] = '!'
			}
			fed += len(p)
			// Promptness: behind the first chunk only a line that may be
			// the end can wait.
			got := r.got.String()
			if marked || metadata == "" || r.ends > 0 || !strings.Contains(got, inserted) {
				return
			}
			held := fed + len(inserted) - len(got)
			if line := lastLine(string(stream[:fed])); held != 0 && (held != len(line) || !mayHold(line)) {
				t.Fatalf("%d bytes of\n%q\nwere held", held, stream[:fed])
			}
		}
		for rest := stream; len(rest) > 0; {
			n := len(rest)
			if split && len(cuts) > 0 {
				n = min(n, 1+int(cuts[0]))
				cuts = append(cuts[1:len(cuts):len(cuts)], cuts[0])
			}
			feed(rest[:n])
			rest = rest[n:]
		}
		return r.close(t)
	}
	for _, metadata := range []string{"", meta} {
		one, many := run(metadata, false), run(metadata, true)
		if one.got.String() != many.got.String() {
			t.Fatalf("the client got\n%q\nin one piece, and in many\n%q", one.got.String(), many.got.String())
		}
		if one.ends != many.ends || one.ends > 1 || one.Ended() != (one.ends == 1) {
			t.Fatalf("End was called %d and %d times", one.ends, many.ends)
		}
		if !reflect.DeepEqual(one.Reply(), many.Reply()) || !reflect.DeepEqual(one.reply, many.reply) {
			t.Fatalf("read as %+v in one piece, and in many as %+v", one.Reply(), many.Reply())
		}
		if m := one.Reply().Message; m != nil && !json.Valid(m) {
			t.Fatalf("no JSON: %s", m)
		}
		got := one.got.String()
		if metadata != "" && marked {
			continue
		}
		if metadata != "" && strings.Count(got, `"_metadata"`) > 1 {
			t.Fatalf("metadata told twice: %q", got)
		}
		if metadata != "" {
			got = strings.Replace(got, inserted, "", 1)
		}
		if got != string(stream) {
			t.Fatalf("the client got\n%q\nof\n%q", got, stream)
		}
	}
}

func FuzzStreamSplits(f *testing.F) {
	f.Add(uint64(1), []byte{0}, []byte(nil))
	f.Add(uint64(2), []byte{3, 0, 9}, []byte(events(content("a"), "[DONE]")))
	f.Add(uint64(3), []byte{200}, []byte("data: {\"choices\":[\rdata: {\"delta\":{\"content\":\"x\"}}\r\ndata: ]}\n\r\n: c\ndata:[DONE]"))
	f.Fuzz(func(t *testing.T, seed uint64, cuts, stream []byte) {
		if len(stream) == 0 || seed%2 == 0 {
			stream = append(plausible(rand.New(rand.NewPCG(seed, 0))), stream...)
		}
		checkSplits(t, stream, cuts)
	})
}

func TestStreamSplitsOfRandomStreams(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		cuts := make([]byte, 1+r.IntN(4))
		for i := range cuts {
			cuts[i] = byte(r.IntN(1 << (1 + r.IntN(7))))
		}
		checkSplits(t, plausible(r), cuts)
	}
}

// TestStreamIsPrompt writes whole events, and looks for each at the client.
func TestStreamIsPrompt(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		pick := func(from ...string) string { return from[r.IntN(len(from))] }
		s := newRecorder(meta, "")
		eol := pick("\n", "\r", "\r\n")
		sent := 0
		write := func(p string) {
			t.Helper()
			p = strings.ReplaceAll(p, "\n", eol)
			s.write(t, p)
			sent += len(p)
		}
		write(events(content("first")))
		sent += len(inserted)
		for range 20 {
			write(pick(events(content("x")), events(`{"choices":[],"usage":{}}`), ": comment\n\n", "event: e\ndata: {\ndata: }\n\n", events("[DONE"), "data\n\n", "\n"))
			if s.got.Len() != sent {
				t.Fatalf("%d bytes forwarded, want %d: %q", s.got.Len(), sent, s.got.String())
			}
			held := pick("d", "data", "data:", "data: ", "data: [", "data:[DON", "data: [DONE]", "data:[DONE] x")
			write(held)
			if s.got.Len() != sent-len(held) {
				t.Fatalf("%d bytes forwarded, want %d: %q", s.got.Len(), sent-len(held), s.got.String())
			}
			if strings.Contains(held, "[DONE]") {
				break
			}
			write("?")
			if s.got.Len() != sent {
				t.Fatalf("%d bytes forwarded, want %d: %q", s.got.Len(), sent, s.got.String())
			}
			write("\n\n")
		}
	}
}
