// Package stats holds the counts of requests, and makes metrics, fields of the
// access log, the Server-Timing header and spans of them.
package stats

import (
	"strconv"
	"time"

	"github.com/backstory-proxy/backstory/openai"
)

// Stage is a part of a request's way.
type Stage int

const (
	Auth     Stage = iota // the keys are checked
	Gather                // the rate is counted, memory is read
	Search                // files are searched
	Recall                // the session is searched, at the same time
	Assemble              // the prompt is put together
	Router                // until the first byte of the router's reply
	Save                  // the exchange is saved
	stages
)

var stageNames = [stages]string{"auth", "gather", "search", "recall", "assemble", "router", "save"}

// Endpoint is the part of the API that a request is for.
type Endpoint int

const (
	EndpointOther Endpoint = iota // what is passed to the router
	EndpointChat
	EndpointPreview
	EndpointFiles
	EndpointSessions
	endpoints
)

var endpointNames = [endpoints]string{"other", "chat", "preview", "files", "sessions"}

// Outcome is how a request ended.
type Outcome int

const (
	OutcomeOK           Outcome = iota
	OutcomeInvalid              // we refused it: 400, 404, 413, 415
	OutcomeUnauthorized         // one of the keys is missing or wrong
	OutcomeRateLimited          // 429 of ours: over the rate
	OutcomeQuota                // 429 of ours: over the allowance
	OutcomeRouterError          // the router answered with an error, or broke off
	OutcomeUnreachable          // the router can't be reached, or took too long
	OutcomeStoreDown            // the store can't be reached
	OutcomeOverloaded           // there was too much to do
	OutcomeClientClosed         // the client left before the end
	OutcomeError                // a fault of ours
	outcomes
)

var outcomeNames = [outcomes]string{
	"ok", "invalid", "unauthorized", "rate_limited", "quota_exceeded", "router_error",
	"router_unreachable", "store_unavailable", "overloaded", "client_closed", "error",
}

// Request holds the counts of one request. It is written by one goroutine at a
// time; while the reply is read, under the reply's lock.
type Request struct {
	RequestID       string
	RouterRequestID string // the router's own, where it told one

	Endpoint Endpoint
	Outcome  Outcome
	Ended    bool // the handler returned; otherwise it panicked
	Whole    bool // the reply was read to its end

	Tenant, Plan   string
	Session, Model string

	Prompt Prompt       // zero: none was assembled
	Usage  openai.Usage // as the router tells it; zero where it doesn't

	start time.Time
	began [stages]time.Duration // since start
	took  [stages]time.Duration // 0: the request did not come by
}

// Prompt is what was put into a prompt.
type Prompt struct {
	Tokens                     int // of all of it, as estimated
	Messages, Chunks           int // earlier messages, quoted ones among them, and chunks of files
	HistoryTokens, ChunkTokens int // theirs
	Truncated                  bool
}

// Begun returns the counts of a request that begins now.
func Begun(requestID string) Request { return Request{RequestID: requestID, start: time.Now()} }

// Begin begins a stage.
func (s *Request) Begin(at Stage) { s.began[at] = time.Since(s.start) }

// End ends a stage that has begun, and returns when that was.
func (s *Request) End(at Stage) (now time.Duration) {
	now = time.Since(s.start)
	s.took[at] = max(1, now-s.began[at])
	return now
}

// Answered ends the wait for the router, once, where there was one.
func (s *Request) Answered() {
	if s.began[Router] > 0 && s.took[Router] == 0 {
		s.End(Router)
	}
}

// ServerTiming is the value of the Server-Timing header: what is known by the
// time that the reply begins, in milliseconds.
func (s *Request) ServerTiming() string {
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

// Took is how long a stage took; 0: the request did not come by.
func (s *Request) Took(at Stage) time.Duration { return s.took[at] }

// Assembled ends the assembling of a prompt, which began at a time since the
// request's start. Searches, which others go on beside, don't count.
func (s *Request) Assembled(began time.Duration, p Prompt) {
	s.began[Assemble] = began
	s.End(Assemble)
	s.took[Assemble] = max(1, s.took[Assemble]-max(s.took[Search], s.took[Recall]))
	s.Prompt = p
}
