package prompt

import (
	"slices"

	"github.com/backstory-proxy/backstory/memory/recall"
)

// Allocation is how the tokens that may be added are allocated.
type Allocation struct {
	First   int // the index of the oldest exchange in place
	History int // tokens of those in place
	// Quotes is the budget for quotes of older messages; 0 where none are
	// wanted.
	Quotes int

	in       Input
	added    int  // that may be added in all
	share    int  // of them, history's and quotes'
	recalls  bool // older messages may be quoted
	reserved int  // what the last two exchanges leave to quotes
}

// Allocate allocates the budget. What is found has no part in it.
func Allocate(in Input) Allocation {
	a := Allocation{in: in}
	a.added = max(0, min(in.Limits.Added, in.Limits.Context-in.Limits.Answer-in.Request))
	a.share = a.added
	if in.Searches {
		a.share -= min(in.Limits.Chunks, a.added/2)
	}
	if a.added < in.Limits.Added {
		a.share = stable(a.share)
	}
	a.First = first(in.Earlier, a.share, a.share)
	a.recalls = in.Recalls && (!in.Continues || in.Quoted) && (in.Older || a.First > 0)
	if a.recalls && !(in.Message != nil && FollowUp(in.Message())) {
		a.reserved = reserve(a.share)
	}
	a.place(0)
	return a
}

// Resumes reports whether the request continues an exchange whose first request
// was given quotes: it is given them again.
func (a *Allocation) Resumes() bool { return a.in.Recalls && a.in.Continues && a.in.Quoted }

// place decides which exchanges stand in place. spare is what quotes are known to
// leave of the history's share, which the newest exchanges then get.
func (a *Allocation) place(spare int) {
	if a.recalls {
		a.First = first(a.in.Earlier, max(tail(a.share), spare), max(a.share-a.reserved, spare))
	}
	a.History = 0
	for _, e := range a.in.Earlier[a.First:] {
		a.History += e.Tokens
	}
	a.Quotes = 0
	if a.recalls {
		a.Quotes = max(0, a.share-a.History)
	}
}

// fill gives the newest exchanges what quotes leave of their share, and returns
// the quotes less those of messages which the model is told anyway.
func (a *Allocation) fill(quotes []Quote) []Quote {
	if a.Quotes == 0 && !a.in.Continues {
		return nil
	}
	quotes = slices.DeleteFunc(slices.Clone(quotes), func(q Quote) bool { return q.Carried })
	quotes = a.withoutPlaced(quotes)
	bytes := 0
	for i := range quotes {
		bytes += quotes[i].To - quotes[i].From
	}
	if bytes > 4*a.Quotes { // they hardly leave anything: that isn't worth counting
		return quotes
	}
	size := quoteTokens(quotes, a.in.Model.Count)
	if size >= a.Quotes {
		return quotes
	}
	a.place(a.History + a.Quotes - size)
	return a.withoutPlaced(quotes)
}

// withoutPlaced takes out the quotes of messages that stand in place. It changes
// the list that it is given.
func (a *Allocation) withoutPlaced(quotes []Quote) []Quote {
	if len(quotes) == 0 || a.in.Messages == nil {
		return quotes
	}
	placed := make(map[recall.Ref]bool)
	for i := a.First; i < len(a.in.Earlier); i++ {
		for _, ref := range a.in.Messages(i) {
			placed[ref] = true
		}
	}
	return slices.DeleteFunc(quotes, func(q Quote) bool { return placed[recall.Ref{Seq: q.Seq, N: q.N}] })
}

// tail is what the newest exchanges get of the history's share where older ones
// are recalled: an eighth of a small share, a quarter of one of 8,000 tokens or
// more. On long conversations a quarter of 2,000 or 4,000 tokens leaves out the
// evidence for one question in a hundred more, of 8,000 hardly any; a half costs
// two or three at any size. What stands in place is also what a router caches.
func tail(share int) int {
	return max(share/8, min(share/4, (share-4000)/2))
}

// reserve is what the last two exchanges leave of the history's share to older
// messages that the request is about, unless it follows up on them. Two answers
// of a few hundred words are nearly all of 2,000 tokens: with what is left beside
// them, recall answers a third of the questions that it else does.
func reserve(share int) int { return min(share*3/4, 3000) }

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
