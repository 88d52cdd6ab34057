package demo

import (
	"encoding/json"
	"net/http"
)

// comments is how many comments the directive demo:comment sends.
const comments = 3

// delta is what a chunk of a stream adds to the answer.
type delta struct {
	Role      string     `json:"role,omitempty"`
	Content   any        `json:"content,omitempty"` // *string, so that "" is sent and null can be
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

// stream sends a reply as server-sent events.
type stream struct {
	w    http.ResponseWriter
	r    *http.Request
	c    *chat
	head completion
}

func newStream(w http.ResponseWriter, r *http.Request, c *chat, head completion) *stream {
	head.Object = "chat.completion.chunk"
	if c.includeUsage {
		head.Usage = json.RawMessage("null")
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	return &stream{w, r, c, head}
}

// send sends the whole stream, or as much as the directives and the client
// leave of it.
func (s *stream) send(rep reply, used usage) {
	if s.c.comment {
		for range comments {
			s.write([]byte(": OPENROUTER PROCESSING\n\n"))
		}
	}
	for i := range s.c.n {
		s.delta(i, delta{Role: "assistant", Content: rep.firstContent()})
	}
	deltas := rep.deltas()
	for k, d := range deltas {
		if !wait(s.r.Context(), s.c.slow) {
			return
		}
		if k == len(deltas)/2 && s.stopHere() {
			return
		}
		for i := range s.c.n {
			s.delta(i, d(i))
		}
	}
	for i := range s.c.n {
		s.chunk(choice{Index: i, Delta: &delta{}, FinishReason: &rep.finish})
	}
	if s.c.includeUsage {
		last := s.head
		last.Choices, last.Usage = []choice{}, used
		s.event(marshal(last))
	}
	s.event([]byte("[DONE]"))
}

// stopHere does in the middle of the stream what the directives ask for, and
// reports whether that ended it.
func (s *stream) stopHere() bool {
	if s.c.breakOff {
		panic(http.ErrAbortHandler)
	}
	if s.c.errorMid {
		s.event(marshal(errorBody{errDirected(http.StatusBadGateway)}))
	}
	return s.c.errorMid
}

func (s *stream) delta(index int, d delta) {
	s.chunk(choice{Index: index, Delta: &d})
}

func (s *stream) chunk(c choice) {
	chunk := s.head
	chunk.Choices = []choice{c}
	s.event(marshal(chunk))
}

func (s *stream) event(data []byte) {
	s.write(append(append([]byte("data: "), data...), "\n\n"...))
}

// write sends an event at once. Its errors are the client's having gone, which
// the request's context tells too.
func (s *stream) write(event []byte) {
	_, _ = s.w.Write(event)
	_ = http.NewResponseController(s.w).Flush()
}

// firstContent is the content of a stream's first delta: an empty string, or
// null where tools are called.
func (r reply) firstContent() any {
	if len(r.calls) > 0 {
		return json.RawMessage("null")
	}
	return new("")
}

// deltas returns what a stream sends of the reply between its first and its
// last chunk, for a choice each.
func (r reply) deltas() []func(choice int) delta {
	var out []func(int) delta
	for _, word := range splitWords(r.text) {
		out = append(out, func(int) delta { return delta{Content: &word} })
	}
	for k := range r.calls {
		out = append(out, func(choice int) delta {
			call := r.callsOf(choice)[k]
			call.Index, call.Function.Arguments = &k, ""
			return delta{ToolCalls: []toolCall{call}}
		})
		for _, word := range splitWords(r.calls[k].Function.Arguments) {
			out = append(out, func(int) delta {
				return delta{ToolCalls: []toolCall{{Index: &k, Function: functionCall{Arguments: word}}}}
			})
		}
	}
	return out
}
