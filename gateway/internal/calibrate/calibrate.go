// Package calibrate learns by how much the counts of a model's tokens have to be
// raised.
package calibrate

import (
	"math"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Calibration learns, from what the router bills, by how much the counts of a
// model's tokens have to be raised. It takes the place of the cautious margins
// of package tokens as soon as there is something better.
//
// A margin that is too low fails requests, one that is too high wastes some of
// the model's context: it goes up at once, and comes down slowly. And each
// change moves the cut of the history, which costs the router's prompt cache:
// so it moves in steps, and comes down a step only when it is well below.
type Calibration struct {
	mu     sync.Mutex
	models *simplelru.LRU[string, *margin]
}

// margin is what is known of a model.
type margin struct {
	used   float64 // the factor in use
	needed float64 // smoothed: what would have been right
}

const (
	// calibratedModels bounds the models that are remembered.
	calibratedModels = 1000
	// LeastPrompt is the size of prompts, in tokens, from which on something
	// is learnt: in smaller ones, what the router adds itself weighs too much.
	LeastPrompt = 512
	// What a router bills beyond these factors of our count isn't our text.
	leastNeeded, mostNeeded = 0.3, 3
	// marginStep is the least change of a margin in use.
	marginStep = 1.0 / 16
	// marginDecay is the weight of one reply when a margin comes down.
	marginDecay = 1.0 / 16
)

// New returns a Calibration that knows nothing.
func New() *Calibration {
	models, _ := simplelru.NewLRU[string, *margin](calibratedModels, nil) // its only error: not a positive size
	return &Calibration{models: models}
}

// Margin returns the factor for a model; prior is that of a model of which
// nothing is known.
func (c *Calibration) Margin(model string, prior float64) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.models.Get(model); ok {
		return m.used
	}
	return prior
}

// Learn takes in that a prompt which was estimated at some tokens, with the
// given margin, was billed as others. ours reports whether all of it is text
// that we count, as far as anyone can: it is asked only where the answer
// matters.
func (c *Calibration) Learn(model string, used float64, estimated, billed int, ours func() bool) {
	if estimated < LeastPrompt || billed < 1 {
		return
	}
	// The estimate is a sum that was rounded up for every message: by this
	// measure, the right margin is the one with which it would have been right.
	needed := used * float64(billed) / float64(estimated)
	if needed < leastNeeded || needed > mostNeeded || needed <= 1 && used <= 1 || !ours() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.models.Get(model)
	if !ok {
		m = &margin{used: used, needed: used}
		c.models.Add(strings.Clone(model), m)
	}
	m.take(needed)
}

func (m *margin) take(needed float64) {
	if needed > m.needed {
		m.needed = needed
	} else {
		m.needed += (needed - m.needed) * marginDecay
	}
	switch {
	case m.needed > m.used:
		m.used = m.step()
	case m.needed <= m.used-1.5*marginStep:
		m.used = max(1, m.step())
	}
}

// step is the least margin that suffices. (The small term keeps
// 1.5000000000000002 from becoming more than 1.5.)
func (m *margin) step() float64 { return math.Ceil(m.needed/marginStep-1e-6) * marginStep }

// shownModels bounds the models whose margins are shown as a metric: their
// names come from clients, though from such as the router has answered.
const shownModels = 50

// Latest calls f for the models that were used last.
func (c *Calibration) Latest(f func(model string, margin float64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	models := c.models.Keys() // oldest first
	for _, name := range models[max(0, len(models)-shownModels):] {
		if m, ok := c.models.Peek(name); ok {
			f(name, m.used)
		}
	}
}
