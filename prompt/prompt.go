// Package prompt decides what goes into a prompt: which earlier exchanges and
// which passages of files, in what order, under what budget. It is pure: all
// that it weighs comes in with Input, and the plan comes out.
package prompt

// Limits bound a prompt. All are in tokens.
type Limits struct {
	Context int // what the model can take, the answer included
	Answer  int // room to be left for the answer
	Added   int // the most that may be added to a request
	Files   int // the most of Added that passages of files may take
}

// Input is what a plan is made from.
type Input struct {
	Limits Limits
	// Request is what the request takes by itself: messages, tools and the
	// format's own tokens. It is never cut.
	Request int
	// Earlier are the exchanges that could be supplied, oldest first.
	Earlier []Earlier
	// Older says that the session holds exchanges before Earlier[0].
	Older bool
	// Searches says that requests of this caller are given passages, whether
	// or not this one found any: their share is kept free, so that history
	// is cut at the same place either way.
	Searches bool
	// Passages were found, best first.
	Passages []Passage
	// Given says that Passages are those which the turn under way was given
	// in its first request: they are quoted again, whatever the budget.
	Given bool
	// Count counts the tokens of a text as the model would.
	Count func(string) int
}

// Earlier is an exchange of the session, or several that belong together.
type Earlier struct {
	Tokens int
	// Start and End are its place in the session, in tokens appended ever
	// since the session's beginning.
	Start, End int64
	// Required exchanges hold the calls whose results the request brings:
	// without them it would be refused.
	Required bool
}

// Plan is what goes into a prompt.
type Plan struct {
	// First is the index of the oldest exchange supplied; len(Earlier) for
	// none. Those that follow it are supplied too.
	First int
	// Quoted is the text that goes ahead of the last user message's own;
	// empty for none. It holds Passages, in this order.
	Quoted   string
	Passages []Passage
	// Tokens is the size of the whole prompt.
	Tokens int
	// HistoryTokens and QuotedTokens are the parts of Tokens that were added.
	HistoryTokens, QuotedTokens int
	// Truncated says that something was left out to fit.
	Truncated bool
}

// Make makes the plan.
func Make(in Input) Plan {
	added := max(0, min(in.Limits.Added, in.Limits.Context-in.Limits.Answer-in.Request))
	files := min(in.Limits.Files, added/2)
	history := added
	if in.Searches {
		history -= files
	}

	var p Plan
	if added < in.Limits.Added {
		history = stable(history)
	}
	p.First = first(in.Earlier, history)
	for _, e := range in.Earlier[p.First:] {
		p.HistoryTokens += e.Tokens
	}
	switch {
	case !in.Given:
		p.Passages, p.Quoted, p.QuotedTokens = fitting(in.Passages, min(files, added-p.HistoryTokens), in.Count)
	case len(in.Passages) > 0:
		p.Passages, p.Quoted = in.Passages, quoted(in.Passages)
		p.QuotedTokens = in.Count(p.Quoted)
	}
	p.Tokens = in.Request + p.HistoryTokens + p.QuotedTokens
	p.Truncated = in.Older || p.First > 0 || len(p.Passages) < len(in.Passages)
	return p
}

// stable rounds down a share that isn't set by the operator's cap but by what
// the model can take: one that shrinks a little with every longer request would
// move the cut each time, and cost the router's prompt cache.
func stable(share int) int {
	const grain = 512
	if share < 4*grain {
		return share
	}
	return share / grain * grain
}
