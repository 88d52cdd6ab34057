// Package prompt decides what goes into a prompt: which earlier exchanges stand in
// place, which older messages and which chunks of files are quoted, in what order,
// and what each of them may take. Whoever looks for a rule finds it here:
//
//   - allocate.go: how the budget is allocated;
//   - history.go: where the exchanges in place begin;
//   - pack.go: which of the messages that a search found are worth reading;
//   - followup.go: when a message is about what was said last;
//   - pinned.go: which messages are instructions that always hold;
//   - quote.go, chunk.go, stitch.go: what of those fits, and how it is quoted;
//   - count.go: what messages and requests take.
//
// A share of the budget for quotes is enforced twice: by estimates in Pack, so that
// others get the room, and exactly in Make.
//
// It is pure: all that it weighs comes in with Input, and the Plan comes out.
// Between Allocate and Make the caller searches and reads what was allocated for.
package prompt

import (
	"math"

	"github.com/backstory-proxy/backstory/memory/recall"
)

// Limits bound a prompt. All are in tokens.
type Limits struct {
	Context int // what the model can take, the answer included
	Answer  int // room to be left for the answer
	Added   int // the most that may be added to a request
	Chunks  int // the most of Added that chunks of files may take
}

// Model counts tokens: see tokens.Model.
type Model interface {
	// Count counts the tokens of a text.
	Count(text string) int
	// Raise is what a count by the model's encoding is to the model.
	Raise(n int) int
}

// Input is what a plan is made from.
type Input struct {
	Limits Limits
	Model  Model
	// Request is what the request takes by itself: messages, tools and the
	// format's own tokens. It is never cut.
	Request int
	// Message is the text of the request's last user message; nil: it has none.
	// It is asked for only where older messages may be quoted: most sessions
	// fit, and nobody has to read it.
	Message func() string
	// Earlier are the exchanges that could be included, oldest first.
	Earlier []Earlier
	// Messages names those of Earlier[i], in their order. It is asked for only
	// where something is quoted; nil: nothing ever is.
	Messages func(i int) []recall.Ref
	// Older says that the session holds exchanges before Earlier[0].
	Older bool
	// Recalls says that older messages which the request is about may be
	// quoted where the session doesn't fit.
	Recalls bool
	// Searches says that requests of this caller are given chunks, whether or
	// not this one found any: their share is kept free, so that history is cut
	// at the same place either way.
	Searches bool
	// Continues says that the request brings results of tools to an exchange
	// under way. It is given again what that one's first request was given,
	// whatever the budget, and nothing else.
	Continues bool
	// Quoted says that the first request of an exchange under way was given
	// quotes.
	Quoted bool
}

// Earlier is an exchange of the session, or several that belong together.
type Earlier struct {
	Tokens int
	// Start and End are its place in the session, in tokens appended ever
	// since the session's beginning.
	Start, End int64
	// Unanswered is a user message that nothing has followed, such as the
	// last one of a history that was imported. It is no exchange yet, and
	// doesn't count as one of those that are always included.
	Unanswered bool
	// Required exchanges hold the calls whose results the request brings:
	// without them it would be refused.
	Required bool
}

// Plan is what goes into a prompt.
type Plan struct {
	// First is the index of the oldest exchange in place; len(Earlier) for
	// none. Those that follow it are included too.
	First int
	// Text goes ahead of the last user message's own; empty for none. It holds
	// Quotes, in the order of the session, and Chunks, in this order.
	Text   string
	Quotes []Quote
	Chunks []Chunk
	// Tokens is the size of the whole prompt.
	Tokens int
	// HistoryTokens, QuoteTokens and ChunkTokens are the parts of Tokens that
	// were added.
	HistoryTokens, QuoteTokens, ChunkTokens int
	// Truncated says that something was left out to fit.
	Truncated bool
}

// Make makes the plan from what was found, best first: quotes of messages, as
// Pack chose them, and chunks. Of an exchange under way they are what its first
// request was given.
func (a Allocation) Make(quotes []Quote, chunks []Chunk) Plan {
	quotes = a.fill(quotes)
	p := Plan{First: a.First, HistoryTokens: a.History}
	var quoted, excerpts string
	if a.in.Continues {
		p.Quotes, quoted, p.QuoteTokens = fitQuotes(quotes, math.MaxInt, a.in.Model.Count)
		blocks := stitch(chunks)
		p.Chunks, excerpts = inBlocks(blocks), render(blocks)
		p.ChunkTokens = a.in.Model.Count(excerpts)
	} else {
		p.Quotes, quoted, p.QuoteTokens = fitQuotes(quotes, a.Quotes, a.in.Model.Count)
		// What the session leaves of a small window is theirs as well.
		room := min(a.in.Limits.Chunks, a.added-a.History-p.QuoteTokens)
		p.Chunks, excerpts, p.ChunkTokens = fitChunks(chunks, room, a.in.Model.Count)
	}
	p.Text = quoted + excerpts
	p.Tokens = a.in.Request + p.HistoryTokens + p.QuoteTokens + p.ChunkTokens
	p.Truncated = a.in.Older || p.First > 0 || len(p.Chunks) < len(chunks)
	return p
}
