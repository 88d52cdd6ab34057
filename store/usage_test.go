package store

import (
	"testing"
	"time"
)

func TestMonths(t *testing.T) {
	zone := time.FixedZone("east", 2*3600)
	for in, want := range map[time.Time]string{
		time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC):      "2026-01",
		time.Date(2026, 1, 1, 1, 59, 59, 0, zone):        "2025-12",
		time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC): "2026-12",
	} {
		m := MonthOf(in)
		if m.String() != want || m.Start().Format("2006-01-02 15:04:05") != want+"-01 00:00:00" || MonthOf(m.Start()) != m || (m+1).Start() != m.Start().AddDate(0, 1, 0) {
			t.Errorf("%s: got %s, from %s", in, m, m.Start())
		}
	}
}
