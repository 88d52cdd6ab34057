package upstream

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/embed"
)

const (
	// modelsWait is how long a request waits for the router's list of models.
	modelsWait = time.Second
	// modelsTimeout is how long the list may take to arrive for later ones.
	modelsTimeout = 30 * time.Second
	// modelsFresh is how long a list is good; after that it is asked for
	// again, behind the back of a request.
	modelsFresh = time.Hour
	// modelsRetry is how long a failure is remembered.
	modelsRetry = 10 * time.Second
)

// Lengths knows the context length of each model: from the configuration,
// else from the router's GET /models, which is asked on behalf of a caller.
type Lengths struct {
	configured func(model string) int
	unknown    int

	mu      sync.Mutex
	lengths map[string]int
	next    time.Time     // when to ask again
	asking  chan struct{} // closed when the answer is there; nil: nobody asks
	since   time.Time     // when that began
}

// NewLengths makes one. configured is the length that the configuration gives a
// model, 0 for none; unknown that of a model for which nobody gives one.
func NewLengths(configured func(model string) int, unknown int) *Lengths {
	return &Lengths{configured: configured, unknown: unknown}
}

// Of is the model's context length in tokens. via is asked for the way to
// the router before Of returns, if at all.
func (m *Lengths) Of(ctx context.Context, model string, via func() *Caller) int {
	if n := m.configured(model); n > 0 {
		return n
	}
	m.mu.Lock()
	if m.asking == nil && time.Now().After(m.next) {
		m.asking, m.since = make(chan struct{}), time.Now()
		go m.ask(via())
	}
	asking, known, left := m.asking, m.lengths != nil, modelsWait-time.Since(m.since)
	m.mu.Unlock()

	if asking != nil && !known && left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-asking:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.lengths[model]; n > 0 {
		return n
	}
	return m.unknown
}

// ask gets the list. It outlives the request that it began with.
func (m *Lengths) ask(via embed.Caller) {
	lengths, err := fetchLengths(via)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		// Perhaps it was the caller's key: the next one may do better.
		m.next = time.Now().Add(modelsRetry)
	} else {
		m.lengths, m.next = lengths, time.Now().Add(modelsFresh)
	}
	close(m.asking)
	m.asking = nil
}

func fetchLengths(via embed.Caller) (map[string]int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), modelsTimeout)
	defer cancel()
	reply, err := via.Call(ctx, http.MethodGet, "/models", nil)
	if err != nil {
		return nil, err
	}
	if reply.Status != http.StatusOK {
		return nil, fmt.Errorf("the model router answered GET /models with status %d", reply.Status)
	}
	lengths := map[string]int{}
	gjson.GetBytes(reply.Body, "data").ForEach(func(_, model gjson.Result) bool {
		// OpenRouter; vLLM; Groq; OpenRouter's provider that would answer.
		for _, field := range []string{"context_length", "max_model_len", "context_window", "top_provider.context_length"} {
			if n := model.Get(field).Int(); n > 0 {
				lengths[model.Get("id").String()] = int(n)
				break
			}
		}
		return true
	})
	return lengths, nil
}
