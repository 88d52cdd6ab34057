package gateway

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/store"
)

// refusals remember tenants that have used up their rate, until the next of
// their requests would be allowed. Nothing can make that earlier, so a request
// that comes before is refused without asking the store, and without its body
// being read.
type refusals struct{ tenants sync.Map } // tenant to refusal

type refusal struct {
	limit           int
	next, untouched time.Time // when a request will be allowed, and all of them
}

// of returns the refusal of a tenant's request, where it is known.
func (r *refusals) of(who caller, now time.Time) (store.Rate, bool) {
	v, ok := r.tenants.Load(who.scope.Tenant)
	if !ok {
		return store.Rate{}, false
	}
	known := v.(refusal)
	if known.limit != who.plan.RequestsPerMinute || !now.Before(known.next) {
		r.tenants.CompareAndDelete(who.scope.Tenant, known)
		return store.Rate{}, false
	}
	return store.Rate{Limit: known.limit, Reset: known.untouched.Sub(now), RetryAfter: known.next.Sub(now)}, true
}

// admit keeps a rate for the reply's headers, and refuses the request where it
// is used up.
func (gt *gate) admit(w *replyWriter, who caller, rate store.Rate) error {
	if !rate.Allowed {
		now := time.Now()
		gt.refusals.tenants.Store(who.scope.Tenant, refusal{who.plan.RequestsPerMinute, now.Add(rate.RetryAfter), now.Add(rate.Reset)})
	}
	return w.setRate(rate)
}

// count counts a request against its tenant's rate.
func (gt *gate) count(w *replyWriter, r *http.Request, who caller) error {
	w.stats.Begin(stats.Gather)
	rate, err := gt.take(r, w, who)
	w.stats.End(stats.Gather)
	if err != nil {
		return &unavailable{err}
	}
	return gt.admit(w, who, rate)
}

// take counts the request, and with the same trip learns what the tenant has
// used where its plan has an allowance.
func (gt *gate) take(r *http.Request, w *replyWriter, who caller) (store.Rate, error) {
	if who.plan.TokensPerMonth == 0 {
		return gt.shared.Take(r.Context(), who.scope.Tenant, who.plan.RequestsPerMinute)
	}
	gathered, err := gt.shared.Gather(r.Context(), store.GatherRequest{
		Scope: who.scope, Limit: who.plan.RequestsPerMinute, Month: thisMonth(),
	})
	w.used = gathered.Used
	return gathered.Rate, err
}

// countRefused counts a request that is refused with an error, where it wasn't yet:
// its headers say so.
func (gt *gate) countRefused(w *replyWriter, r *http.Request, who caller, err error) error {
	if w.counted {
		return err
	}
	return errors.Join(gt.count(w, r, who), err)
}
