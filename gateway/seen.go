package gateway

import (
	"strconv"
	"time"

	"github.com/backstory-proxy/backstory/openai"
)

// stage is a part of a request's way.
type stage int

const (
	stageAuth     stage = iota // the keys are checked
	stageGather                // the rate is counted, memory is read
	stageSearch                // files are searched
	stageRecall                // the session is searched, at the same time
	stageAssemble              // the prompt is put together
	stageRouter                // until the first byte of the router's reply
	stageSave                  // the exchange is saved
	stages
)

var stageNames = [stages]string{"auth", "gather", "search", "recall", "assemble", "router", "save"}

// apiPart is the part of the API that a request is for.
type apiPart int

const (
	endpointOther apiPart = iota // what is passed to the router
	endpointChat
	endpointPreview
	endpointFiles
	endpointSessions
	endpoints
)

var endpointNames = [endpoints]string{"other", "chat", "preview", "files", "sessions"}

// outcome is how a request ended.
type outcome int

const (
	outcomeOK           outcome = iota
	outcomeInvalid              // we refused it: 400, 404, 413, 415
	outcomeUnauthorized         // one of the keys is missing or wrong
	outcomeRateLimited          // 429 of ours: over the rate
	outcomeQuota                // 429 of ours: over the allowance
	outcomeRouterError          // the router answered with an error, or broke off
	outcomeUnreachable          // the router can't be reached, or took too long
	outcomeStoreDown            // the store can't be reached
	outcomeClientClosed         // the client left before the end
	outcomeError                // a fault of ours
	outcomes
)

var outcomeNames = [outcomes]string{
	"ok", "invalid", "unauthorized", "rate_limited", "quota_exceeded", "router_error",
	"router_unreachable", "store_unavailable", "client_closed", "error",
}

// Stats are the counts of one request. Metrics, the access log, the
// Server-Timing header and spans are made from them. They are written by one
// goroutine at a time; while the reply is read, under the reply's lock.
type Stats struct {
	RequestID       string
	RouterRequestID string // the router's own, where it told one

	start time.Time
	began [stages]time.Duration // since start
	took  [stages]time.Duration // 0: the request did not come by

	endpoint apiPart
	outcome  outcome
	ended    bool // the handler returned; otherwise it panicked
	whole    bool // the reply was seen to its end

	tenant, plan   string
	session, model string

	added                     bool // a prompt was assembled, of which the next ones tell
	tokens                    int  // of all of it, as estimated
	history, chunks           int  // earlier messages and passages in it
	historyTokens, fileTokens int  // theirs
	truncated                 bool
	usage                     openai.Usage // as the router tells it; zero where it doesn't
}

func (s *Stats) begin(at stage) { s.began[at] = time.Since(s.start) }

// end ends a stage that has begun, and returns when that was.
func (s *Stats) end(at stage) (now time.Duration) {
	now = time.Since(s.start)
	s.took[at] = max(1, now-s.began[at])
	return now
}

// answered ends the wait for the router, once, where there was one.
func (s *Stats) answered() {
	if s.began[stageRouter] > 0 && s.took[stageRouter] == 0 {
		s.end(stageRouter)
	}
}

// serverTiming is the value of the Server-Timing header: what is known by the
// time that the reply begins, in milliseconds.
func (s *Stats) serverTiming() string {
	b := make([]byte, 0, 128)
	for at, took := range s.took {
		if took == 0 {
			continue
		}
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = append(b, stageNames[at]...)
		b = append(b, ";dur="...)
		b = appendMillis(b, took)
	}
	return string(b)
}

// appendMillis writes milliseconds with three decimals.
func appendMillis(b []byte, d time.Duration) []byte {
	us := d.Microseconds()
	b = strconv.AppendInt(b, us/1000, 10)
	return append(b, '.', byte('0'+us/100%10), byte('0'+us/10%10), byte('0'+us%10))
}
