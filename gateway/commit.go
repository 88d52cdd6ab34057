package gateway

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/gateway/internal/calibrate"
	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/journal"
	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

const (
	// saveTimeout is how long a save may take before the journal takes over.
	saveTimeout = 2 * time.Second
	// lastSaveTimeout is how long it may take where there is no journal, before the
	// client is told that the exchange wasn't kept: it has been paid for, and what
	// the client waits for is no more than the end of its reply. No more is let in
	// while writes wait for long, so that a store that is merely busy is done
	// sooner.
	lastSaveTimeout = 10 * time.Second
)

// errTooLarge says that a reply was too large to be kept.
var errTooLarge = errors.New("the reply was too large to be kept")

// exchange is a request that waits for its reply, with all that it takes to save
// both.
type exchange struct {
	api     *chatAPI
	stats   *Stats
	req     *request
	mark    store.Mark
	history *reconciled
	prompt  *assembled
}

// commit keeps the exchange, if it is to be kept, and reports whether nothing was
// lost. closed says that the client left before the end; the save goes on all the
// same.
func (x *exchange) commit(ctx context.Context, reply *openai.Reply, closed bool) bool {
	if !x.req.saves() {
		x.use(ctx, reply)
		return true
	}
	x.stats.Begin(stats.Save)
	err := x.save(ctx, reply, closed)
	x.stats.End(stats.Save)
	if err != nil {
		stats.SaveError.Inc()
		x.api.logger.Error("the exchange was not saved", zap.String("request_id", x.req.id), zap.Error(err))
	}
	return err == nil
}

func (x *exchange) save(ctx context.Context, reply *openai.Reply, closed bool) error {
	if reply.Truncated {
		x.use(ctx, reply)
		return errTooLarge
	}
	completed := memory.Completed{
		ID: x.req.id, Messages: x.req.chat.Messages, Conversation: x.history.said, Reconciliation: x.history.Reconciliation,
		Reply: reply, Closed: closed, Retries: x.req.retries, Now: time.Now(), Count: x.api.counterOfStored(x.req),
	}
	for _, c := range x.prompt.plan.Chunks {
		completed.Chunks = append(completed.Chunks, store.ChunkRef{FileID: c.FileID, N: c.N})
	}
	for _, q := range x.prompt.plan.Quotes {
		completed.Quotes = append(completed.Quotes, store.MessageRef{Seq: q.Seq, N: q.N, From: q.From, To: q.To})
	}
	d, save := completed.Draft()
	if !save || len(d.Exchange.Messages) == 0 {
		x.use(ctx, reply)
		return nil
	}
	return x.api.shared.keep(context.WithoutCancel(ctx), journal.Entry{
		Scope: x.req.caller.scope, Session: x.req.chat.SessionID, Draft: d, Mark: x.mark,
		Usage: x.used(reply), TTL: x.req.caller.plan.SessionsTTL,
	})
}

// complete takes in a reply that was seen to its end.
func (x *exchange) complete(reply *openai.Reply) {
	s := x.stats
	s.Whole, s.Usage = true, reply.Usage
	if s.Usage.Prompt < 1 || reply.Failed || !x.req.tally.Exact() {
		return
	}
	estimated := x.prompt.plan.Tokens
	if estimated >= calibrate.LeastPrompt {
		stats.EstimateRatio.Observe(float64(estimated) / float64(s.Usage.Prompt))
	}
	x.api.shared.calibration.Learn(x.req.chat.Model, x.req.model.Margin, estimated, s.Usage.Prompt, x.isText)
}

// isText reports whether the prompt is all text: what images, recordings and
// files take is known but roughly.
func (x *exchange) isText() bool {
	for i := range x.req.chat.Messages {
		if !plainText(&x.req.chat.Messages[i]) {
			return false
		}
	}
	for _, json := range x.prompt.edit.History {
		if m := openai.ParseMessage(json); !plainText(&m) {
			return false
		}
	}
	return true
}

// use counts the tokens of a reply that isn't saved.
func (x *exchange) use(ctx context.Context, reply *openai.Reply) {
	x.api.use(ctx, x.req.caller.scope, x.req.id, x.used(reply))
}

// used is what the reply costs the tenant: what the router says, else what we
// count. A reply of which nothing came costs nothing.
func (x *exchange) used(reply *openai.Reply) store.Used {
	if x.req.month == 0 {
		return store.Used{}
	}
	n := int64(reply.Usage.Prompt) + int64(reply.Usage.Completion)
	if n == 0 && (reply.Message != nil || reply.Truncated) {
		c := x.api.counter(x.req)
		sent := x.prompt.plan.Tokens
		if sent == 0 {
			sent = c.request(x.req.chat)
		}
		n = int64(sent)
		if reply.Message != nil {
			answer := openai.ParseMessage(reply.Message)
			n += int64(c.message(&answer))
		}
	}
	return store.Used{Month: x.req.month, Tokens: n}
}

func plainText(m *openai.Message) bool {
	if m.Get("audio").IsObject() {
		return false
	}
	text := true
	if c := m.Content(); c.IsArray() {
		c.ForEach(func(_, part gjson.Result) bool {
			kind := part.Get("type").Str
			text = kind == "text" || kind == "refusal"
			return text
		})
	}
	return text
}
