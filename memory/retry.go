package memory

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// retryWindow is how long after a request another one with the same new messages may
// be its retry. The OpenAI SDKs time out after 10 minutes by default.
const retryWindow = 15 * time.Minute

// retryDepth is how many of the newest exchanges are searched for the one that a
// request repeats: others of the session may have ended in between.
const retryDepth = 8

// findRetried returns the index of a recent exchange that had the same request, and
// whose reply the client never got; -1 where there is none.
//
// The newest exchange qualifies if the client says that it retries, or if it left
// early. An older one qualifies only if the client left early. The client may be
// retrying a request that never arrived here; if it had asked the same before, and
// had got the reply, that exchange would be lost. Unless the client says that it
// retries, an older one must be hidden as well: the conversation may refer to
// anything that was shown.
func findRetried(tail []store.Exchange, conv []RequestMessage, carried store.Digest, retried bool, now time.Time) int {
	newest := true
	for i := len(tail) - 1; i >= max(0, len(tail)-retryDepth); i-- {
		e := &tail[i]
		if now.Sub(e.Created) > retryWindow {
			break
		}
		if e.Finish == FinishImported { // it was never a request
			newest = false
			continue
		}
		closed := e.Finish == FinishClientClosed
		undelivered := retried && (closed || newest) || closed && (e.Hidden || newest)
		if undelivered && e.Carried == carried && sameNewMessages(e, conv) {
			return i
		}
		newest = newest && e.Hidden
	}
	return -1
}

// sameNewMessages reports whether the exchange's request ended in the same messages
// as this one. If the digests in Carried are equal, too, the requests were the same.
func sameNewMessages(e *store.Exchange, conv []RequestMessage) bool {
	n := len(e.Messages)
	if n > 0 && role(e.Messages[n-1].JSON) == "assistant" {
		n--
	}
	if n == 0 || n > len(conv) {
		return false
	}
	for i, s := range conv[len(conv)-n:] {
		if e.Messages[i].Digest != s.Digest {
			return false
		}
	}
	return true
}

// What the ID of an exchange begins with whose request was a retry.
const retryPrefix = "retry"

// retryID returns the ID of an exchange whose request its client calls the nth
// retry. The exchange that is saved beside it, on another proxy perhaps, must know
// that. The ID says so because every store keeps it, and versions that know nothing
// of this keep it too.
func retryID(id string, n int) string {
	if n < 1 {
		return id
	}
	return fmt.Sprint(retryPrefix, n, "-", id)
}

// retriesOf undoes retryID: it returns which retry the exchange's request was; 0
// where it was the first try.
func retriesOf(e *store.Exchange) int {
	rest, ok := strings.CutPrefix(e.ID, retryPrefix)
	digits, _, found := strings.Cut(rest, "-")
	if !ok || !found {
		return 0
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 {
		return 0
	}
	return n
}
