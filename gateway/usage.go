package gateway

import (
	"time"

	"github.com/backstory-proxy/backstory/internal/respond"
)

const usagePath = "/usage"

// usageObject is what a caller is told of its plan. A limit that is null is
// none.
type usageObject struct {
	Object   string   `json:"object"` // usage
	Plan     string   `json:"plan"`
	Requests *usageOf `json:"requests"` // per minute
	Tokens   *usageOf `json:"tokens"`   // per calendar month; null where they aren't counted
	Files    *usageOf `json:"files"`
	Storage  *usageOf `json:"storage"` // in bytes
}

type usageOf struct {
	Used      int64  `json:"used"`
	Limit     *int64 `json:"limit"`
	Remaining *int64 `json:"remaining"`
	ResetsAt  int64  `json:"resets_at,omitempty"` // Unix seconds
}

// bounded is a usage with a limit, unless that is 0.
func bounded(used, limit int64) *usageOf {
	u := &usageOf{Used: used}
	if limit > 0 {
		left := max(limit-used, 0)
		u.Limit, u.Remaining = &limit, &left
	}
	return u
}

// usage tells a caller what its plan is and what is left of it.
func (g *Gateway) usage(c call) error {
	w, r, who := c.w, c.r, c.who
	files, size, err := g.files.used(r.Context(), who.scope)
	if err != nil {
		return err
	}
	limit := int64(w.rate.Limit)
	u := usageObject{
		Object:   "usage",
		Plan:     who.planName,
		Requests: bounded(limit-int64(w.rate.Remaining), limit),
		Files:    bounded(int64(files), int64(who.plan.Files)),
		Storage:  bounded(size, who.plan.Storage),
	}
	u.Requests.ResetsAt = time.Now().Add(w.rate.Reset + time.Second - 1).Unix()
	if who.plan.TokensPerMonth > 0 {
		u.Tokens = bounded(w.used, who.plan.TokensPerMonth)
		u.Tokens.ResetsAt = (thisMonth() + 1).Start().Unix()
	}
	return respond.JSON(w, u)
}
