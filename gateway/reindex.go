package gateway

import (
	"context"
	"errors"
	"net/http"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
	"github.com/backstory-proxy/backstory/internal/respond"
	"github.com/backstory-proxy/backstory/knowledge"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// Reindexed is the reply to POST /files/{id}/reindex.
type Reindexed struct {
	ID        string `json:"id"`
	Object    string `json:"object"` // file.reindex
	Model     string `json:"model"`  // whose vectors the file has now
	Reindexed bool   `json:"reindexed"`
	Chunks    int    `json:"chunks"` // that were embedded anew
}

// reindex gives a file the vectors of the present embedder. It answers when that
// is done, and stops when the client leaves: what was done by then isn't asked of
// the router again.
func (fa *filesAPI) reindex(c call) error {
	w, r, id := c.w, c.r, c.id()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(fa.shared.stopping, cancel)()
	fa.shared.ingests.Add(1)
	defer fa.shared.ingests.Done()
	n, err := fa.knowledge.Reindex(ctx, upstream.New(r, c.router), c.who.scope, id)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrDeleted):
		return noSuchFile(store.ErrNotFound, id)
	case errors.Is(err, knowledge.ErrNotProcessed):
		return openai.StatusError(http.StatusConflict, "The file can't be indexed again: it is still being indexed, or has failed.")
	case errors.Is(err, knowledge.ErrEmbedding):
		return reindexError(err)
	case err != nil:
		return &unavailable{err}
	}
	return respond.JSON(w, Reindexed{ID: id, Object: "file.reindex", Model: fa.knowledge.Model(), Reindexed: n > 0, Chunks: n})
}

// reindexError is what the client is told where the router doesn't embed.
func reindexError(err error) error {
	var refused *embed.StatusError
	if errors.As(err, &refused) && refused.Status == http.StatusUnauthorized {
		return openai.StatusError(http.StatusUnauthorized, "The model router refused the key in Authorization. The file is found by its words until it is indexed.")
	}
	return openai.StatusError(http.StatusBadGateway, "The file could not be embedded by the model router. It is found by its words until it is; please try again.")
}
