package stats

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// The metrics. They belong to the process: each configuration registers them
// with its own registry, so that they go on counting over reloads. Labels come
// from the configuration or from the lists in this package, never from what a
// client sends.
var (
	requestsTotal = CounterVec("requests_total",
		"Requests, by the plan of their key (none: no good key), part of the API and outcome.",
		"plan", "endpoint", "outcome")
	stageSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: Namespace, Name: "stage_duration_seconds",
		Help: "How long the stages of a request took. router is the time to the first byte of the router's reply.",
		Buckets: []float64{
			.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05,
			.1, .25, .5, 1, 2.5, 5, 10, 30,
		},
	}, []string{"stage"})
	addedTokens = CounterVec("added_tokens_total",
		"Tokens that were added to prompts, as estimated, by source: earlier messages, or chunks of files.",
		"plan", "source")
	billedTokens = CounterVec("billed_tokens_total",
		"Tokens that the router says it billed, of the replies that are read: those with a session or with files.",
		"plan", "kind")
	includedMessages = CounterVec("included_messages_total", "Earlier messages that were added to prompts.", "plan")
	includedChunks   = CounterVec("included_chunks_total", "Chunks of files that were added to prompts.", "plan")
	truncatedPrompts = CounterVec("truncated_prompts_total",
		"Prompts from which earlier messages or chunks were left out to fit.", "plan")
	cacheLookups = CounterVec("cache_lookups_total",
		"What was looked up in caches: service keys, the ends of sessions, token counts of long texts.", "cache", "result")
	storeErrors = CounterVec("store_errors_total",
		"Failures of the store, by what came of them: a request refused with 503, or an exchange that was not saved.",
		"effect")
	DegradedSearches = CounterVec("degraded_searches_total",
		"Searches of files, and of sessions, of which a part failed while the rest answered.", "part")
	EstimateRatio = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: Namespace, Name: "estimate_ratio",
		Help:    "The estimated size of a prompt by the size that the router billed: 1 is right, below 1 is too low.",
		Buckets: []float64{.5, .7, .8, .9, .95, .98, 1, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2, 3},
	})
)

const Namespace = "backstory"

// CounterVec makes a metric.
func CounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: Namespace, Name: name, Help: help}, labels)
}

// Register shows the metrics, and more, in a registry. They are those of the process:
// every registry shows the same.
func Register(registry prometheus.Registerer, more ...prometheus.Collector) error {
	for _, c := range append([]prometheus.Collector{
		requestsTotal, stageSeconds, addedTokens, billedTokens, includedMessages, includedChunks,
		truncatedPrompts, cacheLookups, storeErrors, DegradedSearches, EstimateRatio,
	}, more...) {
		var twice prometheus.AlreadyRegisteredError
		if err := registry.Register(c); err != nil && !errors.As(err, &twice) {
			return err
		}
	}
	return nil
}

// The children of the metrics without a plan, looked up once.
var (
	stageTimes = func() (all [stages]prometheus.Observer) {
		for at, name := range stageNames {
			all[at] = stageSeconds.WithLabelValues(name)
		}
		return all
	}()
	KeyLookups     = newCacheMeter("keys")
	SessionLookups = newCacheMeter("sessions")
	TokenLookups   = newCacheMeter("tokens")
	RefusedError   = storeErrors.WithLabelValues("request_refused")
	SaveError      = storeErrors.WithLabelValues("exchange_not_saved")
)

// CacheMeter counts what a cache was asked.
type CacheMeter struct{ hits, misses prometheus.Counter }

func newCacheMeter(cache string) CacheMeter {
	return CacheMeter{cacheLookups.WithLabelValues(cache, "hit"), cacheLookups.WithLabelValues(cache, "miss")}
}

// Count counts a lookup.
func (c CacheMeter) Count(hit bool) {
	if hit {
		c.hits.Inc()
		return
	}
	c.misses.Inc()
}

// planMeter holds the children of a plan's metrics.
type planMeter struct {
	plan             string
	requests         [endpoints][outcomes]atomic.Pointer[prometheus.Counter] // made when needed: most never are
	history, files   prometheus.Counter                                      // tokens added
	prompt, reply    prometheus.Counter                                      // tokens billed
	messages, chunks prometheus.Counter
	truncated        prometheus.Counter
}

// noPlan labels requests without a good key.
const noPlan = "none"

func newPlanMeter(plan string) *planMeter {
	return &planMeter{
		plan:    plan,
		history: addedTokens.WithLabelValues(plan, "history"), files: addedTokens.WithLabelValues(plan, "files"),
		prompt: billedTokens.WithLabelValues(plan, "prompt"), reply: billedTokens.WithLabelValues(plan, "completion"),
		messages: includedMessages.WithLabelValues(plan), chunks: includedChunks.WithLabelValues(plan),
		truncated: truncatedPrompts.WithLabelValues(plan),
	}
}

// Meters are the metrics by plan.
type Meters map[string]*planMeter

// NewMeters makes the meters of plans, and of none.
func NewMeters(plans []string) Meters {
	m := Meters{"": newPlanMeter(noPlan)}
	for _, name := range plans {
		m[name] = newPlanMeter(name)
	}
	return m
}

// Count takes in a request that has ended.
func (m Meters) Count(s *Request) {
	meter := m[s.Plan]
	if meter == nil { // a plan that the store names and the configuration doesn't
		meter = m[""]
	}
	meter.count(s)
}

// request counts a request.
func (m *planMeter) request(e Endpoint, o Outcome) {
	c := m.requests[e][o].Load()
	if c == nil {
		made := requestsTotal.WithLabelValues(m.plan, endpointNames[e], outcomeNames[o])
		c = &made
		m.requests[e][o].Store(c)
	}
	(*c).Inc()
}

// count takes in a request.
func (m *planMeter) count(s *Request) {
	m.request(s.Endpoint, s.Outcome)
	for at, took := range s.took {
		if took > 0 {
			stageTimes[at].Observe(took.Seconds())
		}
	}
	if p := &s.Prompt; p.Tokens > 0 {
		m.history.Add(float64(p.HistoryTokens))
		m.files.Add(float64(p.ChunkTokens))
		m.messages.Add(float64(p.Messages))
		m.chunks.Add(float64(p.Chunks))
		if p.Truncated {
			m.truncated.Inc()
		}
	}
	if s.Usage.Prompt > 0 {
		m.prompt.Add(float64(s.Usage.Prompt))
		m.reply.Add(float64(s.Usage.Completion))
	}
}
