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

// words is a model to which every word is a token.
type words func(string) int

func (w words) Count(s string) int { return w(s) }
func (w words) Raise(n int) int    { return n }

func count(s string) int { return len(strings.Fields(s)) }

func allocate(in prompt.Input) prompt.Allocation {
	if in.Model == nil {
		in.Model = words(count)
	}
	return prompt.Allocate(in)
}

// plan makes a plan from what was found.
func plan(in prompt.Input, quotes []prompt.Quote, chunks []prompt.Chunk) prompt.Plan {
	return allocate(in).Make(quotes, chunks)
}

// exchanges makes a session of exchanges with these sizes.
func exchanges(sizes ...int) (earlier []prompt.Earlier) {
	var at int64
	for _, n := range sizes {
		earlier = append(earlier, prompt.Earlier{Tokens: n, Start: at, End: at + int64(n)})
		at += int64(n)
	}
	return earlier
}

func chunks(sizes ...int) (c []prompt.Chunk) {
	for i, n := range sizes {
		c = append(c, prompt.Chunk{FileID: "file", Filename: "f.txt", N: i, Text: strings.Repeat(fmt.Sprint("w", i, " "), n)})
	}
	return c
}

func TestMake(t *testing.T) {
	roomy := prompt.Limits{Context: 100_000, Answer: 1000, Added: 1000, Chunks: 400}
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
			p := plan(c.in, nil, nil)
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
		Limits:  prompt.Limits{Context: 600, Answer: 100, Added: 8000, Chunks: 2000},
		Request: 10, Searches: true,
	}
	if p := plan(in, nil, chunks(300)); len(p.Chunks) != 1 || p.Truncated {
		t.Errorf("alone: %+v", p)
	}
	in.Earlier = exchanges(60, 60)
	if p := plan(in, nil, chunks(300)); len(p.Chunks) != 1 || p.First != 0 || p.Tokens > 500 {
		t.Errorf("beside history: %+v", p)
	}
	in.Earlier = exchanges(120, 120)
	if p := plan(in, nil, chunks(300)); len(p.Chunks) != 0 || p.First != 0 {
		t.Errorf("history that needs its share: %+v", p)
	}
}

func TestMakeQuotes(t *testing.T) {
	limits := prompt.Limits{Context: 10_000, Answer: 100, Added: 1000, Chunks: 400}
	t.Run("the best that fit", func(t *testing.T) {
		found := chunks(150, 300, 100, 100)
		p := plan(prompt.Input{Limits: limits, Searches: true}, nil, found)
		if want := []prompt.Chunk{found[0], found[2], found[3]}; !reflect.DeepEqual(p.Chunks, want) {
			t.Errorf("%d passages", len(p.Chunks))
		}
		if !p.Truncated || p.ChunkTokens > 400 || p.ChunkTokens != count(p.Text) || p.Tokens != p.ChunkTokens {
			t.Errorf("%d tokens are quoted, %d in all", p.ChunkTokens, p.Tokens)
		}
	})
	t.Run("headers count", func(t *testing.T) {
		p := plan(prompt.Input{Limits: limits, Searches: true}, nil, chunks(399))
		if p.Text != "" || len(p.Chunks) > 0 || !p.Truncated {
			t.Errorf("%d tokens are quoted of 400", p.ChunkTokens)
		}
	})
	t.Run("what the turn was given, whatever the budget", func(t *testing.T) {
		found := chunks(300, 300)
		for _, request := range []int{10, 20_000} {
			p := plan(prompt.Input{Limits: limits, Request: request, Searches: true, Continues: true}, nil, found)
			if !reflect.DeepEqual(p.Chunks, found) || p.ChunkTokens != count(p.Text) || p.ChunkTokens < 600 || p.Truncated {
				t.Errorf("%d passages, %d tokens, truncated %t", len(p.Chunks), p.ChunkTokens, p.Truncated)
			}
		}
		if p := plan(prompt.Input{Limits: limits, Continues: true}, nil, nil); p.Text != "" {
			t.Errorf("quoted %q", p.Text)
		}
	})
	t.Run("nothing where the request is too long", func(t *testing.T) {
		p := plan(prompt.Input{Limits: limits, Request: 9_900, Searches: true}, nil, chunks(1))
		if p.Text != "" || p.Tokens != 9_900 || !p.Truncated {
			t.Errorf("quoted %q", p.Text)
		}
	})
	t.Run("history is cut at the same place whatever was found", func(t *testing.T) {
		in := prompt.Input{Limits: limits, Searches: true, Earlier: exchanges(100, 100, 100, 100, 100, 100, 100)}
		without := plan(in, nil, nil)
		if with := plan(in, nil, chunks(200)); with.First != without.First || with.Text == "" {
			t.Errorf("from %d on, and from %d on", with.First, without.First)
		}
	})
	t.Run("a count that isn't a sum of its parts", func(t *testing.T) {
		odd := func(s string) int { n := count(s); return n + n*n/500 }
		p := plan(prompt.Input{Limits: limits, Searches: true, Model: words(odd)}, nil, chunks(60, 60, 60, 60))
		if len(p.Chunks) == 0 || p.ChunkTokens > 400 || p.ChunkTokens != odd(p.Text) {
			t.Errorf("%d passages, %d tokens", len(p.Chunks), p.ChunkTokens)
		}
	})
}

func TestMakeNeverExceedsItsLimits(t *testing.T) {
	for seed := range uint64(20_000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		in := prompt.Input{
			Limits: prompt.Limits{
				Context: rnd.IntN(10_000), Answer: rnd.IntN(2000), Added: rnd.IntN(6000), Chunks: rnd.IntN(2000),
			},
			Request: rnd.IntN(3000), Older: rnd.IntN(2) == 0, Searches: rnd.IntN(2) == 0,
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
		var found []prompt.Chunk
		var recalled []prompt.Quote
		if in.Searches {
			for range rnd.IntN(8) {
				found = append(found, chunks(rnd.IntN(400))...)
			}
			in.Continues = rnd.IntN(5) == 0
		}
		if in.Recalls = rnd.IntN(2) == 0; in.Recalls {
			for n := range rnd.IntN(20) {
				recalled = append(recalled, older(int64(n), 0, "user", strings.Repeat("w ", rnd.IntN(300)), time.Time{}))
			}
		}
		in.Quoted = len(recalled) > 0
		p := plan(in, recalled, found)

		history := 0
		for _, e := range in.Earlier[p.First:] {
			history += e.Tokens
		}
		if p.HistoryTokens != history || p.ChunkTokens+p.QuoteTokens != count(p.Text) ||
			p.Tokens != in.Request+history+p.ChunkTokens+p.QuoteTokens {
			t.Fatalf("seed %d: the sums are wrong: %+v", seed, p)
		}
		// What had to be added doesn't count, but leaves no room for the rest.
		ours := history + p.ChunkTokens + p.QuoteTokens
		if required {
			ours -= in.Earlier[len(in.Earlier)-1].Tokens
			if p.First == len(in.Earlier) {
				t.Fatalf("seed %d: a required exchange is missing", seed)
			}
		}
		if in.Continues {
			ours -= p.ChunkTokens + p.QuoteTokens
			if len(p.Chunks) != len(found) {
				t.Fatalf("seed %d: given passages are missing", seed)
			}
		}
		room := min(in.Limits.Added, in.Limits.Context-in.Limits.Answer-in.Request)
		if ours > 0 && ours > room {
			t.Fatalf("seed %d: %d tokens are added, there is room for %d", seed, ours, room)
		}
		if ours > 0 && !required && !in.Continues && p.Tokens+in.Limits.Answer > in.Limits.Context {
			t.Fatalf("seed %d: %d tokens and the answer exceed %d", seed, p.Tokens, in.Limits.Context)
		}
		if !in.Continues && p.ChunkTokens > in.Limits.Chunks {
			t.Fatalf("seed %d: %d tokens of files", seed, p.ChunkTokens)
		}
		if want := in.Older || p.First > 0 || len(p.Chunks) < len(found); p.Truncated != want {
			t.Fatalf("seed %d: Truncated is %t", seed, p.Truncated)
		}
		if again := plan(in, recalled, found); !reflect.DeepEqual(again, p) {
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
		p := plan(prompt.Input{Limits: limits, Request: model(system + own), Earlier: earlier, Searches: searches}, nil, nil)
		total += float64(p.Tokens)
		if p.First == before { // all of the last prompt stands in this one
			same += float64(p.Tokens - model(exchange))
		} else if before >= 0 {
			same += float64(model(system))
		}
		before = p.First
		at := int64(i * exchange)
		earlier = append(earlier, prompt.Earlier{Tokens: model(exchange), Start: at, End: at + exchange})
	}
	return same / total
}

func TestThePromptsFrontStaysTheSame(t *testing.T) {
	roomy := prompt.Limits{Context: 128_000, Answer: 1024, Added: 8000, Chunks: 2000}
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
		{"a model of 8,192 tokens", prompt.Limits{Context: 8192, Answer: 1024, Added: 8000, Chunks: 2000}, false, 1, 0.85},
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
		p := plan(prompt.Input{
			Limits:  prompt.Limits{Context: 8192, Answer: 1024, Added: 8000},
			Request: 100 + i*37%200, Earlier: earlier,
		}, nil, nil)
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
