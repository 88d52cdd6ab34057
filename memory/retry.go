package memory

import (
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// retryWindow is how long a request with the same new messages may be a retry.
// The SDKs time out after 10 minutes by default.
const retryWindow = 15 * time.Minute

// recent is among how many of the newest exchanges a repeated one is looked
// for: others of the session may have ended in between.
const recent = 8

// repeated is the index of the exchange whose request was this one, a short
// while ago, and whose reply the client never got; -1 where there is none.
//
// The newest exchange is one if the client says that it retries, or had left
// early. An older one has to have been left early, for a client may retry what
// never got here: had it asked the same before, and got its reply, that would
// be lost. And without the client's word, an older one must have shown
// nothing: what has been shown may have been talked about since.
func repeated(tail []store.Exchange, said []Said, carried store.Digest, retried bool, now time.Time) int {
	newest := true
	for i := len(tail) - 1; i >= max(0, len(tail)-recent); i-- {
		e := &tail[i]
		if now.Sub(e.Created) > retryWindow {
			break
		}
		if e.Finish == FinishImported { // no request of ours
			newest = false
			continue
		}
		left := e.Finish == FinishClientClosed
		unheard := retried && (left || newest) || left && (e.Hidden || newest)
		if unheard && e.Carried == carried && asks(e, said) {
			return i
		}
		newest = newest && e.Hidden
	}
	return -1
}

// asks reports whether the exchange's request ended in the same messages as
// this one: together with Carried that says that it was the same.
func asks(e *store.Exchange, said []Said) bool {
	n := len(e.Messages)
	if n > 0 && role(e.Messages[n-1].JSON) == "assistant" {
		n--
	}
	if n == 0 || n > len(said) {
		return false
	}
	for i, s := range said[len(said)-n:] {
		if e.Messages[i].Digest != s.Digest {
			return false
		}
	}
	return true
}
