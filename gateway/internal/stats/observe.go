package stats

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap/zapcore"
)

// StatusClientClosed is nginx' status for a client that left; nobody reads it.
const StatusClientClosed = 499

// Conclude decides how a request ended, where nothing has been said yet.
func (s *Request) Conclude(status int, ctx context.Context) {
	switch {
	case s.Outcome != OutcomeOK:
	case status == StatusClientClosed: // Caddy's word for it, too
		s.Outcome = OutcomeClientClosed
	case status >= 400:
		s.Outcome = OutcomeRouterError
	case s.Ended || s.Whole:
	case ctx.Err() != nil:
		s.Outcome = OutcomeClientClosed
	default:
		s.Outcome = OutcomeRouterError
	}
}

// MarshalLogObject writes a field for the access log. It names no one but the
// tenant: of the session it shows a digest.
func (s *Request) MarshalLogObject(to zapcore.ObjectEncoder) error {
	to.AddString("request_id", s.RequestID)
	to.AddString("tenant", s.Tenant)
	to.AddString("plan", s.Plan)
	to.AddString("endpoint", endpointNames[s.Endpoint])
	to.AddString("outcome", outcomeNames[s.Outcome])
	if s.Model != "" {
		to.AddString("model", Cut(s.Model))
	}
	if s.Session != "" {
		to.AddString("session", sessionDigest(s.Tenant, s.Session))
	}
	if p := &s.Prompt; p.Tokens > 0 {
		to.AddInt("context_tokens", p.Tokens)
		to.AddInt("history_messages", p.Messages)
		to.AddInt("chunks", p.Chunks)
		to.AddBool("truncated", p.Truncated)
	}
	if s.Usage.Prompt > 0 {
		to.AddInt("tokens_in", s.Usage.Prompt)
		to.AddInt("tokens_out", s.Usage.Completion)
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

// Cut bounds a name that a client chose.
func Cut(name string) string {
	const most = 100 // bytes
	return name[:min(len(name), most)]
}

// sessionDigest tells sessions apart in logs without naming them.
func sessionDigest(tenant, session string) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + session)) // no tenant holds a zero
	return hex.EncodeToString(sum[:8])
}

// Trace makes a span of each stage, after the event: a request that isn't
// traced costs no more than a look for a span.
func (s *Request) Trace(ctx context.Context) {
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
		attribute.String("backstory.tenant", s.Tenant),
		attribute.String("backstory.plan", s.Plan),
		attribute.String("backstory.outcome", outcomeNames[s.Outcome]),
	)
	if p := &s.Prompt; p.Tokens > 0 {
		parent.SetAttributes(
			attribute.Int("backstory.context_tokens", p.Tokens),
			attribute.Int("backstory.history_messages", p.Messages),
			attribute.Int("backstory.chunks", p.Chunks),
			attribute.Bool("backstory.truncated", p.Truncated),
		)
	}
}

// Interface guard
var _ zapcore.ObjectMarshaler = (*Request)(nil)
