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

// Meaning is what it takes to search by meaning: an embedder, and a request's way
// to it.
type Meaning struct {
	Model  string  // names the embedder's vectors
	Weight float64 // what a place by meaning counts beside one by words, from 0 to 1
	Floor  float64 // the cosine below which a neighbour means nothing
	// Patience is how long a search waits for the vector of its question.
	Patience time.Duration
	// Embed returns a vector for each text, in order; nil for one without
	// anything to embed. It may be called after the search has returned.
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
	// Go runs what goes on when the search has returned, in a goroutine.
	Go func(task func())
	// Failed is told when a part of a search, one of Part…, failed, while the
	// rest goes on. It may be called after the search has returned, and by
	// several at once.
	Failed func(part string, err error)
}

// The parts of a search by meaning that can fail.
const (
	PartEmbedding = "embedding" // no vectors came from the embedder
	PartVector    = "vector"    // the store's vectors couldn't be read or written
)

// nearest is how many exchanges are ranked by meaning.
const nearest = 50

// ask has the question embedded. The answer has no values where there is none.
func (m *Meaning) ask(ctx context.Context, question string) <-chan store.SmallVector {
	answer := make(chan store.SmallVector, 1)
	go func() {
		patience, cancel := context.WithTimeout(ctx, m.Patience)
		defer cancel()
		vectors, err := m.Embed(patience, []string{question})
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

// await waits for the vector of the question, and, where there is one, until the
// session has caught up or the time is over.
func (m *Meaning) await(ctx context.Context, question <-chan store.SmallVector, caughtUp <-chan struct{}, until time.Time) (about store.SmallVector, err error) {
	select {
	case about = <-question:
	case <-ctx.Done():
		return about, ctx.Err()
	}
	if len(about.Values) == 0 || caughtUp == nil {
		return about, nil
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-caughtUp:
	case <-timer.C:
	case <-ctx.Done():
		return about, ctx.Err()
	}
	return about, nil
}

// near ranks the messages of the exchanges that are nearest to a question.
func (x *indexed) near(by *Meaning, question store.SmallVector, before int64) []recall.Ref {
	if len(question.Values) == 0 || x.vectors.model != by.Model {
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
		if cosine := question.Dot(e.about); cosine > 0 && cosine >= by.Floor {
			found = append(found, neighbour{i, cosine})
		}
	}
	slices.SortFunc(found, func(a, b neighbour) int {
		return cmp.Or(cmp.Compare(b.cosine, a.cosine), cmp.Compare(b.at, a.at))
	})
	var refs []recall.Ref
	for _, f := range found[:min(len(found), nearest)] {
		e := &x.entries[f.at]
		for left := e.words; left != 0; left &= left - 1 {
			refs = append(refs, recall.Ref{Seq: e.seq, N: bits.TrailingZeros64(left)})
		}
	}
	return refs
}

// wordsOf is what is embedded of an exchange: who says what.
func wordsOf(e *store.Exchange) string {
	var text []byte
	for i := range e.Messages {
		speaker, words, ok := saying(&e.Messages[i])
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

// saying is what a user or the assistant says in words, and who that is.
func saying(m *store.Message) (speaker, words string, ok bool) {
	message := openai.ParseMessage(m.JSON)
	if message.Role != "user" && message.Role != "assistant" {
		return "", "", false
	}
	speaker = cmp.Or(message.Get("name").Str, message.Role)
	words = message.Text()
	return speaker, words, words != ""
}
