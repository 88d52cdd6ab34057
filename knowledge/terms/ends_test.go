package terms

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEndsOfALongQuery(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 2*queryEnd+1), strings.Repeat("é", queryEnd)} {
		if got := Ends(text); got != text {
			t.Errorf("of %d bytes %d are left", len(text), len(got))
		}
	}
	for _, letter := range []string{"x", "é", "中", "😀"} {
		text := "first " + strings.Repeat(letter, 1<<20) + " last"
		got := Ends(text)
		if len(got) > 2*queryEnd+1 || len(got) < 2*queryEnd-8 || !utf8.ValidString(got) ||
			!strings.HasPrefix(got, "first ") || !strings.HasSuffix(got, " last") {
			t.Errorf("%s: %d bytes, from %.10q", letter, len(got), got)
		}
		if again := Ends(got); again != got {
			t.Errorf("%s: another time %d of %d bytes", letter, len(again), len(got))
		}
	}
}
