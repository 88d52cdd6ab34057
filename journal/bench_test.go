package journal_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/journal"
	"github.com/backstory-proxy/backstory/store"
)

// BenchmarkAdd is 64 requests at once whose store is down.
func BenchmarkAdd(b *testing.B) {
	j, err := journal.Open(b.Context(), filepath.Join(b.TempDir(), "j.db"), &fake{down: true}, journal.Options{First: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	e := entry("s", "")
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 40)
	e.Draft.Exchange.Messages = []store.Message{{JSON: []byte(`{"role":"assistant","content":"` + text + `"}`)}}
	var n atomic.Int64
	b.SetParallelism(64)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			e := e
			e.Session = fmt.Sprint("s", n.Add(1))
			if err := j.Add(b.Context(), e); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "exchanges/s")
}
