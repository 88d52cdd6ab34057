package main

import (
	"encoding/json"
	"testing"
)

func TestFileNameSaysNothing(t *testing.T) {
	for id, want := range map[string]string{
		"Super_Bowl_50#3":                       "d000007.txt",
		"https://docs.example.org/page.html#at": "d000007.txt",
		"src/store/mod.rs#12":                   "d000007.rs",
		"main.go":                               "d000007.go",
		"v1.2 of the plan":                      "d000007.txt",
		"1024":                                  "d000007.txt",
	} {
		if got := fileName(7, id); got != want {
			t.Errorf("%s: %s", id, got)
		}
	}
}

func TestTextOfHits(t *testing.T) {
	var hits []hit
	err := json.Unmarshal([]byte(`[
		{"chunk": 4, "section": "B", "content": [{"text": "The last chunk."}]},
		{"chunk": 0, "section": "A", "content": [{"text": "It begins here. The cable was wet."}]},
		{"chunk": 1, "section": "A", "content": [{"text": "The cable was wet. It was cut."}, {"text": "Twice."}]}
	]`), &hits)
	if err != nil {
		t.Fatal(err)
	}
	want := "It begins here. The cable was wet.\n It was cut.\nTwice.\nThe last chunk.\nA\nA\nB\n"
	if got := textOfHits(hits); got != want {
		t.Errorf("got %q", got)
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"It rained. The cable was wet.", "The cable was wet. Then", 18},
		{"the same chunk", "the same chunk", 14},
		{"a few", "few more", 0}, // by chance
		{"", "anything at all", 0},
	} {
		if got := overlap(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d", c.a, c.b, got)
		}
	}
}
