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
)

// NewProcessors makes one that asks Go's runtime.
func NewProcessors() *Processors {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	return &Processors{waits: func() *metrics.Float64Histogram {
		metrics.Read(sample)
		return sample[0].Value.Float64Histogram()
	}}
}

// Wait is the mean time that goroutines waited for a processor lately. It is a
// request that asks the runtime, now and then: there is no goroutine for it, and
// while nobody asks it costs nothing.
func (p *Processors) Wait(now time.Time) time.Duration {
	if now.UnixNano() >= p.next.Load() && p.mu.TryLock() {
		p.ask(now)
		p.mu.Unlock()
	}
	return time.Duration(p.wait.Load())
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
	mean := 0.
	if waits >= waitsLeast && now.Sub(p.at) < waitOld {
		mean = seconds / float64(waits) * float64(time.Second)
	}
	p.at = now
	p.wait.Store((p.wait.Load() + int64(mean)) / 2)
}
