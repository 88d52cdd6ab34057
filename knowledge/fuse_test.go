package knowledge

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

// ranked makes hits of the files named, best first.
func ranked(files string) []store.Hit {
	var hits []store.Hit
	for _, f := range strings.Fields(files) {
		hits = append(hits, store.Hit{FileID: f, Filename: f, Chunk: store.Chunk{Text: "text of " + f}})
	}
	return hits
}

func TestRanksAreFused(t *testing.T) {
	for name, c := range map[string]struct {
		lexical, near string
		weight        float64
		want          string
		best          float64
	}{
		"first in both":              {"a b c", "a c b", 1, "a b c", 1},
		"words alone":                {"a b", "", 1, "a b", 1},
		"vectors alone":              {"", "a b", .2, "a b", 1},
		"nothing":                    {"", "", 1, "", 0},
		"both beat the first of one": {"a b", "c b", 1, "b a c", 61.0 / 62},
		"a low weight breaks ties":   {"a b c", "c", .2, "c a b", (1/63.0 + .2/61) / (1.2 / 61)},
		"no weight":                  {"a b", "b c", 0, "a b", 1},
	} {
		t.Run(name, func(t *testing.T) {
			hits := fuse(nil, 10, ranking{ranked(c.lexical), 1}, ranking{ranked(c.near), c.weight})
			if got := names(hits); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if len(hits) > 0 && math.Abs(hits[0].Score-c.best) > 1e-9 {
				t.Errorf("best score %v, want %v", hits[0].Score, c.best)
			}
		})
	}
}

func TestRepeatsAreLeftOutAndNearDuplicatesComeLast(t *testing.T) {
	page := strings.Join(strings.Fields(prose(30)), " ")
	hits := []store.Hit{
		{FileID: "v1", Chunk: store.Chunk{Text: page + " Refunds within 14 days."}},
		{FileID: "copy", Chunk: store.Chunk{Text: page + " Refunds within 14 days."}},
		{FileID: "v2", Chunk: store.Chunk{Text: page + " Refunds within 30 days."}},
		{FileID: "other", Chunk: store.Chunk{Text: "Something else altogether."}},
	}
	for limit, want := range map[int]string{4: "[v1 other v2]", 2: "[v1 other]", 1: "[v1]"} {
		var got []string
		for _, h := range deduplicate(slices.Clone(hits), nil, limit) {
			got = append(got, h.FileID)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("limit %d: got %v, want %s", limit, got, want)
		}
	}
}

func TestNearDuplicatesInAFileAreLeftOut(t *testing.T) {
	notice := strings.Join(strings.Fields(prose(30)), " ") + " Page "
	var hits []store.Hit
	for n := range 50 {
		hits = append(hits, store.Hit{FileID: "manual", Chunk: store.Chunk{N: n, Text: fmt.Sprint(notice, "no", n)}})
	}
	hits = append(hits, store.Hit{FileID: "other", Chunk: store.Chunk{N: 99, Text: "Something else altogether."}})
	for words, want := range map[string]string{"notice": "[0 99]", "": "[0 99]", "notice no7 manual": "[0 99 7]"} {
		var got []int
		for _, h := range deduplicate(slices.Clone(hits), strings.Fields(words), 20) {
			got = append(got, h.Chunk.N)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("asked for %q: got %v, want %s", words, got, want)
		}
	}
}

func TestSimilarityIsTheShareOfCommonWords(t *testing.T) {
	all := strings.Fields(prose(200))
	slices.Sort(all)
	all = slices.Compact(all) // 200 numbers and a few words
	half := strings.Join(all[:len(all)/2], " ")
	for name, c := range map[string]struct {
		a, b string
		want float64
	}{
		"the same":  {"a b c", "c b a", 1},
		"nothing":   {"a b c", "d e f", 0},
		"a third":   {"a b", "b c", 1.0 / 3},
		"one empty": {"", "a", 0},
		"half":      {strings.Join(all, " "), half, .5},
	} {
		a, b := sketchOf(c.a), sketchOf(c.b)
		if got := similarity(&a, &b); math.Abs(got-c.want) > .13 {
			t.Errorf("%s: got %.2f, want %.2f", name, got, c.want)
		}
	}
}

func BenchmarkFuse(b *testing.B) {
	page := prose(25)
	var lexical, near []store.Hit
	for i := range 60 {
		h := store.Hit{FileID: fmt.Sprint(i), Chunk: store.Chunk{Text: fmt.Sprint(page, i)}}
		lexical, near = append(lexical, h), append([]store.Hit{h}, near...)
	}
	for b.Loop() {
		fuse(nil, 20, ranking{lexical, 1}, ranking{near, .2})
	}
}
