package calibrate

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func yes() bool { return true }

// bill lets a model learn from replies to prompts of 1,000 tokens by our raw
// count, of which the router bills others, and returns the margins in use.
func bill(c *Calibration, prior float64, billed ...int) (used []float64) {
	for _, n := range billed {
		m := c.Margin("a/b", prior)
		c.Learn("a/b", m, int(1000*m), n, yes)
		used = append(used, c.Margin("a/b", prior))
	}
	return used
}

func TestAMarginGoesUpAtOnce(t *testing.T) {
	for _, c := range []struct {
		prior  float64
		billed int
		want   float64
	}{
		{1, 1000, 1},      // right as it is
		{1, 1001, 1.0625}, // a step suffices
		{1, 1500, 1.5},    // on the step
		{1.1, 1500, 1.5},  //
		{1.1, 1090, 1.1},  // below: no reason to move
		{1, 3000, 3},      // the most that is believed
		{1, 3001, 1},      // that can't be our text
		{1.1, 299, 1.1},   // nor that
		{1.25, 1_260, 1.3125} /* just above */} {
		if got := bill(New(), c.prior, c.billed)[0]; got != c.want {
			t.Errorf("from %v, billed %d: %v, want %v", c.prior, c.billed, got, c.want)
		}
	}
}

func TestAMarginComesDownSlowlyAndInSteps(t *testing.T) {
	billed := make([]int, 200)
	for i := range billed {
		billed[i] = 1200
	}
	used := bill(New(), 1.6, billed...)
	before, moves := 1.6, 0
	for i, m := range used {
		if m > before || before-m > 0.2 {
			t.Fatalf("after %d replies: from %v to %v", i+1, before, m)
		}
		if m != before {
			moves++
		}
		if m < 1.2 {
			t.Fatalf("after %d replies %v, which is too low", i+1, m)
		}
		before = m
	}
	if used[1] != 1.6 || before > 1.3 || moves > 6 {
		t.Errorf("%v after two, %v after all, %d moves", used[1], before, moves)
	}
}

// A model whose tokens scatter must not move the cut of the history with every
// reply.
func TestAMarginThatIsRightStays(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	billed := make([]int, 1000)
	for i := range billed {
		billed[i] = 1180 + rnd.IntN(41)
	}
	used := bill(New(), 1.1, billed...)
	moves := 0
	for i := 1; i < len(used); i++ {
		if used[i] != used[i-1] {
			moves++
		}
	}
	if moves > 2 || used[999] != 1.25 {
		t.Errorf("it moved %d times, and is %v", moves, used[999])
	}
}

func TestWhatNothingIsLearntFrom(t *testing.T) {
	for name, learn := range map[string]func(c *Calibration){
		"a small prompt":     func(c *Calibration) { c.Learn("a/b", 1, LeastPrompt-1, 900, yes) },
		"no usage":           func(c *Calibration) { c.Learn("a/b", 1, 1000, 0, yes) },
		"an image":           func(c *Calibration) { c.Learn("a/b", 1, 1000, 1500, func() bool { return false }) },
		"another model":      func(c *Calibration) { c.Learn("a/c", 1, 1000, 1500, yes) },
		"less, at no margin": func(c *Calibration) { c.Learn("a/b", 1, 1000, 700, yes) },
	} {
		c := New()
		learn(c)
		if m := c.Margin("a/b", 1); m != 1 {
			t.Errorf("%s: the margin is %v", name, m)
		}
	}
}

func TestAMarginIsNeverBelowOne(t *testing.T) {
	billed := make([]int, 500)
	for i := range billed {
		billed[i] = 500
	}
	if used := bill(New(), 1.1, billed...); used[499] != 1 {
		t.Errorf("it came down to %v", used[499])
	}
}

func TestModelsAreBounded(t *testing.T) {
	c := New()
	for i := range 3 * calibratedModels {
		c.Learn(fmt.Sprint("a/", i), 1, 1000, 1500, yes)
	}
	shown := 0
	c.Latest(func(string, float64) { shown++ })
	if n := c.models.Len(); n != calibratedModels || shown != shownModels {
		t.Errorf("%d models are remembered, %d shown", n, shown)
	}
	if c.Margin("a/0", 1) != 1 || c.Margin(fmt.Sprint("a/", 3*calibratedModels-1), 1) != 1.5 {
		t.Error("the wrong ones are remembered")
	}
}

// Whatever a router bills, what is in use is never below what the last reply
// needed, as far as it is believed.
func TestAMarginIsNeverTooLowForTheLastReply(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		c, prior := New(), []float64{1, 1.1, 1.6}[seed%3]
		for range 200 {
			m := c.Margin("a/b", prior)
			raw := 600 + rnd.IntN(5000)
			billed := int(float64(raw) * (0.3 + 2.6*rnd.Float64()))
			estimated := int(float64(raw)*m) + 1
			c.Learn("a/b", m, estimated, billed, yes)
			if now := c.Margin("a/b", prior); float64(raw)*now*1.01 < float64(billed) || now > 3 || now < 1 {
				t.Fatalf("seed %d: %d of %d billed, and the margin is %v", seed, billed, raw, now)
			}
		}
	}
}
