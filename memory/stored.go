package memory

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// storedMessage is a message of a session that could be included, with what Reconcile
// needs to know of it. Its JSON is parsed once.
type storedMessage struct {
	exchange, message int // indexes in the tail, and in the exchange
	role              string
	digest            store.Digest
	calls             []string // ids of the calls that it makes
	answersCall       string   // id of the call whose result it is
	ahead             int64    // tokens of the exchange's messages ahead of it
	validFrom         int      // see grouping: the start of the suffix that ends with it
}

// flatten returns the messages of a tail, oldest first. It leaves out hidden
// exchanges: clients never get to see them, so they can't resend them.
func flatten(tail []store.Exchange) []storedMessage {
	n := 0
	for i := range tail {
		n += len(tail[i].Messages)
	}
	log := make([]storedMessage, 0, n)
	for i := range tail {
		if tail[i].Hidden {
			continue
		}
		ahead := int64(0)
		for j := range tail[i].Messages {
			m := &tail[i].Messages[j]
			s := storedMessage{exchange: i, message: j, role: role(m.JSON), digest: m.Digest, ahead: ahead}
			ahead += int64(m.Tokens)
			if s.isResult() || bytes.Contains(m.JSON, []byte("_call")) {
				msg := openai.ParseMessage(m.JSON)
				s.calls, s.answersCall = calls(&msg), answeredCall(&msg)
			}
			log = append(log, s)
		}
	}
	return log
}

func (s *storedMessage) isResult() bool { return isResult(s.role) }

// isReply reports whether the message is an assistant message without calls, after
// which a user message may follow.
func (s *storedMessage) isReply() bool { return s.role == "assistant" && len(s.calls) == 0 }

// startsExchange reports whether message i is the first of its exchange in the log.
func startsExchange(log []storedMessage, i int) bool {
	return i == 0 || log[i-1].exchange != log[i].exchange
}

// endsExchange reports whether message i is the last of its exchange in the log.
func endsExchange(log []storedMessage, i int) bool {
	return i == len(log)-1 || log[i+1].exchange != log[i].exchange
}

func isResult(role string) bool { return role == "tool" || role == "function" }

// calls returns the ids of the calls that a message makes. The older function_call
// has no id. The function's name stands for it, as it does in the result.
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

// answeredCall returns the id of the call that a result answers; empty for a message
// that isn't a result.
func answeredCall(m *openai.Message) string {
	switch m.Role {
	case "function":
		return "function " + m.Get("name").String()
	case "tool":
		return m.Get("tool_call_id").String()
	}
	return ""
}

// role returns the role of a stored message. It avoids parsing for those that begin
// with it, as nearly all do: Reconcile needs the role of every message of a tail.
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
