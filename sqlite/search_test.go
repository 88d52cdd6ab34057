package sqlite

import (
	"context"
	"testing"
)

func TestTermsAreQuotedOnce(t *testing.T) {
	for _, c := range []struct {
		terms []string
		want  string
	}{
		{nil, ``},
		{[]string{"", " ", "*", `"`}, ``},
		{[]string{"red", "blue", "red"}, `"red" OR "blue"`},
		{[]string{`a"b`, "a\x00b", "OR"}, `"a""b" OR "a b" OR "OR"`},
		{[]string{"日本", "-", "x-y"}, `"日本" OR "x-y"`},
	} {
		if got := matchAny(c.terms); got != c.want {
			t.Errorf("%q: got %s, want %s", c.terms, got, c.want)
		}
	}
}

func FuzzSearchText(f *testing.F) {
	s := temporary(f)
	ctx := context.Background()
	if err := s.writer.write(ctx, 1, func(c *conn) error { return note(c, "a") }); err != nil {
		f.Fatal(err)
	}
	f.Add(`"`, "*")
	f.Add("a\x00b", "NEAR(")
	f.Add("\xff", "^x")
	f.Fuzz(func(t *testing.T, one, two string) {
		if hits, err := s.SearchText(ctx, of("a"), []string{one, two}, 5); err != nil || len(hits) > 0 {
			t.Errorf("got %v, %v", hits, err)
		}
	})
}
