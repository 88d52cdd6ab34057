package memory

import (
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// FinishImported is the finish_reason that is saved for imported exchanges.
const FinishImported = "imported"

// MaxExchange is how many messages one exchange may hold, those of a request's
// history and the runs of an import between two questions included. Each costs
// every later request of the session that reads the exchange. It is twice what an
// agent's longest run makes of a context of a million tokens, at 400 a message.
const MaxExchange = 5000

// History is a conversation from elsewhere, ready to be saved.
type History struct {
	// ID is the prefix of the exchanges' IDs.
	ID       string
	Messages []openai.Imported
	Now      time.Time
	// Count returns the tokens of a message in o200k_base, the encoding of stored
	// counts.
	Count func(*openai.Message) int
}

// Exchanges returns what the session gets: all but the system and developer messages.
// A user message begins an exchange, unless another user message precedes it.
//
// Messages ahead of the first user message are an exchange of their own. It continues
// the session's last group, such as with the reply to a question that was imported
// alone. Without such a group it is saved but never included. Nor is an exchange with
// an empty assistant message: providers refuse those.
func (h *History) Exchanges() []store.Exchange {
	var list []store.Exchange
	before := "" // the role of the previous message
	for i := range h.Messages {
		m := &h.Messages[i]
		if m.System() {
			continue
		}
		if len(list) == 0 || m.Role == "user" && before != "user" {
			list = append(list, store.Exchange{
				ID: h.ID + "-" + strconv.Itoa(len(list)), Created: h.Now, Finish: FinishImported,
			})
		}
		before = m.Role
		e := &list[len(list)-1]
		e.Hidden = e.Hidden || saysNothing(&m.Message)
		if !m.Created.IsZero() {
			e.Created = m.Created
		}
		e.Messages = append(e.Messages, store.Message{
			JSON: m.JSON, Tokens: h.Count(&m.Message), Digest: Digest(&m.Message), Created: m.Created,
		})
	}
	return list
}

// saysNothing reports whether a message is the assistant's and has no text, no calls
// and nothing else in their place.
func saysNothing(m *openai.Message) bool {
	if m.Role != "assistant" || strings.TrimSpace(m.Text()) != "" {
		return false
	}
	other := false
	m.Each(func(name string, v gjson.Result) {
		switch name {
		case "content":
			v.ForEach(func(_, part gjson.Result) bool {
				other = other || part.IsObject() && part.Get("type").Str != "text"
				return true
			})
		case "tool_calls":
			other = other || len(v.Array()) > 0
		case "function_call", "audio":
			other = other || v.IsObject()
		case "refusal":
			other = other || v.Str != ""
		}
	})
	return !other
}
