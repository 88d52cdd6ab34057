package memory

import (
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// FinishImported stands in place of the finish_reason of exchanges that were
// imported.
const FinishImported = "imported"

// History is a conversation that was had elsewhere, ready to be saved.
type History struct {
	// ID begins the IDs of the exchanges.
	ID       string
	Messages []openai.Imported
	Now      time.Time
	// Count gives the tokens of a message by o200k_base, as they are stored.
	Count func(*openai.Message) int
}

// Exchanges are what the session gets: all but the system and developer
// messages. An exchange begins with a user message, unless another stands ahead
// of it, and goes up to the next. What comes ahead of the first user message is
// an exchange of its own. It goes on with the turn that the session ends in,
// such as with the reply to a question that was imported alone; where there is
// no such turn, it is kept but not supplied. Nor is an exchange in which the
// assistant says nothing: providers refuse that.
func (h *History) Exchanges() []store.Exchange {
	var list []store.Exchange
	before := "" // the role of the message before
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
		e.Hidden = e.Hidden || silent(&m.Message)
		if !m.Created.IsZero() {
			e.Created = m.Created
		}
		e.Messages = append(e.Messages, store.Message{
			JSON: m.JSON, Tokens: h.Count(&m.Message), Digest: Digest(&m.Message), Created: m.Created,
		})
	}
	return list
}

// silent reports whether a message is one of the assistant that has neither
// words nor calls, nor anything else in their place.
func silent(m *openai.Message) bool {
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
