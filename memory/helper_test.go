package memory_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// In these tests a message is written short: the first word says who speaks.
//
//	u:words         user
//	a:words         assistant
//	s:words         system
//	c:id,id         assistant that calls tools
//	r:id            result of a tool
//	f:name          assistant with the older function_call
//	g:name          its result
func message(short string) []byte {
	who, what, _ := strings.Cut(short, ":")
	words, _ := json.Marshal(what)
	switch who {
	case "u":
		return fmt.Appendf(nil, `{"role":"user","content":%s}`, words)
	case "a":
		return fmt.Appendf(nil, `{"role":"assistant","content":%s}`, words)
	case "s":
		return fmt.Appendf(nil, `{"role":"system","content":%s}`, words)
	case "c":
		var calls []string
		for id := range strings.SplitSeq(what, ",") {
			calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}`, id))
		}
		return fmt.Appendf(nil, `{"role":"assistant","content":null,"tool_calls":[%s]}`, strings.Join(calls, ","))
	case "r":
		return fmt.Appendf(nil, `{"role":"tool","tool_call_id":%s,"content":"result of %s"}`, words, what)
	case "f":
		return fmt.Appendf(nil, `{"role":"assistant","content":null,"function_call":{"name":%s,"arguments":"{}"}}`, words)
	case "g":
		return fmt.Appendf(nil, `{"role":"function","name":%s,"content":"result of %s"}`, words, what)
	}
	panic("who speaks in " + short)
}

func parse(list string) []openai.Message {
	var messages []openai.Message
	for _, short := range words(list) {
		messages = append(messages, openai.ParseMessage(message(short)))
	}
	return messages
}

// words splits a list of short messages at white space.
func words(list string) []string { return strings.Fields(list) }

// short is the way back, for messages made by message.
func short(raw []byte) string {
	m := openai.ParseMessage(raw)
	switch {
	case m.Role == "tool":
		return "r:" + m.Get("tool_call_id").Str
	case m.Role == "function":
		return "g:" + m.Get("name").Str
	case m.Get("function_call").IsObject():
		return "f:" + m.Get("function_call.name").Str
	case m.Get("tool_calls").IsArray():
		var ids []string
		for _, c := range m.Get("tool_calls").Array() {
			ids = append(ids, c.Get("id").Str)
		}
		return "c:" + strings.Join(ids, ",")
	}
	return m.Role[:1] + ":" + m.Text()
}

func shorts(messages []store.Message) string {
	var list []string
	for i := range messages {
		list = append(list, short(messages[i].JSON))
	}
	return strings.Join(list, " ")
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// session is a store of one session, and the proxy in front of it.
type session struct {
	t     testing.TB
	log   []store.Exchange
	seq   int64
	tail  int // how many exchanges a request sees; 0: all
	total int64
	now   time.Time
}

func newSession(t testing.TB) *session { return &session{t: t, now: noon} }

// request is a chat request on its way.
type request struct {
	s          *session
	messages   []openai.Message
	conv       []memory.RequestMessage
	reconciled memory.Reconciliation
	mark       int64
	retries    int
}

// ask begins a request: what is looked up stays as it was then.
func (s *session) ask(list string) *request { return s.begin(parse(list), false) }

func (s *session) retry(list string) *request { return s.begin(parse(list), true) }

// again is the nth retry.
func (s *session) again(n int, list string) *request {
	r := s.retry(list)
	r.retries = n
	return r
}

func (s *session) begin(messages []openai.Message, retried bool) *request {
	s.now = s.now.Add(time.Second)
	tail := s.log
	if s.tail > 0 {
		tail = tail[max(0, len(tail)-s.tail):]
	}
	before := fingerprint(tail)
	r := &request{s: s, messages: messages, conv: memory.Conversation(messages), mark: s.seq}
	if retried {
		r.retries = 1
	}
	r.reconciled = memory.Reconcile(tail, r.conv, retried, s.now)
	if !bytes.Equal(fingerprint(tail), before) {
		s.t.Fatal("Reconcile changed the tail that it was given")
	}
	return r
}

func fingerprint(tail []store.Exchange) (b []byte) {
	for i := range tail {
		e := &tail[i]
		b = append(b, byte(e.Seq), byte(e.Seq>>8), byte(e.Offset), byte(len(e.Messages)))
		for j := range e.Messages {
			b = append(b, e.Messages[j].Digest[:]...)
		}
	}
	return b
}

// included is what the request gets from memory.
func (r *request) included() string {
	var list []string
	for _, m := range r.history() {
		list = append(list, short(m.JSON))
	}
	return strings.Join(list, " ")
}

func (r *request) history() (messages []store.Message) {
	for _, g := range r.reconciled.Groups {
		for _, e := range g.Exchanges {
			messages = append(messages, e.Messages...)
		}
	}
	return messages
}

// answered ends a request with a reply.
func (r *request) answered(reply string) *session {
	m := message(reply)
	parsed := openai.ParseMessage(m)
	return r.end(&openai.Reply{
		Message: m, Finish: "stop", HasText: parsed.Text() != "",
		HasCalls: parsed.Get("tool_calls").Exists() || parsed.Get("function_call").Exists(),
	}, false)
}

// left ends a request whose client went away after that much of the reply.
func (r *request) left(partial string) *session {
	if partial == "" {
		return r.end(&openai.Reply{}, true)
	}
	return r.end(&openai.Reply{Message: message(partial), HasText: true}, true)
}

func (r *request) completed(reply *openai.Reply, closed bool) *memory.Completed {
	return &memory.Completed{
		ID: fmt.Sprintf("%p", r), Messages: r.messages, Conversation: r.conv, Reconciliation: r.reconciled, Reply: reply, Closed: closed, Retries: r.retries, Now: r.s.now,
		Count: func(m *openai.Message) int { return len(m.JSON) },
	}
}

// end saves as the proxy and a store do.
func (r *request) end(reply *openai.Reply, closed bool) *session {
	s := r.s
	t := r.completed(reply, closed)
	d, save := t.Draft()
	e := d.Exchange
	if !save || len(e.Messages) == 0 {
		return s
	}
	var newer []store.Exchange
	for _, e := range s.log {
		if e.Seq > r.mark {
			newer = append(newer, e)
		}
	}
	replaces := r.reconciled.Replaces
	if len(newer) > 0 {
		if e, replaces = d.Rebase(newer); len(e.Messages) == 0 {
			return s
		}
	}
	for i := range s.log {
		if s.log[i].Seq == replaces {
			s.log = append(s.log[:i:i], s.log[i+1:]...)
			break
		}
	}
	s.seq++
	e.Seq, e.Offset = s.seq, s.total
	s.total += int64(e.Tokens())
	s.log = append(s.log, e)
	return s
}

// saved is the log, hidden exchanges in brackets, exchanges apart by bars.
func (s *session) saved() string {
	var list []string
	for i := range s.log {
		text := shorts(s.log[i].Messages)
		if s.log[i].Hidden {
			text = "(" + text + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, " | ")
}

// conversation has a whole session told in the form of saved, as a client
// would that sends one message at a time.
func (s *session) conversation(log string) *session {
	for exchange := range strings.SplitSeq(log, "|") {
		list := words(exchange)
		if len(list) == 0 {
			continue
		}
		last := len(list) - 1
		s.ask(strings.Join(list[:last], " ")).answered(list[last])
	}
	return s
}

func (s *session) want(log string) *session {
	s.t.Helper()
	if got := s.saved(); got != log {
		s.t.Errorf("the log is\n\t%s\nwant\n\t%s", got, log)
	}
	return s
}

func (r *request) want(included string) *request {
	r.s.t.Helper()
	if got := r.included(); got != included {
		r.s.t.Errorf("included\n\t%s\nwant\n\t%s", got, included)
	}
	if err := valid(r.history(), r.messages); err != nil {
		r.s.t.Errorf("%v, after %s", err, r.included())
	}
	return r
}

// valid says why a provider would refuse what is included, and what the client
// didn't do itself.
func valid(history []store.Message, sent []openai.Message) error {
	var all []openai.Message
	for i := range history {
		all = append(all, openai.ParseMessage(history[i].JSON))
	}
	if len(all) > 0 && all[0].Role != "user" {
		return fmt.Errorf("the history begins with a message of role %s", all[0].Role)
	}
	own := len(all)
	for i := range sent {
		if !sent[i].System() {
			all = append(all, sent[i])
		}
	}
	waiting := map[string]bool{}
	for i := range all {
		m := &all[i]
		if m.ToolResult() {
			id := answeredBy(m)
			if !waiting[id] {
				if i >= own && !memoryHolds(all[:own], all[own:]) {
					continue // the client's own mistake
				}
				return fmt.Errorf("message %d answers %s, which isn't open", i, id)
			}
			delete(waiting, id)
			continue
		}
		if len(waiting) > 0 && i <= own {
			return fmt.Errorf("message %d stands where the results of %v should", i, waiting)
		}
		if i <= own && i > 0 && m.Role == "user" && all[i-1].Role == "user" && i == own {
			return fmt.Errorf("the history ends with a user message, and the request begins with one")
		}
		clear(waiting)
		for _, c := range m.Get("tool_calls").Array() {
			waiting[c.Get("id").Str] = true
		}
		if f := m.Get("function_call.name"); f.Exists() {
			waiting["function "+f.Str] = true
		}
	}
	if len(waiting) > 0 && own == len(all) && own > 0 {
		return fmt.Errorf("the history ends in calls: %v", waiting)
	}
	return nil
}

// memoryHolds reports whether a message of the history makes all the calls that
// the request's results, from its first message on, answer.
func memoryHolds(history, sent []openai.Message) bool {
	for i := range history {
		made := map[string]bool{"function " + history[i].Get("function_call.name").Str: true}
		for _, c := range history[i].Get("tool_calls").Array() {
			made[c.Get("id").Str] = true
		}
		all := true
		for j := 0; j < len(sent) && sent[j].ToolResult(); j++ {
			all = all && made[answeredBy(&sent[j])]
		}
		if all {
			return true
		}
	}
	return false
}

func answeredBy(m *openai.Message) string {
	if m.Role == "function" {
		return "function " + m.Get("name").Str
	}
	return m.Get("tool_call_id").Str
}
