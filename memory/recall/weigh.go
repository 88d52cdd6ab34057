package recall

import (
	"math"
	"slices"

	"github.com/backstory-proxy/backstory/knowledge/terms"
)

const (
	// namedFactor raises the messages of the one speaker that the query names
	// (2.1, 0, 0, 2.5).
	namedFactor = 1.8
	// timeFactor raises what names a time where the query asks for one
	// (.3, .6, 0, 0).
	timeFactor = 1.4
	// Messages of the assistant weigh less by the square root of their length
	// beyond assistantFrom tokens, and so do pieces of others' beyond userFrom:
	// long ones hold a bit of everything, and take the place of many short ones (0, .1, 21.5, .5 and 0, 0, 2.5, .5).
	// A query about what the assistant said weighs its messages as others' (0, 0, .7, 0).
	assistantFrom, userFrom = 60, 100
	// dateWeight is that of a named day beside a word as rare;
	// afterShare what the two days after it count: what happened is often
	// told the day after (.8, 0, .3, 1.8).
	dateWeight, afterShare = 1.5, .6
)

// weigh weighs who says it, how long it is, and whether it names a time.
func (s *search) weigh() {
	words := terms.Of(s.q.Text)
	named, one := s.named(words)
	when, said := asksWhen(words), asksWhatYouSaid(words)
	for p := range s.scores {
		if s.scores[p] == 0 {
			continue
		}
		m, f := s.message(p), 1.0
		if one && m.speaker == named {
			f = namedFactor
		}
		if when && s.x.pieces[p].flags&flagTime != 0 {
			f *= timeFactor
		}
		// An assistant's message is no denser for being cut.
		byAssistant := m.role == roleAssistant && !said
		if t := float64(m.tokens); byAssistant && t > assistantFrom {
			f *= math.Sqrt(assistantFrom / t)
		} else if t := float64(s.tokens(p)); !byAssistant && t > userFrom {
			f *= math.Sqrt(userFrom / t)
		}
		s.scores[p] *= f
	}
}

// named is the speaker that the words of the query name, if they name one only.
func (s *search) named(words []string) (speaker uint8, one bool) {
	if len(s.x.speakers) == 0 {
		return 0, false
	}
	var said []uint32
	for _, w := range words {
		if id, ok := s.x.lookup(w); ok {
			said = append(said, id)
		}
	}
	n := 0
	for i := range s.x.speakers {
		if slices.ContainsFunc(s.x.speakers[i].terms, func(id uint32) bool { return slices.Contains(said, id) }) {
			speaker = uint8(i)
			n++
		}
	}
	return speaker, n == 1
}

// dates raises the messages of the days that the query names.
func (s *search) dates() {
	now := s.q.Now
	if now.IsZero() {
		now = clockTime(s.x.newest())
	}
	for _, d := range datesIn(s.q.Text, now) {
		// By day, as most messages share theirs with many.
		weights := make(map[int64]float64)
		on := 0
		for i := range s.x.messages {
			day := s.x.messages[i].day()
			if _, ok := weights[day]; !ok {
				weights[day] = d.weight(day)
			}
			if weights[day] == 1 {
				on++
			}
		}
		weight := dateWeight * rarity(float64(len(s.x.messages)), float64(on))
		for p := range s.scores {
			s.scores[p] += weight * weights[s.message(p).day()]
		}
	}
}

// near fuses in the other ranking: by rank, as its scores mean something else.
// A bonus that is half after ten places was better than reciprocal rank fusion of
// both, which throws the lexical scores away.
func (s *search) near() {
	if len(s.q.Near) == 0 || s.q.NearWeight <= 0 {
		return
	}
	best := 0.0
	for _, score := range s.scores {
		best = max(best, score)
	}
	if best == 0 {
		best = 1
	}
	const half = 10
	bonus := make(map[Ref]float64, len(s.q.Near))
	for i, r := range s.q.Near {
		bonus[r] = max(bonus[r], s.q.NearWeight*best*half/float64(half+i))
	}
	for p := range s.scores {
		s.scores[p] += bonus[s.message(p).ref()]
	}
}
