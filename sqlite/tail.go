package sqlite

import (
	"database/sql"
	"slices"
	"strings"
	"unsafe"

	"github.com/backstory-proxy/backstory/store"
)

// extra is how many exchanges come with a tail that is long enough.
const extra = 2

// tail is the end of a session as it is kept in memory. It is a value: who has
// one may read it while others make new ones of it, since nothing that it shows
// is written again.
type tail struct {
	seq       int64            // of the newest exchange
	tokens    int64            // ever appended
	exchanges []store.Exchange // oldest first
	whole     bool             // no exchange comes before them
	expires   sql.NullInt64    // when the session's time is up, in ms
}

// reach counts, from the newest exchange backwards, how much a GatherRequest
// asks for.
type reach struct {
	tokens, messages int   // still wanted
	more             int   // exchanges to come after that
	bytes            int64 // that there is room for
}

func newReach(req *store.GatherRequest) reach {
	return reach{req.Tokens, req.Messages, extra, store.TailBytes}
}

// take tells whether anything is wanted beyond e, which is.
func (r *reach) take(e *store.Exchange) bool {
	if r.tokens <= 0 && r.messages <= 0 {
		r.more--
	}
	r.tokens -= e.Tokens()
	r.messages -= len(e.Messages)
	r.bytes -= e.Bytes()
	return r.more > 0 && r.bytes > 0
}

// last returns the exchanges that the request asks for, if the tail goes back
// that far.
func (t *tail) last(req *store.GatherRequest) (exchanges []store.Exchange, ok bool) {
	r := newReach(req)
	for i := len(t.exchanges) - 1; i >= 0; i-- {
		if !r.take(&t.exchanges[i]) {
			return t.exchanges[i:], true
		}
	}
	return t.exchanges, t.whole
}

// append returns the tail with an exchange more, and without the one whose Seq
// is replaced. Of two that come of one tail, only one may be kept.
func (t tail) append(e store.Exchange, replaces int64) tail {
	for i := range t.exchanges {
		if t.exchanges[i].Seq == replaces {
			t.exchanges = slices.Concat(t.exchanges[:i], t.exchanges[i+1:])
			break
		}
	}
	// In place where there is room: it is beyond what anyone else sees.
	t.exchanges = append(t.exchanges, e)
	t.seq = e.Seq
	t.tokens += int64(e.Tokens())
	return t
}

// size is about how much memory the tail takes up.
func (t *tail) size() int {
	n := cap(t.exchanges) * int(unsafe.Sizeof(store.Exchange{}))
	for i := range t.exchanges {
		e := &t.exchanges[i]
		n += len(e.ID) + len(e.Parent) + len(e.Model) + len(e.Finish)
		n += len(e.Messages) * int(unsafe.Sizeof(store.Message{}))
		for j := range e.Messages {
			n += len(e.Messages[j].JSON)
		}
		for j := range e.Passages {
			n += int(unsafe.Sizeof(store.ChunkRef{})) + len(e.Passages[j].FileID)
		}
		n += len(e.Recalled) * int(unsafe.Sizeof(store.MessageRef{}))
	}
	return n
}

// copyExchanges copies what a caller may change, in a few large pieces: all but
// the JSON of the messages.
func copyExchanges(exchanges []store.Exchange) []store.Exchange {
	if len(exchanges) == 0 {
		return nil
	}
	var messages, passages, recalled int
	for i := range exchanges {
		e := &exchanges[i]
		messages += len(e.Messages)
		passages += len(e.Passages)
		recalled += len(e.Recalled)
	}
	all := slices.Clone(exchanges)
	allMessages := make([]store.Message, 0, messages)
	allPassages := make([]store.ChunkRef, 0, passages)
	allRecalled := make([]store.MessageRef, 0, recalled)
	for i := range all {
		e := &all[i]
		start := len(allMessages)
		allMessages = append(allMessages, e.Messages...)
		e.Messages = slices.Clip(allMessages[start:])
		if e.Passages != nil {
			start := len(allPassages)
			allPassages = append(allPassages, e.Passages...)
			e.Passages = slices.Clip(allPassages[start:])
		}
		if e.Recalled != nil {
			start := len(allRecalled)
			allRecalled = append(allRecalled, e.Recalled...)
			e.Recalled = slices.Clip(allRecalled[start:])
		}
	}
	return all
}

// keepsake is an exchange as the file will give it back, apart from the
// caller's memory: its strings may be parts of large bodies.
func keepsake(e *store.Exchange, seq, offset int64, messages []store.Message) store.Exchange {
	kept := *e
	kept.ID, kept.Parent = strings.Clone(e.ID), strings.Clone(e.Parent)
	kept.Model, kept.Finish = strings.Clone(e.Model), strings.Clone(e.Finish)
	kept.Seq, kept.Offset = seq, offset
	kept.Created = fromMilli(e.Created.UnixMilli())
	kept.Messages = messages
	kept.Passages, kept.Recalled = nil, slices.Clone(e.Recalled)
	for _, p := range e.Passages {
		kept.Passages = append(kept.Passages, store.ChunkRef{FileID: strings.Clone(p.FileID), N: p.N})
	}
	return kept
}
