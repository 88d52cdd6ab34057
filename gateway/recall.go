package gateway

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/memory/recall"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/prompt"
	"github.com/backstory-proxy/backstory/store"
)

// recallWait is how long a request waits for a long session to be read, which
// happens when this process sees it for the first time, and for its vectors.
// Later ones find it read.
const recallWait = time.Second

// recalled finds the older messages of the session that the request is about.
// Memory without them is better than no answer: a failure is logged, no more.
func (t *turn) recalled(ctx context.Context, via func() *upstream, in *prompt.Input, g *store.Gathered) []prompt.Recalled {
	if !in.Recalls {
		return nil
	}
	given := in.Given && t.view.Stored != nil && len(t.view.Stored.Recalled) > 0
	in.Recalls = given || !in.Given
	d := in.Divide()
	if !given && d.Recall == 0 {
		return nil
	}
	// Only here, since most sessions fit, and nobody has to read the message.
	if user := t.chat.LastUser(); user >= 0 && recall.Leans(t.chat.Messages[user].Text()) {
		in.Leans = true
		d = in.Divide()
	}
	t.seen.begin(stageRecall)
	defer t.seen.end(stageRecall)
	var found []prompt.Recalled
	var err error
	if given {
		found, err = t.quotable(ctx, d.First, g, t.view.Stored.Recalled)
	} else {
		found, err = t.recall(ctx, via, d, g)
	}
	if err != nil && ctx.Err() == nil {
		t.gateway.logger.Warn("older messages of a session could not be recalled", zap.String("request_id", t.id), zap.Error(err))
	}
	return t.spare(in, d, found, g)
}

// spare gives the newest exchanges what recalled messages leave of their share,
// and returns those messages less what now stands in place.
func (t *turn) spare(in *prompt.Input, d prompt.Division, found []prompt.Recalled, g *store.Gathered) []prompt.Recalled {
	bytes := 0
	for i := range found {
		bytes += found[i].To - found[i].From
	}
	if bytes > 4*d.Recall { // they hardly leave anything: that isn't worth counting
		return found
	}
	size := prompt.RecalledTokens(found, in.Count)
	if size >= d.Recall {
		return found
	}
	in.Spare = d.History + d.Recall - size
	present := t.present(in.Divide().First, g.Tail)
	return slices.DeleteFunc(found, func(r prompt.Recalled) bool { return present.placed[recall.Ref{Seq: r.Seq, N: r.N}] })
}

func (t *turn) recall(ctx context.Context, via func() *upstream, d prompt.Division, g *store.Gathered) ([]prompt.Recalled, error) {
	user := t.chat.LastUser()
	if user < 0 { // nowhere to quote anything
		return nil, nil
	}
	// Stored counts are by o200k_base; the share is in tokens of the model. A
	// quarter more is asked for than may fit: a message took more than a quote
	// of it takes.
	const sample = 1 << 10
	budget := (d.Recall - prompt.RecallOverhead) * 5 / 4 * sample / t.model.Raise(sample)
	if budget <= 0 {
		return nil, nil
	}
	hits, err := t.gateway.shared.recall.Search(ctx, t.scope, t.chat.SessionID, g, recall.Query{
		Text:   t.chat.Messages[user].Text(),
		Now:    time.Now(),
		Before: t.supplied(d.First, g.Tail),
		Budget: budget,
		Header: prompt.DayTokens,
	}, t.meaning(via), recallWait)
	if err != nil {
		return nil, err
	}
	refs := make([]store.MessageRef, len(hits))
	for i, h := range hits {
		refs[i] = store.MessageRef{Seq: h.Seq, N: h.N, From: h.From, To: h.To}
	}
	return t.quotable(ctx, d.First, g, refs)
}

// supplied is the oldest message that the request gets in place, or carries
// itself: what is older may be recalled.
func (t *turn) supplied(first int, tail []store.Exchange) recall.Ref {
	groups := t.view.Groups
	switch {
	case first < len(groups):
		return firstOf(&groups[first].Exchanges[0], tail)
	case len(groups) > 0:
		last := groups[len(groups)-1].Exchanges
		return recall.Ref{Seq: last[len(last)-1].Seq + 1}
	case len(tail) > 0:
		return recall.Ref{Seq: tail[0].Seq}
	}
	return recall.Ref{Seq: 1}
}

// firstOf names the first message of an exchange of the tail, or of a part of
// one: a client may have brought a whole history with one request.
func firstOf(part *store.Exchange, tail []store.Exchange) recall.Ref {
	ref := recall.Ref{Seq: part.Seq}
	if i := slices.IndexFunc(tail, func(e store.Exchange) bool { return e.Seq == part.Seq }); i >= 0 {
		for at := tail[i].Offset; at < part.Offset && ref.N < len(tail[i].Messages); ref.N++ {
			at += int64(tail[i].Messages[ref.N].Tokens)
		}
	}
	return ref
}

// present is what the model is told anyway, and so is not to be quoted.
type present struct {
	carried map[store.Digest]bool // by the request, ahead of its last user message
	placed  map[recall.Ref]bool   // supplied in place
}

// present returns it for a request that is supplied the groups from first on.
func (t *turn) present(first int, tail []store.Exchange) present {
	p := present{make(map[store.Digest]bool), make(map[recall.Ref]bool)}
	user := t.chat.LastUser()
	for i := range t.said {
		if t.said[i].Index < user {
			p.carried[t.said[i].Digest] = true
		}
	}
	for _, g := range t.view.Groups[first:] {
		for i := range g.Exchanges {
			ref := firstOf(&g.Exchanges[i], tail)
			for range g.Exchanges[i].Messages {
				p.placed[ref] = true
				ref.N++
			}
		}
	}
	return p
}

// quotable reads the messages that are named, in that order, less those that
// are no longer there, or that the model is told anyway. first is that of the
// Division.
func (t *turn) quotable(ctx context.Context, first int, g *store.Gathered, refs []store.MessageRef) ([]prompt.Recalled, error) {
	exchanges := make(map[int64]*store.Exchange)
	for i := range g.Tail {
		exchanges[g.Tail[i].Seq] = &g.Tail[i]
	}
	var missing []int64
	for _, r := range refs {
		if exchanges[r.Seq] == nil && !slices.Contains(missing, r.Seq) {
			missing = append(missing, r.Seq)
		}
	}
	read, err := t.gateway.shared.ExchangesAt(ctx, t.scope, t.chat.SessionID, missing)
	if err != nil {
		return nil, err
	}
	for i := range read {
		exchanges[read[i].Seq] = &read[i]
	}
	present := t.present(first, g.Tail)
	found := make([]prompt.Recalled, 0, len(refs))
	for _, r := range refs {
		e := exchanges[r.Seq]
		if e == nil || r.N >= len(e.Messages) {
			continue
		}
		if present.carried[e.Messages[r.N].Digest] || present.placed[recall.Ref{Seq: r.Seq, N: r.N}] {
			continue
		}
		if q, ok := quoteOf(e, r); ok {
			found = append(found, q)
		}
	}
	return found, nil
}

// quoteOf is a message, or the part of it that is named.
func quoteOf(e *store.Exchange, r store.MessageRef) (q prompt.Recalled, ok bool) {
	m := openai.ParseMessage(e.Messages[r.N].JSON)
	q = prompt.Recalled{Seq: r.Seq, N: r.N, From: r.From, To: r.To, Speaker: m.Get("name").Str, Time: e.SaidAt(r.N), Text: m.Text()}
	if q.Speaker == "" {
		q.Speaker = m.Role
	}
	if q.To <= 0 || q.To > len(q.Text) {
		q.To = len(q.Text)
	}
	return q, q.From >= 0 && q.From < q.To
}

// countMessages counts the messages of which parts were recalled. They stand in
// the order of the session.
func countMessages(recalled []prompt.Recalled) int {
	n := 0
	for i := range recalled {
		if i == 0 || recalled[i].Seq != recalled[i-1].Seq || recalled[i].N != recalled[i-1].N {
			n++
		}
	}
	return n
}
