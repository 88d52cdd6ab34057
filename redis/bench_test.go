package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// benchmark measures what this process spends, besides the time that goes by,
// which is the server's and the machine's too. Eight requests at once keep the
// process from looking for work while it waits, which would count.
func benchmark(b *testing.B, f func(i int64)) {
	cpu := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(4)
	b.ResetTimer()
	begun := cpu()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			f(n.Add(1))
		}
	})
	b.ReportMetric(float64((cpu()-begun).Nanoseconds())/float64(b.N)/1000, "cpu-µs/op")
}

func benchStore(b *testing.B) *Store {
	return openAt(b, sharedServer(b).url(), Options{Prefix: newPrefix(), unindexed: true})
}

func BenchmarkAppend(b *testing.B) {
	s := benchStore(b)
	benchmark(b, func(i int64) { add(b, s, fmt.Sprint("s", i%100), fmt.Sprint("e", i)) })
}

// The cost must not grow with the session.
func BenchmarkGather(b *testing.B) {
	for _, c := range []struct{ want, of int }{{10, 10}, {50, 50}, {50, 10_000}} {
		b.Run(fmt.Sprint(c.want, " of ", c.of, " messages"), func(b *testing.B) {
			s := benchStore(b)
			for i := range c.of / 2 {
				add(b, s, "s", fmt.Sprint("e", i))
			}
			benchmark(b, func(int64) {
				g, err := s.Gather(context.Background(), store.GatherRequest{Scope: of("a"), Limit: 1 << 40, Session: "s", Messages: c.want - 2*extra})
				if err != nil || g.Rate.Allowed && len(g.Tail) != c.want/2 {
					b.Error(len(g.Tail), err)
				}
			})
		})
	}
}

// Searches are measured on a server with the search module alone: what is played
// back costs it nothing.
func BenchmarkSearch(b *testing.B) {
	const tenants, perTenant, dimensions = 10, 1000, 384
	url := os.Getenv(serverVariable)
	if url == "" {
		b.Skip(serverVariable + " isn't set")
	}
	s := openAt(b, searchServer(b), Options{Prefix: newPrefix()})
	ctx := context.Background()
	random := rand.New(rand.NewPCG(1, 2))
	for t := range tenants {
		chunks := make([]store.Chunk, perTenant)
		for i := range chunks {
			var text strings.Builder
			for range 80 {
				fmt.Fprintf(&text, "w%d ", int(random.ExpFloat64()*500))
			}
			v := make([]float32, dimensions)
			for j := range v {
				v[j] = float32(random.NormFloat64())
			}
			chunks[i] = store.Chunk{N: i, Text: text.String(), Terms: text.String(), Tokens: 80, Vector: v}
		}
		tenant := fmt.Sprint("t", t)
		_, err := s.CreateFile(ctx, of(tenant), store.File{ID: "f", Name: "f", Model: "m"}, strings.NewReader("x"))
		if err == nil {
			err = s.AddChunks(ctx, of(tenant), "f", chunks)
		}
		if err == nil {
			err = s.FinishFile(ctx, of(tenant), "f", store.FileProcessed, "")
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	query := make([]float32, dimensions)
	query[7] = 1
	b.Run("text", func(b *testing.B) {
		benchmark(b, func(int64) {
			hits, err := s.SearchText(ctx, of("t5"), []string{"w100", "w700", "w1500", "w42"}, 20)
			if err != nil || len(hits) != 20 {
				b.Error(len(hits), err)
			}
		})
	})
	b.Run("vector", func(b *testing.B) {
		benchmark(b, func(int64) {
			hits, err := s.SearchVector(ctx, of("t1"), "m", query, 20)
			if err != nil || len(hits) != 20 {
				b.Error(len(hits), err)
			}
		})
	})
}
