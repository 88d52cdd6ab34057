package recall

import (
	"slices"
	"testing"
	"time"
)

func TestDatesAreRead(t *testing.T) {
	now := time.Date(2024, 3, 10, 9, 0, 0, 0, time.UTC) // a Sunday
	for text, want := range map[string][]date{
		"on 2023-05-08, or so":            {{2023, 5, 8}},
		"on 10.01.2024":                   {{2024, 1, 10}},
		"on 10.01.24":                     {{2024, 1, 10}},
		"on 5/8/2023 and 25/8/2023":       {{2023, 5, 8}, {2023, 8, 25}},
		"on 8 May 2023":                   {{2023, 5, 8}},
		"on the 8th of May, 2023":         {{2023, 5, 8}},
		"on May 8th, 2023":                {{2023, 5, 8}},
		"before May 8":                    {{0, 5, 8}},
		"in May 2023":                     {{2023, 5, 0}},
		"in December":                     {{0, 12, 0}},
		"am 8. Mai 2023":                  {{2023, 5, 8}},
		"le 8 février":                    {{0, 2, 8}},
		"in 2022?":                        {{2022, 0, 0}},
		"2023年5月8日的事":                     {{2023, 5, 8}},
		"5月8日":                            {{0, 5, 8}},
		"yesterday":                       {{2024, 3, 9}},
		"last Friday":                     {{2024, 3, 8}},
		"last Sunday":                     {{2024, 3, 3}},
		"last month":                      {{2024, 2, 0}},
		"last year":                       {{2023, 0, 0}},
		"you may march on":                {{0, 3, 0}},
		"may I have 3 of 40.50 at 12:30?": nil,
		"call 555-1234, version 1.2.3":    {{2003, 2, 1}}, // at worst, nothing is of that day
		"99/99/2023 and 2023-13-01":       nil,
		"":                                nil,
	} {
		if got := datesIn(text, now); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if got := datesIn("yesterday", time.Time{}); got != nil {
		t.Errorf("without a clock, yesterday is %v", got)
	}
}
