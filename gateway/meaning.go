package gateway

import (
	"context"
	"sync"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/knowledge"
	"github.com/backstory-proxy/backstory/memory"
)

// trained is the weight of an embedder that knows what words mean. What one
// that weighs less finds in a conversation, such as hashing, words find too, and
// better: recall does without it.
const trained = 1

// meaning is the way to recall by meaning; nil where the embedder isn't one for
// it. useRAG doesn't matter: that is about files.
func (t *turn) meaning(via func() *upstream) *memory.Meaning {
	e := t.gateway.options.Embedder
	if e.Weight() < trained {
		return nil
	}
	router := via() // now: what it copies of the request changes later
	var once sync.Once
	return &memory.Meaning{
		Model: e.Model(), Weight: e.Weight(), Floor: e.Floor(), Patience: knowledge.DefaultEmbedTimeout,
		Embed: func(ctx context.Context, texts []string) ([][]float32, error) { return e.Embed(ctx, router, texts) },
		Go:    t.gateway.shared.inUse.Go,
		Failed: func(part string, err error) {
			once.Do(func() {
				degradedSearches.WithLabelValues(part).Inc()
				t.gateway.logger.Warn("a session could not be searched by meaning; words alone answer, or with what is known already",
					zap.String("request_id", t.id), zap.String("part", part), zap.Error(err))
			})
		},
	}
}
