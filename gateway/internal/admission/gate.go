// Package admission decides which requests are let in when there is more to do
// than can be done: what is refused at once costs little, and what is let in is
// answered and saved in about the time that it takes at any other hour.
package admission

import (
	"runtime"
	"sync"
	"time"
)

// Reason says what there is too little of.
type Reason string

// The reasons of refusals.
const (
	Admitted   Reason = ""
	Processor  Reason = "processor" // what could run waits for one
	Store      Reason = "store"     // writes wait for it
	Requests   Reason = "requests"  // too many are under way
	TooManyOwn Reason = "own_requests"
)

const (
	// perProcessor is how many requests may be under way for each processor. One
	// carries about 500 chats a second, of which each may so take 8 s; a stream
	// under way takes up to 250 KB.
	perProcessor = 4096
	// fewPerProcessor is how many may be whatever the processors do: that so few
	// wait is not of their making, and refusing them wouldn't help.
	fewPerProcessor = 16

	// waitSoft and backlogSoft are where a tenant is refused that has had more
	// than its share lately; at hard times as much, everyone is. A chat waits for
	// a processor about ten times on its way, so that with the mean at 10 ms it
	// takes .1 to .4 s longer. A quarter of a second in the queue of the store is
	// ten slow commits, and an eighth of the time after which a save is given up.
	waitSoft    = 10 * time.Millisecond
	backlogSoft = 250 * time.Millisecond
	hard        = 4
)

// Gate lets requests in.
type Gate struct {
	processors *Processors
	backlog    func() time.Duration
	places     *Pool
	few        int64

	mu     sync.Mutex
	recent map[string]int // admitted of each tenant, halved every second
	total  int            // of recent
	halved time.Time
	turned time.Time // when a request was last refused
}

// NewGate makes one. backlog tells how long the oldest write that waits for the
// store has waited.
func NewGate(backlog func() time.Duration) *Gate {
	n := int64(runtime.GOMAXPROCS(0))
	return &Gate{processors: NewProcessors(), backlog: backlog, places: NewPool(n * perProcessor), few: n * fewPerProcessor, recent: map[string]int{}}
}

// Enter lets a request in, which Leave ends, or says why not.
func (g *Gate) Enter(tenant string) Reason {
	now := time.Now()
	reason := g.admit(tenant, now)
	if reason == Admitted {
		switch g.places.Take(tenant, 1) {
		case ErrFull:
			reason = Requests
		case ErrShare:
			reason = TooManyOwn
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if reason != Admitted {
		g.turned = now
		return reason
	}
	g.age(now)
	g.recent[tenant]++
	g.total++
	return Admitted
}

// Leave ends a request that was let in.
func (g *Gate) Leave(tenant string) { g.places.Give(tenant, 1) }

// Refused is when a request was last refused.
func (g *Gate) Refused() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.turned
}

// admit decides by what is scarce, and by what the tenant has had of it.
func (g *Gate) admit(tenant string, now time.Time) Reason {
	reason, much := g.scarce(now)
	if reason == Admitted {
		return Admitted
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.age(now)
	if mine := g.recent[tenant]; !much && (mine == 0 || mine*len(g.recent) < g.total) {
		return Admitted
	}
	return reason
}

// age forgets half of who was admitted for each second that has passed.
func (g *Gate) age(now time.Time) {
	for ; g.total > 0 && now.Sub(g.halved) >= time.Second; g.halved = g.halved.Add(time.Second) {
		g.total = 0
		for tenant, n := range g.recent {
			if n /= 2; n == 0 {
				delete(g.recent, tenant)
				continue
			}
			g.recent[tenant] = n
			g.total += n
		}
	}
	if g.total == 0 {
		g.halved = now
	}
}

// scarce is what there is too little of, and whether far too little.
func (g *Gate) scarce(now time.Time) (reason Reason, much bool) {
	if waited := g.backlog(); waited >= backlogSoft {
		return Store, waited >= hard*backlogSoft
	}
	wait := g.processors.Wait(now)
	if wait < waitSoft || g.places.Taken() < g.few {
		return Admitted, false
	}
	return Processor, wait >= hard*waitSoft
}
