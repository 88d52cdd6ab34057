package embed

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	// maxTries is how often a request is made in all; without a Retry-After
	// the last one comes after about 16 s.
	maxTries = 6
	// firstPause doubles from one try to the next.
	firstPause = 500 * time.Millisecond
	// longestPause is the longest that a router may ask for: what it refuses
	// for longer is an allowance that is used up.
	longestPause = time.Minute
)

// patiently makes a call until the router answers with something else than 429
// or a fault of its own, or can be reached. Where ctx has a deadline, somebody
// waits for the answer, who is better served by none: there is one try then.
func patiently(ctx context.Context, call func() (Reply, error)) (Reply, error) {
	_, hurried := ctx.Deadline()
	for try := 1; ; try++ {
		reply, err := call()
		if ctx.Err() != nil || hurried || try == maxTries || err == nil && !passes(reply.Status) {
			return reply, err
		}
		pause, ok := pauseAfter(reply.Header, try)
		if !ok {
			return reply, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Reply{}, ctx.Err()
		}
	}
}

// passes reports whether a refusal may be over soon.
func passes(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529: // overloaded
		return true
	}
	return false
}

// pauseAfter is how long to wait after a try: what the router asks for, else
// twice as long each time, and a little more or less, so that requests refused
// together don't come back together. false: longer than is worth it.
func pauseAfter(h http.Header, try int) (time.Duration, bool) {
	text := h.Get("Retry-After")
	if at, err := http.ParseTime(text); err == nil {
		pause := time.Until(at)
		return max(0, pause), pause <= longestPause
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if !(seconds <= longestPause.Seconds()) { // not a number, perhaps
			return 0, false
		}
		return time.Duration(max(0, seconds) * float64(time.Second)), true
	}
	pause := firstPause << (try - 1)
	return pause - pause/8 + rand.N(pause/4), true
}
