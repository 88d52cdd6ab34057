package memory

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/backstory-proxy/backstory/memory/recall"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/tokens"
)

// Recaller finds the older messages of a session that a request is about. For
// each session that is asked about it keeps an index in memory, made from the
// session's log when it is first needed and carried on from request to request.
// The least recently used ones make way.
type Recaller struct {
	log   Log
	limit int64 // bytes

	mu       sync.Mutex
	sessions *simplelru.LRU[sessionName, *indexed]
	size     int64
}

// Log is what a Recaller reads of a store.
type Log interface {
	Exchanges(ctx context.Context, tenant, session string, after int64, limit int, order store.Order) ([]store.Exchange, error)
}

type sessionName struct{ tenant, session string }

// indexed is the index of a session. Whoever has put something into busy may
// use it.
type indexed struct {
	busy  chan struct{}
	index *recall.Index
	epoch int64   // of the session's Mark
	seqs  []int64 // the exchanges in it, rising
	size  int64   // as it is counted in Recaller.size
}

const (
	// longest is how many exchanges of a session are looked at, the newest.
	longest = 20_000
	// loadPage is how many exchanges are read at a time, loadTimeout how long
	// the reading of a session may take.
	loadPage    = 500
	loadTimeout = 30 * time.Second
)

// NewRecaller returns one whose indexes take about the given number of bytes.
func NewRecaller(log Log, limit int64) *Recaller {
	r := &Recaller{log: log, limit: limit}
	r.sessions, _ = simplelru.NewLRU(math.MaxInt, func(_ sessionName, x *indexed) { r.size -= x.size })
	return r
}

// errStillReading says that an index isn't ready. It will be for a later
// request.
var errStillReading = errors.New("the session is still being read")

// Search finds messages of a session of which a request has gathered the end.
// Where the session was not asked about before it is read whole: that goes on
// when wait is over, or ctx ends, and Search returns an error.
func (r *Recaller) Search(ctx context.Context, tenant, session string, g *store.Gathered, q recall.Query, wait time.Duration) ([]recall.Hit, error) {
	name := sessionName{tenant, session}
	x := r.of(name, g.Mark.Epoch)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case x.busy <- struct{}{}:
	case <-timer.C:
		return nil, errStillReading
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if x.follows(g) {
		defer r.release(name, x)
		x.carryOn(g)
		return x.index.Search(q), nil
	}
	var hits []recall.Hit
	done := make(chan error, 1)
	go func() {
		defer r.release(name, x)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		err := r.read(ctx, name, x, g.Mark.Seq)
		if err == nil {
			hits = x.index.Search(q)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return hits, err
	case <-timer.C:
		return nil, errStillReading
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Forget drops what is known of a session.
func (r *Recaller) Forget(tenant, session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions.Remove(sessionName{tenant, session})
}

// of returns the session's index; an empty one where it isn't known, or was
// deleted since.
func (r *Recaller) of(name sessionName, epoch int64) *indexed {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x, ok := r.sessions.Get(name); ok && x.epoch == epoch {
		return x
	}
	r.sessions.Remove(name)
	x := &indexed{busy: make(chan struct{}, 1), index: recall.New(), epoch: epoch}
	r.sessions.Add(name, x)
	return x
}

// release lets others use the index, and makes room for what has been added.
func (r *Recaller) release(name sessionName, x *indexed) {
	size := x.index.Bytes() + int64(8*cap(x.seqs))
	<-x.busy
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.sessions.Peek(name); !ok || known != x {
		return
	}
	r.size += size - x.size
	x.size = size
	for r.size > r.limit && r.sessions.Len() > 1 {
		r.sessions.RemoveOldest()
	}
}

// read adds what the log holds beyond the index, up to the exchange with the
// given Seq.
func (r *Recaller) read(ctx context.Context, name sessionName, x *indexed, until int64) error {
	for after := max(x.newest(), until-longest); after < until; after = x.newest() {
		page, err := r.log.Exchanges(ctx, name.tenant, name.session, after, loadPage, store.Ascending)
		if err != nil {
			return err
		}
		for i := range page {
			x.add(&page[i])
		}
		if len(page) < loadPage {
			break
		}
	}
	return nil
}

func (x *indexed) newest() int64 {
	if n := len(x.seqs); n > 0 {
		return x.seqs[n-1]
	}
	return 0
}

// follows reports whether what the index doesn't hold yet has been gathered.
func (x *indexed) follows(g *store.Gathered) bool {
	if x.newest() >= g.Mark.Seq {
		return true
	}
	return len(x.seqs) > 0 && len(g.Tail) > 0 && g.Tail[0].Seq <= x.newest()
}

// carryOn adds the newest exchanges, and removes those that others replaced.
func (x *indexed) carryOn(g *store.Gathered) {
	if len(g.Tail) == 0 {
		return
	}
	from, _ := slices.BinarySearch(x.seqs, g.Tail[0].Seq)
	for i := len(x.seqs) - 1; i >= from; i-- {
		seq := x.seqs[i]
		if seq <= g.Mark.Seq && !slices.ContainsFunc(g.Tail, func(e store.Exchange) bool { return e.Seq == seq }) {
			x.index.Remove(seq)
			x.seqs = slices.Delete(x.seqs, i, i+1)
		}
	}
	for i := range g.Tail {
		if g.Tail[i].Seq > x.newest() {
			x.add(&g.Tail[i])
		}
	}
}

// add adds what the user and the assistant said in words.
func (x *indexed) add(e *store.Exchange) {
	x.seqs = append(x.seqs, e.Seq)
	if e.Hidden {
		return
	}
	messages := make([]recall.Message, 0, len(e.Messages))
	for i := range e.Messages {
		m := openai.ParseMessage(e.Messages[i].JSON)
		if m.Role != "user" && m.Role != "assistant" {
			continue
		}
		text := m.Text()
		if text == "" {
			continue
		}
		n := e.Messages[i].Tokens
		if m.Content().IsArray() { // it may hold more than words
			n = tokens.O200K().Count(text)
		}
		messages = append(messages, recall.Message{
			Seq: e.Seq, N: i, Role: m.Role, Name: m.Get("name").Str, Text: text, Time: e.SaidAt(i), Tokens: n,
		})
	}
	x.index.Add(messages...)
}
