package memory_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// However much of the conversation's end a client resends, what goes upstream is the
// whole conversation, and what is saved is the whole of it, once.
func TestWhateverIsResentTheConversationIsWhole(t *testing.T) {
	amounts := map[string]func(rnd *rand.Rand, n int) int{
		"everything":       func(_ *rand.Rand, n int) int { return n },
		"nothing":          func(*rand.Rand, int) int { return 0 },
		"the last four":    func(_ *rand.Rand, n int) int { return min(4, n) },
		"some, as it goes": func(rnd *rand.Rand, n int) int { return rnd.IntN(n + 1) },
	}
	for name, amount := range amounts {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(60) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				vocabulary := []int{2, 5, 1000}[seed%3] // few words: the same messages again and again
				s := newSession(t)
				var conv []string // the conversation so far
				for range 25 {
					fresh := newMessages(rnd, conv, vocabulary)
					if rnd.IntN(6) == 0 { // the client leaves; then asks again, or something else
						s.ask(strings.Join(slices.Concat(conv[len(conv)-amount(rnd, len(conv)):], fresh), " ")).left("")
						fresh = newMessages(rnd, conv, vocabulary)
					}
					sent := slices.Concat(conv[len(conv)-amount(rnd, len(conv)):], fresh)
					r := s.ask(strings.Join(sent, " "))
					if err := valid(r.history(), r.messages); err != nil {
						t.Fatalf("seed %d: %v: %s + %s", seed, err, r.included(), sent)
					}
					upstream := strings.TrimSpace(r.included() + " " + strings.Join(sent, " "))
					if want := strings.Join(slices.Concat(conv, fresh), " "); upstream != want {
						t.Fatalf("seed %d: upstream goes\n\t%s\nwant\n\t%s\nsent\n\t%s", seed, upstream, want, sent)
					}
					conv = slices.Concat(conv, fresh, []string{newReply(rnd, vocabulary)})
					r.answered(conv[len(conv)-1])

					var log []string
					for i := range s.log {
						if !s.log[i].Hidden {
							log = append(log, shorts(s.log[i].Messages))
						}
					}
					if got, want := strings.Join(log, " "), strings.Join(conv, " "); got != want {
						t.Fatalf("seed %d: the log is\n\t%s\nwant\n\t%s", seed, got, want)
					}
				}
			}
		})
	}
}

// newMessages goes on with a conversation: with the results of its open calls,
// or with a user message.
func newMessages(rnd *rand.Rand, conv []string, vocabulary int) []string {
	if n := len(conv); n > 0 {
		if ids, ok := strings.CutPrefix(conv[n-1], "c:"); ok {
			results := strings.Split(ids, ",")
			rnd.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
			for i := range results {
				results[i] = "r:" + results[i]
			}
			return results
		}
		if name, ok := strings.CutPrefix(conv[n-1], "f:"); ok {
			return []string{"g:" + name}
		}
	}
	return []string{fmt.Sprint("u:", rnd.IntN(vocabulary))}
}

func newReply(rnd *rand.Rand, vocabulary int) string {
	switch id := rnd.IntN(vocabulary); rnd.IntN(6) {
	case 0:
		return fmt.Sprint("c:", id)
	case 1:
		return fmt.Sprintf("c:%d,%d", id, id+vocabulary)
	case 2:
		return fmt.Sprint("f:", id)
	default:
		return fmt.Sprint("a:", id)
	}
}

// chooser makes choices: at random, or as a fuzzer says.
type chooser func(n int) int

// wildClient is a client that does all that clients do.
type wildClient struct {
	s      *session
	choose chooser
	conv   []json.RawMessage // as the client has it
	next   int
}

func (c *wildClient) content() string {
	text := []string{"hi", "ok", "", "go on", fmt.Sprint("say ", c.next)}[c.choose(5)]
	c.next++
	switch c.choose(4) {
	case 0:
		return fmt.Sprintf(`[{"type":"text","text":%q}]`, text)
	case 1:
		return fmt.Sprintf(`[{"type":"text","text":%q},{"type":"image_url","image_url":{"url":"data:,%d"}}]`, text, c.choose(3))
	}
	return fmt.Sprintf("%q", text)
}

func (c *wildClient) user() json.RawMessage {
	return fmt.Appendf(nil, `{"role":"user","content":%s}`, c.content())
}

// reply is what the model says next, and whether it has text and calls.
func (c *wildClient) reply() (m json.RawMessage, text, calls bool) {
	c.next++
	switch c.choose(8) {
	case 0, 1:
		var list []string
		for i := range 1 + c.choose(3) {
			id := []string{fmt.Sprint("call_", i), fmt.Sprint(c.next, "-", i)}[c.choose(2)]
			list = append(list, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}`, id))
		}
		if c.choose(2) == 0 {
			return fmt.Appendf(nil, `{"tool_calls":[%s],"role":"assistant","content":"let me see"}`, strings.Join(list, ",")), true, true
		}
		return fmt.Appendf(nil, `{"role":"assistant","content":null,"tool_calls":[%s]}`, strings.Join(list, ",")), false, true
	case 2:
		return fmt.Appendf(nil, `{"role":"assistant","content":null,"function_call":{"name":"f%d","arguments":""}}`, c.choose(2)), false, true
	case 3:
		return json.RawMessage(`{"role":"assistant","content":""}`), false, false
	case 4:
		return json.RawMessage(`{"role":"assistant","content":null,"refusal":"no"}`), true, false
	}
	return fmt.Appendf(nil, `{"role": "assistant","content":%q}`, []string{"ok", "hello", fmt.Sprint("so ", c.next)}[c.choose(3)]), true, false
}

// results answers the calls of a message, if it makes any.
func (c *wildClient) results(m []byte) (results []json.RawMessage) {
	msg := openai.ParseMessage(m)
	for _, call := range msg.Get("tool_calls").Array() {
		results = append(results, fmt.Appendf(nil, `{"role":"tool","tool_call_id":%s,"content":"%d"}`, call.Get("id").Raw, c.choose(2)))
	}
	if f := msg.Get("function_call.name"); f.Exists() {
		results = append(results, fmt.Appendf(nil, `{"role":"function","name":%s,"content":"1"}`, f.Raw))
	}
	if len(results) > 1 && c.choose(2) == 0 {
		slices.Reverse(results)
	}
	return results
}

// step is one request; it returns it for the caller to end.
func (c *wildClient) step() *request {
	carried := slices.Clone(c.conv)
	var fresh []json.RawMessage
	if n := len(carried); n > 0 {
		fresh = c.results(carried[n-1])
	}
	if len(fresh) == 0 || c.choose(6) == 0 { // sometimes a call is left open
		fresh = append(fresh, c.user())
	}
	switch c.choose(8) {
	case 0: // edits, and drops what followed
		if users := c.users(); len(users) > 0 {
			carried, fresh = carried[:users[c.choose(len(users))]], []json.RawMessage{c.user()}
		}
	case 1: // has the last answer made anew
		if users := c.users(); len(users) > 0 {
			last := users[len(users)-1]
			carried, fresh = carried[:last], []json.RawMessage{carried[last]}
		}
	case 2: // edits, and keeps what followed
		if users := c.users(); len(users) > 0 {
			carried[users[c.choose(len(users))]] = c.user()
		}
	case 3: // forgets tools
		carried = slices.DeleteFunc(carried, func(raw json.RawMessage) bool {
			m := openai.ParseMessage(raw)
			return m.ToolResult() || len(c.results(raw)) > 0
		})
		fresh = []json.RawMessage{c.user()}
	}
	c.conv = slices.Concat(carried, fresh)
	sent := slices.Concat(carried[c.choose(len(carried)+1):], fresh)
	switch c.choose(12) {
	case 0, 1, 2:
		sent = fresh
	case 3, 4, 5, 6:
		sent = c.conv
	case 7:
		sent = append([]json.RawMessage{json.RawMessage(`{"role":"user","content":"good?"}`), json.RawMessage(`{"role":"assistant","content":"yes"}`)}, c.user())
		c.conv = sent
	case 8:
		sent = slices.Concat(sent, []json.RawMessage{json.RawMessage(`{"role":"assistant","content":"{"}`)})
	case 9:
		sent = slices.Concat([]json.RawMessage{json.RawMessage(`{"role":"system","content":"x"}`)}, sent)
	}
	var messages []openai.Message
	for _, raw := range sent {
		messages = append(messages, openai.ParseMessage(raw))
	}
	return c.s.begin(messages, c.choose(8) == 0)
}

// users are where the user messages stand that are followed by something.
func (c *wildClient) users() (at []int) {
	for i, raw := range c.conv {
		if m := openai.ParseMessage(raw); m.Role == "user" && i < len(c.conv)-1 {
			at = append(at, i)
		}
	}
	return at
}

// end ends a request in one of the ways in which requests end.
func (c *wildClient) end(r *request) {
	m, text, calls := c.reply()
	reply := &openai.Reply{Message: m, HasText: text, HasCalls: calls}
	closed := false
	switch c.choose(12) {
	case 0: // left without a word
		closed, reply = true, &openai.Reply{}
	case 1: // left in the middle
		closed = true
	case 2: // broken off
	case 3:
		reply.Failed = true
	case 4: // left at the end
		closed, reply.Finish = true, "stop"
	default:
		reply.Finish = "stop"
		c.conv = append(c.conv, m)
	}
	r.end(reply, closed)
}

// run goes through a session with some requests, sometimes two at a time.
func (c *wildClient) run(t testing.TB, requests int) {
	for range requests {
		c.s.tail = []int{0, 0, 12}[c.choose(3)]
		r := c.step()
		c.check(t, r)
		if c.choose(5) == 0 {
			conv := c.conv
			other := c.step()
			c.check(t, other)
			c.end(other)
			if c.choose(2) == 0 {
				c.conv = conv
			}
		}
		c.end(r)
	}
}

func (c *wildClient) check(t testing.TB, r *request) {
	t.Helper()
	history := r.history()
	if err := valid(history, r.messages); err != nil {
		t.Fatalf("%v\nlog\n\t%s\nincluded\n\t%s\nsent\n\t%s", err, c.s.saved(), r.included(), list(r.messages))
	}
	if r.reconciled.New < 0 || r.reconciled.New > len(r.conv) {
		t.Fatalf("New is %d of %d", r.reconciled.New, len(r.conv))
	}
	if n := len(r.conv); n > 0 && r.conv[n-1].Role != "assistant" && r.reconciled.New == n {
		t.Fatalf("nothing is new of %s", list(r.messages))
	}
	// Nothing goes upstream more often than it was saved, or the client sends it.
	saved, sent, included := map[store.Digest]int{}, map[store.Digest]int{}, map[store.Digest]int{}
	for i := range c.s.log {
		for j := range c.s.log[i].Messages {
			saved[c.s.log[i].Messages[j].Digest]++
		}
	}
	for _, s := range r.conv[:r.reconciled.New] {
		sent[s.Digest]++
	}
	for i := range history {
		included[history[i].Digest]++
	}
	for d, n := range included {
		if n > saved[d] {
			t.Fatalf("a message is included %d times and was saved %d times", n, saved[d])
		}
	}
}

func list(messages []openai.Message) string {
	var list []string
	for i := range messages {
		list = append(list, short(messages[i].JSON))
	}
	return strings.Join(list, " ")
}

func TestWildClientsNeverGetAnInvalidConversation(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		c := &wildClient{s: newSession(t), choose: rnd.IntN}
		c.run(t, 20)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A client that edits and has answers made anew, with words that are all
// different: what it resends is never included, and what it hadn't sent before
// is always saved.
func TestEditsComeOnceAndAreKept(t *testing.T) {
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		s := newSession(t)
		var conv []string
		for i := range 30 {
			switch n := len(conv) / 2; {
			case n > 0 && rnd.IntN(4) == 0: // edits, and drops what followed
				conv = conv[:2*rnd.IntN(n)]
				conv = append(slices.Clone(conv), fmt.Sprint("u:edited", i))
			case n > 0 && rnd.IntN(4) == 0: // makes the answer anew
				conv = slices.Clone(conv[:len(conv)-1])
			default:
				conv = append(slices.Clone(conv), fmt.Sprint("u:", i))
			}
			from := 0
			if n := len(conv) / 2; rnd.IntN(2) == 0 && n > 0 {
				from = 2 * rnd.IntN(n)
			}
			r := s.ask(strings.Join(conv[from:], " "))
			again := map[string]bool{}
			for _, m := range conv[from : len(conv)-1] {
				again[m] = strings.HasPrefix(m, "a:") // user messages may stand in two branches
			}
			for _, m := range words(r.included()) {
				if again[m] {
					t.Fatalf("seed %d: %s is included, and sent in %s\nlog %s", seed, m, conv[from:], s.saved())
				}
			}
			reply := fmt.Sprint("a:", i)
			r.answered(reply)
			if want := conv[len(conv)-1] + " " + reply; !strings.HasSuffix(s.saved(), want) {
				t.Fatalf("seed %d: saved %s, want %s at its end", seed, s.saved(), want)
			}
			conv = append(conv, reply)
		}
		count := map[string]int{}
		for _, m := range words(strings.ReplaceAll(s.saved(), "|", "")) {
			if count[m]++; count[m] > 1 && strings.HasPrefix(m, "a:") {
				t.Fatalf("seed %d: %s is saved twice in %s", seed, m, s.saved())
			}
		}
		if len(s.log) != 30 {
			t.Fatalf("seed %d: %d exchanges", seed, len(s.log))
		}
	}
}

func FuzzReconcile(f *testing.F) {
	f.Add([]byte("any bytes will do: each makes a choice"))
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 200, 100, 50, 25, 12, 6, 3, 1})
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		b := make([]byte, 200)
		for i := range b {
			b[i] = byte(rnd.UintN(256))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		at := 0
		c := &wildClient{s: newSession(t)}
		c.choose = func(n int) int {
			if at == len(choices) {
				return n - 1
			}
			at++
			return int(choices[at-1]) % n
		}
		for requests := 0; at < len(choices) && requests < 40; requests++ {
			c.run(t, 1)
		}
	})
}
