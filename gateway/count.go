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

// counter counts tokens as a model does.
type counter struct {
	api   *chatAPI
	model tokens.Model
}

func (ca *chatAPI) counter(m tokens.Model) counter { return counter{ca, m} }

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
func (c counter) text(text string) int { return c.api.countText(c.model.Encoding, text) }

// countText counts a text. A long one may be resent with every request: it is
// counted once.
func (ca *chatAPI) countText(e *tokens.Encoding, text string) int {
	const long = 2 << 10 // bytes; shorter ones are counted as fast as hashed
	if len(text) < long {
		return e.Count(text)
	}
	sum := sha256.Sum256(unsafe.Slice(unsafe.StringData(text), len(text)))
	known := true
	n := ca.counts.Count(e, [16]byte(sum[:16]), func() string { known = false; return text })
	stats.TokenLookups.Count(known)
	return n
}

// countStored counts a message as it is stored: by o200k_base.
func (ca *chatAPI) countStored(m *openai.Message) int {
	return prompt.MessageTokens(m, func(text string) int { return ca.countText(tokens.O200K(), text) })
}
