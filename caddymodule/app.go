// Package caddymodule builds Backstory into Caddy: the App, which holds what
// requests and reloads share (the store, keys, plans, the embedder), the
// handler in front of reverse_proxy, and their Caddyfile syntax.
//
// A request enters in Handler.ServeHTTP. The packages below decide what goes
// into the prompt and what is kept; here they are given the request, the store
// and the router, and their errors become replies.
package caddymodule

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/knowledge"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/tokens"
)

func init() {
	caddy.RegisterModule(new(App))
}

// App holds what all handlers share. Its configuration is the global option
// `backstory`.
type App struct {
	// The store, a module in the namespace backstory.stores. Default: redis at
	// {env.REDIS_URL} where that is set, else sqlite at data/backstory.db.
	StoreRaw json.RawMessage `json:"store,omitempty" caddy:"namespace=backstory.stores inline_key=kind"`
	// The embedder, a module in the namespace backstory.embedders.
	// Default: hashing.
	EmbedderRaw json.RawMessage `json:"embedder,omitempty" caddy:"namespace=backstory.embedders inline_key=kind"`
	// Service keys, beside those in the store.
	Keys []KeyConfig `json:"keys,omitempty"`
	// Plans by name, beside free (10), pro (100), premium (500) and
	// enterprise (1000 requests per minute), which they may change.
	Plans map[string]Plan `json:"plans,omitempty"`
	// What goes into a prompt.
	Context ContextConfig `json:"context,omitempty"`
	// The largest chat request, in bytes. Default: 64 MiB.
	MaxBody int64 `json:"max_body,omitempty"`
	// The largest upload, in bytes. Default: 100 MiB.
	MaxFile int64 `json:"max_file,omitempty"`
	// Whether models may be named without a provider. Default: false.
	BareModels bool `json:"bare_models,omitempty"`
	// The operator's key of the model router, best as {env.ROUTER_API_KEY}.
	// With it, clients may send their service key alone, as Authorization:
	// Bearer; this key goes to the router in its place, with requests that ask
	// a model. Whoever has a service key then spends the operator's credit.
	// Default: none, clients bring their own.
	RouterKey string `json:"router_key,omitempty"`
	// Where a request names its session, if it has no sessionId and no
	// X-Backstory-Session-Id: the first of these that says something.
	// body:<path.to.field> or header:<Name>. Default: nowhere.
	SessionFrom []string `json:"session_from,omitempty"`
	// The origins of browser apps that may call, such as https://app.example,
	// or * for all. Default: none.
	CORS []string `json:"cors,omitempty"`
	// The file that keeps exchanges which the store can't take when they end,
	// until it can; "off" for none. A change takes a restart. Default:
	// data/backstory-journal.db, and none for the embedded store.
	Journal string `json:"journal,omitempty"`

	opener   StoreOpener
	embedder embed.Embedder
	keys     *keyring
	models   *modelLengths
	counts   *tokens.Cache
	refusals refusals
	cors     *cors                 // nil: browsers aren't told of origins
	meters   map[string]*planMeter // by plan; "" for requests of none
	logger   *zap.Logger

	routerKey      string // expanded; empty: none
	sessionSources []sessionSource

	// ready is closed when Start has opened the store, or failed with
	// startErr. Caddy starts apps in any order: requests may come before.
	ready     chan struct{}
	startErr  error
	readiness readiness
	router    routerState
	shared    *sharedStore
	knowledge *knowledge.Service
}

// StoreOpener is what a module in the namespace backstory.stores provides.
type StoreOpener interface {
	// Location tells stores apart: configurations that name the same one
	// share it over reloads. It holds no secrets.
	Location() string
	// Open opens the store, and brings its schema up to date. The embedder is
	// the one whose vectors it will be given.
	Open(ctx context.Context, embedder embed.Embedder) (store.Store, error)
}

// EmbedderProvider is what a module in the namespace backstory.embedders
// provides.
type EmbedderProvider interface {
	Embedder() embed.Embedder
}

// The defaults of App.
const (
	defaultMaxBody = 64 << 20
	defaultMaxFile = 100 << 20
	defaultEmbed   = `{"kind":"hashing"}`
)

// defaultStore is the Redis that the environment names, else the embedded one.
func defaultStore() json.RawMessage {
	if os.Getenv("REDIS_URL") != "" {
		return json.RawMessage(`{"kind":"redis","url":"{env.REDIS_URL}"}`)
	}
	return json.RawMessage(`{"kind":"sqlite"}`)
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "backstory", New: func() caddy.Module { return new(App) }}
}

// Provision sets the defaults and loads the store's and the embedder's
// modules. It opens nothing: `caddy validate` runs it.
func (a *App) Provision(ctx caddy.Context) error {
	a.logger = ctx.Logger()
	a.ready = make(chan struct{})
	if a.StoreRaw == nil {
		a.StoreRaw = defaultStore()
	}
	if a.EmbedderRaw == nil {
		a.EmbedderRaw = json.RawMessage(defaultEmbed)
	}
	if a.MaxBody == 0 {
		a.MaxBody = defaultMaxBody
	}
	if a.MaxFile == 0 {
		a.MaxFile = defaultMaxFile
	}
	a.Context.setDefaults()

	opener, err := ctx.LoadModule(a, "StoreRaw")
	if err != nil {
		return fmt.Errorf("load the store: %w", err)
	}
	a.opener = opener.(StoreOpener)
	embedder, err := ctx.LoadModule(a, "EmbedderRaw")
	if err != nil {
		return fmt.Errorf("load the embedder: %w", err)
	}
	a.embedder = embedder.(EmbedderProvider).Embedder()

	plans := defaultPlans()
	for name, p := range a.Plans {
		plans[name] = p
	}
	a.keys, err = newKeyring(a.Keys, plans, a.logger)
	if err != nil {
		return err
	}
	if a.routerKey, err = expandRouterKey(a.RouterKey, a.keys, a.logger); err != nil {
		return err
	}
	for _, text := range a.SessionFrom {
		source, err := parseSessionSource(text)
		if err != nil {
			return err
		}
		a.sessionSources = append(a.sessionSources, source)
	}
	a.cors = newCORS(a.CORS)
	a.meters = newPlanMeters(plans)
	if err := registerMetrics(ctx.GetMetricsRegistry()); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	a.models = newModelLengths(a.Context)
	a.counts = tokens.NewCache(countedTexts)
	return nil
}

// countedTexts is how many texts' token counts are remembered: about 1 MB.
const countedTexts = 8192

// Validate checks the configuration.
func (a *App) Validate() error {
	for name, p := range a.Plans {
		if name == "" {
			return fmt.Errorf("a plan has an empty name")
		}
		if err := p.validate(); err != nil {
			return fmt.Errorf("plan %s: %w", name, err)
		}
	}
	if a.MaxBody < 0 || a.MaxFile < 0 {
		return fmt.Errorf("max_body and max_file must be positive")
	}
	for _, origin := range a.CORS {
		if err := checkOrigin(origin); err != nil {
			return err
		}
	}
	return a.Context.validate()
}

// Start opens the store, and makes the first service key where there is none.
// If it fails, requests that came before are let go: Caddy waits for them.
func (a *App) Start() error {
	a.startErr = a.start()
	close(a.ready)
	return a.startErr
}

// waitReady waits until the store is open.
func (a *App) waitReady(ctx context.Context) error {
	select {
	case <-a.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	if a.startErr != nil {
		return &unavailable{a.startErr}
	}
	return nil
}

func (a *App) start() error {
	ctx := context.Background() // the store outlives this configuration
	shared, err := a.openShared(ctx)
	if err != nil {
		return fmt.Errorf("open the store %s: %w", a.opener.Location(), err)
	}
	a.shared = shared
	a.knowledge = knowledge.New(shared, shared, a.embedder, knowledge.Options{Count: tokens.O200K().Count, Sandbox: readers})
	return a.bootstrap(ctx, os.Stderr)
}

// Stop does nothing: requests under way go on with the store until Cleanup.
func (a *App) Stop() error { return nil }

// Cleanup gives the store back. The last one to do so closes it, once the
// requests that use it have ended.
func (a *App) Cleanup() error {
	if a.shared == nil {
		return nil
	}
	if caddy.Exiting() {
		cutOffAll()
	}
	_, err := stores.Delete(a.opener.Location())
	return err
}

// Plan is what a tenant may do.
type Plan struct {
	// The most requests in any 60 seconds.
	RequestsPerMinute int `json:"requests_per_minute"`
	// The most tokens in a calendar month of UTC, as the router counts them.
	// Default: no bound, and then they aren't counted.
	TokensPerMonth int64 `json:"tokens_per_month,omitempty"`
	// The most files that a tenant may have. Default: no bound.
	Files int `json:"files,omitempty"`
	// The largest file, in bytes. Default: App.MaxFile, which bounds it too.
	FileSize int64 `json:"file_size,omitempty"`
	// The most bytes that a tenant's files may have together. Default: no
	// bound.
	Storage int64 `json:"storage,omitempty"`
	// How long a session is kept after its last exchange. Default: for good.
	SessionsTTL caddy.Duration `json:"sessions_ttl,omitempty"`
	// The models that may be called; * stands for anything but a slash.
	// Default: all.
	Models []string `json:"models,omitempty"`
}

// defaultPlans are those of the service's specification.
func defaultPlans() map[string]Plan {
	return map[string]Plan{
		"free":       {RequestsPerMinute: 10},
		"pro":        {RequestsPerMinute: 100},
		"premium":    {RequestsPerMinute: 500},
		"enterprise": {RequestsPerMinute: 1000},
	}
}

// saveTimeout is how long a save may take before the journal takes over, or the
// client is told that the exchange wasn't kept.
const saveTimeout = 2 * time.Second

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.Validator    = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
