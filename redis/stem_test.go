package redis

import "testing"

func TestFormsOfAWordHaveOneStem(t *testing.T) {
	for word, want := range map[string]string{
		"refunds": "refund", "refunding": "refund", "policies": "polici", "policy": "polici",
		"is": "is", "s": "s", "": "", "x_y": "x_y", "straßen": "straßen", "日本": "日本", "2024s": "2024",
	} {
		if got := stem(word); got != want {
			t.Errorf("%q has the stem %q, want %q", word, got, want)
		}
	}
}

// The words of a question come from outside.
func FuzzStem(f *testing.F) {
	for _, word := range []string{"agreed", "yyy", "eed", "ing", "s'", "aied", "ational", "é", "42"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		for _, w := range words([]string{word}) {
			if w == "" {
				t.Errorf("%q has an empty stem", word)
			}
		}
	})
}
