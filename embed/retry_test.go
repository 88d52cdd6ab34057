package embed

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestRefusalsForTheMomentAreTriedAgain(t *testing.T) {
	gone := errors.New("connection refused")
	for name, c := range map[string]struct {
		status     int // of the refusals
		err        error
		retryAfter string
		refusals   int64
		calls      int64
		least      time.Duration
		most       time.Duration
		fails      bool
	}{
		"429 that says when":          {status: 429, retryAfter: "7", refusals: 1, calls: 2, least: 7 * time.Second, most: 7 * time.Second},
		"429 that says a time":        {status: 429, retryAfter: "Sat, 01 Jan 2000 00:00:20 GMT", refusals: 1, calls: 2, least: 20 * time.Second, most: 20 * time.Second},
		"a time that is over":         {status: 503, retryAfter: "Sat, 01 Jan 1999 00:00:20 GMT", refusals: 1, calls: 2},
		"at once":                     {status: 429, retryAfter: "0", refusals: 3, calls: 4},
		"fractions":                   {status: 429, retryAfter: "1.5", refusals: 1, calls: 2, least: 1500 * time.Millisecond, most: 1500 * time.Millisecond},
		"429 that doesn't":            {status: 429, refusals: 1, calls: 2, least: 400 * time.Millisecond, most: 600 * time.Millisecond},
		"nonsense":                    {status: 429, retryAfter: "soon", refusals: 1, calls: 2, least: 400 * time.Millisecond, most: 600 * time.Millisecond},
		"an hour is too long":         {status: 429, retryAfter: "3600", refusals: 1, calls: 1, fails: true},
		"an age is too long":          {status: 429, retryAfter: "1e300", refusals: 1, calls: 1, fails: true},
		"a fault, longer each time":   {status: 500, refusals: 3, calls: 4, least: 3 * time.Second, most: 4 * time.Second},
		"the router can't be reached": {err: gone, refusals: 2, calls: 3, least: time.Second, most: 2 * time.Second},
		"it never ends":               {status: 502, refusals: 100, calls: 6, least: 13 * time.Second, most: 18 * time.Second, fails: true},
		"a bad request stays one":     {status: 400, refusals: 1, calls: 1, fails: true},
		"a wrong key stays one":       {status: 401, refusals: 1, calls: 1, fails: true},
		"what isn't there stays so":   {status: 404, refusals: 1, calls: 1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeRouter{}
				f.answer = func(_ context.Context, call int64) (Reply, error) {
					if call > c.refusals {
						return Reply{}, nil
					}
					return Reply{Status: c.status, Header: http.Header{"Retry-After": {c.retryAfter}}}, c.err
				}
				begun := time.Now()
				v, err := NewRouter("m", 2, RouterOptions{}).Embed(t.Context(), f, []string{"a", "bb"})
				took := time.Since(begun)
				if (err != nil) != c.fails || err == nil && len(v) != 2 {
					t.Errorf("got %v, %v", v, err)
				}
				if n := f.calls.Load(); n != c.calls || took < c.least || took > max(c.most, c.least) {
					t.Errorf("%d calls within %v", n, took)
				}
			})
		})
	}
}

func TestWhoWaitsIsNotKeptWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRouter{answer: func(context.Context, int64) (Reply, error) { return Reply{Status: 503}, nil }}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begun := time.Now()
		_, err := NewRouter("m", 2, RouterOptions{}).Embed(ctx, f, []string{"question"})
		if err == nil || f.calls.Load() != 1 || time.Since(begun) > 0 {
			t.Errorf("%v after %d calls and %v", err, f.calls.Load(), time.Since(begun))
		}
	})
}

func TestAPauseEndsWithTheUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRouter{answer: func(context.Context, int64) (Reply, error) {
			return Reply{Status: 429, Header: http.Header{"Retry-After": {"30"}}}, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begun := time.Now()
		_, err := NewRouter("m", 2, RouterOptions{}).Embed(ctx, f, []string{"a", "b"})
		if !errors.Is(err, context.Canceled) || time.Since(begun) != time.Second || f.calls.Load() != 1 {
			t.Errorf("%v after %d calls and %v", err, f.calls.Load(), time.Since(begun))
		}
	})
}
