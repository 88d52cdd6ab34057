package store_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

// unit returns a vector of unit length, whose values come from next.
func unit(n int, next func() float64) []float32 {
	v := make([]float64, n)
	sum := 0.0
	for i := range v {
		v[i] = next()
		sum += v[i] * v[i]
	}
	u := make([]float32, n)
	for i := range v {
		u[i] = float32(v[i] / math.Sqrt(sum))
	}
	return u
}

func cosine(v, w []float32) (sum float64) {
	for i := range v {
		sum += float64(v[i]) * float64(w[i])
	}
	return sum
}

func TestASmallVectorIsNearItsOriginal(t *testing.T) {
	for name, kind := range map[string]struct {
		next   func(*rand.Rand) float64
		peaked bool // a few large values make the steps wide
	}{
		"normal":       {(*rand.Rand).NormFloat64, false},
		"one sided":    {(*rand.Rand).Float64, false},
		"a few peaks":  {func(r *rand.Rand) float64 { return math.Pow(r.NormFloat64(), 5) }, true},
		"mostly zeros": {func(r *rand.Rand) float64 { return r.NormFloat64() * float64(r.IntN(10)/9) }, true},
	} {
		for _, n := range []int{3, 256, 1536, 3072} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				next := func() float64 { return kind.next(r) }
				worst := 0.0
				for range 200 {
					v := unit(n, next)
					if math.IsNaN(float64(v[0])) { // all zeros
						continue
					}
					w := slices.Clone(v)
					if r.IntN(2) == 0 {
						w = unit(n, func() float64 { return next() + float64(v[0]) })
					}
					small := store.Shrink(v)
					for i, x := range small.Values {
						if off := math.Abs(float64(x)*float64(small.Scale) - float64(v[i])); off > .501*float64(small.Scale) {
							t.Fatalf("dimension %d is off by %g, with a scale of %g", i, off, small.Scale)
						}
					}
					worst = max(worst, math.Abs(small.Dot(store.Shrink(w))-cosine(v, w)))
				}
				limit := .005
				if n < 256 || kind.peaked {
					limit = .01
				}
				if worst > limit {
					t.Errorf("a cosine is off by %g", worst)
				}
			})
		}
	}
}

func TestASmallVectorOfNothing(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range [][]float32{nil, {}, {0, 0}, {nan, 1}, {1, nan}, {inf, 1}, {1, -inf}} {
		if small := store.Shrink(v); len(small.Values) != 0 || small.Dot(small) != 0 {
			t.Errorf("%v: got %v", v, small)
		}
	}
	a, b := store.Shrink([]float32{1, 0}), store.Shrink([]float32{1, 0, 0})
	if a.Dot(b) != 0 {
		t.Error("vectors of different lengths are near")
	}
}

func TestASmallVectorIsReadAsItWasWritten(t *testing.T) {
	for _, v := range []store.SmallVector{{}, store.Shrink([]float32{1, -1, .5, 0}), {Scale: 1e-9, Values: []int8{-128, 127}}} {
		got, err := store.DecodeVector(store.EncodeVector(v))
		if err != nil || got.Scale != v.Scale || !slices.Equal(got.Values, v.Values) {
			t.Errorf("got %v, %v; want %v", got, err, v)
		}
	}
	for n := range 4 {
		if _, err := store.DecodeVector(make([]byte, n)); err == nil {
			t.Errorf("%d bytes were read as a vector", n)
		}
	}
}

func BenchmarkSmallVectorDot(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	v, w := store.Shrink(unit(1536, r.NormFloat64)), store.Shrink(unit(1536, r.NormFloat64))
	sum := 0.0
	for b.Loop() {
		sum += v.Dot(w)
	}
	_ = sum
}
