package gateway

import (
	"crypto/sha256"
	"unsafe"

	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/prompt"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/tokens"
)

// counter counts a request's tokens as its model does.
type counter struct {
	api   *chatAPI
	model tokens.Model
	tally *tokens.Tally // of all that is counted for the request
}

func (ca *chatAPI) counter(req *request) counter { return counter{ca, req.model, req.tally} }

// modelFor says how to count for a model: as package tokens does, with the
// margin that was learnt.
func (ca *chatAPI) modelFor(name string) tokens.Model {
	m := tokens.ForModel(name)
	m.Margin = ca.shared.calibration.Margin(name, m.Margin)
	return m
}

// request counts a request's own messages, and what it takes beside them.
func (c counter) request(chat *openai.Chat) int {
	n := c.beside(chat)
	for i := range chat.Messages {
		n += c.message(&chat.Messages[i])
	}
	return n
}

// beside counts what a request takes beside its messages.
func (c counter) beside(chat *openai.Chat) int {
	return c.model.Raise(prompt.RequestTokens(chat, c.text))
}

func (c counter) message(m *openai.Message) int {
	return c.model.Raise(prompt.MessageTokens(m, c.text))
}

// stored counts a stored message. Its count by o200k_base was saved with it; only
// older models count otherwise.
func (c counter) stored(m *store.Message) int {
	if c.model.Encoding == tokens.O200K() {
		return c.model.Raise(m.Tokens)
	}
	message := openai.ParseMessage(m.JSON)
	return c.message(&message)
}

// exchanges counts the messages of exchanges.
func (c counter) exchanges(list []store.Exchange) int {
	n := 0
	for i := range list {
		for j := range list[i].Messages {
			n += c.stored(&list[i].Messages[j])
		}
	}
	return n
}

// text counts a text by the model's encoding, without its margin.
func (c counter) text(text string) int { return c.api.countText(c.tally, text) }

// countText counts a text. A long one may be resent with every request: it is
// counted once.
func (ca *chatAPI) countText(t *tokens.Tally, text string) int {
	const long = 2 << 10 // bytes; shorter ones are counted as fast as hashed
	if len(text) < long {
		return t.Count(text)
	}
	sum := sha256.Sum256(unsafe.Slice(unsafe.StringData(text), len(text)))
	known := true
	n := ca.counts.Count(t, [16]byte(sum[:16]), func() string { known = false; return text })
	stats.TokenLookups.Count(known)
	return n
}

// counterOfStored counts messages as they are stored: by o200k_base. Of a request
// that is longer than any model's context the counts are estimates, see
// tokens.Tally.
func (ca *chatAPI) counterOfStored(req *request) func(*openai.Message) int {
	tally := req.tally
	if tally.Encoding() != tokens.O200K() {
		tally = tokens.O200K().NewTally()
	}
	return func(m *openai.Message) int {
		return prompt.MessageTokens(m, func(text string) int { return ca.countText(tally, text) })
	}
}
