// Command overload offers a Backstory more chats than it carries, in open loop, and
// counts what became of each. It starts the binary itself, with a fresh embedded
// store, in front of a model router of its own, which takes as long as a quick model.
//
// It prints what was offered, admitted, refused, acknowledged, found in the store
// afterwards, and lost: acknowledged and not found. A chat "told not saved" was
// answered and paid for, and its client was told that it wasn't kept. A second
// tenant sends a trickle beside the flood: what it sees is printed apart.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"
)

// settings are the flags.
type settings struct {
	binary string
	rate   float64       // chats per second that it carries; 0: measured first
	times  float64       // as many are offered
	span   time.Duration // of the flood
	procs  int           // GOMAXPROCS of the binary: the generator needs the other cores
	body   int           // bytes of a user message
}

// trickle is what the second tenant sends, chats per second.
const trickle = 5

func main() {
	var o settings
	flag.StringVar(&o.binary, "binary", "./backstory", "the program to be measured")
	flag.Float64Var(&o.rate, "rate", 0, "chats per second that the machine carries; 0: measure it first")
	flag.Float64Var(&o.times, "times", 3, "offer so many times that rate")
	flag.DurationVar(&o.span, "for", 20*time.Second, "for so long")
	flag.IntVar(&o.procs, "procs", 1, "cores that the program may use; the others are for the load")
	flag.IntVar(&o.body, "body", 2000, "bytes of a user message")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o settings) error {
	s, err := startServer(ctx, o)
	if err != nil {
		return err
	}
	defer s.stop()
	l := newLoad(s, o.body)
	l.flood(ctx, "warm", 10, 2*time.Second)
	if o.rate == 0 {
		o.rate = l.capacity(ctx)
		fmt.Printf("carries      %.0f chats/s with GOMAXPROCS=%d\n", o.rate, o.procs)
	}
	print("unloaded", l.flood(ctx, "unloaded", max(5, o.rate/10), 5*time.Second))

	var quiet []chat
	var beside sync.WaitGroup
	beside.Go(func() { quiet = l.flood(ctx, "quiet", trickle, o.span) })
	noisy := l.flood(ctx, "noisy", o.times*o.rate, o.span)
	beside.Wait()
	print("flood", noisy)
	print("beside it", quiet)

	all := append(noisy, quiet...)
	acknowledged := slices.DeleteFunc(slices.Clone(all), func(c chat) bool { return !c.kept })
	found, err := l.found(ctx, acknowledged)
	if err != nil {
		return err
	}
	fmt.Printf("saved        %d acknowledged, %d found, %d lost, %d told not saved\n",
		len(acknowledged), found, len(acknowledged)-found, count(all, func(c chat) bool { return c.status == 200 && !c.kept }))
	fmt.Printf("process      %d goroutines at most, %d MB RSS at most, %.1f CPU s\n", s.goroutines.Load(), s.peakMB(), s.cpu().Seconds())
	return ctx.Err()
}

// print prints what became of chats.
func print(name string, chats []chat) {
	var took []time.Duration
	refused := map[int]int{}
	var slowest time.Duration // refusal
	for _, c := range chats {
		if c.status == 200 {
			took = append(took, c.took)
			continue
		}
		refused[c.status]++
		slowest = max(slowest, c.took)
	}
	slices.Sort(took)
	fmt.Printf("%-12s %d offered, %d admitted (p50 %v, p99 %v, max %v)", name, len(chats), len(took), quantile(took, .5), quantile(took, .99), quantile(took, 1))
	for status, n := range refused {
		fmt.Printf(", %d × %d", n, status)
	}
	if slowest > 0 {
		fmt.Printf(", slowest refusal %v", slowest.Round(time.Millisecond))
	}
	fmt.Println()
}

// quantile is one of sorted values.
func quantile[T cmp.Ordered](sorted []T, q float64) (v T) {
	if len(sorted) == 0 {
		return v
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func count(chats []chat, which func(chat) bool) (n int) {
	for _, c := range chats {
		if which(c) {
			n++
		}
	}
	return n
}

// flood sends chats of a tenant at a rate, whatever becomes of them, and returns
// when all have ended.
func (l *load) flood(ctx context.Context, tenant string, rate float64, span time.Duration) []chat {
	var all []chat
	var mu sync.Mutex
	var running sync.WaitGroup
	began := time.Now()
	for next := time.Duration(0); next < span && ctx.Err() == nil; {
		time.Sleep(time.Until(began.Add(next)))
		running.Go(func() {
			c := l.send(ctx, tenant)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, c)
		})
		next += time.Duration(rand.ExpFloat64() / rate * float64(time.Second)) // as independent callers do
	}
	running.Wait()
	return all
}

// capacity is how many chats a second are answered to as many clients as it takes
// for more of them to bring no more.
func (l *load) capacity(ctx context.Context) float64 {
	best := 0.
	for clients := 100; clients <= 1600 && ctx.Err() == nil; clients *= 2 {
		rate := l.closed(ctx, clients, 4*time.Second)
		if rate < best*1.1 {
			return max(rate, best)
		}
		best = rate
	}
	return best
}

// closed has clients send one chat after the other.
func (l *load) closed(ctx context.Context, clients int, span time.Duration) float64 {
	end := time.Now().Add(span)
	answered := make([]int, clients)
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				c := l.send(ctx, "warm")
				if c.status == 200 && time.Now().Before(end) {
					answered[i]++
				}
				if c.status != 200 {
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	running.Wait()
	total := 0
	for _, n := range answered {
		total += n
	}
	return float64(total) / span.Seconds()
}
