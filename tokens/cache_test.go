package tokens

import (
	"strings"
	"sync"
	"testing"
)

func TestCacheCountsATextOnce(t *testing.T) {
	c := NewCache(2)
	calls := 0
	count := func(e *Encoding, key byte, text string) int {
		return c.Count(e.NewTally(), [16]byte{key}, func() string { calls++; return text })
	}
	const text = "Donaudampfschifffahrt 中文"
	for range 3 {
		if got, want := count(O200K(), 1, text), O200K().Count(text); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
	if calls != 1 {
		t.Errorf("the text was asked for %d times", calls)
	}
	if got, want := count(CL100K(), 1, text), CL100K().Count(text); got != want || calls != 2 {
		t.Errorf("the other encoding: got %d, want %d; %d calls", got, want, calls)
	}
	count(O200K(), 1, text) // the most recent now
	count(O200K(), 2, "x")  // evicts cl100k's
	if c.Len() != 2 {
		t.Errorf("%d entries", c.Len())
	}
	calls = 0
	if count(O200K(), 1, text); calls != 0 {
		t.Error("the recently used count was evicted")
	}
	if count(CL100K(), 1, text); calls != 1 {
		t.Error("the least recently used count wasn't evicted")
	}
}

func TestCacheOfNothing(t *testing.T) {
	for _, entries := range []int{0, -1} {
		c := NewCache(entries)
		for range 2 {
			if got := c.Count(O200K().NewTally(), [16]byte{}, func() string { return "a b" }); got != 2 {
				t.Errorf("NewCache(%d) counts %d", entries, got)
			}
		}
		if c.Len() != 0 {
			t.Errorf("NewCache(%d) holds %d", entries, c.Len())
		}
	}
}

func TestCacheHitDoesNotAllocate(t *testing.T) {
	c := NewCache(8)
	text, calls, tally := "some text", 0, O200K().NewTally()
	n := testing.AllocsPerRun(100, func() {
		c.Count(tally, [16]byte{7}, func() string { calls++; return text })
	})
	if n != 0 || calls != 1 {
		t.Errorf("%v allocations, %d calls", n, calls)
	}
}

func TestCacheIsSafeForConcurrentUse(t *testing.T) {
	c := NewCache(16)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 500 {
				words := i % 40
				got := c.Count(O200K().NewTally(), [16]byte{byte(words)}, func() string { return strings.Repeat(" word", words) })
				if got != words {
					t.Errorf("%d words: %d", words, got)
				}
			}
		})
	}
	wg.Wait()
	if c.Len() > 16 {
		t.Errorf("%d entries", c.Len())
	}
}
