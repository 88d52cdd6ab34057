package gateway

import (
	"context"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// thisMonth is the month that tokens are counted in.
func thisMonth() store.Month { return store.MonthOf(time.Now()) }

// checkAllowance refuses a request for a model when the month's tokens are used
// up. Requests under way aren't known yet: what runs at once may go beyond the
// allowance together.
func (w *replyWriter) checkAllowance(p *Plan, used int64) error {
	if p.TokensPerMonth == 0 || used < p.TokensPerMonth {
		return nil
	}
	w.Header().Set("X-Should-Retry", "false") // an SDK would try again
	return &openai.Error{
		Status: http.StatusTooManyRequests, Type: openai.CodeInsufficientQuota, Code: openai.CodeInsufficientQuota,
		Message: "You exceeded your plan's allowance of tokens for this month. It begins anew on " +
			(thisMonth() + 1).Start().Format("2006-01-02") + " (UTC).",
	}
}

// use counts tokens. A failure is logged, and costs the operator that much: the
// client has its answer.
func (ca *chatAPI) use(ctx context.Context, scope store.Scope, id string, u store.Used) {
	if u.Tokens < 1 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	if err := ca.shared.AddUsage(ctx, scope, u); err != nil {
		ca.logger.Error("tokens were not counted", zap.String("request_id", id), zap.Int64("tokens", u.Tokens), zap.Error(err))
	}
}
