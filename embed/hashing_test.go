package embed

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
)

func cosine(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func hashed(t *testing.T, texts ...string) [][]float32 {
	t.Helper()
	v, err := NewHashing(1024).Embed(t.Context(), nil, texts)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestHashedVectorsHaveUnitLengthAndAreTheSameEachTime(t *testing.T) {
	text := "Refunds are paid within fourteen days of the return, whatever the reason."
	first := hashed(t, text)[0]
	if length := cosine(first, first); math.Abs(length-1) > 1e-6 {
		t.Errorf("length %v", length)
	}
	for range 5 {
		if !slices.Equal(first, hashed(t, text)[0]) {
			t.Fatal("the vectors differ")
		}
	}
}

// The vectors are in stores: this test fails if their meaning changes.
func TestHashNeverChanges(t *testing.T) {
	if got := hash('w', "backstory"); got != 0xcc0a37ca979d603e {
		t.Errorf("got %#x", got)
	}
}

func TestTextsWithoutWordsHaveNoVector(t *testing.T) {
	for i, v := range hashed(t, "", " \n", "?!…", "what is the", "\u0301") {
		if v != nil {
			t.Errorf("text %d has a vector", i)
		}
	}
}

func TestRelatedTextsAreNearer(t *testing.T) {
	v := hashed(t,
		"How are subscriptions cancelled?",
		"Cancelling a subscription takes effect at the end of the month.",
		"The harbour was built by the Romans in the second century.")
	related, other := cosine(v[0], v[1]), cosine(v[0], v[2])
	if related < 2*NewHashing(1).Floor() || other > NewHashing(1).Floor() {
		t.Errorf("related %.2f, other %.2f", related, other)
	}
}

func TestHashingStopsWhenTheCallerHasGone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewHashing(8).Embed(ctx, nil, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
