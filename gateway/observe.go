package gateway

import (
	"errors"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/openai"
)

// Stats are the counts of one request.
type Stats = stats.Request

// RegisterMetrics shows the metrics in a registry. They are those of the process:
// every registry shows the same.
func RegisterMetrics(registry prometheus.Registerer) error {
	return stats.Register(registry, factors{}, overloads, journalEvents, journalDepth)
}

// observe tells of a request whose reply has ended: to the metrics, the access
// log, and the trace where there is one.
func (g *Gateway) observe(w *replyWriter, r *http.Request) {
	s := &w.stats
	s.Conclude(w.status, r.Context())
	g.router.saw(s)
	g.meters.Count(s)
	if g.options.Observe != nil {
		g.options.Observe(r, s)
	}
	s.Trace(r.Context())
}

// outcomeOf says how a request ended that we answered with an error.
func outcomeOf(err error, reply *openai.Error) stats.Outcome {
	var (
		down   *unavailable
		router *RouterError
	)
	switch {
	case reply.Status == stats.StatusClientClosed:
		return stats.OutcomeClientClosed
	case reply.Status == http.StatusUnauthorized:
		return stats.OutcomeUnauthorized
	case reply.Status == http.StatusTooManyRequests && reply.Code == "insufficient_quota":
		return stats.OutcomeQuota
	case reply.Status == http.StatusTooManyRequests:
		return stats.OutcomeRateLimited
	case reply.Status < 500:
		return stats.OutcomeInvalid
	case errors.As(err, &down):
		return stats.OutcomeStoreDown
	case errors.As(err, &router) && router.Status > 0:
		return stats.OutcomeUnreachable
	case reply.Status == http.StatusBadGateway:
		return stats.OutcomeRouterError
	}
	return stats.OutcomeError
}

// cause is the log's field for an error. What a client is told of its own
// request may quote from it, and the path may name a session: the log is told
// only which parameter it is about.
func cause(err error, reply *openai.Error) zap.Field {
	if reply.Status >= 500 || reply.Status == stats.StatusClientClosed {
		return zap.Error(err)
	}
	return zap.String("param", stats.Cut(reply.Param))
}

// factors shows the margins of all open stores' models.
type factors struct{}

var factorDesc = prometheus.NewDesc(stats.Namespace+"_estimate_factor",
	"By how much counts of tokens are raised for a model, as learnt from what the router billed. The models used last.",
	[]string{"model"}, nil)

// Describe implements prometheus.Collector.
func (factors) Describe(to chan<- *prometheus.Desc) { to <- factorDesc }

// Collect implements prometheus.Collector.
func (factors) Collect(to chan<- prometheus.Metric) {
	shown := map[string]float64{} // two stores may be open during a reload
	opened.Range(func(s, _ any) bool {
		s.(*Shared).calibration.Latest(func(model string, margin float64) {
			shown[strings.ToValidUTF8(model, "\uFFFD")] = margin
		})
		return true
	})
	for model, margin := range shown {
		to <- prometheus.MustNewConstMetric(factorDesc, prometheus.GaugeValue, margin, model)
	}
}

// Interface guard
var _ prometheus.Collector = factors{}
