package memory

import (
	"context"
	"slices"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// vectors is the state of a session index's vectors.
type vectors struct {
	model   string // the embedding model
	bytes   int64
	running bool // a catchUpRun is under way
	// unsaved are vectors that the store couldn't save yet.
	unsaved []store.ExchangeVector
	// pausedUntil is set when a run fails. Until then nothing is embedded.
	pausedUntil time.Time
}

const (
	// catchUpExchanges and catchUpTokens bound what one request has embedded of its
	// session: the newest exchanges, and at least one. A request usually adds a single
	// exchange. More are missing where a session was imported, or where embedding was
	// switched on later.
	catchUpExchanges = 64
	catchUpTokens    = 50_000
	catchUpBytes     = 1 << 20 // of text that takes few tokens for its length
	catchUpTimeout   = 30 * time.Second
	// failurePause is how long no exchanges of a session are embedded after a failure.
	// Questions still are: they are short.
	failurePause = time.Minute
)

// catchUp adds the vectors that the index lacks of exchanges before the one with the
// given Seq. It reads them from the store; the embedder makes the others, and the
// store saves those. The work goes on in the background. The channel is closed when
// the index has all the vectors that it will get; it is nil where there is nothing to
// do. The caller has acquired the index.
func (r *Recaller) catchUp(ctx context.Context, key sessionKey, x *sessionIndex, semantic *SemanticSearch, before int64, tail []store.Exchange) <-chan struct{} {
	if x.vectors.running {
		return nil
	}
	if x.vectors.model != semantic.Model {
		x.dropVectors()
		x.vectors.model = semantic.Model
	}
	missing := x.missing(before)
	if len(missing)+len(x.vectors.unsaved) == 0 || time.Now().Before(x.vectors.pausedUntil) {
		return nil
	}
	x.vectors.running = true
	c := &catchUpRun{r: r, key: key, x: x, semantic: semantic, unsaved: x.vectors.unsaved}
	done := make(chan struct{})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), catchUpTimeout)
	tail = slices.Clone(tail)
	semantic.Go(func() {
		defer cancel()
		failed := c.find(ctx, missing, tail)
		close(done)
		c.finish(c.save(ctx), failed)
	})
	return done
}

// missing returns the exchanges before a Seq whose vectors aren't known; 0 stands for
// all.
func (x *sessionIndex) missing(before int64) (seqs []int64) {
	for i := range x.entries {
		e := &x.entries[i]
		if before > 0 && e.seq >= before {
			break
		}
		if e.texts != 0 && !e.noText && len(e.vector.Values) == 0 {
			seqs = append(seqs, e.seq)
		}
	}
	return seqs
}

func (x *sessionIndex) dropVectors() {
	for i := range x.entries {
		x.entries[i].vector, x.entries[i].noText = store.SmallVector{}, false
	}
	x.vectors = vectors{}
}

// catchUpRun is one run of catchUp.
type catchUpRun struct {
	r        *Recaller
	key      sessionKey
	x        *sessionIndex
	semantic *SemanticSearch
	unsaved  []store.ExchangeVector
}

// find adds the missing vectors to the index, and reports whether that failed.
func (c *catchUpRun) find(ctx context.Context, missing []int64, tail []store.Exchange) (failed bool) {
	missing, err := c.read(ctx, missing)
	if err != nil {
		c.semantic.Failed(PartVector, err)
		return true
	}
	list, err := c.exchanges(ctx, missing, tail)
	if err != nil {
		c.semantic.Failed(PartVector, err)
		return true
	}
	if len(list) == 0 {
		return false
	}
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = list[i].text
	}
	found, err := c.semantic.Embed(ctx, texts)
	if err != nil {
		c.semantic.Failed(PartEmbedding, err)
		return true
	}
	fresh := make([]store.ExchangeVector, len(list))
	for i := range list {
		fresh[i] = store.ExchangeVector{Seq: list[i].seq, ID: list[i].id, Model: c.semantic.Model, Vector: store.Shrink(found[i])}
	}
	c.apply(fresh)
	c.unsaved = append(slices.Clip(c.unsaved), fresh...)
	return false
}

// read adds the vectors that the store has, and returns the exchanges for which it
// has none.
func (c *catchUpRun) read(ctx context.Context, missing []int64) (rest []int64, err error) {
	for page := range slices.Chunk(missing, loadPage) {
		found, err := c.r.log.Vectors(ctx, c.key.scope, c.key.session, page)
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(v store.ExchangeVector) bool { return v.Model != c.semantic.Model })
		c.apply(found)
		there := make(map[int64]bool, len(found))
		for _, v := range found {
			there[v.Seq] = true
		}
		for _, seq := range page {
			if !there[seq] {
				rest = append(rest, seq)
			}
		}
	}
	return rest, nil
}

// apply adds vectors to the index. A vector without values belongs to an exchange
// that has no text to embed.
func (c *catchUpRun) apply(list []store.ExchangeVector) {
	if len(list) == 0 {
		return
	}
	x := c.x
	x.busy <- struct{}{}
	defer c.r.release(c.key, x)
	if x.vectors.model != c.semantic.Model {
		return
	}
	for _, v := range list {
		if i, found := x.at(v.Seq); found {
			e := &x.entries[i]
			x.vectors.bytes += int64(len(v.Vector.Values) - len(e.vector.Values))
			e.vector, e.noText = v.Vector, len(v.Vector.Values) == 0
		}
	}
}

// toEmbed is an exchange that is to be embedded.
type toEmbed struct {
	seq    int64
	id     string
	tokens int
	text   string
}

// newestToEmbed are the newest of the exchanges that were added, as many as are
// embedded at once.
type newestToEmbed struct {
	list          []toEmbed
	tokens, bytes int
}

func (n *newestToEmbed) add(e *store.Exchange) {
	last := toEmbed{e.Seq, e.ID, e.Tokens(), embeddedText(e)}
	n.list = append(n.list, last)
	n.tokens += last.tokens
	n.bytes += len(last.text)
	for len(n.list) > 1 && (n.tokens > catchUpTokens || n.bytes > catchUpBytes) {
		n.tokens -= n.list[0].tokens
		n.bytes -= len(n.list[0].text)
		n.list = slices.Delete(n.list, 0, 1)
	}
}

// exchanges returns those with the given Seqs: the newest, as many as are embedded at
// once. It takes them from the tail if that has all of them, and from the log
// otherwise.
func (c *catchUpRun) exchanges(ctx context.Context, seqs []int64, tail []store.Exchange) ([]toEmbed, error) {
	seqs = seqs[max(0, len(seqs)-catchUpExchanges):]
	tail = slices.DeleteFunc(tail, func(e store.Exchange) bool { return !slices.Contains(seqs, e.Seq) })
	var newest newestToEmbed
	see := func(list []store.Exchange) error {
		for i := range list {
			newest.add(&list[i])
		}
		return nil
	}
	if len(tail) == len(seqs) {
		err := see(tail)
		return newest.list, err
	}
	err := store.EachExchangeAt(ctx, c.r.log, c.key.scope, c.key.session, seqs, see)
	return newest.list, err
}

// save has the store save the vectors, and returns those that it couldn't save.
func (c *catchUpRun) save(ctx context.Context) []store.ExchangeVector {
	if len(c.unsaved) == 0 {
		return nil
	}
	if err := c.r.log.PutVectors(ctx, c.key.scope, c.key.session, c.unsaved); err != nil {
		c.semantic.Failed(PartVector, err)
		return c.unsaved
	}
	return nil
}

// finish allows the next run.
func (c *catchUpRun) finish(unsaved []store.ExchangeVector, failed bool) {
	x := c.x
	x.busy <- struct{}{}
	defer c.r.release(c.key, x)
	x.vectors.running = false
	if x.vectors.model != c.semantic.Model {
		return
	}
	x.vectors.unsaved = unsaved
	if failed || len(unsaved) > 0 {
		x.vectors.pausedUntil = time.Now().Add(failurePause)
	}
}
