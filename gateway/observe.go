package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/backstory-proxy/backstory/openai"
)

// observe tells of a request whose reply has ended: to the metrics, the access
// log, and the trace where there is one.
func (g *Gateway) observe(w *replyWriter, r *http.Request) {
	s := &w.seen
	s.conclude(w.status, r.Context())
	g.router.saw(s)
	m := g.meters[s.plan]
	if m == nil { // a plan that the store names and the configuration doesn't
		m = g.meters[""]
	}
	m.count(s)
	if g.options.Observe != nil {
		g.options.Observe(r, s)
	}
	s.trace(r.Context())
}

// outcomeOf says how a request ended that we answered with an error.
func outcomeOf(err error, reply *openai.Error) outcome {
	var (
		down   *unavailable
		router *RouterError
	)
	switch {
	case reply.Status == statusClientClosed:
		return outcomeClientClosed
	case reply.Status == http.StatusUnauthorized:
		return outcomeUnauthorized
	case reply.Status == http.StatusTooManyRequests && reply.Code == "insufficient_quota":
		return outcomeQuota
	case reply.Status == http.StatusTooManyRequests:
		return outcomeRateLimited
	case reply.Status < 500:
		return outcomeInvalid
	case errors.As(err, &down):
		return outcomeStoreDown
	case errors.As(err, &router) && router.Status > 0:
		return outcomeUnreachable
	case reply.Status == http.StatusBadGateway:
		return outcomeRouterError
	}
	return outcomeError
}

// cause is the log's field for an error. What a client is told of its own
// request may quote from it, and the path may name a session: the log is told
// only which parameter it is about.
func cause(err error, reply *openai.Error) zap.Field {
	if reply.Status >= 500 || reply.Status == statusClientClosed {
		return zap.Error(err)
	}
	return zap.String("param", cut(reply.Param))
}

// conclude decides how a request ended, where nothing has been said yet.
func (s *Stats) conclude(status int, ctx context.Context) {
	switch {
	case s.outcome != outcomeOK:
	case status == statusClientClosed: // Caddy's word for it, too
		s.outcome = outcomeClientClosed
	case status >= 400:
		s.outcome = outcomeRouterError
	case s.ended || s.whole:
	case ctx.Err() != nil:
		s.outcome = outcomeClientClosed
	default:
		s.outcome = outcomeRouterError
	}
}

// MarshalLogObject writes a field for the access log. It names no one but the
// tenant: of the session it shows a digest.
func (s *Stats) MarshalLogObject(to zapcore.ObjectEncoder) error {
	to.AddString("request_id", s.RequestID)
	to.AddString("tenant", s.tenant)
	to.AddString("plan", s.plan)
	to.AddString("endpoint", endpointNames[s.endpoint])
	to.AddString("outcome", outcomeNames[s.outcome])
	if s.model != "" {
		to.AddString("model", cut(s.model))
	}
	if s.session != "" {
		to.AddString("session", sessionDigest(s.tenant, s.session))
	}
	if s.added {
		to.AddInt("context_tokens", s.tokens)
		to.AddInt("history_messages", s.history)
		to.AddInt("chunks", s.chunks)
		to.AddBool("truncated", s.truncated)
	}
	if s.usage.Prompt > 0 {
		to.AddInt("tokens_in", s.usage.Prompt)
		to.AddInt("tokens_out", s.usage.Completion)
	}
	return to.AddObject("ms", zapcore.ObjectMarshalerFunc(func(to zapcore.ObjectEncoder) error {
		for at, took := range s.took {
			if took > 0 {
				to.AddFloat64(stageNames[at], float64(took.Microseconds())/1000)
			}
		}
		return nil
	}))
}

// cut bounds a name that a client chose.
func cut(name string) string {
	const most = 100 // bytes
	return name[:min(len(name), most)]
}

// sessionDigest tells sessions apart in logs without naming them.
func sessionDigest(tenant, session string) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + session)) // no tenant holds a zero
	return hex.EncodeToString(sum[:8])
}

// trace makes a span of each stage, after the event: a request that isn't
// traced costs no more than a look for a span.
func (s *Stats) trace(ctx context.Context) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return
	}
	tracer := parent.TracerProvider().Tracer("github.com/backstory-proxy/backstory")
	for at, took := range s.took {
		if took == 0 {
			continue
		}
		began := s.start.Add(s.began[at])
		_, span := tracer.Start(ctx, "backstory."+stageNames[at], trace.WithTimestamp(began))
		span.End(trace.WithTimestamp(began.Add(took)))
	}
	parent.SetAttributes(
		attribute.String("backstory.tenant", s.tenant),
		attribute.String("backstory.plan", s.plan),
		attribute.String("backstory.outcome", outcomeNames[s.outcome]),
	)
	if s.added {
		parent.SetAttributes(
			attribute.Int("backstory.context_tokens", s.tokens),
			attribute.Int("backstory.history_messages", s.history),
			attribute.Int("backstory.chunks", s.chunks),
			attribute.Bool("backstory.truncated", s.truncated),
		)
	}
}

// assembled takes in what was put into the prompt, since began.
func (s *Stats) assembled(began time.Duration, p *assembled) {
	s.began[stageAssemble] = began
	s.end(stageAssemble)
	s.took[stageAssemble] = max(1, s.took[stageAssemble]-max(s.took[stageSearch], s.took[stageRecall]))
	s.added, s.tokens, s.truncated = true, p.plan.Tokens, p.plan.Truncated
	s.history, s.historyTokens = len(p.edit.History)+p.quotedMessages(), p.plan.HistoryTokens+p.plan.QuoteTokens
	s.chunks, s.fileTokens = len(p.plan.Chunks), p.plan.ChunkTokens
	if part := p.meta.RAG.Degraded; part != "" {
		degradedSearches.WithLabelValues(part).Inc()
	}
}

// Interface guard
var _ zapcore.ObjectMarshaler = (*Stats)(nil)
