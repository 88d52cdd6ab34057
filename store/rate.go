package store

import (
	"context"
	"time"
)

// RateWindow is the span over which requests are counted: limits are per minute.
const RateWindow = time.Minute

// Rate is what the count of a tenant's requests came to.
type Rate struct {
	Allowed    bool
	Limit      int           // requests per RateWindow
	Remaining  int           // requests left now, this one counted
	Reset      time.Duration // until all of Limit is there again
	RetryAfter time.Duration // until the next request will be allowed; 0 where one is now
}

// Limiter counts requests.
type Limiter interface {
	// Take counts one request if fewer than limit were counted within the
	// last RateWindow, and refuses it otherwise: never more than limit in
	// any window. Refused requests aren't counted. The limit is that of the
	// tenant's plan: its users share it.
	Take(ctx context.Context, tenant string, limit int) (Rate, error)
}
