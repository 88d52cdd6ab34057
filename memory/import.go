package memory

import (
	"strconv"
	"time"

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
// no such turn, it is kept but not supplied.
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
		if !m.Created.IsZero() {
			e.Created = m.Created
		}
		e.Messages = append(e.Messages, store.Message{
			JSON: m.JSON, Tokens: h.Count(&m.Message), Digest: Digest(&m.Message), Created: m.Created,
		})
	}
	return list
}
