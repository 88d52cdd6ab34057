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

// Recaller finds the older messages of a session that a request is about. For
// each session that is asked about it keeps an index in memory, made from the
// session's log when it is first needed and carried on from request to request.
// The least recently used ones make way.
type Recaller struct {
	log    Log
	limit  int64 // bytes
	pinned func(text string) bool

	mu       sync.Mutex
	sessions *simplelru.LRU[sessionName, *indexed]
	size     int64
}

// Log is what a Recaller reads of a store.
type Log interface {
	Exchanges(ctx context.Context, scope store.Scope, session string, after int64, limit int, order store.Order) ([]store.Exchange, error)
	ExchangesAt(ctx context.Context, scope store.Scope, session string, seqs []int64) ([]store.Exchange, error)
	store.Vectors
}

type sessionName struct {
	scope   store.Scope
	session string
}

// indexed is the index of a session. Whoever has put something into busy may
// use it.
type indexed struct {
	busy    chan struct{}
	index   *recall.Index
	epoch   int64   // of the session's Mark
	entries []entry // the exchanges in it, in their order
	shed    int64   // the Seq up to which there was no room for them
	size    int64   // as it is counted in Recaller.size

	vectors vectors
}

// entry is an exchange of an index.
type entry struct {
	seq   int64
	id    uint64            // a hash of Exchange.ID
	words uint64            // a bit for each message that is in the index, of the first 64
	about store.SmallVector // without values where it isn't known
	blank bool              // there is nothing to embed
}

const (
	// longest is how many exchanges of a session are looked at, the newest.
	longest = 20_000
	// loadFirst is how many exchanges are read at first, loadPage the most at a
	// time, loadBytes what they are to take then, as far as their like can tell.
	loadFirst = 50
	loadPage  = 500
	loadBytes = 4 << 20
	// loadTimeout is how long the reading of a session may take.
	loadTimeout = 30 * time.Second
	// ownShare is the part of the limit that one session may take.
	ownShare = 2
)

// NewRecaller returns one whose indexes take about the given number of bytes.
// pinned reports whether a text of the user holds an instruction that always
// holds.
func NewRecaller(log Log, limit int64, pinned func(text string) bool) *Recaller {
	r := &Recaller{log: log, limit: limit, pinned: pinned}
	r.sessions, _ = simplelru.NewLRU(math.MaxInt, func(_ sessionName, x *indexed) { r.size -= x.size })
	return r
}

// errStillReading says that an index isn't ready. It will be for a later
// request.
var errStillReading = errors.New("the session is still being read")

// Search finds messages of a session of which a request has gathered the end:
// by words, and by meaning where by is set. pack chooses from what was found; it
// must not keep the Ranking. Where the session was not asked about before it is
// read whole: that goes on when wait is over, or ctx ends, and Search returns an
// error.
func (r *Recaller) Search(ctx context.Context, scope store.Scope, session string, g *store.Gathered, q recall.Query, by *Meaning, wait time.Duration, pack func(*recall.Ranking) []recall.Hit) ([]recall.Hit, error) {
	name := sessionName{scope, session}
	q.Now = q.Now.UTC() // as the times of messages, and as their days are told
	if by == nil {
		x, err := r.ready(ctx, name, g, wait)
		if err != nil {
			return nil, err
		}
		defer r.release(name, x)
		return pack(x.index.Search(q)), nil
	}
	until := time.Now().Add(wait)
	question := by.ask(ctx, q.Text)
	x, err := r.ready(ctx, name, g, wait)
	if err != nil {
		return nil, err
	}
	caughtUp := r.catchUp(ctx, name, x, by, q.Before.Seq, g.Tail)
	r.release(name, x)
	about, err := by.await(ctx, question, caughtUp, until)
	if err == nil {
		err = x.acquire(ctx, wait)
	}
	if err != nil {
		return nil, err
	}
	defer r.release(name, x)
	q.Near, q.NearWeight = x.near(by, about, q.Before.Seq), by.Weight
	return pack(x.index.Search(q)), nil
}

// ready acquires the index of a session that holds what the request has seen of
// it.
func (r *Recaller) ready(ctx context.Context, name sessionName, g *store.Gathered, wait time.Duration) (*indexed, error) {
	until := time.Now().Add(wait)
	x := r.of(name, g.Mark.Epoch)
	if err := x.acquire(ctx, wait); err != nil {
		return nil, err
	}
	if x.another(g) {
		r.release(name, x)
		r.Forget(name.scope, name.session)
		x = r.of(name, g.Mark.Epoch)
		if err := x.acquire(ctx, wait); err != nil {
			return nil, err
		}
	}
	if x.follows(g) {
		if x.carryOn(g); !r.makeRoom(x) {
			return x, nil
		}
	}
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		err := r.read(ctx, name, x, g.Mark.Seq)
		r.release(name, x)
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
func (x *indexed) acquire(ctx context.Context, wait time.Duration) error {
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

// Forget drops what is known of a session.
func (r *Recaller) Forget(scope store.Scope, session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions.Remove(sessionName{scope, session})
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
	x := &indexed{busy: make(chan struct{}, 1), index: recall.New(r.pinned), epoch: epoch}
	r.sessions.Add(name, x)
	return x
}

// release lets others use the index, and makes room for what has been added.
func (r *Recaller) release(name sessionName, x *indexed) {
	size := x.index.Bytes() + int64(cap(x.entries))*int64(unsafe.Sizeof(entry{})) + x.vectors.bytes
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
	for n := loadFirst; ; {
		after := max(x.newest(), x.shed, until-longest)
		if after >= until {
			return nil
		}
		page, err := r.log.Exchanges(ctx, name.scope, name.session, after, n, store.Ascending)
		if err != nil {
			return err
		}
		bytes, full := 1, false
		for i := range page {
			bytes += textBytes(&page[i])
			x.add(&page[i])
			if full = r.makeRoom(x); full {
				break
			}
		}
		if len(page) < n && !full {
			return nil
		}
		n = min(loadPage, max(1, len(page)*loadBytes/bytes))
	}
}

// textBytes is about what an exchange takes of memory.
func textBytes(e *store.Exchange) int {
	n := 0
	for i := range e.Messages {
		n += len(e.Messages[i].JSON)
	}
	return n
}

// makeRoom empties an index that has outgrown its share, and reports whether it
// did: the newer half of the session is to be read again.
func (r *Recaller) makeRoom(x *indexed) bool {
	n := len(x.entries)
	if n == 0 || x.index.Bytes() <= r.limit/ownShare {
		return false
	}
	x.shed = x.entries[(n-1)/2].seq
	x.index, x.entries, x.vectors.bytes = recall.New(r.pinned), nil, 0
	return true
}

func (x *indexed) newest() int64 {
	if n := len(x.entries); n > 0 {
		return x.entries[n-1].seq
	}
	return 0
}

// at is the place of the exchange in entries, or where it would be.
func (x *indexed) at(seq int64) (i int, found bool) {
	return slices.BinarySearchFunc(x.entries, seq, func(e entry, seq int64) int { return cmp.Compare(e.seq, seq) })
}

// another reports whether the session isn't the one that was indexed: one whose
// time to live was up may have begun anew.
func (x *indexed) another(g *store.Gathered) bool {
	return slices.ContainsFunc(g.Tail, func(e store.Exchange) bool {
		i, found := x.at(e.Seq)
		return found && x.entries[i].id != idHash(e.ID)
	})
}

var idSeed = maphash.MakeSeed()

func idHash(id string) uint64 { return maphash.String(idSeed, id) }

// follows reports whether what the index doesn't hold yet has been gathered.
func (x *indexed) follows(g *store.Gathered) bool {
	if x.newest() >= g.Mark.Seq {
		return true
	}
	return len(x.entries) > 0 && len(g.Tail) > 0 && g.Tail[0].Seq <= x.newest()
}

// carryOn adds the newest exchanges, and removes those that others replaced.
func (x *indexed) carryOn(g *store.Gathered) {
	if len(g.Tail) == 0 {
		return
	}
	from, _ := x.at(g.Tail[0].Seq)
	for i := len(x.entries) - 1; i >= from; i-- {
		seq := x.entries[i].seq
		if seq <= g.Mark.Seq && !slices.ContainsFunc(g.Tail, func(e store.Exchange) bool { return e.Seq == seq }) {
			x.index.Remove(seq)
			x.vectors.bytes -= int64(len(x.entries[i].about.Values))
			x.entries = slices.Delete(x.entries, i, i+1)
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
		added.words |= 1 << i // nothing, beyond the 64th
		n := e.Messages[i].Tokens
		if m.Content().IsArray() { // it may hold more than words
			n = tokens.O200K().Count(text)
		}
		messages = append(messages, recall.Message{
			Seq: e.Seq, N: i, Role: m.Role, Name: m.Get("name").Str, Text: text, Time: e.SaidAt(i).UTC(), Tokens: n,
		})
	}
	x.index.Add(messages...)
}
