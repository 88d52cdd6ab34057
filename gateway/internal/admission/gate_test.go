package admission

import (
	"fmt"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

// clocks are processors for which what runs waits as long as a test says.
func clocks(wait *time.Duration) *Processors {
	h := &metrics.Float64Histogram{Counts: make([]uint64, 9), Buckets: []float64{0, .001, .002, .004, .008, .016, .032, .064, .128, 10}}
	return &Processors{waits: func() *metrics.Float64Histogram {
		for i := range h.Counts {
			if s := wait.Seconds(); s >= h.Buckets[i] && s < h.Buckets[i+1] {
				h.Counts[i] += 50
			}
		}
		return h
	}}
}

// crowd fills a gate with requests of a tenant that stay.
func crowd(t *testing.T, g *Gate, tenant string, n int) {
	t.Helper()
	for range n {
		if reason := g.Enter(tenant); reason != Admitted {
			t.Fatalf("a request at rest is refused: %s", reason)
		}
	}
}

// after lets a gate see, for two seconds, that what runs waits so long.
func after(g *Gate, wait *time.Duration, now time.Duration) {
	*wait = now
	for range 80 {
		time.Sleep(waitEvery)
		g.processors.Wait(time.Now())
	}
}

func TestBusyProcessorsRefuseWhoHasHadMoreThanItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := time.Duration(0)
		g := NewGate(func() time.Duration { return 0 })
		g.processors, g.few = clocks(&wait), 4
		crowd(t, g, "noisy", 100)
		crowd(t, g, "quiet", 3)
		after(g, &wait, 20*time.Millisecond)
		if reason := g.Enter("noisy"); reason != Processor {
			t.Errorf("the noisy one: %q", reason)
		}
		for _, tenant := range []string{"quiet", "new"} {
			if reason := g.Enter(tenant); reason != Admitted {
				t.Errorf("the %s one: %q", tenant, reason)
			}
		}
		after(g, &wait, time.Second)
		if reason := g.Enter("quiet"); reason != Processor {
			t.Errorf("where nothing goes on any more, the quiet one: %q", reason)
		}
		after(g, &wait, 0)
		if reason := g.Enter("noisy"); reason != Admitted {
			t.Errorf("afterwards the noisy one: %q", reason)
		}
	})
}

func TestWhatFitsIsLetInAndLittleMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := time.Duration(0)
		g := NewGate(func() time.Duration { return 0 })
		g.processors, g.few = clocks(&wait), 0
		const fits, windows = 13, 400 // of 40 that come in each window
		queue, admitted, longest := 0, 0, time.Duration(0)
		for i := range windows {
			for range 40 {
				if g.Enter("a") == Admitted {
					g.Leave("a")
					queue++
					admitted++
				}
			}
			queue = max(0, queue-fits)
			wait = time.Duration(queue) * waitEvery / fits
			if i > windows/10 { // it has had a second to find out
				longest = max(longest, wait)
			}
			time.Sleep(waitEvery)
		}
		if admitted < fits*windows*7/10 {
			t.Errorf("%d were let in of %d for which there was time", admitted, fits*windows)
		}
		if longest > 100*time.Millisecond {
			t.Errorf("what was let in waited for up to %v", longest)
		}
	})
}

func TestFewRequestsAreLetInHoweverBusyTheMachineIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := time.Duration(0)
		g := NewGate(func() time.Duration { return 0 })
		g.processors, g.few = clocks(&wait), 4
		after(g, &wait, time.Second) // it is others who make it so
		crowd(t, g, "a", 4)
		if reason := g.Enter("a"); reason != Processor {
			t.Errorf("the fifth: %q", reason)
		}
		g.Leave("a")
		if reason := g.Enter("a"); reason != Admitted {
			t.Errorf("when one has ended: %q", reason)
		}
	})
}

func TestOpenRequestsAreBounded(t *testing.T) {
	g := NewGate(func() time.Duration { return 0 })
	g.places = NewPool(8)
	crowd(t, g, "a", 4)
	if reason := g.Enter("a"); reason != OwnRequests {
		t.Errorf("a tenant's fifth: %q", reason)
	}
	crowd(t, g, "b", 2)
	crowd(t, g, "c", 1)
	for i := range 2 {
		if reason := g.Enter(fmt.Sprint(i)); i == 0 && reason != Admitted || i == 1 && reason != Requests {
			t.Errorf("new tenant %d: %q", i, reason)
		}
	}
}

func TestThousandsOfOpenStreamsAreLetInWhereNothingWaits(t *testing.T) {
	g := NewGate(func() time.Duration { return 0 })
	crowd(t, g, "a", 2000)
}

func TestWhatHasHappenedLongAgoTellsNothingOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := time.Duration(0)
		p := clocks(&wait)
		p.Wait(time.Now())
		wait = time.Second
		time.Sleep(waitOld)
		if waited, _ := p.Wait(time.Now()); waited != 0 {
			t.Errorf("after a pause: %v", waited)
		}
		time.Sleep(waitEvery)
		if waited, _ := p.Wait(time.Now()); waited < waitSoft {
			t.Errorf("what is so now: %v", waited)
		}
	})
}

func TestTheRuntimeTellsHowLongGoroutinesWait(t *testing.T) {
	p := NewProcessors()
	p.Wait(time.Now())
	total := func() (n uint64) {
		for _, count := range p.waits().Counts {
			n += count
		}
		return n
	}
	before := total()
	done := make(chan struct{})
	for range 100 {
		go func() { done <- struct{}{} }()
	}
	for range 100 {
		<-done
	}
	if total() <= before {
		t.Error("the runtime has counted nothing")
	}
}

func BenchmarkEnter(b *testing.B) {
	g := NewGate(func() time.Duration { return 0 })
	for b.Loop() {
		if g.Enter("a") == Admitted {
			g.Leave("a")
		}
	}
}
