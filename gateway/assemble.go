package gateway

import (
	"context"
	"sync"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
	"github.com/backstory-proxy/backstory/knowledge"
	"github.com/backstory-proxy/backstory/knowledge/terms"
	"github.com/backstory-proxy/backstory/memory/recall"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/prompt"
	"github.com/backstory-proxy/backstory/store"
)

// assembled is what goes upstream.
type assembled struct {
	edit openai.Edit      // what is added to the request
	meta *openai.Metadata // nil where nothing is told
	plan prompt.Plan
	// found are the chunks that a search found, best first, whether or not they
	// are in the plan.
	found []prompt.Chunk
}

// assemble has package prompt decide what goes into the prompt, and brings it what
// that takes. via gives the way to the router, which most requests don't need.
func (ca *chatAPI) assemble(ctx context.Context, via func() *upstream.Caller, st *Stats, req *request, l *loaded, h *reconciled) (*assembled, error) {
	if err := ctx.Err(); err != nil { // nobody waits for what is counted here
		return nil, err
	}
	p := &assembled{edit: req.edit()}
	var rag openai.RAGMetadata
	var search sync.WaitGroup
	if rag.Enabled = l.searches(req); rag.Enabled {
		st.Begin(stats.Search)
		search.Go(func() {
			var err error
			if h.continues {
				p.found, err = ca.givenChunks(ctx, req, h)
			} else {
				p.found, err = ca.searchChunks(ctx, via, req, &rag)
			}
			if err != nil && ctx.Err() == nil {
				// An answer without the files is better than none.
				rag.Degraded = knowledge.PartAll
				ca.logger.Warn("files could not be searched; the prompt has none of them", zap.String("request_id", req.id), zap.Error(err))
			}
			st.End(stats.Search)
		})
	}
	allocation := prompt.Allocate(ca.promptInput(ctx, via, req, l, h))
	quotes := ca.quotes(ctx, via, st, req, l, h, &allocation)
	search.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.plan = allocation.Make(quotes, p.found)
	p.apply(req, h)
	p.describe(req, &rag)
	st.Assembled(l.at, p.counts())
	if part := p.meta.RAG.Degraded; part != "" {
		stats.DegradedSearches.WithLabelValues(part).Inc()
	}
	return p, nil
}

// promptInput is what package prompt is told of a request and its session.
func (ca *chatAPI) promptInput(ctx context.Context, via func() *upstream.Caller, req *request, l *loaded, h *reconciled) prompt.Input {
	c := ca.counter(req)
	in := prompt.Input{
		Limits: prompt.Limits{
			Context: ca.models.Of(ctx, req.chat.Model, via),
			Answer:  ca.options.Context.Reserve,
			Added:   ca.options.Context.MaxAddedTokens,
			Chunks:  ca.options.Context.MaxFileTokens,
		},
		Model:     req.model,
		Request:   c.request(req.chat),
		Earlier:   h.earlier(c),
		Messages:  func(i int) []recall.Ref { return h.messages(i, l.Tail) },
		Older:     h.unread > 0,
		Recalls:   req.remembers() && !ca.options.Context.DisableRecall,
		Searches:  l.searches(req),
		Continues: h.continues,
		Quoted:    h.Stored != nil && len(h.Stored.Recalled) > 0,
	}
	if req.chat.MaxTokens > 0 {
		in.Limits.Answer = req.chat.MaxTokens
	}
	if user := req.chat.LastUser(); user >= 0 {
		in.Message = func() string { return req.chat.Messages[user].Text() }
	}
	return in
}

// earlier are the exchanges that could be included.
func (h *reconciled) earlier(c counter) []prompt.Earlier {
	earlier := make([]prompt.Earlier, len(h.Groups))
	for i := range h.Groups {
		group := &h.Groups[i]
		last := &group.Exchanges[len(group.Exchanges)-1]
		earlier[i] = prompt.Earlier{
			Tokens:   c.exchanges(group.Exchanges),
			Start:    group.Exchanges[0].Offset,
			End:      last.Offset + int64(last.Tokens()),
			Required: group.Calling,
		}
		if i == len(earlier)-1 {
			message := openai.ParseMessage(last.Messages[len(last.Messages)-1].JSON)
			earlier[i].Unanswered = message.Role == "user"
		}
	}
	return earlier
}

// searchChunks finds what the files say.
func (ca *chatAPI) searchChunks(ctx context.Context, via func() *upstream.Caller, req *request, rag *openai.RAGMetadata) ([]prompt.Chunk, error) {
	user := req.chat.LastUser()
	if user < 0 { // nowhere to quote anything
		return nil, nil
	}
	if rag.Query = req.chat.RAGQuery; rag.Query == "" {
		rag.Query = req.chat.Messages[user].Text()
	}
	rag.Query = terms.Ends(rag.Query)
	result, err := ca.knowledge.Search(ctx, via(), req.caller.scope, rag.Query, prompt.MaxChunks)
	if err != nil {
		return nil, err
	}
	rag.ResultsFound, rag.Degraded = len(result.Hits), result.Degraded
	return chunksOf(result.Hits), nil
}

// givenChunks are those that the user message of an exchange under way was sent
// with, as far as the files are still there.
func (ca *chatAPI) givenChunks(ctx context.Context, req *request, h *reconciled) ([]prompt.Chunk, error) {
	if h.Stored == nil || len(h.Stored.Passages) == 0 {
		return nil, nil
	}
	hits, err := ca.shared.Chunks(ctx, req.caller.scope, h.Stored.Passages)
	if err != nil {
		return nil, err
	}
	return chunksOf(hits), nil
}

func chunksOf(hits []store.Hit) []prompt.Chunk {
	chunks := make([]prompt.Chunk, len(hits))
	for i, h := range hits {
		chunks[i] = prompt.Chunk{
			FileID: h.FileID, Filename: h.Filename, Section: h.Chunk.Section, Page: h.Chunk.Page,
			N: h.Chunk.N, Text: h.Chunk.Text, Score: h.Score,
		}
	}
	return chunks
}

// apply turns the plan into an edit of the request.
func (p *assembled) apply(req *request, h *reconciled) {
	groups := h.Groups[p.plan.First:]
	p.edit.History = make([][]byte, 0, 2*len(groups)) // a question and an answer each
	for _, group := range groups {
		for i := range group.Exchanges {
			for j := range group.Exchanges[i].Messages {
				p.edit.History = append(p.edit.History, group.Exchanges[i].Messages[j].JSON)
			}
		}
	}
	if p.plan.Text == "" {
		return
	}
	if user := req.chat.LastUser(); user >= 0 {
		p.edit.Quoted, p.edit.QuotedIn = p.plan.Text, user
		return
	}
	// The request brings only results of tools: the user message is in the
	// history.
	for i := len(p.edit.History) - 1; i >= 0; i-- {
		if m := openai.ParseMessage(p.edit.History[i]); m.Role == "user" {
			p.edit.History[i] = m.Quote(p.plan.Text)
			return
		}
	}
}

// describe tells the client of the plan.
func (p *assembled) describe(req *request, rag *openai.RAGMetadata) {
	quoted := p.quotedMessages()
	p.meta = &openai.Metadata{RAG: *rag}
	if req.remembers() {
		p.meta.Memory = &openai.MemoryMetadata{
			SessionID:        req.chat.SessionID,
			HistoryMessages:  len(p.edit.History) + quoted,
			RecalledMessages: quoted,
		}
	}
	for _, c := range p.plan.Chunks {
		p.meta.RAG.Sources = append(p.meta.RAG.Sources, openai.Source{
			FileID: c.FileID, Filename: c.Filename, Chunk: c.N,
			Section: c.Section, Page: c.Page, Score: c.Score,
		})
	}
	p.meta.Context = openai.ContextMetadata{
		TotalTokens:      p.plan.Tokens,
		IncludedMessages: len(req.chat.Messages) + len(p.edit.History) + quoted,
		IncludedChunks:   len(p.plan.Chunks),
		Truncated:        p.plan.Truncated,
	}
}

// counts are those of the prompt.
func (p *assembled) counts() stats.Prompt {
	return stats.Prompt{
		Tokens: p.plan.Tokens, Truncated: p.plan.Truncated,
		Messages: len(p.edit.History) + p.quotedMessages(), HistoryTokens: p.plan.HistoryTokens + p.plan.QuoteTokens,
		Chunks: len(p.plan.Chunks), ChunkTokens: p.plan.ChunkTokens,
	}
}

// quotedMessages counts the messages of which parts are quoted. They stand in the
// order of the session.
func (p *assembled) quotedMessages() int {
	n := 0
	for i, q := range p.plan.Quotes {
		if i == 0 || q.Seq != p.plan.Quotes[i-1].Seq || q.N != p.plan.Quotes[i-1].N {
			n++
		}
	}
	return n
}
