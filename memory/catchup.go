package memory

import (
	"context"
	"slices"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// vectors is the state of an index's vectors.
type vectors struct {
	model    string // that made them
	bytes    int64
	catching bool // somebody is at it
	// unkept are vectors that the store didn't take.
	unkept []store.ExchangeVector
	// pause is until when nothing is embedded, since that failed.
	pause time.Time
}

const (
	// catchUpExchanges and catchUpTokens bound what one request has embedded
	// of its session: the newest exchanges, one of which there is always room for.
	// It is one exchange a turn, except where a session was imported, or
	// embedding was switched on later.
	catchUpExchanges = 64
	catchUpTokens    = 50_000
	catchUpTimeout   = 30 * time.Second
	// afterFailure is how long a session isn't sent to an embedder that failed:
	// questions are, and they are short.
	afterFailure = time.Minute
)

// catchUp finds the vectors that the index lacks of exchanges before the one with
// the given Seq: in the store, or else by the embedder, and then the store keeps
// them. It goes on in the background; the channel is closed when the index has
// got what it will get. It is nil where there is nothing to be done. The caller
// has acquired the index.
func (r *Recaller) catchUp(ctx context.Context, name sessionName, x *indexed, by *Meaning, before int64, tail []store.Exchange) <-chan struct{} {
	if x.vectors.catching {
		return nil
	}
	if x.vectors.model != by.Model {
		x.dropVectors()
		x.vectors.model = by.Model
	}
	lacking := x.lacking(before)
	if len(lacking)+len(x.vectors.unkept) == 0 || time.Now().Before(x.vectors.pause) {
		return nil
	}
	x.vectors.catching = true
	c := &catching{r: r, name: name, x: x, by: by, unkept: x.vectors.unkept}
	done := make(chan struct{})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), catchUpTimeout)
	tail = slices.Clone(tail)
	by.Go(func() {
		defer cancel()
		failed := c.find(ctx, lacking, tail)
		close(done)
		c.end(c.keep(ctx), failed)
	})
	return done
}

// lacking are the exchanges before a Seq whose vectors aren't known.
func (x *indexed) lacking(before int64) (seqs []int64) {
	for i := range x.entries {
		e := &x.entries[i]
		if before > 0 && e.seq >= before {
			break
		}
		if e.words != 0 && !e.blank && len(e.about.Values) == 0 {
			seqs = append(seqs, e.seq)
		}
	}
	return seqs
}

func (x *indexed) dropVectors() {
	for i := range x.entries {
		x.entries[i].about, x.entries[i].blank = store.SmallVector{}, false
	}
	x.vectors = vectors{}
}

// catching is one catchUp.
type catching struct {
	r      *Recaller
	name   sessionName
	x      *indexed
	by     *Meaning
	unkept []store.ExchangeVector
}

// find fills the index, and reports whether it failed to.
func (c *catching) find(ctx context.Context, lacking []int64, tail []store.Exchange) (failed bool) {
	lacking, err := c.read(ctx, lacking)
	if err != nil {
		c.by.Failed(PartVector, err)
		return true
	}
	list, err := c.exchanges(ctx, lacking, tail)
	if err != nil {
		c.by.Failed(PartVector, err)
		return true
	}
	if len(list) == 0 {
		return false
	}
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = wordsOf(&list[i])
	}
	found, err := c.by.Embed(ctx, texts)
	if err != nil {
		c.by.Failed(PartEmbedding, err)
		return true
	}
	fresh := make([]store.ExchangeVector, len(list))
	for i := range list {
		fresh[i] = store.ExchangeVector{Seq: list[i].Seq, ID: list[i].ID, Model: c.by.Model, Vector: store.Shrink(found[i])}
	}
	c.fill(fresh)
	c.unkept = append(slices.Clip(c.unkept), fresh...)
	return false
}

// read takes from the store what it has, and returns the exchanges that it has
// nothing of.
func (c *catching) read(ctx context.Context, lacking []int64) (rest []int64, err error) {
	for page := range slices.Chunk(lacking, loadPage) {
		found, err := c.r.log.Vectors(ctx, c.name.scope, c.name.session, page)
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(v store.ExchangeVector) bool { return v.Model != c.by.Model })
		c.fill(found)
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

// fill gives the index vectors. Those without values are of exchanges that have
// nothing to embed.
func (c *catching) fill(list []store.ExchangeVector) {
	if len(list) == 0 {
		return
	}
	x := c.x
	x.busy <- struct{}{}
	defer c.r.release(c.name, x)
	if x.vectors.model != c.by.Model {
		return
	}
	for _, v := range list {
		if i, found := x.at(v.Seq); found {
			e := &x.entries[i]
			x.vectors.bytes += int64(len(v.Vector.Values) - len(e.about.Values))
			e.about, e.blank = v.Vector, len(v.Vector.Values) == 0
		}
	}
}

// exchanges returns the newest of those with the given Seqs, as many as are
// embedded at once: as they were gathered, or else from the log.
func (c *catching) exchanges(ctx context.Context, seqs []int64, tail []store.Exchange) ([]store.Exchange, error) {
	seqs = seqs[max(0, len(seqs)-catchUpExchanges):]
	var list []store.Exchange
	for i := range tail {
		if slices.Contains(seqs, tail[i].Seq) {
			list = append(list, tail[i])
		}
	}
	if len(list) < len(seqs) {
		var err error
		if list, err = c.r.log.ExchangesAt(ctx, c.name.scope, c.name.session, seqs); err != nil {
			return nil, err
		}
	}
	from, tokens := len(list), 0
	for from > 0 {
		tokens += list[from-1].Tokens()
		if tokens > catchUpTokens && from < len(list) {
			break
		}
		from--
	}
	return list[from:], nil
}

// keep has the store keep what it hasn't yet, and returns what it didn't take.
func (c *catching) keep(ctx context.Context) []store.ExchangeVector {
	if len(c.unkept) == 0 {
		return nil
	}
	if err := c.r.log.PutVectors(ctx, c.name.scope, c.name.session, c.unkept); err != nil {
		c.by.Failed(PartVector, err)
		return c.unkept
	}
	return nil
}

// end lets the next one catch up.
func (c *catching) end(unkept []store.ExchangeVector, failed bool) {
	x := c.x
	x.busy <- struct{}{}
	defer c.r.release(c.name, x)
	x.vectors.catching = false
	if x.vectors.model != c.by.Model {
		return
	}
	x.vectors.unkept = unkept
	if failed || len(unkept) > 0 {
		x.vectors.pause = time.Now().Add(afterFailure)
	}
}
