package embed

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"
)

// Defaults of RouterOptions.
const (
	// DefaultInputTokens stays below the 8,192 tokens that OpenAI allows per
	// input, as the router's tokenizer may differ from the one that counts.
	DefaultInputTokens = 8000
	// DefaultBatchTokens is a third of what OpenAI allows per request
	// (300,000), so that several requests share the work.
	DefaultBatchTokens = 100_000
	// DefaultConcurrency keeps one upload from using up the caller's rate.
	DefaultConcurrency = 4
	// DefaultCacheBytes holds about 2,700 queries of 1,536 dimensions.
	DefaultCacheBytes = 16 << 20
)

// batchInputs is the most inputs that OpenAI takes in one request.
const batchInputs = 2048

// RouterOptions adjust a Router; zero values mean the defaults.
type RouterOptions struct {
	// Count returns the number of tokens of a text. Default: one per three
	// bytes.
	Count func(string) int
	// SendDimensions asks the model for vectors of the Router's dimension.
	// Only models that can shorten theirs take it (text-embedding-3-*); others
	// refuse the request.
	SendDimensions bool
	// InputTokens is where longer texts are cut. Default: DefaultInputTokens.
	InputTokens int
	// BatchTokens bounds one request. Default: DefaultBatchTokens.
	BatchTokens int
	// Concurrency is the number of requests that one Embed has under way.
	// Default: DefaultConcurrency.
	Concurrency int
	// CacheBytes bounds the memory for vectors of queries. Default:
	// DefaultCacheBytes; negative: no cache.
	CacheBytes int
	// Floor is the cosine below which a neighbour means nothing; it depends
	// on the model. Default: 0.
	Floor float64
}

// Router embeds with a model behind the router's OpenAI POST /embeddings.
type Router struct {
	model      string
	dimensions int
	opts       RouterOptions
	cache      *lru.Cache[[32]byte, []float32] // by SHA-256 of the text; nil: none
	flights    flights
}

// NewRouter returns an embedder for a model whose vectors have the given
// dimension, which must be positive.
func NewRouter(model string, dimensions int, opts RouterOptions) *Router {
	if opts.Count == nil {
		opts.Count = func(s string) int { return (len(s) + 2) / 3 }
	}
	if opts.InputTokens <= 0 {
		opts.InputTokens = DefaultInputTokens
	}
	if opts.BatchTokens <= 0 {
		opts.BatchTokens = DefaultBatchTokens
	}
	if opts.Concurrency <= 0 {
		opts.Concurrency = DefaultConcurrency
	}
	if opts.CacheBytes == 0 {
		opts.CacheBytes = DefaultCacheBytes
	}
	r := &Router{model: model, dimensions: dimensions, opts: opts}
	const overhead = 160 // bytes per entry: digest, list and map entry
	if entries := opts.CacheBytes / (4*dimensions + overhead); entries > 0 {
		r.cache, _ = lru.New[[32]byte, []float32](entries) // fails for sizes below 1 only
	}
	return r
}

// Model returns the model and the dimension, such as
// "openai/text-embedding-3-small/1536".
func (r *Router) Model() string { return fmt.Sprintf("%s/%d", r.model, r.dimensions) }

// Dimensions is the length of the vectors.
func (r *Router) Dimensions() int { return r.dimensions }

// Weight is 1: a trained model's ranks count as much as lexical ones.
func (r *Router) Weight() float64 { return 1 }

// Floor is RouterOptions.Floor.
func (r *Router) Floor() float64 { return r.opts.Floor }

// Free is false: the router counts tokens, and takes its time.
func (r *Router) Free() bool { return false }

// Embed asks the router for the vectors of the texts, in as many requests as
// it takes. A single text is taken for a query: its vector is cached, and
// concurrent callers with the same text share one request. What the router
// refuses for the moment is asked for again: see patiently. Errors are
// *StatusError, ErrReply, ErrNoCaller, or what the caller returned.
func (r *Router) Embed(ctx context.Context, via Caller, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	inputs := make([]input, 0, len(texts))
	for i, t := range texts {
		if strings.TrimSpace(t) == "" {
			continue // OpenAI refuses the whole request for one empty input
		}
		inputs = append(inputs, r.input(i, t))
	}
	if len(inputs) == 1 && len(texts) == 1 {
		v, err := r.query(ctx, via, inputs[0])
		vectors[0] = v
		return vectors, err
	}
	batches := r.batches(inputs)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.opts.Concurrency)
	for _, b := range batches {
		group.Go(func() error {
			found, err := r.fetch(ctx, via, b)
			for i, v := range found {
				vectors[b[i].position] = v
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return vectors, nil
}

// query embeds one text through the cache.
func (r *Router) query(ctx context.Context, via Caller, in input) ([]float32, error) {
	if r.cache == nil {
		return first(r.fetch(ctx, via, []input{in}))
	}
	key := sha256.Sum256([]byte(in.text))
	if v, ok := r.cache.Get(key); ok {
		return slices.Clone(v), nil
	}
	v, err := r.flights.do(ctx, key, func() ([]float32, error) {
		v, err := first(r.fetch(ctx, via, []input{in}))
		if err == nil {
			r.cache.Add(key, v)
		}
		return v, err
	})
	return slices.Clone(v), err
}

// first is the only vector of a reply.
func first(vectors [][]float32, err error) ([]float32, error) {
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// fetch makes one request.
func (r *Router) fetch(ctx context.Context, via Caller, batch []input) ([][]float32, error) {
	if via == nil {
		return nil, ErrNoCaller
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	body, err := r.request(batch)
	if err != nil {
		return nil, err
	}
	reply, err := patiently(ctx, func() (Reply, error) { return via.Call(ctx, http.MethodPost, "/embeddings", body) })
	if err != nil {
		return nil, fmt.Errorf("reach the model router for embeddings: %w", err)
	}
	if reply.Status != http.StatusOK {
		return nil, &StatusError{Status: reply.Status}
	}
	return parseReply(reply.Body, len(batch), r.dimensions)
}

var _ Embedder = (*Router)(nil)
