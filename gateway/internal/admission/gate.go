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
	Admitted    Reason = ""
	Processor   Reason = "processor"    // what could run waits for one
	Store       Reason = "store"        // writes wait for it
	Requests    Reason = "requests"     // too many are under way
	OwnRequests Reason = "own_requests" // of the tenant's
	Bodies      Reason = "bodies"       // they take too much memory, or uploads too much of the disk
	OwnBodies   Reason = "own_bodies"   // the tenant's do
)

// Reasons are all of them.
var Reasons = []Reason{Processor, Store, Requests, OwnRequests, Bodies, OwnBodies}

const (
	// perProcessor is how many requests may be under way for each processor. One
	// carries about 500 chats a second, of which each may so take 8 s; a stream
	// under way takes up to 250 KB.
	perProcessor = 4096
	// fewPerProcessor is how many may be whatever the processors do: that so few
	// wait is not of their making, and refusing them wouldn't help.
	fewPerProcessor = 16

	// backlogSoft is how long the oldest write may have waited: ten slow commits,
	// and an eighth of the time after which the first saves are given up. From
	// backlogHard on nothing is let in.
	backlogSoft = 250 * time.Millisecond
	backlogHard = 4 * backlogSoft
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
	due    int64     // thousandths of a request, of those that are let in while others aren't
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
			reason = OwnRequests
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

// admit decides by what is scarce, and by what the tenant has had of it: one that
// has had less than half an equal share lately is let in as long as anything is.
func (g *Gate) admit(tenant string, now time.Time) Reason {
	reason, open := g.scarce(now)
	if reason == Admitted {
		return Admitted
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.age(now)
	if mine := g.recent[tenant]; open >= 0 && (mine == 0 || 2*mine*len(g.recent) < g.total) {
		return Admitted
	}
	if g.due += max(open, 0); g.due >= 1000 {
		g.due -= 1000
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

// none is what scarce says is to be let in where there is far too little.
const none = -1

// scarce is what there is too little of, and how many of a thousand requests are
// let in all the same.
func (g *Gate) scarce(now time.Time) (reason Reason, open int64) {
	if waited := g.backlog(); waited >= backlogHard {
		return Store, none
	} else if waited >= backlogSoft {
		return Store, 0
	}
	wait, open := g.processors.Wait(now)
	switch {
	case open == 1000 || g.places.Taken() < g.few:
		return Admitted, 1000
	case wait >= waitHard:
		return Processor, none
	}
	return Processor, open
}
