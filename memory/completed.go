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
	Retries        int  // which retry the client calls the request; 0: the first try
	Now            time.Time
	// Chunks were quoted in the request's user message.
	Chunks []store.ChunkRef
	// Quotes are the older messages that were quoted there.
	Quotes []store.MessageRef
	// Count returns the tokens of a message in o200k_base, the encoding of stored
	// counts.
	Count func(*openai.Message) int
}

// Draft returns the exchange to save: the new messages and the reply. save is false
// where the reply failed, where the router broke it off, or where it was too large to
// keep.
func (c *Completed) Draft() (d Draft, save bool) {
	reply := c.Reply
	finished := reply.Finish != "" && reply.Message != nil && !reply.Truncated
	if reply.Failed || reply.Truncated || !finished && !c.Closed {
		return d, false
	}
	d = Draft{
		Said: c.Conversation, New: min(c.Reconciliation.New, len(c.Conversation)), Replaces: c.Reconciliation.Replaces,
		Exchange: store.Exchange{
			ID: retryID(c.ID, c.Retries), Created: c.Now, Model: reply.Model, Finish: reply.Finish,
			Carried: c.Reconciliation.Carried, Passages: c.Chunks, Recalled: c.Quotes,
			// Providers refuse an assistant message without content, and nobody can
			// answer a call that broke off.
			Hidden: !reply.HasText && !reply.HasCalls || reply.HasCalls && !finished,
		},
	}
	d.Exchange.Messages = c.messages(d.New)
	if c.Closed {
		d.Exchange.Finish = FinishClientClosed
	}
	return d, true
}

// messages returns the messages of the conversation from first on, and the reply.
func (c *Completed) messages(first int) (list []store.Message) {
	for _, r := range c.Conversation[first:] {
		m := &c.Messages[r.Index]
		list = append(list, store.Message{JSON: m.JSON, Tokens: c.Count(m), Digest: r.Digest})
	}
	if c.Reply.Message != nil {
		m := openai.ParseMessage(c.Reply.Message)
		list = append(list, store.Message{JSON: m.JSON, Tokens: c.Count(&m), Digest: Digest(&m)})
	}
	return list
}
