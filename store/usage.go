package store

import (
	"context"
	"time"
)

// Month is a calendar month of UTC, counted from January of the year 0. The zero
// Month stands for none.
type Month int32

// MonthOf returns the month that a time lies in.
func MonthOf(t time.Time) Month {
	t = t.UTC()
	return Month(t.Year()*12 + int(t.Month()) - 1)
}

// Start is the first moment of the month.
func (m Month) Start() time.Time {
	return time.Date(int(m)/12, time.Month(m%12)+1, 1, 0, 0, 0, 0, time.UTC)
}

// String writes the month like 2026-03.
func (m Month) String() string { return m.Start().Format("2006-01") }

// UsageMonths is how long usage is kept at least: for that many months before
// the current one.
const UsageMonths = 12

// Used is a number of tokens used in a month.
type Used struct {
	Month  Month
	Tokens int64
}

// Usage counts the tokens that tenants use. What is to be counted with an
// exchange goes into Append.Usage, and what is to be read with a session into
// GatherRequest.Month: neither costs a trip of its own there.
type Usage interface {
	// AddUsage adds to what the tenant has used; nothing where Tokens is
	// below 1. Once it returned, every Gather that begins sees it.
	AddUsage(ctx context.Context, scope Scope, u Used) error
	// Usage returns the tokens that the tenant used in a month.
	Usage(ctx context.Context, scope Scope, month Month) (int64, error)
}
