package caddymodule

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler is Backstory in front of a model router: it checks the service key,
// counts the request, answers what is its own (files, sessions), gives chat
// requests their context, and passes everything else to the next handler.
//
// It takes the paths of the OpenAI API without their base: mount it behind
// handle_path.
type Handler struct {
	app *App
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.backstory", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the App.
func (h *Handler) Provision(ctx caddy.Context) error {
	app, err := ctx.App("backstory")
	if err != nil {
		return err
	}
	h.app = app.(*App)
	return nil
}

// ServeHTTP answers the request, errors included.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	rw := newReplyWriter(w, r)
	rw.cors = h.app.cors
	defer h.app.observe(rw, r) // panics pass through here
	err := h.serve(rw, r, next)
	if err != nil {
		h.app.fail(rw, r, err)
	}
	if rw.replaced {
		h.app.logger.Error("the model router refused the router_key of the configuration", zap.String("request_id", rw.id))
	}
	rw.seen.ended = true
	return nil
}

// caller is who sends a request.
type caller struct {
	tenant     string
	plan       Plan
	planName   string
	onOperator bool // the operator's router key stands for theirs
}

// Header names of ours, canonical.
const (
	headerServiceKey = "Servicekey"
	headerPrefix     = "X-Backstory-"
)

func (h *Handler) serve(w *replyWriter, r *http.Request, next caddyhttp.Handler) error {
	seen := &w.seen
	seen.endpoint = endpointOf(r)
	if h.app.cors != nil && isPreflight(r) {
		preflight(w, r)
		return nil
	}
	if err := h.app.waitReady(r.Context()); err != nil {
		return err
	}
	h.app.shared.inUse.Add(1)
	defer h.app.shared.inUse.Done()

	who, err := h.app.authenticate(r)
	seen.end(stageAuth)
	if err != nil {
		return err
	}
	w.onOperator = who.onOperator
	seen.tenant, seen.plan = who.tenant, who.planName
	if rate, refused := h.app.refusals.of(who, time.Now()); refused {
		return w.setRate(rate)
	}
	extension, err := takeHeaders(r.Header)
	if err == nil && r.Method == http.MethodPost && isChat(r.URL.Path) {
		return h.app.chat(w, r, next, who, extension)
	}
	sessions, isSessions := sessionsPath(r)
	if isSessions && err == nil && r.Method == http.MethodPost {
		if id, sub, err := sessionOf(sessions); err == nil && sub == "messages" {
			return h.app.importMessages(w, r, who, id)
		}
	}
	// Whatever goes wrong after the key was checked, the request counts.
	if limited := h.app.count(w, r, who); limited != nil {
		return limited
	}
	if err != nil {
		return err
	}
	if isSessions {
		return h.app.sessions(w, r, who, sessions)
	}
	if resource, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); resource == "files" {
		return h.app.files(w, r, next, who, rest)
	}
	if r.URL.Path == usagePath {
		return h.app.usage(w, r, who)
	}
	if who.onOperator {
		if err := checkOperators(r); err != nil {
			return err
		}
	}
	r.Body = unclosed{r.Body}
	seen.begin(stageRouter)
	return h.app.passOn(w, r, next, who)
}

func isChat(path string) bool {
	return path == "/chat/completions" || path == previewPath
}

// authenticate checks both keys, and takes ours off the request.
func (a *App) authenticate(r *http.Request) (caller, error) {
	key := r.Header.Get(headerServiceKey)
	if key == "" && a.routerKey != "" {
		return a.authenticateOne(r)
	}
	if key == "" {
		return caller{}, openai.StatusError(http.StatusUnauthorized,
			"You didn't provide a service key. Send it in the header serviceKey, beside the model router's key in Authorization.")
	}
	authorization := r.Header.Values("Authorization")
	words := strings.FieldsFunc(strings.Join(authorization, " "), func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
	if len(authorization) != 1 || len(words) < 2 || !strings.EqualFold(words[0], "Bearer") {
		return caller{}, openai.StatusError(http.StatusUnauthorized,
			"You didn't provide the model router's key. Send it in the header Authorization: Bearer …")
	}
	found, plan, err := a.keys.lookup(r.Context(), a.shared, key)
	if errors.Is(err, errBadKey) {
		return caller{}, openai.StatusError(http.StatusUnauthorized, "Incorrect service key provided in the header serviceKey.")
	}
	if err != nil {
		return caller{}, &unavailable{err}
	}
	if slices.ContainsFunc(words, func(word string) bool { return word == key || a.keys.ours(word) }) {
		return caller{}, openai.StatusError(http.StatusUnauthorized,
			"Authorization holds a service key. It carries the model router's key; the service key goes into the header serviceKey.")
	}
	r.Header.Del(headerServiceKey)
	return caller{tenant: found.Tenant, plan: plan, planName: found.Plan}, nil
}

// takeHeaders takes our headers off a request and reads them.
func takeHeaders(header http.Header) (openai.Extension, error) {
	ext, err := openai.ExtensionFromHeader(func(name string) (string, bool) {
		values := header[headerPrefix+name]
		if len(values) == 0 {
			return "", false
		}
		return values[0], true
	})
	for name := range header {
		if strings.HasPrefix(name, headerPrefix) {
			delete(header, name)
		}
	}
	return ext, err
}

// unavailable is a failure of the store before anything was done.
type unavailable struct{ err error }

func (u *unavailable) Error() string { return "the store can't be reached: " + u.err.Error() }
func (u *unavailable) Unwrap() error { return u.err }

// fail answers with an error, in the shape of the OpenAI API.
func (a *App) fail(w *replyWriter, r *http.Request, err error) {
	reply := replyTo(r.Context(), err)
	w.seen.outcome = outcomeOf(err, reply)
	if w.seen.outcome == outcomeStoreDown {
		refusedError.Inc()
	}
	level := zap.DebugLevel
	if reply.Status >= 500 && r.Context().Err() == nil {
		level = zap.ErrorLevel
	}
	if c := a.logger.Check(level, "request failed"); c != nil {
		c.Write(zap.String("request_id", w.id), zap.Int("status", reply.Status), cause(err, reply))
	}
	if w.wroteHeader {
		return // too late to say anything
	}
	if r.ProtoMajor == 1 && r.Header.Get("Expect") != "" {
		// The client waits for leave to send its body, and the server, behind
		// Caddy's own reader, for the body to read on. Nobody wants it.
		w.Header().Set("Connection", "close")
	}
	writeError(w, reply)
}

// replyTo is what a client is told of an error.
func replyTo(ctx context.Context, err error) *openai.Error {
	var (
		ours    *openai.Error
		down    *unavailable
		handler caddyhttp.HandlerError
	)
	switch {
	case errors.As(err, &ours):
		return ours
	case ctx.Err() != nil:
		return openai.StatusError(statusClientClosed, "The client closed the request.")
	case errors.As(err, &down):
		return openai.StatusError(http.StatusServiceUnavailable, "The memory store can't be reached at the moment. The model was not called. Please try again.")
	case errors.Is(err, store.ErrNotFound):
		return openai.StatusError(http.StatusNotFound, "There is no such object.")
	case errors.As(err, &handler):
		return openai.StatusError(handler.StatusCode, "%s", statusMessage(handler.StatusCode))
	}
	return openai.StatusError(http.StatusInternalServerError, "The server had an error while processing your request.")
}

// statusClientClosed is nginx' status for a client that left; nobody reads it.
const statusClientClosed = 499

// statusMessage says what a status that the next handler gave means here.
func statusMessage(status int) string {
	switch status {
	case http.StatusBadGateway:
		return "The model router can't be reached."
	case http.StatusServiceUnavailable:
		return "No model router is available at the moment."
	case http.StatusGatewayTimeout:
		return "The model router did not answer in time."
	case http.StatusRequestEntityTooLarge:
		return "The request body is too large."
	}
	if text := http.StatusText(status); text != "" {
		return text + "."
	}
	return "The request failed."
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
