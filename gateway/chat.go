package gateway

import (
	"context"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
	"github.com/backstory-proxy/backstory/knowledge"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/tokens"
)

// chatAPI answers chat requests, previews them, and passes on what isn't ours.
type chatAPI struct {
	options   *Options
	gate      *gate
	shared    *Shared
	knowledge *knowledge.Service
	models    *upstream.Lengths
	counts    *tokens.Cache
	sources   []sessionSource // of names of sessions
	logger    *zap.Logger
}

// chat answers a chat request, or previews it. Its way is a row of stages, each of
// which returns a value that no later one changes:
//
//	parse      request     what the client asks
//	load       loaded      what the store knows of it, its rate among that
//	reconcile  reconciled  what of the session it carries, and what is new
//	assemble   assembled   what goes upstream, and what is told of it
//	forward                the router's reply on its way to the client
//	commit                 what is saved before the client sees the end of it
//
// A preview ends behind assemble.
func (ca *chatAPI) chat(c call) error {
	w, r, router, ctx := c.w, c.r, c.router, c.r.Context()
	req, err := ca.parse(c)
	if err != nil {
		return ca.gate.countRefused(w, r, c.who, err)
	}
	session, err := ca.load(ctx, w, req)
	if err != nil {
		return err
	}
	if !req.remembers() && !session.searches(req) { // nothing to add, and nothing to keep
		return ca.send(c, &exchange{ca, &w.stats, req, session.Mark, &reconciled{}, &assembled{edit: req.edit()}})
	}
	history, err := ca.reconcile(ctx, req, session)
	if err != nil {
		return err
	}
	via := sync.OnceValue(func() *upstream.Caller { return upstream.New(r, router) })
	prompt, err := ca.assemble(ctx, via, &w.stats, req, session, history)
	if err != nil {
		return err
	}
	return ca.send(c, &exchange{ca, &w.stats, req, session.Mark, history, prompt})
}

// send sends what was assembled upstream, unless it is to be previewed.
func (ca *chatAPI) send(c call, x *exchange) error {
	if x.req.preview {
		return ca.answerPreview(c.w, x)
	}
	upstream.SetBody(c.r, x.req.chat.Upstream(x.prompt.edit))
	if x.prompt.meta == nil && x.req.month == 0 { // the reply is the router's
		c.w.stats.Begin(stats.Router)
		return upstream.Call(c.router, c.w, c.r)
	}
	return ca.forward(c.w, c.r, c.router, x)
}

// request is a chat request, read and checked.
type request struct {
	id      string
	caller  caller
	chat    *openai.Chat
	model   tokens.Model
	retries int           // which retry the client calls it; 0: the first try
	tally   *tokens.Tally // in the model's encoding
	preview bool
	// month is the one whose allowance the request draws on; 0 where the plan
	// has none.
	month store.Month
}

// parse reads and checks a request.
func (ca *chatAPI) parse(c call) (*request, error) {
	w, r, who, ext := c.w, c.r, c.who, c.extension
	body, err := c.read(ca.options.MaxBody)
	if err != nil {
		return nil, err
	}
	opts := openai.ParseOptions{Extension: ext, BareModels: ca.options.BareModels}
	if ext.SessionID == "" {
		opts.Session = ca.sessionFrom(r.Header)
	}
	chat, err := openai.ParseChat(body, opts)
	if err != nil {
		return nil, err
	}
	if err := who.plan.checkModels(chat.Model, chat.Models); err != nil {
		return nil, err
	}
	w.stats.Model, w.stats.Session = chat.Model, chat.SessionID
	req := &request{id: w.id, caller: who, chat: chat, model: ca.modelFor(chat.Model), preview: r.URL.Path == previewPath}
	req.tally = req.model.Encoding.NewTally()
	req.retries, _ = strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count"))
	if who.plan.TokensPerMonth > 0 {
		req.month = thisMonth()
	}
	return req, nil
}

// edit is what is changed of any request.
func (r *request) edit() openai.Edit {
	return openai.Edit{IncludeUsage: r.month != 0 && r.chat.Stream && !r.chat.IncludeUsage}
}

// remembers reports whether the request has a session.
func (r *request) remembers() bool { return r.chat.SessionID != "" }

// saves reports whether the exchange is to be kept.
func (r *request) saves() bool { return r.remembers() && r.chat.SaveToMemory }

// loaded is what the store knows of a request.
type loaded struct {
	store.Gathered
	asked store.GatherRequest
	at    time.Duration // when it was loaded, since the request's start
}

// load asks the store, in one trip, and refuses a request for which there is no
// rate or allowance left. A large request has been counted before it was read.
func (ca *chatAPI) load(ctx context.Context, w *replyWriter, req *request) (*loaded, error) {
	if err := ca.shared.catchUp(ctx, req.caller.scope, req.chat.SessionID); err != nil {
		return nil, err
	}
	l := &loaded{asked: store.GatherRequest{
		Scope:    req.caller.scope,
		Limit:    req.caller.plan.RequestsPerMinute,
		Counted:  w.counted,
		Session:  req.chat.SessionID,
		Tokens:   ca.options.Context.MaxAddedTokens,
		Messages: resent(req.chat.Messages),
		Saves:    req.saves() && !req.preview,
		Month:    req.month,
	}}
	w.stats.Begin(stats.Gather)
	var err error
	l.Gathered, err = ca.shared.Gather(ctx, l.asked)
	l.at = w.stats.End(stats.Gather)
	if err != nil {
		return nil, &unavailable{err}
	}
	if !l.asked.Counted {
		if err := ca.gate.admit(w, req.caller, l.Rate); err != nil {
			return nil, err
		}
	}
	if req.remembers() {
		stats.SessionLookups.Count(l.Cached)
	}
	if req.preview {
		return l, nil
	}
	if l.asked.Saves {
		if err := ca.shared.keeps(ctx); err != nil && !ca.shared.losses.trial() {
			return nil, &unavailable{err}
		}
	}
	return l, w.checkAllowance(&req.caller.plan, l.Used)
}

// resent is the number of messages of the session that are needed to find what a
// client resends: as many as it sends, and those of requests that may have ended
// meanwhile. A client that resends nothing needs none.
func resent(messages []openai.Message) int {
	const meanwhile = 16
	for i := range messages {
		if messages[i].Role == "assistant" {
			return len(messages) + meanwhile
		}
	}
	return 0
}

// searches reports whether files are searched for the request.
func (l *loaded) searches(req *request) bool { return l.Files && req.chat.UseRAG }
