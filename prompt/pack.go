package prompt

import "github.com/backstory-proxy/backstory/memory/recall"

const (
	// pinnedTokens is the most that pinned instructions get, and pinnedShare the
	// most they get of the budget. It brings BEAM, whose users give such, 3
	// points, and costs LoCoMo .3.
	pinnedTokens = 500
	pinnedShare  = .15
	// least is a budget that isn't worth filling, tokens.
	least = 8
	// maxMisses is how many matches in a row may be too long for what is left
	// of the budget.
	maxMisses = 64
)

// Ranking is what a search of the session found.
type Ranking interface {
	// Pinned are the pieces that hold pinned instructions: those that match,
	// best first, and then the newest.
	Pinned() []recall.Hit
	// Matches yields the pieces that match, best first.
	Matches(yield func(recall.Hit) bool)
}

// SearchPays reports whether there is a budget for quotes that is worth filling:
// without one nobody need search the session.
func (a *Allocation) SearchPays() bool { return a.packed() >= least }

// packed is the budget of Pack. Stored counts are by o200k_base; that for quotes is
// in tokens of the model. A quarter more is asked for than may fit: a message took
// more than a quote of it takes.
func (a *Allocation) packed() int {
	const sample = 1 << 10
	return (a.Quotes - quoteOverhead) * 5 / 4 * sample / a.in.Model.Raise(sample)
}

// Pack chooses the pieces of older messages that are worth reading, best first, by
// what they are estimated to take: a little of the budget goes to the user's
// pinned instructions, the rest to what matches.
func (a *Allocation) Pack(r Ranking) []recall.Hit {
	budget := a.packed()
	p := &packing{left: budget, taken: map[piece]bool{}, days: map[int64]bool{recall.NoDay: true}}
	room := min(pinnedTokens, int(pinnedShare*float64(budget)))
	for _, h := range r.Pinned() {
		if room < least || p.full() {
			break
		}
		if h.Tokens <= room && p.take(h) {
			room -= h.Tokens
		}
	}
	if p.full() {
		return p.hits
	}
	misses := 0
	r.Matches(func(h recall.Hit) bool {
		if p.taken[piece{h.Ref, h.From}] || p.take(h) {
			misses = 0
		} else {
			misses++
		}
		return misses < maxMisses && !p.full()
	})
	return p.hits
}

// packing is what was taken so far.
type packing struct {
	hits  []recall.Hit
	left  int // of the budget
	taken map[piece]bool
	days  map[int64]bool // whose line is paid
}

type piece struct {
	recall.Ref
	from int
}

func (p *packing) full() bool { return p.left < least }

// take takes a piece if it fits.
func (p *packing) take(h recall.Hit) bool {
	cost := h.Tokens
	if !p.days[h.Day] {
		cost += dayTokens
	}
	if cost > p.left {
		return false
	}
	p.left -= cost
	p.taken[piece{h.Ref, h.From}], p.days[h.Day] = true, true
	p.hits = append(p.hits, h)
	return true
}
