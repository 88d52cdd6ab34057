package main

import "testing"

func TestCommonPrefix(t *testing.T) {
	a := chatOf("system: be kind", "user: one two three", "assistant: four")
	for _, c := range []struct {
		name string
		b    []said
		want int
	}{
		{"the same", a, historyTokens(a)},
		{"longer", append(a[:3:3], said{Role: "user", Content: "five"}), historyTokens(a)},
		{"the beginning of a message", chatOf("system: be kind", "user: one two seven"), historyTokens(a[:1]) + 2},
		{"another role", chatOf("system: be kind", "assistant: one two three"), historyTokens(a[:1])},
		{"cut at the front", a[1:], 0},
	} {
		if got := commonPrefix(a, c.b); got != c.want {
			t.Errorf("%s: %d tokens, want %d", c.name, got, c.want)
		}
	}
	for _, b := range []string{"seven eleven", "severe", ""} {
		if got := commonText("seven", b); got != "" {
			t.Errorf("a word is cut: %q", got)
		}
	}
}

// The session is what it says, and a window that slides keeps next to nothing.
func TestSlidingWindow(t *testing.T) {
	size := 0
	for _, exchange := range talk() {
		size += historyTokens(exchange[:])
	}
	if mean := size / cacheExchanges; mean < 190 || mean > 215 {
		t.Errorf("an exchange has %d tokens", mean)
	}
	r := slidingWindow()
	if r.N < 150 || r.Figures["reusable"] <= 0 || r.Figures["reusable"] > .05 {
		t.Errorf("%+v", r)
	}
	if f := r.Figures; f["prompt_tokens"] < 7000 || f["prompt_tokens"] > 8200 {
		t.Errorf("%+v", f)
	}
}
