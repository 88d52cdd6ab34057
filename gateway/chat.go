package gateway

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/prompt"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/tokens"
)

// maxPassages is how many passages a search is asked for. At about 300 tokens
// each they exceed any sensible share of a prompt.
const maxPassages = 20

// chat answers a chat request, or previews its context.
func (g *Gateway) chat(w *replyWriter, r *http.Request, router http.Handler, who caller, ext openai.Extension) error {
	t, err := g.parse(w, r, ext)
	if err == nil {
		err = who.plan.checkModels(t.chat.Model, t.chat.Models)
	}
	if err != nil {
		// The request counts all the same, and its headers say so.
		return errors.Join(g.count(w, r, who), err)
	}
	t.gateway, t.scope, t.ttl = g, who.scope, time.Duration(who.plan.SessionsTTL)
	t.seen = &w.seen
	t.seen.model, t.seen.session = t.chat.Model, t.chat.SessionID
	if who.plan.TokensPerMonth > 0 {
		t.month = thisMonth()
		t.edit.IncludeUsage = t.chat.Stream && !t.chat.IncludeUsage
	}
	if err := g.shared.catchUp(r.Context(), t.scope, t.chat.SessionID); err != nil {
		return err
	}
	asked := t.gatherRequest(who)
	t.seen.begin(stageGather)
	gathered, err := g.shared.Gather(r.Context(), asked)
	began := t.seen.end(stageGather)
	if err != nil {
		return &unavailable{err}
	}
	if err := g.admit(w, who, gathered.Rate); err != nil {
		return err
	}
	if t.chat.SessionID != "" {
		sessionLookups.count(gathered.Cached)
	}
	if r.URL.Path != previewPath {
		if err := w.checkAllowance(&who.plan, gathered.Used); err != nil {
			return err
		}
	}
	if t.chat.SessionID == "" && !(gathered.Files && t.chat.UseRAG) {
		if r.URL.Path == previewPath {
			return t.preview(w)
		}
		// Nothing to add and nothing to keep: the reply is the router's.
		setBody(r, t.chat.Upstream(t.edit))
		if t.month == 0 {
			t.seen.begin(stageRouter)
			return callRouter(router, w, r)
		}
		t.plain = true
		r.Header.Del("Accept-Encoding") // it has to be read all the same
		return t.forward(w, r, router)
	}
	t.said = memory.Conversation(t.chat.Messages)
	if err := t.look(r.Context(), asked, gathered.Tail); err != nil {
		return err
	}
	t.mark = gathered.Mark
	via := sync.OnceValue(func() *upstream { return newUpstream(r, router) })
	if err := t.assemble(r.Context(), via, gathered); err != nil {
		return err
	}
	t.assembled(began)
	if r.URL.Path == previewPath {
		return t.preview(w)
	}
	setBody(r, t.chat.Upstream(t.edit))
	// Go's transport then asks for gzip itself, and unpacks it: the reply has
	// to be read.
	r.Header.Del("Accept-Encoding")
	return t.forward(w, r, router)
}

// turn is one chat request on its way through.
type turn struct {
	gateway *Gateway
	seen    *Stats
	scope   store.Scope
	ttl     time.Duration // of the session, by the tenant's plan
	id      string        // of the request
	chat    *openai.Chat
	model   tokens.Model
	retried bool // the client says so
	plain   bool // the reply is the router's, and only read to count its tokens

	// month is the one whose allowance the request draws on; 0 where the plan
	// has none.
	month store.Month

	said  []memory.Said
	view  memory.View
	older bool // the session goes back beyond what the view shows
	mark  store.Mark

	unread int64 // tokens of the session that are older than what was gathered
	found  []prompt.Passage
	plan   prompt.Plan
	edit   openai.Edit
	meta   openai.Metadata
}

// parse reads and checks the request.
func (g *Gateway) parse(w *replyWriter, r *http.Request, ext openai.Extension) (*turn, error) {
	body, err := g.readBody(w, r)
	if err != nil {
		return nil, err
	}
	opts := openai.ParseOptions{Extension: ext, BareModels: g.options.BareModels}
	if ext.SessionID == "" {
		opts.Session = g.sessionFrom(r.Header)
	}
	chat, err := openai.ParseChat(body, opts)
	if err != nil {
		return nil, err
	}
	retries, _ := strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count"))
	return &turn{id: w.id, chat: chat, model: g.modelFor(chat.Model), retried: retries > 0}, nil
}

// gatherRequest names what the store has to tell.
func (t *turn) gatherRequest(who caller) store.GatherRequest {
	return store.GatherRequest{
		Scope:    who.scope,
		Limit:    who.plan.RequestsPerMinute,
		Session:  t.chat.SessionID,
		Tokens:   t.gateway.options.Context.MaxAddedTokens,
		Messages: t.carried(),
		Month:    t.month,
	}
}

// carried is the number of messages of the session that are needed to find
// what a client resends: as many as it sends, and those of requests that may
// have ended meanwhile. A client that resends nothing needs none.
func (t *turn) carried() int {
	const meanwhile = 16
	for i := range t.chat.Messages {
		if t.chat.Messages[i].Role == "assistant" {
			return len(t.chat.Messages) + meanwhile
		}
	}
	return 0
}
