package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
	"github.com/backstory-proxy/backstory/knowledge"
	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/memory/recall"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/prompt"
	"github.com/backstory-proxy/backstory/store"
)

// recallWait is how long a request waits for a long session to be read, which
// happens when this process sees it for the first time, and for its vectors.
// Later ones find it read.
const recallWait = time.Second

// quotes finds the older messages of the session that the request is about.
// Memory without them is better than no answer: a failure is logged, no more.
func (ca *chatAPI) quotes(ctx context.Context, via func() *upstream.Caller, st *Stats, req *request, l *loaded, h *reconciled, a *prompt.Allocation) []prompt.Quote {
	if !a.Resumes() && a.Quotes == 0 {
		return nil
	}
	st.Begin(stats.Recall)
	defer st.End(stats.Recall)
	var refs []store.MessageRef
	var err error
	if a.Resumes() {
		refs = h.Stored.Recalled
	} else {
		refs, err = ca.recall(ctx, via, req, l, h, a)
	}
	var found []prompt.Quote
	if err == nil {
		found, err = ca.readQuotes(ctx, req, l, h, refs)
	}
	if err != nil && ctx.Err() == nil {
		ca.logger.Warn("older messages of a session could not be recalled", zap.String("request_id", req.id), zap.Error(err))
	}
	return found
}

// recall searches the session.
func (ca *chatAPI) recall(ctx context.Context, via func() *upstream.Caller, req *request, l *loaded, h *reconciled, a *prompt.Allocation) ([]store.MessageRef, error) {
	user := req.chat.LastUser()
	if user < 0 || !a.SearchPays() { // nowhere to quote anything, or no room for it
		return nil, nil
	}
	query := recall.Query{Text: req.chat.Messages[user].Text(), Now: time.Now(), Before: h.before(a.First, l.Tail)}
	pack := func(r *recall.Ranking) []recall.Hit { return a.Pack(r) }
	hits, err := ca.shared.recall.Search(ctx, req.caller.scope, req.chat.SessionID, &l.Gathered, query, ca.semantics(via, req), recallWait, pack)
	if err != nil {
		return nil, err
	}
	refs := make([]store.MessageRef, len(hits))
	for i, h := range hits {
		refs[i] = store.MessageRef{Seq: h.Seq, N: h.N, From: h.From, To: h.To}
	}
	return refs, nil
}

// trained is the weight of an embedder that knows what words mean. What one
// that weighs less finds in a conversation, such as hashing, words find too, and
// better: recall does without it.
const trained = 1

// semantics is the way to recall by semantic similarity; nil where the embedder
// isn't one for it. useRAG doesn't matter: that is about files.
func (ca *chatAPI) semantics(via func() *upstream.Caller, req *request) *memory.SemanticSearch {
	e := ca.options.Embedder
	if e.Weight() < trained {
		return nil
	}
	router := via() // now: what it copies of the request changes later
	var once sync.Once
	return &memory.SemanticSearch{
		Model: e.Model(), Weight: e.Weight(), Floor: e.Floor(), QueryTimeout: knowledge.DefaultEmbedTimeout,
		Embed: func(ctx context.Context, texts []string) ([][]float32, error) { return e.Embed(ctx, router, texts) },
		Go:    ca.shared.inUse.Go,
		Failed: func(part string, err error) {
			once.Do(func() {
				stats.DegradedSearches.WithLabelValues(part).Inc()
				ca.logger.Warn("a session could not be searched by semantic similarity; words alone answer, or with the vectors that are there",
					zap.String("request_id", req.id), zap.String("part", part), zap.Error(err))
			})
		},
	}
}

// before is the oldest message that stands in place where those of the groups do
// from first on, or that the request carries itself: what is older may be quoted.
func (h *reconciled) before(first int, tail []store.Exchange) recall.Ref {
	switch {
	case first < len(h.Groups):
		return firstOf(&h.Groups[first].Exchanges[0], tail)
	case len(h.Groups) > 0:
		last := h.Groups[len(h.Groups)-1].Exchanges
		return recall.Ref{Seq: last[len(last)-1].Seq + 1}
	case len(tail) > 0:
		return recall.Ref{Seq: tail[0].Seq}
	}
	return recall.Ref{Seq: 1}
}

// messages names the messages of a group.
func (h *reconciled) messages(i int, tail []store.Exchange) (refs []recall.Ref) {
	for j := range h.Groups[i].Exchanges {
		e := &h.Groups[i].Exchanges[j]
		ref := firstOf(e, tail)
		for range e.Messages {
			refs = append(refs, ref)
			ref.N++
		}
	}
	return refs
}

// firstOf names the first message of an exchange of the tail, or of a part of
// one: a client may have brought a whole history with one request.
func firstOf(part *store.Exchange, tail []store.Exchange) recall.Ref {
	ref := recall.Ref{Seq: part.Seq}
	if i, found := slices.BinarySearchFunc(tail, part.Seq, func(e store.Exchange, seq int64) int { return cmp.Compare(e.Seq, seq) }); found {
		for at := tail[i].Offset; at < part.Offset && ref.N < len(tail[i].Messages); ref.N++ {
			at += int64(tail[i].Messages[ref.N].Tokens)
		}
	}
	return ref
}

// readQuotes reads the messages that are named, in that order, less those that are
// no longer there.
func (ca *chatAPI) readQuotes(ctx context.Context, req *request, l *loaded, h *reconciled, refs []store.MessageRef) ([]prompt.Quote, error) {
	carried := h.carried(req.chat.LastUser())
	quotes := make([]prompt.Quote, len(refs)) // those that aren't there have no text
	quote := func(list []store.Exchange) error {
		for i := range list {
			e := &list[i]
			for j, r := range refs {
				if r.Seq != e.Seq || r.N >= len(e.Messages) {
					continue
				}
				if q, ok := quoteOf(e, r); ok {
					q.Carried = carried[e.Messages[r.N].Digest]
					quotes[j] = q
				}
			}
		}
		return nil
	}
	var missing []int64
	for _, r := range refs {
		if !slices.ContainsFunc(l.Tail, func(e store.Exchange) bool { return e.Seq == r.Seq }) {
			missing = append(missing, r.Seq)
		}
	}
	err := quote(l.Tail)
	if err == nil {
		err = store.EachExchangeAt(ctx, ca.shared, req.caller.scope, req.chat.SessionID, missing, quote)
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(quotes, func(q prompt.Quote) bool { return q.Text == "" }), nil
}

// carried are the messages that the request carries ahead of its last user
// message, which has the index user in the request.
func (h *reconciled) carried(user int) map[store.Digest]bool {
	carried := make(map[store.Digest]bool)
	for i := range h.said {
		if h.said[i].Index < user {
			carried[h.said[i].Digest] = true
		}
	}
	return carried
}

// quoteOf is a message, or the part of it that is named, apart from the exchange's
// memory, which may be large.
func quoteOf(e *store.Exchange, r store.MessageRef) (q prompt.Quote, ok bool) {
	m := openai.ParseMessage(e.Messages[r.N].JSON)
	text := m.Text()
	q = prompt.Quote{Seq: r.Seq, N: r.N, From: r.From, To: r.To, Size: len(text), Role: strings.Clone(m.Role), Name: strings.Clone(m.Get("name").Str), Time: e.SaidAt(r.N)}
	if q.To <= 0 || q.To > q.Size {
		q.To = q.Size
	}
	if q.From < 0 || q.From >= q.To {
		return q, false
	}
	q.Text = strings.Clone(text[q.From:q.To])
	return q, true
}
