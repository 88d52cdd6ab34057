package memory

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/backstory-proxy/backstory/memory/recall"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/tokens"
)

// Recaller finds the older messages of a session that a request is about. It keeps an
// index of each session in memory, builds it from the session's log on the first
// search, and extends it from request to request. The least recently used indexes are
// evicted.
type Recaller struct {
	log    Log
	limit  int64 // bytes
	pinned func(text string) bool

	loads chan struct{} // holds an element for each session that is being read

	mu       sync.Mutex
	sessions *simplelru.LRU[sessionKey, *sessionIndex]
	size     int64
}

// Log is the part of a store that a Recaller uses.
type Log interface {
	Exchanges(ctx context.Context, scope store.Scope, session string, after int64, limit int, order store.Order) ([]store.Exchange, error)
	ExchangesAt(ctx context.Context, scope store.Scope, session string, seqs []int64) ([]store.Exchange, error)
	store.Vectors
}

type sessionKey struct {
	scope   store.Scope
	session string
}

// sessionIndex is the index of a session. Whoever has sent to busy may use it.
type sessionIndex struct {
	busy         chan struct{}
	index        *recall.Index
	epoch        int64   // of the session's Mark
	entries      []entry // its exchanges, by Seq
	droppedUntil int64   // the Seq up to which exchanges were dropped for lack of room
	size         int64   // its part of Recaller.size

	vectors vectors
}

// entry is an exchange of a session index.
type entry struct {
	seq    int64
	id     uint64            // a hash of Exchange.ID
	texts  uint64            // a bit for each of the first 64 messages: it is in the index
	vector store.SmallVector // without values if unknown
	noText bool              // there is no text to embed
}

const (
	// maxExchanges is how many exchanges of a session are indexed: the newest.
	maxExchanges = 20_000
	// loadPage is how many exchanges a page holds at most: see store.PageBytes.
	loadPage = 500
	// loadTimeout bounds the reading of a session.
	loadTimeout = 30 * time.Second
	// loadsAtOnce is how many sessions are read at once, each with a page in memory. To
	// index takes longer than to read: more would only take turns on a few cores.
	loadsAtOnce = 4
	// sessionDivisor divides the limit: one session may use half of it.
	sessionDivisor = 2
)

// NewRecaller returns a Recaller whose indexes use about limit bytes. pinned reports
// whether a user's text holds an instruction that always holds.
func NewRecaller(log Log, limit int64, pinned func(text string) bool) *Recaller {
	r := &Recaller{log: log, limit: limit, pinned: pinned, loads: make(chan struct{}, loadsAtOnce)}
	r.sessions, _ = simplelru.NewLRU(math.MaxInt, func(_ sessionKey, x *sessionIndex) { r.size -= x.size })
	return r
}

// errStillReading says that an index isn't ready. It will be for a later request.
var errStillReading = errors.New("the session is still being read")

// Search finds messages of a session: by words and, where semantic is set, by
// semantic similarity. g is what the request has gathered of the session. pack
// chooses among the hits; it must not keep the Ranking.
//
// The first search of a session reads the whole session. If that takes longer than
// wait, or ctx ends, Search returns an error and the reading goes on.
func (r *Recaller) Search(ctx context.Context, scope store.Scope, session string, g *store.Gathered, q recall.Query, semantic *SemanticSearch, wait time.Duration, pack func(*recall.Ranking) []recall.Hit) ([]recall.Hit, error) {
	key := sessionKey{scope, session}
	q.Now = q.Now.UTC() // as the times and days of messages are
	until := time.Now().Add(wait)
	var query <-chan store.SmallVector
	if semantic != nil {
		query = semantic.embedQuery(ctx, q.Text) // while the index is made ready
	}
	x, err := r.acquireCurrent(ctx, key, g, wait)
	if err != nil {
		return nil, err
	}
	if semantic != nil {
		caughtUp := r.catchUp(ctx, key, x, semantic, q.Before.Seq, g.Tail)
		r.release(key, x)
		vector, err := semantic.awaitVectors(ctx, query, caughtUp, until)
		if err == nil {
			err = x.acquire(ctx, wait)
		}
		if err != nil {
			return nil, err
		}
		q.Semantic, q.SemanticWeight = x.nearest(semantic, vector, q.Before.Seq), semantic.Weight
	}
	defer r.release(key, x)
	return pack(x.index.Search(q)), nil
}

// acquireCurrent acquires the session's index when it holds all that the request has
// gathered.
func (r *Recaller) acquireCurrent(ctx context.Context, key sessionKey, g *store.Gathered, wait time.Duration) (*sessionIndex, error) {
	until := time.Now().Add(wait)
	x := r.index(key, g.Mark.Epoch)
	if err := x.acquire(ctx, wait); err != nil {
		return nil, err
	}
	if x.differs(g) {
		r.release(key, x)
		r.Forget(key.scope, key.session)
		x = r.index(key, g.Mark.Epoch)
		if err := x.acquire(ctx, wait); err != nil {
			return nil, err
		}
	}
	if x.canExtend(g) {
		if x.extend(g); !r.makeRoom(x) {
			return x, nil
		}
	}
	done, newest := make(chan error, 1), g.Mark.Seq
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		err := r.read(ctx, key, x, newest)
		r.release(key, x)
		done <- err
	}()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			return nil, err
		}
		return x, x.acquire(ctx, wait)
	case <-timer.C:
		return nil, errStillReading
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// acquire waits until nobody else uses the index.
func (x *sessionIndex) acquire(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case x.busy <- struct{}{}:
		return nil
	case <-timer.C:
		return errStillReading
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Forget drops the index of a session.
func (r *Recaller) Forget(scope store.Scope, session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions.Remove(sessionKey{scope, session})
}

// index returns the session's index. It is a new one where there is none, or where
// the session was deleted since.
func (r *Recaller) index(key sessionKey, epoch int64) *sessionIndex {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x, ok := r.sessions.Get(key); ok && x.epoch == epoch {
		return x
	}
	r.sessions.Remove(key)
	x := &sessionIndex{busy: make(chan struct{}, 1), index: recall.New(r.pinned), epoch: epoch}
	r.sessions.Add(key, x)
	return x
}

// release lets others use the index. It evicts indexes where this one has outgrown
// the limit.
func (r *Recaller) release(key sessionKey, x *sessionIndex) {
	size := x.index.Bytes() + int64(cap(x.entries))*int64(unsafe.Sizeof(entry{})) + x.vectors.bytes
	<-x.busy
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.sessions.Peek(key); !ok || known != x {
		return
	}
	r.size += size - x.size
	x.size = size
	for r.size > r.limit && r.sessions.Len() > 1 {
		r.sessions.RemoveOldest()
	}
}

// read extends the index from the log, up to the exchange with the given Seq.
func (r *Recaller) read(ctx context.Context, key sessionKey, x *sessionIndex, until int64) error {
	select {
	case r.loads <- struct{}{}:
		defer func() { <-r.loads }()
	case <-ctx.Done():
		return ctx.Err()
	}
	tally := tokens.O200K().NewTally()
	for {
		after := max(x.newest(), x.droppedUntil, until-maxExchanges)
		if after >= until {
			return nil
		}
		page, err := r.log.Exchanges(ctx, key.scope, key.session, after, loadPage, store.Ascending)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			x.add(&page[i], tally)
			if r.makeRoom(x) {
				break
			}
		}
	}
}

// makeRoom empties an index that has outgrown the limit of a session, and reports
// whether it did. The newer half of the session must then be read again.
func (r *Recaller) makeRoom(x *sessionIndex) bool {
	n := len(x.entries)
	if n == 0 || x.index.Bytes() <= r.limit/sessionDivisor {
		return false
	}
	x.droppedUntil = x.entries[(n-1)/2].seq
	x.index, x.entries, x.vectors.bytes = recall.New(r.pinned), nil, 0
	return true
}

func (x *sessionIndex) newest() int64 {
	if n := len(x.entries); n > 0 {
		return x.entries[n-1].seq
	}
	return 0
}

// at returns the position of the exchange in entries, or where it would be.
func (x *sessionIndex) at(seq int64) (i int, found bool) {
	return slices.BinarySearchFunc(x.entries, seq, func(e entry, seq int64) int { return cmp.Compare(e.seq, seq) })
}

// differs reports whether the session isn't the one that was indexed: one that
// expired may have begun anew under the same name.
func (x *sessionIndex) differs(g *store.Gathered) bool {
	return slices.ContainsFunc(g.Tail, func(e store.Exchange) bool {
		i, found := x.at(e.Seq)
		return found && x.entries[i].id != idHash(e.ID)
	})
}

var idSeed = maphash.MakeSeed()

func idHash(id string) uint64 { return maphash.String(idSeed, id) }

// canExtend reports whether g has all that the index lacks.
func (x *sessionIndex) canExtend(g *store.Gathered) bool {
	if x.newest() >= g.Mark.Seq {
		return true
	}
	return len(x.entries) > 0 && len(g.Tail) > 0 && g.Tail[0].Seq <= x.newest()
}

// extend adds the newest exchanges, and removes those that others replaced.
func (x *sessionIndex) extend(g *store.Gathered) {
	if len(g.Tail) == 0 {
		return
	}
	from, _ := x.at(g.Tail[0].Seq)
	for i := len(x.entries) - 1; i >= from; i-- {
		seq := x.entries[i].seq
		_, found := slices.BinarySearchFunc(g.Tail, seq, func(e store.Exchange, seq int64) int { return cmp.Compare(e.Seq, seq) })
		if seq <= g.Mark.Seq && !found {
			x.index.Remove(seq)
			x.vectors.bytes -= int64(len(x.entries[i].vector.Values))
			x.entries = slices.Delete(x.entries, i, i+1)
		}
	}
	tally := tokens.O200K().NewTally()
	for i := range g.Tail {
		if g.Tail[i].Seq > x.newest() {
			x.add(&g.Tail[i], tally)
		}
	}
}

// add indexes the text of the user and the assistant.
func (x *sessionIndex) add(e *store.Exchange, tally *tokens.Tally) {
	x.entries = append(x.entries, entry{seq: e.Seq, id: idHash(e.ID)})
	if e.Hidden {
		return
	}
	added := &x.entries[len(x.entries)-1]
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
		added.texts |= 1 << i // no bit beyond the 64th message
		n := e.Messages[i].Tokens
		if m.Content().IsArray() { // it may hold more than text
			n = tally.Count(text)
		}
		messages = append(messages, recall.Message{
			Seq: e.Seq, N: i, Role: m.Role, Name: m.Get("name").Str, Text: text, Time: e.SaidAt(i).UTC(), Tokens: n,
		})
	}
	x.index.Add(messages...)
}
