package recall

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// cosines are those of a query and each message of a session.
func cosines(query string, lines ...string) []float64 {
	x, _ := talk(lines...)
	s := &search{x: x, q: Query{Text: query}}
	c, ok := s.queryVector(s.words())
	if !ok {
		return nil
	}
	all := make([]float64, len(lines))
	for p := range all {
		all[p] = c.cosine(p)
	}
	return all
}

func TestUnknownWordsAreSimilarToNothing(t *testing.T) {
	lines := []string{"user: rain", "user: rain zorbl queftle wubnar", "user: zorbl queftle", "user: rent", "user: violin"}
	if c := cosines("weather", lines...); c[0] < .4 || c[1] > c[0]/1.5 || c[2] > .3 {
		t.Errorf("a word in other words, and in unknown ones: %.2f", c)
	}
	known, mixed := cosines("weather", lines...)[0], cosines("weather moffy brundic", lines...)[0]
	if mixed > known/1.5 {
		t.Errorf("a query: %.2f, and with words that aren't known %.2f", known, mixed)
	}
	if c := cosines("zorbl moffy", lines...); c != nil {
		t.Errorf("a query of nothing but such words: %.2f", c)
	}
}

func TestOfManyMatchesTheBestAreCompared(t *testing.T) {
	x, _ := talk(chatter(3000)...)
	s := &search{x: x, scores: make([]float64, len(x.chunks))}
	for p := range s.scores {
		s.scores[p] = float64(p % 1000)
	}
	found := s.candidates(999)
	least, seen := 999.0, make(map[uint32]bool)
	for _, p := range found {
		least, seen[p] = min(least, s.scores[p]), true
	}
	if len(found) != similarCandidates || len(seen) != similarCandidates || least < 999-float64(similarCandidates)/2 {
		t.Errorf("%d of %d, down to %v", len(found), len(seen), least)
	}
	clear(s.scores)
	if found = s.candidates(1); len(found) != len(x.chunks) {
		t.Errorf("where none matches: %d of %d", len(found), len(x.chunks))
	}
	long := &search{x: &Index{chunks: make([]chunk, 2*similarNewest)}, scores: make([]float64, 2*similarNewest)}
	if found = long.candidates(1); len(found) != similarNewest || found[0] != 2*similarNewest-1 {
		t.Errorf("where none of many matches: %d, from %d on", len(found), found[0])
	}
}

// Where all say nearly the same, what is left of a chunk without the mean is
// about as long as what rounding took off.
func TestSimilarityIsACosine(t *testing.T) {
	words := strings.Fields("server status report good weather check disk memory load network database backup queue worker")
	var lines []string
	for i := range 400 {
		said := slices.Clone(words)
		if i%2 == 0 {
			said = slices.Delete(said, i/2%len(said), i/2%len(said)+1)
		}
		lines = append(lines, "user: "+strings.Join(said, " "))
	}
	for _, query := range []string{"server", "weather", "Is the weather nice today?"} {
		c := cosines(query, lines...)
		if least, best := slices.Min(c), slices.Max(c); least < -1.001 || best > 1.001 || best == 0 || math.IsNaN(best) {
			t.Errorf("%q: %.2f to %.2f", query, least, best)
		}
	}
}

func TestWhatHasNoKnownWordIsSimilarToNothing(t *testing.T) {
	lines := []string{"user: 👍👍", "user: 房租下个月到期", "user: zorbl queftle"}
	for range 50 {
		lines = append(lines, "user: the weather is nice today")
	}
	x, all := talk(append(lines, "user: the disk of the database broke")...)
	if got := found(all, matches(x, Query{Text: "hardware"})); !slices.Equal(got, []string{"the disk of the database broke"}) {
		t.Errorf("found %q", got)
	}
}

// What is common to a session's English is in its English only.
func TestOtherLanguagesAreNotSimilarForWhatTheyLack(t *testing.T) {
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("user: the %s report about our sales team meeting in %s was good",
			[]string{"annual", "weekly", "monthly", "final"}[i%4], []string{"april", "june", "boston", "london", "friday"}[i%5]))
	}
	lines = append(lines, "user: 会议 abends zorbl queftle wubnar team", "user: wir treffen uns morgen zorbl queftle wubnar", "user: 你好吗 今天 天气 很好")
	for _, query := range []string{"mortgage rates", "Which guitar did I buy?", "Where is my passport?", "a recipe for soup"} {
		for i, c := range cosines(query, lines...)[40:] {
			if c > .25 {
				t.Errorf("%q is to %q %.2f", query, lines[40+i], c)
			}
		}
	}
}

func TestWhatIsAskedInOtherWordsIsFoundHoweverOld(t *testing.T) {
	lines := []string{"user: By the way, we adopted a beagle called Biscuit last spring."}
	for i := range 1200 {
		lines = append(lines, fmt.Sprintf("user: the %s number %d was moved to another folder", []string{"report", "meeting", "invoice"}[i%3], i))
	}
	x, all := talk(lines...)
	hits := matches(x, Query{Text: "Do I have any pets?"})
	if len(hits) == 0 || len(hits) > similarTop || found(all, hits)[0] != all[0].Text {
		t.Errorf("%d found: %q", len(hits), found(all, hits))
	}
}
