package admission

import (
	"math"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// Processors tells how long what could run waits for a processor: what is scarce
// when there is too much to do, be it before the model or after it. Streams that
// are merely open don't make it longer.
type Processors struct {
	mu     sync.Mutex
	waits  func() *metrics.Float64Histogram // of goroutines, in seconds; since the process began
	before []uint64
	at     time.Time

	next atomic.Int64 // when to read again, Unix nanoseconds
	wait atomic.Int64 // as of the last time
	shut atomic.Int64 // thousandths of what comes that are to be refused
}

const (
	// waitEvery is how often the runtime is asked, at most: it takes 5 µs. In a
	// busy 25 ms it tells of some 50 waits, having sampled one in eight.
	waitEvery = 25 * time.Millisecond
	// waitOld is how long ago the runtime may have been asked for what has
	// happened since to tell of now.
	waitOld = time.Second
	// waitsLeast is how many waits tell anything.
	waitsLeast = 8

	// waitSoft is how long what could run may wait: a chat does so some ten times
	// on its way, and the unlucky one three times as long. From waitHard on nothing
	// is let in.
	waitSoft = 10 * time.Millisecond
	waitHard = 6 * waitSoft
	// Each time that it waits longer, a fifth less is let in, and each time that
	// it doesn't, a fiftieth more: what fits is found within half a second, and
	// little is let in beyond it.
	lessOpen, moreOpen, leastOpen = 5, 20, 10 // 1/5; thousandths
)

// NewProcessors makes one that asks Go's runtime.
func NewProcessors() *Processors {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	return &Processors{waits: func() *metrics.Float64Histogram {
		metrics.Read(sample)
		return sample[0].Value.Float64Histogram()
	}}
}

// Wait is the mean time that goroutines waited for a processor lately, and how many
// of a thousand requests are to be let in. It is a request that asks the runtime,
// now and then: there is no goroutine for it, and while nobody asks it costs nothing.
func (p *Processors) Wait(now time.Time) (mean time.Duration, open int64) {
	if now.UnixNano() >= p.next.Load() && p.mu.TryLock() {
		p.ask(now)
		p.mu.Unlock()
	}
	return time.Duration(p.wait.Load()), 1000 - p.shut.Load()
}

// ask asks the runtime, with mu held.
func (p *Processors) ask(now time.Time) {
	p.next.Store(now.Add(waitEvery).UnixNano())
	all := p.waits()
	if p.before == nil {
		p.before = make([]uint64, len(all.Counts))
	}
	waits, seconds := uint64(0), 0.
	for i, n := range all.Counts {
		n -= p.before[i]
		p.before[i] += n
		waits += n
		if from := all.Buckets[i]; n > 0 && !math.IsInf(from, 0) {
			seconds += float64(n) * from
		}
	}
	mean, passed := 0., now.Sub(p.at)
	if waits >= waitsLeast && passed < waitOld {
		mean = seconds / float64(waits) * float64(time.Second)
	}
	p.at = now
	p.wait.Store(max(int64(mean), (p.wait.Load()+int64(mean))/2)) // up at once, down by halves
	open := 1000 - p.shut.Load()
	if p.wait.Load() > int64(waitSoft) {
		open = max(open-open/lessOpen, leastOpen)
	} else {
		open = min(open+moreOpen*int64(min(passed, waitOld)/waitEvery), 1000)
	}
	p.shut.Store(1000 - open)
}
