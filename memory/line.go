package memory

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// line is one message of a session that could be supplied, with what Look has
// to know of it: it is read once.
type line struct {
	exchange, message int // its place: indexes in the tail, and in the exchange
	role              string
	digest            store.Digest
	calls             []string // ids of the calls that it makes
	answers           string   // id of the call whose result it is
}

// read returns the lines of a tail, oldest first. Hidden exchanges have none:
// what is never supplied isn't there for the client to leave out either.
func read(tail []store.Exchange) []line {
	n := 0
	for i := range tail {
		n += len(tail[i].Messages)
	}
	lines := make([]line, 0, n)
	for i := range tail {
		if tail[i].Hidden {
			continue
		}
		for j := range tail[i].Messages {
			m := &tail[i].Messages[j]
			l := line{exchange: i, message: j, role: role(m.JSON), digest: m.Digest}
			if l.result() || bytes.Contains(m.JSON, []byte("_call")) {
				msg := openai.ParseMessage(m.JSON)
				l.calls, l.answers = calls(&msg), answers(&msg)
			}
			lines = append(lines, l)
		}
	}
	return lines
}

func (l *line) result() bool { return isResult(l.role) }

// says reports whether the line is an answer in words, after which a user
// message may follow.
func (l *line) says() bool { return l.role == "assistant" && len(l.calls) == 0 }

// begins reports whether the line is the first of its exchange in lines.
func begins(lines []line, i int) bool { return i == 0 || lines[i-1].exchange != lines[i].exchange }

// ends reports whether the line is the last of its exchange in lines.
func ends(lines []line, i int) bool {
	return i == len(lines)-1 || lines[i+1].exchange != lines[i].exchange
}

func isResult(role string) bool { return role == "tool" || role == "function" }

// calls are the ids of the calls that a message makes. The older
// function_call has no id; the function's name stands for it, as it does in
// the result.
func calls(m *openai.Message) []string {
	var ids []string
	m.Each(func(name string, v gjson.Result) {
		switch name {
		case "tool_calls":
			v.ForEach(func(_, call gjson.Result) bool {
				ids = append(ids, call.Get("id").String())
				return true
			})
		case "function_call":
			if v.IsObject() {
				ids = append(ids, "function "+v.Get("name").String())
			}
		}
	})
	return ids
}

// answers is the id of the call that a result answers; empty for a message
// that is no result.
func answers(m *openai.Message) string {
	switch m.Role {
	case "function":
		return "function " + m.Get("name").String()
	case "tool":
		return m.Get("tool_call_id").String()
	}
	return ""
}

// role reads the role of a stored message. Nearly all of them begin with it,
// and every message of a tail is asked.
func role(json []byte) string {
	if rest, ok := bytes.CutPrefix(json, []byte(`{"role":`)); ok {
		rest = bytes.TrimLeft(rest, " ")
		switch {
		case bytes.HasPrefix(rest, []byte(`"user"`)):
			return "user"
		case bytes.HasPrefix(rest, []byte(`"assistant"`)):
			return "assistant"
		}
	}
	m := openai.ParseMessage(json)
	return m.Role
}
