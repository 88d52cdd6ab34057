package upstream

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// listing is a router that has a list of models: the way to it, and how often
// it was asked.
type listing struct {
	asked  int
	length int           // 0: it fails
	takes  time.Duration // until it answers
}

func (l *listing) via() *Caller {
	r := httptest.NewRequest("POST", "/chat/completions", nil)
	return New(r, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		l.asked++
		time.Sleep(l.takes)
		if l.length == 0 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"data":[{"id":"a/b","context_length":%d}]}`, l.length)
	}))
}

func newTestLengths() *Lengths {
	return NewLengths(func(string) int { return 0 }, 8192)
}

func TestTheListOfModelsIsRefreshedBehindTheBackOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, router := newTestLengths(), &listing{length: 4000, takes: 300 * time.Millisecond}
		get := func(want, asked int, within time.Duration) {
			t.Helper()
			began := time.Now()
			n := m.Of(t.Context(), "a/b", router.via)
			if n != want || time.Since(began) != within {
				t.Errorf("%d after %v, want %d after %v", n, time.Since(began), want, within)
			}
			synctest.Wait()
			if router.asked != asked {
				t.Errorf("the router was asked %d times, want %d", router.asked, asked)
			}
		}
		get(4000, 1, 300*time.Millisecond) // nothing is known: it waits
		get(4000, 1, 0)
		router.length = 5000
		time.Sleep(modelsFresh + time.Second)
		get(4000, 2, 0) // what was known is good enough meanwhile
		time.Sleep(time.Second)
		get(5000, 2, 0)
		router.length = 0
		time.Sleep(modelsFresh + time.Second)
		get(5000, 3, 0) // a failure takes nothing away
		time.Sleep(time.Second)
		get(5000, 3, 0)
		time.Sleep(modelsRetry)
		get(5000, 4, 0)
		time.Sleep(modelsTimeout) // the last answer arrives
	})
}

func TestARouterThatDoesNotTellInTimeHoldsUpNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, router := newTestLengths(), &listing{length: 4000, takes: 3 * time.Second}
		for i, want := range []struct {
			length int
			within time.Duration
		}{{8192, modelsWait}, {8192, 0}, {4000, 0}} {
			began := time.Now()
			if n := m.Of(t.Context(), "a/b", router.via); n != want.length || time.Since(began) != want.within {
				t.Errorf("request %d: %d after %v, want %d after %v", i, n, time.Since(began), want.length, want.within)
			}
			if i == 1 {
				time.Sleep(3 * time.Second)
			}
		}
		if router.asked != 1 {
			t.Errorf("the router was asked %d times", router.asked)
		}
	})
}
