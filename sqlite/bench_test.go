package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

// sample is an exchange of two messages, 1.9 KB.
func sample(id string) store.Exchange {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 20)
	return store.Exchange{ID: id, Model: "openai/gpt-5-mini", Finish: "stop", Messages: []store.Message{
		{JSON: []byte(`{"role":"user","content":"` + text + `"}`), Tokens: 200, Digest: store.Digest{1}},
		{JSON: []byte(`{"role":"assistant","content":"` + text + `"}`), Tokens: 200, Digest: store.Digest{2}},
	}}
}

func benchmark(b *testing.B, o Options) *Store {
	return openAt(b, filepath.Join(b.TempDir(), "backstory.db"), o)
}

func add(b *testing.B, s *Store, session, id string) {
	if _, err := s.Append(context.Background(), store.Append{Scope: of("a"), Session: session, Exchange: sample(id), Anyway: true}); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, synchronous := range []Synchronous{Full, Normal} {
		b.Run(string(synchronous), func(b *testing.B) {
			s := benchmark(b, Options{Synchronous: synchronous})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				add(b, s, fmt.Sprint("s", i%100), fmt.Sprint("e", i))
			}
		})
	}
}

func BenchmarkAppendParallel(b *testing.B) {
	for _, synchronous := range []Synchronous{Full, Normal} {
		b.Run(string(synchronous), func(b *testing.B) {
			s := benchmark(b, Options{Synchronous: synchronous})
			var n atomic.Int64
			b.SetParallelism(16)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := n.Add(1)
					add(b, s, fmt.Sprint("s", i%100), fmt.Sprint("e", i))
				}
			})
		})
	}
}

// The cost must not grow with the session.
func BenchmarkGather(b *testing.B) {
	for _, messages := range []int{50, 10_000} {
		for source, size := range map[string]int{"memory": 0, "file": -1} {
			b.Run(fmt.Sprint("50 of ", messages, " messages/", source), func(b *testing.B) {
				s := benchmark(b, Options{Synchronous: Normal, CacheSize: size})
				for i := range messages / 2 {
					add(b, s, "s", fmt.Sprint("e", i))
				}
				b.ReportAllocs()
				for b.Loop() {
					if g := gather(b, s, request("s", 46)); len(g.Tail) != 25 {
						b.Fatal(len(g.Tail))
					}
				}
			})
		}
	}
	b.Run("no session", func(b *testing.B) {
		s := benchmark(b, Options{Synchronous: Normal})
		add(b, s, "s", "e")
		b.ReportAllocs()
		for b.Loop() {
			gather(b, s, request("", 0))
		}
	})
}

// corpus fills the store with tenants of 1,000 chunks of 80 words and vectors.
func corpus(b *testing.B, s *Store, tenants, dims int) {
	random := rand.New(rand.NewPCG(1, 2))
	for t := range tenants {
		chunks := make([]store.Chunk, 1000)
		for i := range chunks {
			var text strings.Builder
			for range 80 {
				fmt.Fprintf(&text, "w%d ", int(random.ExpFloat64()*500))
			}
			v := make([]float32, dims)
			for j := range v {
				v[j] = random.Float32()
			}
			chunks[i] = store.Chunk{N: i, Text: text.String(), Terms: text.String(), Tokens: 80, Vector: v}
		}
		ctx, tenant := context.Background(), fmt.Sprint("t", t)
		if _, err := s.CreateFile(ctx, of(tenant), store.File{ID: "f", Name: "f", Model: "m"}, strings.NewReader("x")); err != nil {
			b.Fatal(err)
		}
		if err := s.AddChunks(ctx, of(tenant), "f", chunks); err != nil {
			b.Fatal(err)
		}
		if err := s.FinishFile(ctx, of(tenant), "f", store.FileProcessed, ""); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSearchText(b *testing.B) {
	s := benchmark(b, Options{Synchronous: Normal})
	corpus(b, s, 10, 0)
	for b.Loop() {
		hits, err := s.SearchText(context.Background(), of("t5"), []string{"w100", "w700", "w1500", "w42"}, 20)
		if err != nil || len(hits) != 20 {
			b.Fatal(len(hits), err)
		}
	}
}

func BenchmarkSearchVector(b *testing.B) {
	const dims = 1536
	s := benchmark(b, Options{Synchronous: Normal})
	corpus(b, s, 3, dims)
	query := make([]float32, dims)
	query[7] = 1
	for b.Loop() {
		hits, err := s.SearchVector(context.Background(), of("t1"), "m", query, 20)
		if err != nil || len(hits) != 20 {
			b.Fatal(len(hits), err)
		}
	}
}

// BenchmarkDeleteFile removes a file of 1,000 chunks.
func BenchmarkDeleteFile(b *testing.B) {
	s := benchmark(b, Options{Synchronous: Normal})
	for b.Loop() {
		b.StopTimer()
		corpus(b, s, 1, 0)
		b.StartTimer()
		if err := s.DeleteFile(context.Background(), of("t0"), "f"); err != nil {
			b.Fatal(err)
		}
	}
}
