package caddymodule

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/openai"
)

// previewPath takes a chat request and answers with what would go upstream.
const previewPath = "/chat/completions/preview"

// preview is the reply to a preview.
type preview struct {
	Object   string           `json:"object"`
	Model    string           `json:"model"`
	Messages json.RawMessage  `json:"messages"`
	Metadata *openai.Metadata `json:"_metadata,omitempty"`
	Parts    []part           `json:"parts"`
	LeftOut  []part           `json:"left_out"`
}

// part is a piece of the prompt, or of what didn't get into it.
type part struct {
	Kind     string `json:"kind"` // system, history, recalled, file, request
	Tokens   int    `json:"tokens"`
	FileID   string `json:"fileId,omitempty"`
	Filename string `json:"filename,omitempty"`
	Chunk    *int   `json:"chunk,omitempty"`
	Reason   string `json:"reason,omitempty"` // why it was left out
}

const overBudget = "budget"

// preview answers with the messages as they would be sent, and where they come
// from.
func (t *turn) preview(w http.ResponseWriter) error {
	body := t.chat.Upstream(t.edit)
	p := preview{
		Object:   "chat.completion.preview",
		Model:    t.chat.Model,
		Messages: json.RawMessage(gjson.GetBytes(body, "messages").Raw),
		Parts:    []part{},
		LeftOut:  []part{},
	}
	if t.meta.Memory != nil || t.meta.RAG.Enabled {
		p.Metadata = &t.meta
	}
	leading := t.chat.LeadingSystem()
	p.request("system", t, 0, leading)
	p.history(t)
	for i, passage := range t.found {
		part := part{Kind: "file", FileID: passage.FileID, Filename: passage.Filename, Chunk: &t.found[i].Chunk, Tokens: t.model.Count(passage.Text)}
		if slices.Contains(t.plan.Passages, passage) {
			p.Parts = append(p.Parts, part)
		} else {
			part.Reason = overBudget
			p.LeftOut = append(p.LeftOut, part)
		}
	}
	for _, r := range t.plan.Recalled {
		p.Parts = append(p.Parts, part{Kind: "recalled", Tokens: r.Tokens})
	}
	p.request("request", t, leading, len(t.chat.Messages))
	return writeJSON(w, p)
}

// request tells of the request's own messages from the first to before the
// last.
func (p *preview) request(kind string, t *turn, first, last int) {
	for i := first; i < last; i++ {
		p.Parts = append(p.Parts, part{Kind: kind, Tokens: t.messageTokens(&t.chat.Messages[i])})
	}
}

// history tells of the earlier exchanges, message by message.
func (p *preview) history(t *turn) {
	for i := range t.view.Groups {
		g := &t.view.Groups[i]
		if i < t.plan.First {
			p.LeftOut = append(p.LeftOut, part{Kind: "history", Tokens: t.groupTokens(g), Reason: overBudget})
			continue
		}
		for _, e := range g.Exchanges {
			for j := range e.Messages {
				p.Parts = append(p.Parts, part{Kind: "history", Tokens: t.storedTokens(&e.Messages[j])})
			}
		}
	}
}
