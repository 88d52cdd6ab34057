package gateway

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
	requestsTotal = counterVec("requests_total",
		"Requests, by the plan of their key (none: no good key), part of the API and outcome.",
		"plan", "endpoint", "outcome")
	stageSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "stage_duration_seconds",
		Help: "How long the stages of a request took. router is the time to the first byte of the router's reply.",
		Buckets: []float64{
			.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05,
			.1, .25, .5, 1, 2.5, 5, 10, 30,
		},
	}, []string{"stage"})
	addedTokens = counterVec("added_tokens_total",
		"Tokens that were added to prompts, as estimated, by source: earlier messages, or passages of files.",
		"plan", "source")
	billedTokens = counterVec("billed_tokens_total",
		"Tokens that the router says it billed, of the replies that are read: those with a session or with files.",
		"plan", "kind")
	includedMessages = counterVec("included_messages_total", "Earlier messages that were added to prompts.", "plan")
	includedChunks   = counterVec("included_chunks_total", "Passages of files that were added to prompts.", "plan")
	truncatedPrompts = counterVec("truncated_prompts_total",
		"Prompts from which earlier messages or passages were left out to fit.", "plan")
	cacheLookups = counterVec("cache_lookups_total",
		"What was looked up in caches: service keys, the ends of sessions, token counts of long texts.", "cache", "result")
	storeErrors = counterVec("store_errors_total",
		"Failures of the store, by what came of them: a request refused with 503, or an exchange that was not saved.",
		"effect")
	degradedSearches = counterVec("degraded_searches_total",
		"Searches of files, and of sessions, of which a part failed while the rest answered.", "part")
	estimateRatio = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Name: "estimate_ratio",
		Help:    "The estimated size of a prompt by the size that the router billed: 1 is right, below 1 is too low.",
		Buckets: []float64{.5, .7, .8, .9, .95, .98, 1, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2, 3},
	})
)

const namespace = "backstory"

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

// RegisterMetrics shows the metrics in a registry. They are those of the process:
// every registry shows the same.
func RegisterMetrics(registry prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{
		requestsTotal, stageSeconds, addedTokens, billedTokens, includedMessages, includedChunks,
		truncatedPrompts, cacheLookups, storeErrors, degradedSearches, estimateRatio, factors{},
		journalEvents, journalDepth,
	} {
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
	keyLookups     = newCacheMeter("keys")
	sessionLookups = newCacheMeter("sessions")
	tokenLookups   = newCacheMeter("tokens")
	refusedError   = storeErrors.WithLabelValues("request_refused")
	saveError      = storeErrors.WithLabelValues("exchange_not_saved")
)

// cacheMeter counts what a cache was asked.
type cacheMeter struct{ hits, misses prometheus.Counter }

func newCacheMeter(cache string) cacheMeter {
	return cacheMeter{cacheLookups.WithLabelValues(cache, "hit"), cacheLookups.WithLabelValues(cache, "miss")}
}

func (c cacheMeter) count(hit bool) {
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

// newPlanMeters makes the meters of all plans, and of none.
func newPlanMeters(plans map[string]Plan) map[string]*planMeter {
	meters := map[string]*planMeter{"": newPlanMeter(noPlan)}
	for name := range plans {
		meters[name] = newPlanMeter(name)
	}
	return meters
}

// request counts a request.
func (m *planMeter) request(e apiPart, o outcome) {
	c := m.requests[e][o].Load()
	if c == nil {
		made := requestsTotal.WithLabelValues(m.plan, endpointNames[e], outcomeNames[o])
		c = &made
		m.requests[e][o].Store(c)
	}
	(*c).Inc()
}

// count takes in what was seen of a request.
func (m *planMeter) count(s *Stats) {
	m.request(s.endpoint, s.outcome)
	for at, took := range s.took {
		if took > 0 {
			stageTimes[at].Observe(took.Seconds())
		}
	}
	if s.added {
		m.history.Add(float64(s.historyTokens))
		m.files.Add(float64(s.fileTokens))
		m.messages.Add(float64(s.history))
		m.chunks.Add(float64(s.chunks))
		if s.truncated {
			m.truncated.Inc()
		}
	}
	if s.usage.Prompt > 0 {
		m.prompt.Add(float64(s.usage.Prompt))
		m.reply.Add(float64(s.usage.Completion))
	}
}
