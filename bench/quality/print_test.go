package main

import (
	"strings"
	"testing"
)

func TestPrint(t *testing.T) {
	var r report
	r.Data = "data"
	for _, budget := range []int{1000, 2000} {
		for _, w := range []row{
			{Store: "sqlite", System: systemFull, N: 9, Figures: map[string]float64{"all": .5, "any": 1, "tokens_mean": 900, "tokens_max": 999, "last_two": .5, "last_two_short": 1}},
			{Store: "sqlite", System: systemFull, Category: "when", N: 4, Figures: map[string]float64{"all": .25, "any": .75}},
			{System: systemRecent, N: 9, Figures: map[string]float64{"all": .111, "any": .222, "tokens_mean": 950, "tokens_max": 1000}},
		} {
			w.Section, w.Collection, w.Budget = sectionMemory, "locomo", budget
			r.add(w)
		}
	}
	r.add(row{Section: sectionSearch, Collection: "cranfield", Store: "redis", N: 3, Figures: map[string]float64{"ndcg@10": .3891}})
	r.Notes = []string{"redis: x.pdf: 415"}
	var b strings.Builder
	if err := r.print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"                       n   1000         2000\n" +
			"  backstory (sqlite)   9   .500/1.000   .500/1.000\n" +
			"    goal                   .760/.880    .820/.930\n" +
			"  most recent first    9   .111/.222    .111/.222\n",
		"  backstory (sqlite): tokens   9   900/999    900/999\n" +
			"    over the budget            9   0          0\n" +
			"    last two exchanges         9   .500       .500\n" +
			"      that leave most of it    9   1.000      1.000\n" +
			"  most recent first: tokens    9   950/1000   950/1000\n" +
			"    over the budget            9   0          0\n",
		"  backstory (sqlite)\n    when   4   .250/.750   .250/.750\n",
		"  redis   3   .389 (goal .400)   .000",
		"redis: x.pdf: 415\n",
		"\ndata, 0 seconds\n",
	} {
		if got := trimLines(b.String()); !strings.Contains(got, want) {
			t.Errorf("missing:\n%s\nin:\n%s", want, got)
		}
	}
}

// trimLines takes away what can't be seen.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: ".000", .0414: ".041", .9996: "1.000", 1: "1.000", 6139.4: "6139"} {
		if got := number(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
}
