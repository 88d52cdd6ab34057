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

// previewed writes a preview.
type previewed struct {
	preview
	counter
	req     *request
	history *reconciled
	prompt  *assembled
}

// answerPreview answers with the messages as they would be sent, and where they
// come from.
func (ca *chatAPI) answerPreview(w http.ResponseWriter, x *exchange) error {
	req, h, a := x.req, x.history, x.prompt
	p := previewed{
		preview: preview{
			Object:   "chat.completion.preview",
			Model:    req.chat.Model,
			Messages: json.RawMessage(gjson.GetBytes(req.chat.Upstream(a.edit), "messages").Raw),
			Parts:    []part{},
			LeftOut:  []part{},
		},
		counter: ca.counter(req), req: req, history: h, prompt: a,
	}
	if a.meta != nil && (a.meta.Memory != nil || a.meta.RAG.Enabled) {
		p.Metadata = a.meta
	}
	leading := req.chat.LeadingSystem()
	p.own("system", 0, leading)
	if h.unread > 0 {
		// Those that nobody had to read, since they are too old to fit, are told
		// of together.
		p.leaveOut(part{Kind: "history", Tokens: p.model.Raise(int(h.unread))})
	}
	p.inPlace()
	p.quotes()
	p.chunks()
	p.own("request", leading, len(req.chat.Messages))
	p.Parts = append(p.Parts, part{Kind: "request", Tokens: p.beside(req.chat)})
	return respond.JSON(w, p.preview)
}

func (p *previewed) leaveOut(what part) {
	what.Reason = overBudget
	p.LeftOut = append(p.LeftOut, what)
}

// own tells of the request's own messages from the first to before the last.
func (p *previewed) own(kind string, first, last int) {
	for i := first; i < last; i++ {
		p.Parts = append(p.Parts, part{Kind: kind, Tokens: p.message(&p.req.chat.Messages[i])})
	}
}

// inPlace tells of the earlier exchanges, message by message.
func (p *previewed) inPlace() {
	for i := range p.history.Groups {
		group := &p.history.Groups[i]
		if i < p.prompt.plan.First {
			p.leaveOut(part{Kind: "history", Tokens: p.exchanges(group.Exchanges)})
			continue
		}
		for _, e := range group.Exchanges {
			for j := range e.Messages {
				p.Parts = append(p.Parts, part{Kind: "history", Tokens: p.stored(&e.Messages[j])})
			}
		}
	}
}

// quotes tells of the quoted messages, in the order of the prompt.
func (p *previewed) quotes() {
	first := len(p.Parts)
	for _, q := range p.prompt.plan.Quotes {
		p.Parts = append(p.Parts, part{Kind: "recalled", Tokens: p.model.Count(q.Text)})
	}
	scale(p.Parts[first:], p.prompt.plan.QuoteTokens)
}

// chunks tells of the chunks, in the order of the prompt, each with the tokens
// that it added: what it repeats of the one before it isn't quoted again.
func (p *previewed) chunks() {
	first, included := len(p.Parts), p.prompt.plan.Chunks
	tell := func(c *prompt.Chunk, text string) part {
		return part{Kind: "file", FileID: c.FileID, Filename: c.Filename, Chunk: &c.N, Tokens: p.model.Count(text)}
	}
	for i := range included {
		text := included[i].Text
		if i > 0 {
			if rest, ok := included[i].Behind(&included[i-1]); ok {
				text = rest
			}
		}
		p.Parts = append(p.Parts, tell(&included[i], text))
	}
	scale(p.Parts[first:], p.prompt.plan.ChunkTokens)
	for i := range p.prompt.found {
		if c := &p.prompt.found[i]; !slices.Contains(included, *c) {
			p.leaveOut(tell(c, c.Text))
		}
	}
}

// scale raises the tokens of parts, in proportion, to what they take together:
// what frames quotes is theirs.
func scale(parts []part, total int) {
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
