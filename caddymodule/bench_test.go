package caddymodule_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

const (
	rounds   = 8
	perRound = 900 // requests
	uses     = 3   // of a session that is saved into
	streams  = 16  // at once, in a round
	chunks   = 200 // of a stream
	firsts   = 200 // streams whose first chunk is timed
)

// BenchmarkProxy sets Backstory against Caddy's own reverse_proxy. Both stand in
// one Caddy, in a process of its own, and are called in turns. It reports
// ratios, which a busy machine repeats better than times:
//
//	x-caddy          CPU time of the process, by that of plain Caddy
//	x-same-bytes     the same, where plain Caddy carries what the router gets
//	                 from Backstory, history and all
//	x-50, p50-x-50   CPU time and median latency, by those of a session of 50
//	                 messages; x-500, p50-x-500 by those of a session of 500
//	x-added          the time added until the first chunk, by what plain Caddy
//	                 adds
//	us, …-us         what was compared, in microseconds of a request or chunk
//	B/op, allocs/op  what Backstory's process allocates for a request or chunk
//
// Ratios and times are medians over the rounds. Each part runs once, for as
// long as it needs, whatever -benchtime says.
func BenchmarkProxy(b *testing.B) {
	p := startProxies(b, func(f *filler) {
		f.add("10", 10)
		f.add("50", 50)
		f.add("500", 500)
		f.add("10000", 10_000)
		for i := range perRound / uses * (rounds + 1) {
			f.add(fmt.Sprint("saved-", i), 8)
		}
		for i := range streams * (rounds + 1) {
			f.add(fmt.Sprint("stream-", i), 10)
		}
	})
	once(b, "json/no-session", func(b *testing.B) figures {
		c := p.compare(b, perRound, plain(""), ours(""))
		return c[1].by(1, versus{"caddy", c[0]})
	})
	for _, n := range []int{10, 50} {
		once(b, fmt.Sprintf("json/%d-messages", n), func(b *testing.B) figures {
			session := fmt.Sprint(n)
			p.check(b, session, "historyMessages", n)
			c := p.compare(b, perRound, plain(""), plain(history(n)), ours(session))
			return c[2].by(1, versus{"caddy", c[0]}, versus{"same-bytes", c[1]})
		})
	}
	// A session holds 8 messages, then 10, then 12: 10 on the average.
	once(b, "json/10-messages-saved", func(b *testing.B) figures {
		const sessions = perRound / uses
		p.check(b, "saved-0", "historyMessages", 8)
		c := p.compare(b, perRound, plain(""), plain(history(10)), way{"/backstory/v1", 0, func(i int) string {
			return question(i, "", fmt.Sprintf(`"sessionId":"saved-%d"`, i/perRound*sessions+i%sessions))
		}})
		return c[2].by(1, versus{"caddy", c[0]}, versus{"same-bytes", c[1]})
	})
	// The last two don't fit: older messages are recalled, from each of which
	// as much is supplied. Every message holds the words asked for.
	once(b, "json/10000-messages", func(b *testing.B) figures {
		p.check(b, "500", "recalledMessages", 1)
		p.check(b, "10000", "recalledMessages", 1)
		c := p.compare(b, perRound, ours("50"), ours("500"), ours("10000"))
		f := c[2].by(1, versus{"50", c[0]}, versus{"500", c[1]})
		f["p50-x-50"], f["p50-x-500"] = ratio(c[2].p50, c[0].p50), ratio(c[2].p50, c[1].p50)
		return f
	})
	once(b, "stream/chunk", func(b *testing.B) figures {
		p.check(b, "stream-0", "historyMessages", 10)
		c := p.compare(b, streams,
			way{"/caddy/v1", chunks, func(i int) string { return question(i, "", `"stream":true`) }},
			way{"/backstory/v1", chunks, func(i int) string {
				return question(i, "", fmt.Sprintf(`"stream":true,"sessionId":"stream-%d"`, i))
			}})
		return c[1].by(chunks, versus{"caddy", c[0]})
	})
	once(b, "stream/first-chunk", p.firstChunk)
}

// figures are what a part reports, by unit.
type figures map[string]float64

// once is b.Run for what is measured once, however often the testing package
// calls it.
func once(b *testing.B, name string, measure func(*testing.B) figures) {
	var measured figures
	b.Run(name, func(b *testing.B) {
		if measured == nil {
			measured = measure(b)
		}
		b.ReportMetric(0, "ns/op") // hidden: of all rounds together it says nothing
		for unit, n := range measured {
			b.ReportMetric(n, unit)
		}
	})
}

// way is one way to send a scenario's requests.
type way struct {
	base   string             // the URL, or its path at the proxy
	chunks int                // asked for; 0: a JSON reply
	body   func(i int) string // of the i-th request
}

// plain is Caddy alone, with a client that sends the history itself.
func plain(history string) way {
	return way{"/caddy/v1", 0, func(i int) string { return question(i, history, "") }}
}

// ours is Backstory with a session that stays as it is; "" for none.
func ours(session string) way {
	more := ""
	if session != "" {
		more = fmt.Sprintf(`"sessionId":%q,"saveToMemory":false`, session)
	}
	return way{"/backstory/v1", 0, func(i int) string { return question(i, "", more) }}
}

// cost is what one way cost: of a request, by round, except for allocations.
type cost struct {
	cpu, p50       []float64 // µs
	bytes, objects float64
}

// compare sends a round of requests each way, then another. The order changes
// from round to round, so that none is always the one to collect another's
// garbage.
func (p *proxies) compare(b *testing.B, requests int, ways ...way) []cost {
	costs := make([]cost, len(ways))
	sent := make([]int, len(ways))
	for i, w := range ways { // afterwards connections, pools and caches are filled
		sent[i] = requests / 3
		p.round(b, w, 0, sent[i])
	}
	for n := range rounds {
		for k := range ways {
			i := (n + k) % len(ways)
			before := p.usage(b)
			latencies := p.round(b, ways[i], sent[i], requests)
			after := p.usage(b)
			sent[i] += requests

			c := &costs[i]
			c.cpu = append(c.cpu, (after.CPU-before.CPU)/float64(requests))
			c.p50 = append(c.p50, median(latencies))
			c.bytes += (after.Bytes - before.Bytes) / float64(requests*rounds)
			c.objects += (after.Objects - before.Objects) / float64(requests*rounds)
		}
	}
	return costs
}

// versus names what is compared to.
type versus struct {
	name string
	cost cost
}

// by compares a cost to others. Absolute figures are of one of a request's
// equal parts.
func (c *cost) by(parts float64, others ...versus) figures {
	f := figures{
		"us":        median(c.cpu) / parts,
		"B/op":      c.bytes / parts,
		"allocs/op": c.objects / parts,
	}
	for _, v := range others {
		f["x-"+v.name] = ratio(c.cpu, v.cost.cpu)
		f[v.name+"-us"] = median(v.cost.cpu) / parts
	}
	return f
}

// firstChunk times what passes until a stream's first byte: without a proxy,
// and with each of them.
func (p *proxies) firstChunk(b *testing.B) figures {
	const few, warm = 3, 20
	alone := func(i int) string { return question(i, "", `"stream":true`) }
	ways := []way{
		{p.router.URL + "/v1", few, alone},
		{"/caddy/v1", few, alone},
		{"/backstory/v1", few, func(i int) string {
			return question(i, "", `"stream":true,"sessionId":"10","saveToMemory":false`)
		}},
	}
	waits := make([][]float64, len(ways))
	for n := range warm + firsts {
		for i, w := range ways {
			start := time.Now()
			first, err := p.send(w, n)
			if err != nil {
				b.Fatal(err)
			}
			if n >= warm {
				waits[i] = append(waits[i], micros(first.Sub(start)))
			}
		}
	}
	direct, caddy, ours := median(waits[0]), median(waits[1]), median(waits[2])
	return figures{
		"x-added": (ours - direct) / (caddy - direct),
		"us":      ours, "caddy-us": caddy, "direct-us": direct,
		"B/op": 0, "allocs/op": 0, // not measured
	}
}

// ratio is the median of the rounds' ratios.
func ratio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return median(ratios)
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
