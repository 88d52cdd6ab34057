package wordvec

import (
	"math"
	"testing"

	"github.com/backstory-proxy/backstory/knowledge/terms"
)

// similarity is the cosine of two words' vectors.
func similarity(t *testing.T, a, b string) float64 {
	t.Helper()
	v, w := Find(terms.Stem(a)).Vector(), Find(terms.Stem(b)).Vector()
	if v == "" || w == "" {
		t.Fatalf("%q or %q isn't known", a, b)
	}
	sum := 0.0
	for i := range Dims {
		sum += float64(int8(v[i])) * float64(int8(w[i]))
	}
	return sum / Unit / Unit
}

func TestWordsOfSimilarMeaningHaveSimilarVectors(t *testing.T) {
	for _, c := range [][3]string{
		{"dog", "puppy", "mortgage"}, {"rent", "landlord", "violin"}, {"doctor", "hospital", "guitar"},
		{"zoo", "animals", "tax"}, {"able", "unable", "pizza"}, {"zurich", "switzerland", "pancakes"},
	} {
		if near, far := similarity(t, c[0], c[1]), similarity(t, c[0], c[2]); near < .35 || far > .25 {
			t.Errorf("%s is to %s %.2f, to %s %.2f", c[0], c[1], near, c[2], far)
		}
	}
}

func TestVectorsAreOfOneLength(t *testing.T) {
	if n := len(stems()); n < 15_000 || 4+len(words) < n*Dims {
		t.Fatalf("%d stems in %d bytes", n, len(words))
	}
	for i, stem := range stems() {
		v, sum := ID(i+1).Vector(), 0.0
		for j := range len(v) {
			sum += float64(int8(v[j])) * float64(int8(v[j]))
		}
		if length := math.Sqrt(sum); len(v) != Dims || math.Abs(length-Unit) > 10 {
			t.Errorf("%s: %d dimensions, %.1f long", stem, len(v), length)
		}
		if Find(stem) != ID(i+1) {
			t.Errorf("%s isn't found", stem)
		}
	}
}

func TestAWordThatIsNotKnownHasNoVector(t *testing.T) {
	for _, w := range []string{"", "the", "квартплата", "xyzzyx", "zzzz", "\n", "aa\nbb"} {
		if id := Find(w); id != 0 || id.Vector() != "" {
			t.Errorf("%q is %d", w, id)
		}
	}
}
