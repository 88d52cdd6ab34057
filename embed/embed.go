// Package embed turns texts into vectors. Router asks the model router, with
// the credentials of the request at hand; Hashing works offline.
//
// Texts come in from packages knowledge (chunks of files, and queries) and
// memory (exchanges of long sessions), and leave the process through a Caller
// only; vectors go back to the caller. Nothing is written anywhere. A bounded
// cache of query vectors is kept in memory.
package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
)

// Caller reaches the model router with the credentials of one request. Router
// calls it from several goroutines at once and it must not panic: one that
// runs an HTTP handler recovers http.ErrAbortHandler itself.
type Caller interface {
	// Call sends a JSON body to a path below the router's base address,
	// such as "/embeddings". The error is for calls that got no answer;
	// whatever the router did answer comes back as Reply.
	Call(ctx context.Context, method, path string, body []byte) (Reply, error)
}

// Reply is what the model router answered.
type Reply struct {
	Status int // HTTP status
	Header http.Header
	Body   []byte
}

// Embedder turns texts into vectors of unit length. Implementations are safe
// for concurrent use.
type Embedder interface {
	// Model names the vectors: only those of the same name can be compared.
	// It holds the model and the dimension, such as "hashing/1024".
	Model() string
	// Dimensions is the length of the vectors.
	Dimensions() int
	// Weight says how much a rank by cosine counts beside a lexical rank
	// when the two are fused: 0 (nothing) to 1 (as much).
	Weight() float64
	// Floor is the cosine below which a neighbour means nothing.
	Floor() float64
	// Free says that making a vector costs no more than looking it up: a
	// text is embedded again even where the store has its vector.
	Free() bool
	// Embed returns one vector per text, in order. A text that holds nothing
	// to embed gets nil. Offline embedders ignore via, which may be nil. A ctx
	// with a deadline says that somebody waits: what fails isn't tried again.
	Embed(ctx context.Context, via Caller, texts []string) ([][]float32, error)
}

// ErrNoCaller says that the embedder needs the router and there was no request
// whose credentials could be used.
var ErrNoCaller = errors.New("no caller to reach the model router with")

// ErrReply says that the router answered 200 with something that isn't what
// was asked for.
var ErrReply = errors.New("unusable embeddings reply")

// StatusError says that the router refused. It carries nothing of the reply's
// body, which may quote the texts or the key.
type StatusError struct {
	Status int // HTTP status
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the model router answered the embedding request with status %d", e.Status)
}

// normalise scales v to unit length, and reports whether it has a length:
// neither a zero vector nor one with NaN or infinity does, and no store would
// ever find it.
func normalise(v []float32) bool {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return false
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) * scale)
	}
	return true
}
