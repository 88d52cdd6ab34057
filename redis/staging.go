package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// While a script runs, the server answers nobody else: one that saved 65 MB took
// it 3.5 s. An import that is large is staged, therefore: what it will put into the
// session is written step by step, as it will stand there, to keys that nobody
// reads, and then put in its place by a script that looks at none of it. Whoever
// reads sees all of it or nothing. If this process dies on the way, the staged keys
// expire. If the session gets something else meanwhile, the numbers that begin the
// staged exchanges are wrong, and they are staged anew.
//
// To move an exchange from key to key takes the server a microsecond or two. Where
// even that would add up, the old log is copied ahead of the new exchanges, in
// steps too, and the staged keys take its place.

const (
	// smallBytes and smallCount are what appendScript saves in 10 ms: it takes
	// about 20 µs for an exchange, and as long for each KB.
	smallBytes, smallCount = 256 << 10, 128
	// stepBytes and stepCount are what a step of staging writes. The server
	// takes a millisecond for each MB, several where it has to find the memory.
	stepBytes, stepCount = 512 << 10, 256
	// copyBytes and copySeen are what a step copies: scripts take ten times as
	// long.
	copyBytes, copySeen = 256 << 10, 500
	// moved is how many exchanges are moved at most.
	moved = 1000
	// stagedFor is how long what is staged is kept from the last step on.
	stagedFor = time.Minute
	// stagings is how often an import is staged, because others add to the
	// session.
	stagings = 5
)

// errBusy is the end of an import into a session that others don't leave alone.
var errBusy = errors.New("others added to the session each time that the import was about to be saved; try again")

// errOvertaken says that an import is to be staged anew.
var errOvertaken = errors.New("others added to the session")

// What commitScript answers besides appendSaved and appendDeleted.
const appendOvertaken = 4

// isSmall reports whether exchanges may be saved with one script.
func isSmall(list []store.Exchange) bool {
	bytes := int64(0)
	for i := range list {
		bytes += list[i].Bytes()
	}
	return len(list) <= smallCount && bytes <= smallBytes
}

// appendStaged is appendAll for many exchanges.
func (s *Store) appendStaged(ctx context.Context, a *store.Append, list []store.Exchange, b *beside) (appendReply, error) {
	for range stagings {
		st, err := s.stage(ctx, a, list)
		if err == nil {
			var reply appendReply
			reply, err = st.commit(ctx, b)
			if reply.outcome == appendDeleted {
				s.unstage(ctx, st)
			}
			if err == nil || errors.Is(err, errTooFewReplicas) {
				return reply, err
			}
		}
		s.unstage(ctx, st)
		if !errors.Is(err, errOvertaken) {
			return appendReply{}, err
		}
	}
	return appendReply{}, errBusy
}

// staging is an import on its way.
type staging struct {
	store *Store
	a     *store.Append
	tag   string
	name  string // of this staging, as no other has it

	was, is sessionState
	log     int64    // the length of the session's log
	digests []string // of the new exchanges' IDs
	seqs    []int64  // of all that is imported
	renames bool     // the staged keys take the place of the session's
}

// sessionState is what a session's hash says of its log: see append.lua.
type sessionState struct {
	seq, ever, sent, messages, total int64
	means                            bool // there are some
	meanMessages, meanTokens         float64
}

func (st *staging) key(kind string) string {
	key := st.store.layout.tagged(kind, st.tag)
	if kind == stagedLogKey || kind == stagedSeenKey {
		key += ":" + st.name
	}
	return key
}

// stage writes all that is new of the exchanges. It returns the staging also with
// an error.
func (s *Store) stage(ctx context.Context, a *store.Append, list []store.Exchange) (*staging, error) {
	st := &staging{store: s, a: a, tag: sessionTag(a.Scope, a.Session), name: s.unique()}
	if err := st.read(ctx); err != nil {
		return st, err
	}
	fresh, err := st.fresh(ctx, list)
	if err != nil {
		return st, err
	}
	// Where nothing is to be copied, it is the cheaper way for any number.
	if st.renames = len(fresh) > moved || st.log == 0 && len(fresh) > 0; st.renames {
		if err := st.copyOld(ctx); err != nil {
			return st, err
		}
	}
	return st, st.write(ctx, fresh)
}

// read reads how the session stands.
func (st *staging) read(ctx context.Context) error {
	pipe := st.store.client.Pipeline()
	described := pipe.HMGet(ctx, st.key(sessionKey), "seq", "ever", "sent", "messages", "tokens", "mean_messages", "mean_tokens")
	length := pipe.LLen(ctx, st.key(logKey))
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	st.log = length.Val()
	values := described.Val()
	w := &st.was
	w.means = values[5] != nil
	for i, into := range []any{&w.seq, &w.ever, &w.sent, &w.messages, &w.total, &w.meanMessages, &w.meanTokens} {
		text, ok := values[i].(string)
		if !ok {
			continue // it is new, or of an early version
		}
		var err error
		switch into := into.(type) {
		case *int64:
			*into, err = strconv.ParseInt(text, 10, 64)
		case *float64:
			*into, err = strconv.ParseFloat(text, 64)
		}
		if err != nil {
			return errCorrupt
		}
	}
	return nil
}

// fresh returns the exchanges that the session hasn't, and numbers all.
func (st *staging) fresh(ctx context.Context, list []store.Exchange) (fresh []*store.Exchange, err error) {
	known := make(map[string]int64, len(list)) // Seqs by digests
	digests := make([]string, len(list))
	for i := range list {
		digests[i] = string(idDigest(list[i].ID))
	}
	for from := 0; from < len(digests); from += stepCount {
		step := digests[from:min(from+stepCount, len(digests))]
		values, err := st.store.client.HMGet(ctx, st.key(seenKey), step...).Result()
		if err != nil {
			return nil, err
		}
		for i, value := range values {
			if value == nil {
				continue
			}
			if known[step[i]], err = readSeq(value); err != nil {
				return nil, err
			}
		}
	}
	seq := st.was.seq
	for i, digest := range digests {
		at, there := known[digest]
		if !there {
			seq++
			at, known[digest] = seq, seq
			fresh, st.digests = append(fresh, &list[i]), append(st.digests, digest)
		}
		st.seqs = append(st.seqs, at)
	}
	return fresh, nil
}

// copyOld copies what the session has.
func (st *staging) copyOld(ctx context.Context) error {
	if st.log == 0 {
		return nil
	}
	keys := []string{st.key(logKey), st.key(stagedLogKey)}
	for at := int64(0); at >= 0; {
		var err error
		if at, err = st.store.run(ctx, copyLogScript, keys, at, copyBytes, stagedFor.Milliseconds()).Int64(); err != nil {
			return err
		}
	}
	keys = []string{st.key(seenKey), st.key(stagedSeenKey)}
	for cursor := "0"; ; {
		var err error
		if cursor, err = st.store.run(ctx, copySeenScript, keys, cursor, copySeen, stagedFor.Milliseconds()).Text(); err != nil {
			return err
		}
		if cursor == "0" {
			return nil
		}
	}
}

// write stages the new exchanges, and notes how the session will stand. A step
// that is sent again, because its reply was lost, makes the staged log too long,
// which commitScript finds.
func (st *staging) write(ctx context.Context, fresh []*store.Exchange) error {
	st.is = st.was
	var log, seen []any
	bytes := 0
	flush := func() error {
		if len(log) == 0 {
			return nil
		}
		pipe := st.store.client.TxPipeline()
		pushed := pipe.RPush(ctx, st.key(stagedLogKey), log...)
		pipe.PExpire(ctx, st.key(stagedLogKey), stagedFor)
		if st.renames {
			pipe.HSet(ctx, st.key(stagedSeenKey), seen...)
			pipe.PExpire(ctx, st.key(stagedSeenKey), stagedFor)
		}
		_, err := pipe.Exec(ctx)
		if err != nil && pushed.Err() != nil {
			err = pushed.Err() // why the transaction wasn't carried out
		}
		log, seen, bytes = log[:0], seen[:0], 0
		return err
	}
	for i, e := range fresh {
		element := st.is.push(e, st.digests[i])
		log, seen = append(log, element), append(seen, st.digests[i], st.is.seq)
		if bytes += len(element); bytes >= stepBytes || len(log) == stepCount {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// push counts an exchange in, and returns its element of the log: what append.lua
// does.
func (s *sessionState) push(e *store.Exchange, digest string) []byte {
	messages, tokens := len(e.Messages), e.Tokens()
	element := fmt.Appendf(nil, "%d:%d:%d:%d:%d:%s", s.seq+1, s.ever, s.sent, messages, tokens, digest)
	element = append(element, encodeExchange(e)...)
	m, t := float64(messages), float64(tokens)
	if !s.means {
		s.means, s.meanMessages, s.meanTokens = true, m, t
	}
	s.seq++
	s.ever += int64(tokens)
	s.sent += int64(messages)
	s.messages += int64(messages)
	s.total += int64(tokens)
	s.meanMessages += (m - s.meanMessages) / 16
	s.meanTokens += (t - s.meanTokens) / 16
	return element
}

// commit puts what is staged into the session.
func (st *staging) commit(ctx context.Context, b *beside) (appendReply, error) {
	a, n, now := st.a, len(st.digests), st.store.now()
	length := n
	if st.renames {
		length += int(st.log)
	}
	mean := func(f float64) string { return strconv.FormatFloat(f, 'g', 17, 64) }
	c := &call{
		script: commitScript,
		keys: []string{
			st.key(sessionKey), st.key(logKey), st.key(seenKey), st.key(epochKey), st.key(vectorsKey), st.key(stagedLogKey), st.key(stagedSeenKey),
		},
		args: []any{
			a.Mark.Epoch, st.was.seq, length, n, flag(st.renames), a.Session, now.UnixMilli(), a.TTL.Milliseconds(),
			st.is.seq, st.is.ever, st.is.sent, st.is.messages, st.is.total, mean(st.is.meanMessages), mean(st.is.meanTokens),
		},
	}
	if !st.renames {
		for i, digest := range st.digests {
			c.args = append(c.args, digest, st.was.seq+int64(i)+1)
		}
	}
	st.store.list(a, b, now)
	unconfirmed := st.store.save(ctx, c, b)
	if unconfirmed != nil && !errors.Is(unconfirmed, errTooFewReplicas) {
		return appendReply{}, unconfirmed
	}
	reply, err := c.cmd.Int64Slice()
	switch {
	case err != nil:
		return appendReply{}, err
	case len(reply) != 1:
		return appendReply{}, errCorrupt
	case reply[0] == appendOvertaken:
		return appendReply{}, errOvertaken
	case reply[0] == appendDeleted:
		return appendReply{outcome: appendDeleted}, nil
	}
	return appendReply{outcome: appendSaved, seqs: st.seqs}, unconfirmed
}

// unstage removes what was staged in vain; it expires if that fails.
func (s *Store) unstage(ctx context.Context, st *staging) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer cancel()
	s.client.Unlink(ctx, st.key(stagedLogKey), st.key(stagedSeenKey))
}
