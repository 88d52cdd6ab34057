package gateway

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/journal"
	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/prompt"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/tokens"
)

// saveTimeout is how long a save may take before the journal takes over, or the
// client is told that the exchange wasn't kept.
const saveTimeout = 2 * time.Second

// save keeps the exchange, if it is to be kept, and reports whether nothing
// was lost. closed says that the client left before the end; the save goes on
// all the same.
func (t *turn) save(ctx context.Context, reply *openai.Reply, closed bool) bool {
	if t.chat.SessionID == "" || !t.chat.SaveToMemory {
		t.use(ctx, reply)
		return true
	}
	t.seen.begin(stageSave)
	err := t.append(ctx, reply, closed)
	t.seen.end(stageSave)
	if err != nil {
		saveError.Inc()
		t.gateway.logger.Error("the exchange was not saved", zap.String("request_id", t.id), zap.Error(err))
	}
	return err == nil
}

func (t *turn) append(ctx context.Context, reply *openai.Reply, closed bool) error {
	if reply.Truncated {
		t.use(ctx, reply)
		return errTooLarge
	}
	turn := memory.Turn{
		ID: t.id, Messages: t.chat.Messages, Said: t.said, View: t.view,
		Reply: reply, Closed: closed, Now: time.Now(), Count: t.o200k,
	}
	for _, p := range t.plan.Passages {
		turn.Passages = append(turn.Passages, store.ChunkRef{FileID: p.FileID, N: p.Chunk})
	}
	for _, r := range t.plan.Recalled {
		turn.Recalled = append(turn.Recalled, store.MessageRef{Seq: r.Seq, N: r.N, From: r.From, To: r.To})
	}
	d, save := turn.Draft()
	if !save || len(d.Exchange.Messages) == 0 {
		t.use(ctx, reply)
		return nil
	}
	return t.gateway.shared.keep(context.WithoutCancel(ctx), journal.Entry{
		Scope: t.scope, Session: t.chat.SessionID, Draft: d, Mark: t.mark, Usage: t.used(reply), TTL: t.ttl,
	})
}

// o200k counts a message as it is stored.
func (t *turn) o200k(m *openai.Message) int {
	return prompt.MessageTokens(m, func(text string) int { return t.gateway.countText(tokens.O200K(), text) })
}
