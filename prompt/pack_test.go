package prompt_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/memory/recall"
	"github.com/backstory-proxy/backstory/prompt"
)

// said indexes what a user said, a message an exchange, ten of them a day.
func said(texts ...string) *recall.Index {
	x := recall.New(prompt.Pinned)
	for i, text := range texts {
		x.Add(recall.Message{
			Seq: int64(i + 1), Role: "user", Text: text, Tokens: len(strings.Fields(text)) + 4,
			Time: time.Date(2026, 1, 1+i/10, 12, i%10, 0, 0, time.UTC),
		})
	}
	return x
}

// pack packs what a question finds into an allocation of so many tokens for
// quotes.
func pack(x *recall.Index, question string, quotes int) []recall.Hit {
	a := allocate(prompt.Input{Limits: prompt.Limits{Context: 1_000_000, Added: quotes}, Older: true, Recalls: true})
	return a.Pack(x.Search(recall.Query{Text: question}))
}

func TestPackFillsTheBudget(t *testing.T) {
	var texts []string
	for i := range 300 {
		texts = append(texts, "bread "+strings.Repeat("and so on ", i%17))
	}
	x := said(texts...)
	for quotes := 150; quotes < 3000; quotes += 37 {
		sum, days, seen := 0, map[int64]bool{}, map[int64]bool{}
		for _, h := range pack(x, "bread", quotes) {
			if seen[h.Seq] {
				t.Fatalf("%d comes twice", h.Seq)
			}
			sum, days[h.Day], seen[h.Seq] = sum+h.Tokens, true, true
		}
		// A quarter more is packed than may fit, and each day takes a line.
		if sum += 4 * len(days); sum > quotes*5/4 || sum < quotes*2/3 {
			t.Fatalf("%d tokens are packed for %d", sum, quotes)
		}
	}
	if hits := pack(x, "bread", 30); hits != nil {
		t.Errorf("30 tokens hold %+v", hits)
	}
}

func TestABudgetThatIsNotWorthFillingHoldsNothing(t *testing.T) {
	x := recall.New(prompt.Pinned)
	x.Add(recall.Message{Seq: 1, Role: "user", Text: "bread", Tokens: 3})
	for quotes, want := range map[int]int{37: 0, 42: 0, 43: 1} { // 36 frame the quotes
		if hits := pack(x, "bread", quotes); len(hits) != want {
			t.Errorf("%d tokens hold %+v", quotes, hits)
		}
	}
}

func TestPinnedInstructionsTakeALittleOfTheBudget(t *testing.T) {
	var texts []string
	for i := range 100 {
		texts = append(texts, fmt.Sprintf("I prefer bread of the kinds with number %4d", i)) // 13 tokens
	}
	x := said(texts...)
	for quotes, most := range map[int]int{1000: 180, 20_000: 500} {
		sum, next := 0, int64(len(texts))
		for _, h := range pack(x, "xylophone", quotes) {
			if !h.Pinned || h.Seq != next {
				t.Errorf("of %d: %+v, not %d", quotes, h, next)
			}
			sum, next = sum+h.Tokens, next-1
		}
		if sum > most || sum < most-14 {
			t.Errorf("of %d, they take %d, want about %d", quotes, sum, most)
		}
	}
}

func TestPinnedInstructionsComeAheadOfMatches(t *testing.T) {
	texts := []string{"Hi! Always answer in French.", "I have always liked bread"}
	for i := range 50 {
		texts = append(texts, fmt.Sprintf("number %d is about bread", i))
	}
	hits := pack(said(texts...), "bread", 300)
	if len(hits) < 3 || hits[0].Seq != 1 || hits[1].Pinned {
		t.Errorf("packed %+v", hits)
	}
}

func TestFollowUps(t *testing.T) {
	for text, want := range map[string]bool{
		"make it shorter": true, "And in French?": true, "what did you mean by that": true, "Rewrite that as a table, please": true, "": true,
		"ok, thanks, go on": true, "Auf Deutsch?": true, "もっと短く": true, "Сделай короче": true,
		"Where does my boat lie in winter?": false, "When did Caroline go to the support group?": false, "船はどこの港にありますか": false,
	} {
		if got := prompt.FollowUp(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestPinned(t *testing.T) {
	for text, want := range map[string]bool{
		"Always answer in French.": true, "Thanks. From now on, no tables": true, "I'd prefer short answers": true, "以后请用中文": true,
		"I have always liked bread": false, "Do you never sleep?": false, "": false, "...": false,
	} {
		if got := prompt.Pinned(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
