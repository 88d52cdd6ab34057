package demo

import (
	"context"
	"net/http"
	"time"
)

// completion is a chat.completion object; the fields of a chunk are the same.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	// Usage is a usage, an explicit null (in the chunks before the one that
	// has it), or left out.
	Usage any `json:"usage,omitempty"`
}

// choice is one answer: whole in Message, or a step of it in Delta.
type choice struct {
	Index        int        `json:"index"`
	Message      *assistant `json:"message,omitempty"`
	Delta        *delta     `json:"delta,omitempty"`
	Logprobs     *struct{}  `json:"logprobs"`
	FinishReason *string    `json:"finish_reason"`
}

// assistant is the message of an answer; Content is null where tools are called.
type assistant struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

func (rt *Router) serveChat(w http.ResponseWriter, r *http.Request) *apiError {
	raw, fault := readJSON(w, r)
	if fault != nil {
		return fault
	}
	c, fault := parseChat(raw)
	if fault != nil {
		return fault
	}
	if c.status != 0 {
		return errDirected(c.status)
	}
	prompt := rt.promptTokens(c)
	if limit := contextLength(c.model); prompt > limit {
		return errContext(limit, prompt)
	}
	rep := rt.compose(c)
	used := rt.used(c, prompt, rep)
	head := completion{ID: "chatcmpl-" + c.digest[:24], Created: rt.now().Unix(), Model: c.model}
	if c.stream {
		newStream(w, r, c, head).send(rep, used)
		return nil
	}
	return sendWhole(w, r, c, head, rep, used)
}

// sendWhole answers with one JSON object.
func sendWhole(w http.ResponseWriter, r *http.Request, c *chat, head completion, rep reply, used usage) *apiError {
	if c.errorMid {
		return errDirected(http.StatusBadGateway)
	}
	if !wait(r.Context(), c.slow*time.Duration(len(splitWords(rep.text)))) {
		return nil
	}
	head.Object, head.Usage = "chat.completion", used
	for i := range c.n {
		a := &assistant{Role: "assistant", ToolCalls: rep.callsOf(i)}
		if len(a.ToolCalls) == 0 {
			a.Content = &rep.text
		}
		head.Choices = append(head.Choices, choice{Index: i, Message: a, FinishReason: &rep.finish})
	}
	if c.breakOff {
		breakOff(w, marshal(head))
	}
	writeJSON(w, http.StatusOK, head)
	return nil
}

// breakOff sends half of a body and aborts the connection.
func breakOff(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// wait waits, and reports false if the request ended meanwhile.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
