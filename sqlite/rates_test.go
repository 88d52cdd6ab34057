package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

func TestIdleTenantsAreForgotten(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	r := newRates(func() time.Time { return now })
	for i := range 1000 {
		r.take(fmt.Sprint("t", i), 10)
		r.take(fmt.Sprint("refused", i), 0)
	}
	if len(r.logs) != 1000 {
		t.Errorf("%d tenants are remembered, want the 1000 that were counted", len(r.logs))
	}
	now = now.Add(store.RateWindow / 2)
	r.take("busy", 10)
	now = now.Add(store.RateWindow / 2)
	r.take("busy", 10)
	if len(r.logs) != 1 || r.logs["busy"].len() != 2 {
		t.Errorf("%d tenants are remembered, want the busy one", len(r.logs))
	}
}

func TestATenantTakesUpNoMoreThanItsLimit(t *testing.T) {
	const limit = 100
	now := time.Unix(1_000_000, 0)
	r := newRates(func() time.Time { return now })
	for range 100 * limit {
		now = now.Add(store.RateWindow / limit)
		r.take("a", limit)
		r.take("a", limit) // refused
	}
	if log := r.logs["a"]; log.len() > limit || cap(log.times) > 4*limit {
		t.Errorf("%d times in room for %d", log.len(), cap(log.times))
	}
}

func TestAClockSetBackAllowsNoMore(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	r := newRates(func() time.Time { return now })
	allowed := 0
	for range 20 {
		if r.take("a", 3).Allowed {
			allowed++
		}
		now = now.Add(-time.Hour)
	}
	if allowed != 3 {
		t.Errorf("%d were allowed, want 3", allowed)
	}
}
