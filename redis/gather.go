package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// extra is how many exchanges come with a tail that is long enough.
const extra = 2

// Gather counts the request and reads the end of its session, in one trip; in a
// second one where exchanges that were counted on had been replaced.
func (s *Store) Gather(ctx context.Context, req store.GatherRequest) (store.Gathered, error) {
	if err := s.enter(ctx, req.Scope); err != nil {
		return store.Gathered{}, err
	}
	defer s.end()
	g, err := s.gather(ctx, req)
	if err != nil {
		return store.Gathered{}, failure(ctx, err)
	}
	return g, nil
}

func (s *Store) gather(ctx context.Context, req store.GatherRequest) (g store.Gathered, err error) {
	limit := req.Limit
	if req.Counted {
		limit = 0 // it is only asked for the rest
	}
	calls := []*call{s.rateCall(req.Scope, limit, req.Month), nil}[:1]
	if req.Session != "" {
		calls = append(calls, s.tailCall(req, 0))
	}
	// The first call's error is looked at first: that of a tail which wouldn't
	// have been returned is of no interest.
	_ = s.together(ctx, calls...)
	facts, err := readRate(calls[0].cmd, limit)
	if req.Counted {
		facts.rate = store.Rate{Allowed: true}
	}
	if g.Rate = facts.rate; err != nil || !g.Rate.Allowed {
		return g, err
	}
	g.Files, g.Used = facts.files && !s.opts.NoFiles, facts.used
	if req.Session == "" {
		return g, nil
	}
	read, length, err := readTail(&g, calls[1].cmd, req)
	for err == nil && read < length {
		// The log may have grown meanwhile: what was read is read again, so
		// that all of it is of one moment.
		again := s.tailCall(req, min(longer(g.Tail, req), length+extra))
		if err = s.together(ctx, again); err == nil {
			read, length, err = readTail(&g, again.cmd, req)
		}
	}
	return g, err
}

// longer is how many exchanges to read where a tail of them was too short: by
// their own mean this time, and several times as many at least.
func longer(tail []store.Exchange, req store.GatherRequest) int {
	tokens, messages := 0, 0
	for i := range tail {
		tokens += tail[i].Tokens()
		messages += len(tail[i].Messages)
	}
	likely := max(float64(req.Tokens)/float64(max(tokens, 1)), float64(req.Messages)/float64(max(messages, 1))) * float64(len(tail)) * 1.2
	return int(min(max(likely, 3*float64(len(tail))), maxPage)) + extra
}

func (s *Store) tailCall(req store.GatherRequest, n int) *call {
	tag := sessionTag(req.Scope, req.Session)
	script := gatherReadsScript
	if req.Saves {
		script = gatherScript
	}
	return &call{
		script: script,
		keys:   []string{s.layout.tagged(sessionKey, tag), s.layout.tagged(logKey, tag), s.layout.tagged(epochKey, tag)},
		args:   []any{req.Tokens, req.Messages, n, extra, store.TailBytes},
	}
}

// readTail reads the reply of gatherScript into g. It returns how many exchanges
// came of how many there are; the same number where they are enough.
func readTail(g *store.Gathered, cmd *goredis.Cmd, req store.GatherRequest) (read, length int, err error) {
	reply, err := cmd.Slice()
	if err != nil {
		return 0, 0, err
	}
	if len(reply) != 5 {
		return 0, 0, fmt.Errorf("the script for sessions answered %d values", len(reply))
	}
	elements, _ := reply[4].([]any)
	total, _ := reply[3].(int64)
	for i, into := range []*int64{&g.Mark.Epoch, &g.Mark.Seq, &g.Tokens} {
		text, _ := reply[i].(string)
		if *into, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, 0, errCorrupt
		}
	}
	g.Tail = make([]store.Exchange, 0, len(elements))
	tokens, messages, more, room := 0, 0, extra, store.TailBytes
	for _, element := range elements { // newest first
		if tokens >= req.Tokens && messages >= req.Messages {
			more--
		}
		text, _ := element.(string)
		e, err := decodeExchange(text)
		if err != nil {
			return 0, 0, err
		}
		g.Tail = append(g.Tail, e)
		tokens += e.Tokens()
		messages += len(e.Messages)
		room -= len(text)
		if more == 0 || room <= 0 {
			slices.Reverse(g.Tail)
			return 0, 0, nil
		}
	}
	slices.Reverse(g.Tail)
	return len(elements), int(total), nil
}
