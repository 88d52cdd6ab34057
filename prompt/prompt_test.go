package prompt_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/prompt"
)

// count takes every word for a token.
func count(s string) int { return len(strings.Fields(s)) }

// exchanges makes a session of exchanges with these sizes.
func exchanges(sizes ...int) (earlier []prompt.Earlier) {
	var at int64
	for _, n := range sizes {
		earlier = append(earlier, prompt.Earlier{Tokens: n, Start: at, End: at + int64(n)})
		at += int64(n)
	}
	return earlier
}

func passages(sizes ...int) (p []prompt.Passage) {
	for i, n := range sizes {
		p = append(p, prompt.Passage{FileID: "file", Filename: "f.txt", Chunk: i, Text: strings.Repeat(fmt.Sprint("w", i, " "), n)})
	}
	return p
}

func TestMake(t *testing.T) {
	roomy := prompt.Limits{Context: 100_000, Answer: 1000, Added: 1000, Files: 400}
	required := func(e []prompt.Earlier) []prompt.Earlier { e[len(e)-1].Required = true; return e }
	unanswered := func(e []prompt.Earlier) []prompt.Earlier { e[len(e)-1].Unanswered = true; return e }
	for _, c := range []struct {
		name      string
		in        prompt.Input
		first     int
		truncated bool
	}{
		{"no history", prompt.Input{Limits: roomy, Request: 10}, 0, false},
		{"all of it fits", prompt.Input{Limits: roomy, Request: 10, Earlier: exchanges(500, 500)}, 0, false},
		{"the session holds more than was looked at", prompt.Input{Limits: roomy, Request: 10, Earlier: exchanges(500), Older: true}, 0, true},
		{"one token too many: the cut moves a quarter", prompt.Input{Limits: roomy, Request: 10, Earlier: exchanges(125, 125, 125, 125, 125, 125, 125, 126)}, 2, true},
		{"and stays while the session grows by a quarter", prompt.Input{Limits: roomy, Request: 10, Earlier: exchanges(125, 125, 125, 125, 125, 125, 125, 125, 125, 125)}, 2, true},
		{"an exchange that the cut goes through is left out", prompt.Input{Limits: roomy, Request: 10, Earlier: exchanges(240, 240, 240, 240, 240)}, 2, true},
		{"the last two stand where they fit", prompt.Input{Limits: roomy, Request: 10, Earlier: exchanges(800, 600, 400)}, 1, true},
		{"a last one without an answer is none of the two", prompt.Input{Limits: roomy, Request: 10, Earlier: unanswered(exchanges(800, 500, 300, 100))}, 1, true},
		{"the last one alone where both don't fit", prompt.Input{Limits: roomy, Request: 10, Earlier: exchanges(600, 600)}, 1, true},
		{"one that is too long hides what is older", prompt.Input{Limits: roomy, Request: 10, Earlier: exchanges(10, 1001, 10)}, 2, true},
		{"the share of the files is kept free", prompt.Input{Limits: roomy, Request: 10, Earlier: exchanges(300, 300, 300), Searches: true}, 1, true},
		{"the answer's room is kept free", prompt.Input{Limits: prompt.Limits{Context: 1500, Answer: 1000, Added: 1000}, Request: 100, Earlier: exchanges(300, 300)}, 1, true},
		{"the request alone is too long", prompt.Input{Limits: prompt.Limits{Context: 1500, Answer: 1000, Added: 1000}, Request: 501, Earlier: exchanges(1, 1)}, 2, true},
		{"a required one stands though it doesn't fit", prompt.Input{Limits: roomy, Request: 10, Earlier: required(exchanges(10, 2000))}, 1, true},
		{"a required one stands though the request is too long", prompt.Input{Limits: roomy, Request: 200_000, Earlier: required(exchanges(10, 20))}, 1, true},
		{"others stand with a required one where they fit", prompt.Input{Limits: roomy, Request: 10, Earlier: required(exchanges(10, 20))}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Count = count
			p := prompt.Make(c.in)
			if p.First != c.first || p.Truncated != c.truncated {
				t.Errorf("First %d, want %d; Truncated %t, want %t", p.First, c.first, p.Truncated, c.truncated)
			}
			n := 0
			for _, e := range c.in.Earlier[p.First:] {
				n += e.Tokens
			}
			if p.HistoryTokens != n || p.Tokens != c.in.Request+n {
				t.Errorf("%d tokens of history, %d in all", p.HistoryTokens, p.Tokens)
			}
		})
	}
}

func TestPassagesGetWhatHistoryLeavesOfASmallWindow(t *testing.T) {
	in := prompt.Input{
		Limits:  prompt.Limits{Context: 600, Answer: 100, Added: 8000, Files: 2000},
		Request: 10, Searches: true, Passages: passages(300), Count: count,
	}
	if p := prompt.Make(in); len(p.Passages) != 1 || p.Truncated {
		t.Errorf("alone: %+v", p)
	}
	in.Earlier = exchanges(60, 60)
	if p := prompt.Make(in); len(p.Passages) != 1 || p.First != 0 || p.Tokens > 500 {
		t.Errorf("beside history: %+v", p)
	}
	in.Earlier = exchanges(120, 120)
	if p := prompt.Make(in); len(p.Passages) != 0 || p.First != 0 {
		t.Errorf("history that needs its share: %+v", p)
	}
}

func TestMakeQuotes(t *testing.T) {
	limits := prompt.Limits{Context: 10_000, Answer: 100, Added: 1000, Files: 400}
	t.Run("the best that fit", func(t *testing.T) {
		found := passages(150, 300, 100, 100)
		p := prompt.Make(prompt.Input{Limits: limits, Searches: true, Passages: found, Count: count})
		if want := []prompt.Passage{found[0], found[2], found[3]}; !reflect.DeepEqual(p.Passages, want) {
			t.Errorf("%d passages", len(p.Passages))
		}
		if !p.Truncated || p.QuotedTokens > 400 || p.QuotedTokens != count(p.Quoted) || p.Tokens != p.QuotedTokens {
			t.Errorf("%d tokens are quoted, %d in all", p.QuotedTokens, p.Tokens)
		}
	})
	t.Run("headers count", func(t *testing.T) {
		p := prompt.Make(prompt.Input{Limits: limits, Searches: true, Passages: passages(399), Count: count})
		if p.Quoted != "" || len(p.Passages) > 0 || !p.Truncated {
			t.Errorf("%d tokens are quoted of 400", p.QuotedTokens)
		}
	})
	t.Run("what the turn was given, whatever the budget", func(t *testing.T) {
		found := passages(300, 300)
		for _, request := range []int{10, 20_000} {
			p := prompt.Make(prompt.Input{Limits: limits, Request: request, Searches: true, Given: true, Passages: found, Count: count})
			if !reflect.DeepEqual(p.Passages, found) || p.QuotedTokens != count(p.Quoted) || p.QuotedTokens < 600 || p.Truncated {
				t.Errorf("%d passages, %d tokens, truncated %t", len(p.Passages), p.QuotedTokens, p.Truncated)
			}
		}
		if p := prompt.Make(prompt.Input{Limits: limits, Given: true, Count: count}); p.Quoted != "" {
			t.Errorf("quoted %q", p.Quoted)
		}
	})
	t.Run("nothing where the request is too long", func(t *testing.T) {
		p := prompt.Make(prompt.Input{Limits: limits, Request: 9_900, Searches: true, Passages: passages(1), Count: count})
		if p.Quoted != "" || p.Tokens != 9_900 || !p.Truncated {
			t.Errorf("quoted %q", p.Quoted)
		}
	})
	t.Run("history is cut at the same place whatever was found", func(t *testing.T) {
		in := prompt.Input{Limits: limits, Searches: true, Earlier: exchanges(100, 100, 100, 100, 100, 100, 100), Count: count}
		without := prompt.Make(in)
		in.Passages = passages(200)
		if with := prompt.Make(in); with.First != without.First || with.Quoted == "" {
			t.Errorf("from %d on, and from %d on", with.First, without.First)
		}
	})
	t.Run("a count that isn't a sum of its parts", func(t *testing.T) {
		odd := func(s string) int { n := count(s); return n + n*n/500 }
		p := prompt.Make(prompt.Input{Limits: limits, Searches: true, Passages: passages(60, 60, 60, 60), Count: odd})
		if len(p.Passages) == 0 || p.QuotedTokens > 400 || p.QuotedTokens != odd(p.Quoted) {
			t.Errorf("%d passages, %d tokens", len(p.Passages), p.QuotedTokens)
		}
	})
}

func TestMakeNeverExceedsItsLimits(t *testing.T) {
	for seed := range uint64(20_000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		in := prompt.Input{
			Limits: prompt.Limits{
				Context: rnd.IntN(10_000), Answer: rnd.IntN(2000), Added: rnd.IntN(6000), Files: rnd.IntN(2000),
			},
			Request: rnd.IntN(3000), Older: rnd.IntN(2) == 0, Searches: rnd.IntN(2) == 0, Count: count,
		}
		margin := []float64{1, 1, 1.1, 1.6, 0.9}[rnd.IntN(5)]
		at := rnd.Int64N(100_000)
		for range rnd.IntN(30) {
			n := 1 + rnd.IntN(800)
			if rnd.IntN(10) == 0 {
				n *= 10
			}
			in.Earlier = append(in.Earlier, prompt.Earlier{Tokens: int(float64(n)*margin + 1), Start: at, End: at + int64(n)})
			at += int64(n)
		}
		required := len(in.Earlier) > 0 && rnd.IntN(4) == 0
		if required {
			in.Earlier[len(in.Earlier)-1].Required = true
		}
		if in.Searches {
			for range rnd.IntN(8) {
				in.Passages = append(in.Passages, passages(rnd.IntN(400))...)
			}
			in.Given = rnd.IntN(5) == 0
		}
		if in.Recalls = rnd.IntN(2) == 0; in.Recalls {
			for n := range rnd.IntN(20) {
				in.Recalled = append(in.Recalled, older(int64(n), 0, "user", strings.Repeat("w ", rnd.IntN(300)), time.Time{}))
			}
		}
		p := prompt.Make(in)

		history := 0
		for _, e := range in.Earlier[p.First:] {
			history += e.Tokens
		}
		if p.HistoryTokens != history || p.QuotedTokens+p.RecalledTokens != count(p.Quoted) ||
			p.Tokens != in.Request+history+p.QuotedTokens+p.RecalledTokens {
			t.Fatalf("seed %d: the sums are wrong: %+v", seed, p)
		}
		// What had to be added doesn't count, but leaves no room for the rest.
		ours := history + p.QuotedTokens + p.RecalledTokens
		if required {
			ours -= in.Earlier[len(in.Earlier)-1].Tokens
			if p.First == len(in.Earlier) {
				t.Fatalf("seed %d: a required exchange is missing", seed)
			}
		}
		if in.Given {
			ours -= p.QuotedTokens + p.RecalledTokens
			if len(p.Passages) != len(in.Passages) {
				t.Fatalf("seed %d: given passages are missing", seed)
			}
		}
		room := min(in.Limits.Added, in.Limits.Context-in.Limits.Answer-in.Request)
		if ours > 0 && ours > room {
			t.Fatalf("seed %d: %d tokens are added, there is room for %d", seed, ours, room)
		}
		if ours > 0 && !required && !in.Given && p.Tokens+in.Limits.Answer > in.Limits.Context {
			t.Fatalf("seed %d: %d tokens and the answer exceed %d", seed, p.Tokens, in.Limits.Context)
		}
		if !in.Given && p.QuotedTokens > in.Limits.Files {
			t.Fatalf("seed %d: %d tokens of files", seed, p.QuotedTokens)
		}
		if want := in.Older || p.First > 0 || len(p.Passages) < len(in.Passages); p.Truncated != want {
			t.Fatalf("seed %d: Truncated is %t", seed, p.Truncated)
		}
		if again := prompt.Make(in); !reflect.DeepEqual(again, p) {
			t.Fatalf("seed %d: another plan from the same input", seed)
		}
	}
}

// cached simulates a session, and returns the share of all prompt tokens that
// the router has in its cache: those up to the first that isn't the same as in
// the prompt before. own is the user's part of every exchange of 200 tokens,
// system what the request begins with.
func cached(limits prompt.Limits, searches bool, margin float64, turns int) float64 {
	const exchange, own, system = 200, 40, 150
	model := func(n int) int { return int(float64(n)*margin + 0.999) }
	var earlier []prompt.Earlier
	var total, same float64
	before := -1 // First of the prompt before
	for i := range turns {
		plan := prompt.Make(prompt.Input{Limits: limits, Request: model(system + own), Earlier: earlier, Searches: searches, Count: count})
		total += float64(plan.Tokens)
		if plan.First == before { // all of the last prompt stands in this one
			same += float64(plan.Tokens - model(exchange))
		} else if before >= 0 {
			same += float64(model(system))
		}
		before = plan.First
		at := int64(i * exchange)
		earlier = append(earlier, prompt.Earlier{Tokens: model(exchange), Start: at, End: at + exchange})
	}
	return same / total
}

func TestThePromptsFrontStaysTheSame(t *testing.T) {
	roomy := prompt.Limits{Context: 128_000, Answer: 1024, Added: 8000, Files: 2000}
	for _, c := range []struct {
		name     string
		limits   prompt.Limits
		searches bool
		margin   float64
		atLeast  float64
	}{
		{"8,000 tokens", roomy, false, 1, 0.88},
		{"6,000 tokens beside files", roomy, true, 1, 0.85},
		{"8,000 tokens, a model that counts a quarter more", roomy, false, 1.25, 0.85},
		{"8,000 tokens, a model that counts 60 % more", roomy, false, 1.6, 0.80},
		{"a model of 8,192 tokens", prompt.Limits{Context: 8192, Answer: 1024, Added: 8000, Files: 2000}, false, 1, 0.85},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cached(c.limits, c.searches, c.margin, 200)
			t.Logf("%.1f %% of the prompt tokens are in the router's cache", 100*got)
			if got < c.atLeast {
				t.Errorf("%.1f %%, want at least %.0f %%", 100*got, 100*c.atLeast)
			}
		})
	}
}

// A share that is bounded by the model's context shrinks with every longer
// request; the cut must not follow each of them.
func TestTheCutDoesNotFollowTheRequestsLength(t *testing.T) {
	var earlier []prompt.Earlier
	moved, before := 0, -1
	for i := range 200 {
		p := prompt.Make(prompt.Input{
			Limits:  prompt.Limits{Context: 8192, Answer: 1024, Added: 8000},
			Request: 100 + i*37%200, Earlier: earlier, Count: count,
		})
		if p.First != before {
			moved++
		}
		before = p.First
		at := int64(i * 200)
		earlier = append(earlier, prompt.Earlier{Tokens: 200, Start: at, End: at + 200})
	}
	t.Logf("the cut moved %d times in 200 turns", moved)
	if moved > 40 {
		t.Errorf("the cut moved %d times in 200 turns", moved)
	}
}
