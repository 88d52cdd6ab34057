package gateway

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/gateway/internal/admission"
	"github.com/backstory-proxy/backstory/gateway/internal/body"
	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/openai"
)

// busyAfter is how long a client is told to wait that was refused because there
// was too much to do. What is let in is done within about a second, and clients
// that were refused at different times come again at different times.
const busyAfter = "1" // seconds

// busyFor is how long after a refusal the load is told to be high.
const busyFor = 5 * time.Second

// enter lets a request in, which ends with shared.load.Leave. Where there is too
// much to do it is refused before it costs anything: its body is not read, and it
// isn't counted.
func (g *Gateway) enter(w *replyWriter, who caller) error {
	last := g.shared.load.Refused()
	reason := g.shared.load.Enter(who.scope.Tenant)
	if reason == admission.Admitted {
		return nil
	}
	if time.Since(last) > busyFor { // more would be told with every request
		g.logger.Warn("there is more to do than can be done: requests are refused", zap.String("reason", string(reason)))
	}
	return w.refuse(reason)
}

// refuse is the error of a request for which there is no room.
func (w *replyWriter) refuse(reason admission.Reason) error {
	overloads.WithLabelValues(string(reason)).Inc()
	w.Header().Set("Retry-After", busyAfter)
	switch reason {
	case admission.OwnRequests:
		return openai.StatusError(http.StatusTooManyRequests,
			"You have too many requests under way at once. The model was not called. Please try again when some of them have ended.")
	case admission.OwnBodies:
		return openai.StatusError(http.StatusTooManyRequests,
			"You are sending too many large requests at once. The model was not called. Please try again when some of them have ended.")
	}
	w.stats.Outcome = stats.OutcomeOverloaded
	return openai.StatusError(http.StatusServiceUnavailable,
		"The service has too much to do at the moment. The model was not called. Please try again.")
}

// read reads the request's body, of at most so many bytes, as far as there is room
// for it in memory.
func (c *call) read(most int64) ([]byte, error) {
	return body.Read(c.w, c.r, most, c.room(c.claim))
}

// room asks for room in memory, before a body grows to a size.
func (c *call) room(claim *admission.Claim) func(int64) error {
	return func(size int64) error {
		switch claim.Grow(size) {
		case nil:
			return nil
		case admission.ErrShare:
			return c.w.refuse(admission.OwnBodies)
		}
		return c.w.refuse(admission.Bodies)
	}
}

// loadState tells whether requests were refused just now.
func (s *Shared) loadState() string {
	if time.Since(s.load.Refused()) < busyFor {
		return partBusy
	}
	return partOK
}

var overloads = func() *prometheus.CounterVec {
	c := stats.CounterVec("refusals_total",
		"Requests that were refused at once because there was too much to do, by what was short; own_requests and own_bodies: the tenant had its share.",
		"reason")
	for _, reason := range admission.Reasons {
		c.WithLabelValues(string(reason))
	}
	return c
}()
