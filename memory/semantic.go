package memory

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"time"

	"github.com/backstory-proxy/backstory/memory/recall"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// SemanticSearch is what a Recaller needs to search by semantic similarity: an
// embedder, and how to run it for one request.
type SemanticSearch struct {
	Model  string  // the embedding model: vectors of another are made anew
	Weight float64 // of a semantic match relative to one by words, from 0 to 1
	Floor  float64 // the least cosine of a match
	// QueryTimeout is how long a search waits for the vector of its query.
	QueryTimeout time.Duration
	// Embed returns a vector for each text, in order; nil for a text with nothing to
	// embed. It may be called after the search has returned.
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
	// Go runs a task in a goroutine: it may outlive the search.
	Go func(task func())
	// Failed is called when a part of a search, one of Part…, failed. The search goes on
	// without it. Failed may be called concurrently, and after the search has returned.
	Failed func(part string, err error)
}

// The parts of a semantic search that can fail.
const (
	PartEmbedding = "embedding" // the embedder returned no vectors
	PartVector    = "vector"    // the store couldn't read or save vectors
)

// maxNeighbours is how many exchanges are ranked by semantic similarity.
const maxNeighbours = 50

// embedQuery starts to embed the query. It sends a vector without values if there is
// none.
func (m *SemanticSearch) embedQuery(ctx context.Context, query string) <-chan store.SmallVector {
	answer := make(chan store.SmallVector, 1)
	go func() {
		queryCtx, cancel := context.WithTimeout(ctx, m.QueryTimeout)
		defer cancel()
		vectors, err := m.Embed(queryCtx, []string{query})
		if err != nil {
			if ctx.Err() == nil {
				m.Failed(PartEmbedding, err)
			}
			answer <- store.SmallVector{}
			return
		}
		answer <- store.Shrink(vectors[0])
	}()
	return answer
}

// awaitVectors waits for the vector of the query. Where there is one, it then waits
// for the session to catch up, at most until the given time.
func (m *SemanticSearch) awaitVectors(ctx context.Context, query <-chan store.SmallVector, caughtUp <-chan struct{}, until time.Time) (vector store.SmallVector, err error) {
	select {
	case vector = <-query:
	case <-ctx.Done():
		return vector, ctx.Err()
	}
	if len(vector.Values) == 0 || caughtUp == nil {
		return vector, nil
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-caughtUp:
	case <-timer.C:
	case <-ctx.Done():
		return vector, ctx.Err()
	}
	return vector, nil
}

// nearest ranks the messages of the exchanges that are nearest to a query.
func (x *sessionIndex) nearest(semantic *SemanticSearch, query store.SmallVector, before int64) []recall.Ref {
	if len(query.Values) == 0 || x.vectors.model != semantic.Model {
		return nil
	}
	type neighbour struct {
		at     int
		cosine float64
	}
	var found []neighbour
	for i := range x.entries {
		e := &x.entries[i]
		if before > 0 && e.seq >= before {
			break
		}
		if cosine := query.Dot(e.vector); cosine > 0 && cosine >= semantic.Floor {
			found = append(found, neighbour{i, cosine})
		}
	}
	slices.SortFunc(found, func(a, b neighbour) int {
		return cmp.Or(cmp.Compare(b.cosine, a.cosine), cmp.Compare(b.at, a.at))
	})
	var refs []recall.Ref
	for _, f := range found[:min(len(found), maxNeighbours)] {
		e := &x.entries[f.at]
		for left := e.texts; left != 0; left &= left - 1 {
			refs = append(refs, recall.Ref{Seq: e.seq, N: bits.TrailingZeros64(left)})
		}
	}
	return refs
}

// embeddedText returns the text that is embedded for an exchange, with its speakers.
func embeddedText(e *store.Exchange) string {
	var text []byte
	for i := range e.Messages {
		speaker, words, ok := spokenText(&e.Messages[i])
		if !ok {
			continue
		}
		if len(text) > 0 {
			text = append(text, '\n')
		}
		text = append(append(text, speaker...), ": "...)
		text = append(text, words...)
	}
	return string(text)
}

// spokenText returns what a user or the assistant says, and who that is.
func spokenText(m *store.Message) (speaker, text string, ok bool) {
	message := openai.ParseMessage(m.JSON)
	if message.Role != "user" && message.Role != "assistant" {
		return "", "", false
	}
	speaker = cmp.Or(message.Get("name").Str, message.Role)
	text = message.Text()
	return speaker, text, text != ""
}
