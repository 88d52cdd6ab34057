package gateway

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/internal/respond"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/prompt"
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
	p.recalled(t)
	p.files(t)
	p.request("request", t, leading, len(t.chat.Messages))
	p.Parts = append(p.Parts, part{Kind: "request", Tokens: t.besideMessages()})
	return respond.JSON(w, p)
}

// recalled tells of the quoted messages, in the order of the prompt.
func (p *preview) recalled(t *turn) {
	first := len(p.Parts)
	for _, r := range t.plan.Recalled {
		p.Parts = append(p.Parts, part{Kind: "recalled", Tokens: t.model.Count(r.Text[r.From:r.To])})
	}
	share(p.Parts[first:], t.plan.RecalledTokens)
}

// share raises the tokens of parts, in proportion, to what they take together:
// what frames quotes is theirs.
func share(parts []part, total int) {
	own := 0
	for i := range parts {
		own += parts[i].Tokens
	}
	sum, told := 0, 0
	for i := range parts {
		sum += parts[i].Tokens
		upTo := total * sum / max(1, own)
		parts[i].Tokens, told = upTo-told, upTo
	}
}

// files tells of the passages, in the order of the prompt, each with the tokens
// that it added: what it repeats of the one before it isn't quoted again.
func (p *preview) files(t *turn) {
	first := len(p.Parts)
	tell := func(passage *prompt.Passage, text string) part {
		return part{Kind: "file", FileID: passage.FileID, Filename: passage.Filename, Chunk: &passage.Chunk, Tokens: t.model.Count(text)}
	}
	for i := range t.plan.Passages {
		passage := &t.plan.Passages[i]
		text := passage.Text
		if i > 0 {
			if rest, ok := passage.Behind(&t.plan.Passages[i-1]); ok {
				text = rest
			}
		}
		p.Parts = append(p.Parts, tell(passage, text))
	}
	share(p.Parts[first:], t.plan.QuotedTokens)
	for i := range t.found {
		if !slices.Contains(t.plan.Passages, t.found[i]) {
			part := tell(&t.found[i], t.found[i].Text)
			part.Reason = overBudget
			p.LeftOut = append(p.LeftOut, part)
		}
	}
}

// request tells of the request's own messages from the first to before the
// last.
func (p *preview) request(kind string, t *turn, first, last int) {
	for i := first; i < last; i++ {
		p.Parts = append(p.Parts, part{Kind: kind, Tokens: t.messageTokens(&t.chat.Messages[i])})
	}
}

// history tells of the earlier exchanges, message by message. Those that nobody
// had to read, since they are too old to fit, are told of together.
func (p *preview) history(t *turn) {
	if t.unread > 0 {
		p.LeftOut = append(p.LeftOut, part{Kind: "history", Tokens: t.model.Raise(int(t.unread)), Reason: overBudget})
	}
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
