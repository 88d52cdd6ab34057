package gateway

import (
	"context"
	"crypto/sha256"
	"sync"
	"unsafe"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/prompt"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/tokens"
)

// assemble decides what goes into the prompt. via gives the way to the router,
// which most requests don't need.
func (t *turn) assemble(ctx context.Context, via func() *upstream, gathered store.Gathered) error {
	in := prompt.Input{
		Limits: prompt.Limits{
			Answer: t.gateway.options.Context.Reserve,
			Added:  t.gateway.options.Context.MaxAddedTokens,
			Files:  t.gateway.options.Context.MaxFileTokens,
		},
		Request:  t.requestTokens(),
		Earlier:  t.earlier(),
		Older:    t.older,
		Searches: gathered.Files && t.chat.UseRAG,
		Recalls:  t.chat.SessionID != "" && !t.gateway.options.Context.DisableRecall,
		Given:    t.goesOn(),
		Count:    t.model.Count,
	}
	if t.chat.MaxTokens > 0 {
		in.Limits.Answer = t.chat.MaxTokens
	}
	if in.Older {
		t.unread = gathered.Tail[0].Offset
	}
	t.meta.RAG.Enabled = in.Searches

	var search sync.WaitGroup
	var err error
	if in.Searches {
		t.seen.begin(stageSearch)
		search.Go(func() {
			in.Passages, err = t.passages(ctx, via)
			t.seen.end(stageSearch)
		})
	}
	in.Limits.Context = t.gateway.models.length(ctx, t.chat.Model, via)
	in.Recalled = t.recalled(ctx, via, &in, &gathered)
	search.Wait()
	if err != nil {
		return err
	}
	t.found = in.Passages
	t.plan = prompt.Make(in)
	t.apply()
	return nil
}

// goesOn reports whether the request goes on with a turn, with the results of
// tools. It is given what the turn was given; no new search is made.
func (t *turn) goesOn() bool {
	n := len(t.said)
	return n > 0 && t.chat.Messages[t.said[n-1].Index].ToolResult()
}

// requestTokens counts the request's own messages.
func (t *turn) requestTokens() int {
	n := t.besideMessages()
	for i := range t.chat.Messages {
		n += t.messageTokens(&t.chat.Messages[i])
	}
	return n
}

// besideMessages counts what the request takes beside its messages.
func (t *turn) besideMessages() int { return t.model.Raise(prompt.RequestTokens(t.chat, t.count)) }

// messageTokens counts a message as the model does.
func (t *turn) messageTokens(m *openai.Message) int {
	return t.model.Raise(prompt.MessageTokens(m, t.count))
}

// count counts a text by the model's encoding.
func (t *turn) count(text string) int { return t.gateway.countText(t.model.Encoding, text) }

// countText counts a text. A long one may be resent with every request: it is
// counted once.
func (g *Gateway) countText(e *tokens.Encoding, text string) int {
	const long = 2 << 10 // bytes; shorter ones are counted as fast as hashed
	if len(text) < long {
		return e.Count(text)
	}
	sum := sha256.Sum256(unsafe.Slice(unsafe.StringData(text), len(text)))
	known := true
	n := g.counts.Count(e, [16]byte(sum[:16]), func() string { known = false; return text })
	tokenLookups.count(known)
	return n
}

// earlier are the exchanges that could be supplied.
func (t *turn) earlier() []prompt.Earlier {
	earlier := make([]prompt.Earlier, len(t.view.Groups))
	for i := range t.view.Groups {
		g := &t.view.Groups[i]
		last := &g.Exchanges[len(g.Exchanges)-1]
		earlier[i] = prompt.Earlier{
			Tokens:   t.groupTokens(g),
			Start:    g.Exchanges[0].Offset,
			End:      last.Offset + int64(last.Tokens()),
			Required: g.Calling,
		}
		if i == len(earlier)-1 {
			message := openai.ParseMessage(last.Messages[len(last.Messages)-1].JSON)
			earlier[i].Unanswered = message.Role == "user"
		}
	}
	return earlier
}

// groupTokens counts the messages of a group as the model does.
func (t *turn) groupTokens(g *memory.Group) int {
	n := 0
	for i := range g.Exchanges {
		for j := range g.Exchanges[i].Messages {
			n += t.storedTokens(&g.Exchanges[i].Messages[j])
		}
	}
	return n
}

// storedTokens counts a stored message as the model does. Its count by
// o200k_base was saved with it; only older models count otherwise.
func (t *turn) storedTokens(m *store.Message) int {
	if t.model.Encoding == tokens.O200K() {
		return t.model.Raise(m.Tokens)
	}
	message := openai.ParseMessage(m.JSON)
	return t.messageTokens(&message)
}

// passages finds what the files say.
func (t *turn) passages(ctx context.Context, via func() *upstream) ([]prompt.Passage, error) {
	if t.goesOn() {
		return t.givenPassages(ctx)
	}
	user := t.chat.LastUser()
	if user < 0 { // nowhere to quote anything
		return nil, nil
	}
	rag := &t.meta.RAG
	if rag.Query = t.chat.RAGQuery; rag.Query == "" {
		rag.Query = t.chat.Messages[user].Text()
	}
	result, err := t.gateway.knowledge.Search(ctx, via(), t.scope, rag.Query, maxPassages)
	if err != nil {
		return nil, &unavailable{err}
	}
	rag.ResultsFound, rag.Degraded = len(result.Hits), result.Degraded
	return passagesOf(result.Hits), nil
}

func passagesOf(hits []store.Hit) []prompt.Passage {
	passages := make([]prompt.Passage, len(hits))
	for i, h := range hits {
		passages[i] = prompt.Passage{
			FileID: h.FileID, Filename: h.Filename, Section: h.Chunk.Section, Page: h.Chunk.Page,
			Chunk: h.Chunk.N, Text: h.Chunk.Text, Score: h.Score,
		}
	}
	return passages
}

// givenPassages are those that the turn's user message was sent with, as far
// as the files are still there.
func (t *turn) givenPassages(ctx context.Context) ([]prompt.Passage, error) {
	if t.view.Stored == nil || len(t.view.Stored.Passages) == 0 {
		return nil, nil
	}
	hits, err := t.gateway.shared.Chunks(ctx, t.scope, t.view.Stored.Passages)
	if err != nil {
		return nil, &unavailable{err}
	}
	return passagesOf(hits), nil
}

// apply turns the plan into an edit of the request, and into metadata.
func (t *turn) apply() {
	groups := t.view.Groups[t.plan.First:]
	t.edit.History = make([][]byte, 0, 2*len(groups)) // a question and an answer each
	for _, g := range groups {
		for i := range g.Exchanges {
			for j := range g.Exchanges[i].Messages {
				t.edit.History = append(t.edit.History, g.Exchanges[i].Messages[j].JSON)
			}
		}
	}
	if t.plan.Quoted != "" {
		t.quote()
	}
	recalled := countMessages(t.plan.Recalled)
	if t.chat.SessionID != "" {
		t.meta.Memory = &openai.MemoryMetadata{
			SessionID:        t.chat.SessionID,
			HistoryMessages:  len(t.edit.History) + recalled,
			RecalledMessages: recalled,
		}
	}
	for _, p := range t.plan.Passages {
		t.meta.RAG.Sources = append(t.meta.RAG.Sources, openai.Source{
			FileID: p.FileID, Filename: p.Filename, Chunk: p.Chunk,
			Section: p.Section, Page: p.Page, Score: p.Score,
		})
	}
	t.meta.Context = openai.ContextMetadata{
		TotalTokens:      t.plan.Tokens,
		IncludedMessages: len(t.chat.Messages) + len(t.edit.History) + recalled,
		IncludedChunks:   len(t.plan.Passages),
		Truncated:        t.plan.Truncated,
	}
}

// quote puts the quoted text ahead of the last user message's own. Where the
// request brings none, only results of tools, that message is in the history.
func (t *turn) quote() {
	if i := t.chat.LastUser(); i >= 0 {
		t.edit.Quoted, t.edit.QuotedIn = t.plan.Quoted, i
		return
	}
	for i := len(t.edit.History) - 1; i >= 0; i-- {
		if m := openai.ParseMessage(t.edit.History[i]); m.Role == "user" {
			t.edit.History[i] = m.Quote(t.plan.Quoted)
			return
		}
	}
}
