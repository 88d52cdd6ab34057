package gateway

import (
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
	"github.com/backstory-proxy/backstory/internal/respond"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// replyWriter adds our headers to whatever reply is written.
type replyWriter struct {
	upstream.Writer
	id          string // of the request
	rate        store.Rate
	counted     bool
	used        int64 // tokens this month, where count has learnt it
	wroteHeader bool
	onOperator  bool // the request went out with the operator's router key
	replaced    bool // the router's body isn't for the client
	status      int
	stats       Stats
	match       match  // of the request, in the routes
	cors        *cors  // nil: nothing is said of origins
	origin      string // of the app in the browser
}

func (g *Gateway) newReplyWriter(w http.ResponseWriter, r *http.Request) *replyWriter {
	id := g.options.RequestID(r.Context())
	return &replyWriter{
		Writer: upstream.Writer{ResponseWriter: w},
		id:     id,
		stats:  stats.Begun(id),
		origin: r.Header.Get("Origin"),
	}
}

// setRate keeps the rate for the reply's headers, and refuses the request
// where it is used up.
func (w *replyWriter) setRate(rate store.Rate) error {
	w.rate, w.counted = rate, true
	if rate.Allowed {
		return nil
	}
	header := w.Header()
	header.Set("Retry-After", strconv.Itoa(int(math.Ceil(rate.RetryAfter.Seconds()))))
	header.Set("Retry-After-Ms", strconv.FormatInt(int64(math.Ceil(float64(rate.RetryAfter)/float64(time.Millisecond))), 10))
	return openai.StatusError(http.StatusTooManyRequests,
		"Rate limit reached: %d requests per minute. Please try again in %s.",
		rate.Limit, rate.RetryAfter.Round(time.Millisecond))
}

// WriteHeader writes the header with ours added. The router's own request id
// stands where it sent one.
func (w *replyWriter) WriteHeader(status int) {
	if w.replaced {
		return
	}
	if w.onOperator && status == http.StatusUnauthorized && !w.wroteHeader {
		w.replace(operatorsKeyRefused)
		return
	}
	if status >= 200 && !w.wroteHeader { // an interim reply isn't the reply yet
		w.wroteHeader, w.status = true, status
		w.stats.Answered()
		header := w.Header()
		if w.cors != nil {
			w.cors.set(header, w.origin)
		}
		if timing := w.stats.ServerTiming(); timing != "" {
			header["Server-Timing"] = append(header["Server-Timing"], timing)
		}
		if theirs := header.Get("X-Request-Id"); theirs == "" {
			header.Set("X-Request-Id", w.id)
		} else {
			w.stats.RouterRequestID = theirs
		}
		if w.counted {
			header.Set("X-Ratelimit-Limit-Requests", strconv.Itoa(w.rate.Limit))
			header.Set("X-Ratelimit-Remaining-Requests", strconv.Itoa(w.rate.Remaining))
			header.Set("X-Ratelimit-Reset-Requests", w.rate.Reset.Round(time.Millisecond).String())
		}
	}
	w.Writer.WriteHeader(status)
}

// replace answers with an error in place of the reply that begins here.
func (w *replyWriter) replace(e *openai.Error) {
	header := w.Header()
	for _, name := range []string{"Content-Encoding", "Trailer", "Www-Authenticate"} {
		header.Del(name)
	}
	writeError(w, e)
	w.replaced = true
}

func (w *replyWriter) Write(p []byte) (int, error) {
	if w.replaced {
		return len(p), nil
	}
	if !w.wroteHeader {
		w.WriteHeader(http.StatusOK)
	}
	return w.Writer.Write(p)
}

// ReadFrom implements io.ReaderFrom, so that the server can hand a file or a
// connection on without copying it.
func (w *replyWriter) ReadFrom(r io.Reader) (int64, error) {
	if w.replaced {
		return io.Copy(io.Discard, r)
	}
	if !w.wroteHeader {
		w.WriteHeader(http.StatusOK)
	}
	return w.Writer.ReadFrom(r)
}

// retryAfter is when a client is told to ask again that got a 503. The two retries
// of OpenAI's SDKs then span a failover, which takes about ten seconds.
const retryAfter = 5 * time.Second

func writeError(w http.ResponseWriter, e *openai.Error) {
	if e.Status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	if e.Final {
		w.Header().Set("X-Should-Retry", "false") // which the OpenAI SDKs obey
	}
	respond.Body(w, e.Status, e.JSON())
}

// Interface guards
var (
	_ http.ResponseWriter = (*replyWriter)(nil)
	_ io.ReaderFrom       = (*replyWriter)(nil)
)
