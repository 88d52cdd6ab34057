// Package prompt decides what goes into a prompt: which earlier exchanges and
// which passages of files, in what order, under what budget. It is pure: all
// that it weighs comes in with Input, and the plan comes out.
package prompt

import "math"

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
	// Recalls says that older messages which the request is about may be
	// quoted where the session doesn't fit.
	Recalls bool
	// Leans says that the request is likely to be about what was said last: the
	// last two exchanges then go before those messages.
	Leans bool
	// Recalled are those messages, best first.
	Recalled []Recalled
	// Spare is what they are known to leave of the history's share, which the
	// newest exchanges then get.
	Spare int
	// Searches says that requests of this caller are given passages, whether
	// or not this one found any: their share is kept free, so that history
	// is cut at the same place either way.
	Searches bool
	// Passages were found, best first.
	Passages []Passage
	// Given says that Recalled and Passages are those which the turn under
	// way was given in its first request: they are quoted again, whatever the
	// budget.
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
	// Unanswered is a user message that nothing has followed, such as the
	// last one of a history that was imported. It is no exchange yet, and
	// doesn't count as one of those that are always supplied.
	Unanswered bool
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
	// empty for none. It holds Recalled, in the order of the session, and
	// Passages, in this order.
	Quoted   string
	Recalled []Recalled
	Passages []Passage
	// Tokens is the size of the whole prompt.
	Tokens int
	// HistoryTokens, RecalledTokens and QuotedTokens, those of passages, are
	// the parts of Tokens that were added.
	HistoryTokens, RecalledTokens, QuotedTokens int
	// Truncated says that something was left out to fit.
	Truncated bool
}

// Division is how the tokens that may be added are divided.
type Division struct {
	First   int // the index of the oldest exchange supplied
	History int // tokens of those supplied
	// Recall is the share of older messages; 0 where none are wanted.
	Recall int

	added, files int
}

// tail is what the newest exchanges get of the history's share where older ones
// are recalled: an eighth of a small share, a quarter of one of 8,000 tokens or
// more. On long conversations a quarter of 2,000 or 4,000 tokens leaves out the
// evidence for one question in a hundred more, of 8,000 hardly any; a half costs
// two or three at any size. What stands in place is also what a router caches.
func tail(share int) int {
	return max(share/8, min(share/4, (share-4000)/2))
}

// reserved is what the last two exchanges leave of the history's share to older
// messages that the request is about. Two answers of a few hundred words are
// nearly all of 2,000 tokens: with what is left beside them, recall answers a
// third of the questions that it else does.
func (in *Input) reserved(share int) int {
	if in.Leans {
		return 0
	}
	return min(share*3/4, 3000)
}

// Divide says what becomes of the tokens that may be added. Passages and
// Recalled have no part in it.
func (in *Input) Divide() Division {
	var d Division
	d.added = max(0, min(in.Limits.Added, in.Limits.Context-in.Limits.Answer-in.Request))
	d.files = min(in.Limits.Files, d.added/2)
	share := d.added
	if in.Searches {
		share -= d.files
	}
	if d.added < in.Limits.Added {
		share = stable(share)
	}
	d.First = first(in.Earlier, share, share)
	recalls := in.Recalls && (in.Older || d.First > 0)
	if recalls {
		d.First = first(in.Earlier, max(tail(share), in.Spare), max(share-in.reserved(share), in.Spare))
	}
	for _, e := range in.Earlier[d.First:] {
		d.History += e.Tokens
	}
	if recalls {
		d.Recall = max(0, share-d.History)
	}
	return d
}

// Make makes the plan.
func Make(in Input) Plan {
	d := in.Divide()
	p := Plan{First: d.First, HistoryTokens: d.History}
	var recalled, passages string
	if in.Given {
		p.Recalled, recalled, p.RecalledTokens = remembered(in.Recalled, math.MaxInt, in.Count)
		quotes := stitch(in.Passages)
		p.Passages, passages = inQuotes(quotes), quoted(quotes)
		p.QuotedTokens = in.Count(passages)
	} else {
		p.Recalled, recalled, p.RecalledTokens = remembered(in.Recalled, d.Recall, in.Count)
		// What the session leaves of a small window is theirs as well.
		files := min(in.Limits.Files, d.added-d.History-p.RecalledTokens)
		p.Passages, passages, p.QuotedTokens = fitting(in.Passages, files, in.Count)
	}
	p.Quoted = recalled + passages
	p.Tokens = in.Request + p.HistoryTokens + p.RecalledTokens + p.QuotedTokens
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
