package memory

import (
	"time"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// FinishClientClosed is the finish_reason that is saved for a reply whose client left
// before its end.
const FinishClientClosed = "client_closed"

// Completed is a request together with its reply, ready to be saved.
type Completed struct {
	ID             string
	Messages       []openai.Message
	Conversation   []RequestMessage
	Reconciliation Reconciliation
	Reply          *openai.Reply
	Closed         bool // the client left before the end
	Now            time.Time
	// Chunks were quoted in the request's user message.
	Chunks []store.ChunkRef
	// Quotes are the older messages that were quoted there.
	Quotes []store.MessageRef
	// Count returns the tokens of a message in o200k_base, the encoding of stored
	// counts.
	Count func(*openai.Message) int
}

// Exchange returns what the session gets: the new messages and the reply. save is
// false where the reply failed, or where the router broke it off.
func (t *Completed) Exchange() (e store.Exchange, save bool) {
	r := t.Reply
	finished := r.Finish != "" && r.Message != nil && !r.Truncated
	if r.Failed || r.Truncated || !finished && !t.Closed {
		return e, false
	}
	e = t.from(t.Reconciliation.New)
	e.ID, e.Created, e.Model, e.Finish = t.ID, t.Now, r.Model, r.Finish
	e.Carried, e.Passages, e.Recalled = t.Reconciliation.Carried, t.Chunks, t.Quotes
	// Providers refuse an assistant message without content, and nobody can
	// answer a call that broke off.
	e.Hidden = !r.HasText && !r.HasCalls || r.HasCalls && !finished
	if t.Closed {
		e.Finish = FinishClientClosed
	}
	return e, true
}

// from returns an exchange of the conversation's messages from first on, and the
// reply.
func (t *Completed) from(first int) (e store.Exchange) {
	for _, s := range t.Conversation[min(first, len(t.Conversation)):] {
		m := &t.Messages[s.Index]
		e.Messages = append(e.Messages, store.Message{JSON: m.JSON, Tokens: t.Count(m), Digest: s.Digest})
	}
	if t.Reply.Message != nil {
		m := openai.ParseMessage(t.Reply.Message)
		e.Messages = append(e.Messages, store.Message{JSON: m.JSON, Tokens: t.Count(&m), Digest: Digest(&m)})
	}
	return e
}
