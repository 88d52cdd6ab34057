package memory

import (
	"time"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// FinishClientClosed is the finish_reason kept for a reply that the client
// didn't wait for.
const FinishClientClosed = "client_closed"

// Turn is a request and its reply, ready to be saved.
type Turn struct {
	ID       string
	Messages []openai.Message
	Said     []Said
	View     View
	Reply    *openai.Reply
	Closed   bool // the client left before the end
	Now      time.Time
	// Passages were quoted in the turn's user message.
	Passages []store.ChunkRef
	// Recalled were quoted there too.
	Recalled []store.MessageRef
	// Count gives the tokens of a message by o200k_base, as they are stored.
	Count func(*openai.Message) int
}

// Exchange is what the session gets: the new messages and the reply. Save is
// false for a reply that failed, or broke off on the router's side.
func (t *Turn) Exchange() (e store.Exchange, save bool) {
	r := t.Reply
	finished := r.Finish != "" && r.Message != nil && !r.Truncated
	if r.Failed || r.Truncated || !finished && !t.Closed {
		return e, false
	}
	e = t.from(t.View.New)
	e.ID, e.Created, e.Model, e.Finish = t.ID, t.Now, r.Model, r.Finish
	e.Carried, e.Passages, e.Recalled = t.View.Carried, t.Passages, t.Recalled
	// Providers refuse an assistant message that says nothing, and a call
	// that broke off can't be answered.
	e.Hidden = !r.HasText && !r.HasCalls || r.HasCalls && !finished
	if t.Closed {
		e.Finish = FinishClientClosed
	}
	return e, true
}

// from holds the messages from the given one of the conversation on, and the
// reply.
func (t *Turn) from(first int) (e store.Exchange) {
	for _, s := range t.Said[min(first, len(t.Said)):] {
		m := &t.Messages[s.Index]
		e.Messages = append(e.Messages, store.Message{JSON: m.JSON, Tokens: t.Count(m), Digest: s.Digest})
	}
	if t.Reply.Message != nil {
		m := openai.ParseMessage(t.Reply.Message)
		e.Messages = append(e.Messages, store.Message{JSON: m.JSON, Tokens: t.Count(&m), Digest: Digest(&m)})
	}
	return e
}
