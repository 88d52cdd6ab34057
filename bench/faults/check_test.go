package main

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	// What a client said: A and B were acknowledged, C it left, D wasn't saved.
	s := &session{said: []said{{"A", acknowledged}, {"B", acknowledged}, {"C", left}, {"D", told}}}
	for name, c := range map[string]struct {
		stored string
		want   counts
	}{
		"all is well":                       {"A|re A|B|re B", counts{found: 2}},
		"what the client left may be there": {"A|re A|B|re B|C|re ", counts{found: 2}},
		"one is lost":                       {"B|re B", counts{found: 1, lost: 1}},
		"one is there twice":                {"A|re A|A|re A|B|re B", counts{found: 2, doubled: 1}},
		"one is without its reply":          {"A|B|re B", counts{found: 1, torn: 1}},
		"a reply is without its question":   {"A|re A|B|re B|re C", counts{found: 2, torn: 1}},
		"they stand the wrong way round":    {"B|re B|A|re A", counts{found: 1, disordered: 1}},
		"what wasn't saved is there":        {"A|re A|B|re B|D|re D", counts{found: 2, toldKept: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.acknowledged, c.want.failed, c.want.told = 2, 1, 1
			if got := check(s, strings.Split(c.stored, "|")); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
