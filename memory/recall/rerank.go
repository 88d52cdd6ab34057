package recall

import (
	"math"
	"slices"

	"github.com/backstory-proxy/backstory/knowledge/terms"
)

const (
	// namedFactor raises the messages of the only speaker that the query names
	// (2.1, 0, 0, 2.5).
	namedFactor = 1.8
	// timeFactor raises chunks that name a time if the query asks for one
	// (.3, .6, 0, 0).
	timeFactor = 1.4
	// Long messages hold a bit of everything, and take the place of many short ones.
	// Those of the assistant count less by the square root of their length beyond
	// assistantFrom tokens (0, .1, 21.5, .5), and chunks of others' beyond userFrom
	// (0, 0, 2.5, .5). If the query asks what the assistant said, its messages count
	// as others' do (0, 0, .7, 0).
	assistantFrom, userFrom = 60, 100
	// dateWeight is the weight of a named day, relative to a word as rare.
	// dayAfterWeight is that of the two days that follow: what happened is often told
	// the day after (.8, 0, .3, 1.8).
	dateWeight, dayAfterWeight = 1.5, .6
)

// rerank weighs the scores by the speaker, the length, and whether a time is named.
func (s *search) rerank() {
	words := terms.Of(s.q.Text)
	named, one := s.named(words)
	when, asksAssistant := asksWhen(words), asksWhatAssistantSaid(words)
	for p := range s.scores {
		if s.scores[p] == 0 {
			continue
		}
		m, f := s.message(p), 1.0
		if one && m.speaker == named {
			f = namedFactor
		}
		if when && s.x.chunks[p].flags&flagTime != 0 {
			f *= timeFactor
		}
		// Cutting an assistant's message into chunks makes it no denser.
		byAssistant := m.role == roleAssistant && !asksAssistant
		if t := float64(m.tokens); byAssistant && t > assistantFrom {
			f *= math.Sqrt(assistantFrom / t)
		} else if t := float64(s.tokens(p)); !byAssistant && t > userFrom {
			f *= math.Sqrt(userFrom / t)
		}
		s.scores[p] *= f
	}
}

// named returns the speaker that the query names, if it names just one.
func (s *search) named(words []string) (speaker uint8, one bool) {
	if len(s.x.speakers) == 0 {
		return 0, false
	}
	var ids []uint32
	for _, w := range words {
		if id, ok := s.x.lookup(w); ok {
			ids = append(ids, id)
		}
	}
	n := 0
	for i := range s.x.speakers {
		if slices.ContainsFunc(s.x.speakers[i].terms, func(id uint32) bool { return slices.Contains(ids, id) }) {
			speaker = uint8(i)
			n++
		}
	}
	return speaker, n == 1
}

// addDates raises the messages of the days that the query names.
func (s *search) addDates() {
	now := s.q.Now
	if now.IsZero() {
		now = fromWallClock(s.x.newest())
	}
	for _, d := range datesIn(s.q.Text, now) {
		// By day: most messages share theirs with many others.
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

// fuseSemantic fuses in the semantic ranking. It goes by rank, since the scores of
// the two aren't comparable. A bonus that halves after ten places did better than
// reciprocal rank fusion, which throws the lexical scores away.
func (s *search) fuseSemantic() {
	if len(s.q.Semantic) == 0 || s.q.SemanticWeight <= 0 {
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
	bonus := make(map[Ref]float64, len(s.q.Semantic))
	for i, r := range s.q.Semantic {
		bonus[r] = max(bonus[r], s.q.SemanticWeight*best*half/float64(half+i))
	}
	for p := range s.scores {
		s.scores[p] += bonus[s.message(p).ref()]
	}
}
