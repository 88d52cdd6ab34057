// Package caddymodule is Backstory as Caddy modules: the App, which holds what
// requests and reloads share, the handlers, their Caddyfile syntax, the stores and
// embedders as guest modules, and the registration of the admin API and of the
// commands. What a client sees is decided in package gateway, to which the handler
// hands each request together with the way to the model router.
package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/store"
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
	Plans map[string]PlanConfig `json:"plans,omitempty"`
	// What goes into a prompt.
	Context gateway.ContextConfig `json:"context,omitempty"`
	// The largest chat request, in bytes. Default: 64 MiB.
	MaxBody int64 `json:"max_body,omitempty"`
	// The largest upload, in bytes. Default: 100 MiB.
	MaxFile int64 `json:"max_file,omitempty"`
	// How many bytes of requests may be in memory at once, of all tenants; one may
	// have half. Default: what four of the largest take, and 256 MiB at least.
	MaxBodies int64 `json:"max_bodies,omitempty"`
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
	gateway  *gateway.Gateway
	shared   *gateway.Shared // nil until Start has opened it
	logger   *zap.Logger
	ended    chan struct{} // closed when the configuration is given up
}

// StoreOpener is what a module in the namespace backstory.stores provides.
type StoreOpener interface {
	// Location tells stores apart: configurations that name the same one
	// share it over reloads. It holds no secrets.
	Location() string
	// Open opens the store, and brings its schema up to date. What it can do
	// beyond store.Store it implements: see package store. The embedder is the
	// one whose vectors it will be given.
	Open(ctx context.Context, embedder embed.Embedder) (store.Store, error)
}

// EmbedderProvider is what a module in the namespace backstory.embedders
// provides.
type EmbedderProvider interface {
	Embedder() embed.Embedder
}

const defaultEmbed = `{"kind":"hashing"}`

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
	a.ended = make(chan struct{})
	if a.StoreRaw == nil {
		a.StoreRaw = defaultStore()
	}
	if a.EmbedderRaw == nil {
		a.EmbedderRaw = json.RawMessage(defaultEmbed)
	}

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

	if err := gateway.RegisterMetrics(ctx.GetMetricsRegistry()); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	options, err := a.gatewayOptions()
	if err != nil {
		return err
	}
	a.gateway, err = gateway.New(options)
	return err
}

// gatewayOptions are those of the configuration.
func (a *App) gatewayOptions() (o gateway.Options, err error) {
	o = gateway.Options{
		Plans:   make(map[string]gateway.Plan, len(a.Plans)),
		Context: a.Context,
		MaxBody: a.MaxBody, MaxFile: a.MaxFile, MaxBodies: a.MaxBodies, BareModels: a.BareModels,
		SessionFrom: a.SessionFrom, Origins: a.CORS,
		Embedder: a.embedder, Sandbox: readers, Logger: a.logger,
		RequestID: requestID, EscapedPath: escapedPath, Observe: logStats,
	}
	for name, p := range a.Plans {
		o.Plans[name] = p.gateway()
	}
	if o.Keys, err = expandKeys(a.Keys, a.logger); err != nil {
		return o, err
	}
	o.RouterKey, err = expandRouterKey(a.RouterKey, a.logger)
	return o, err
}

// Start opens the store, and makes the first service key where there is none.
// If it fails, requests that came before are let go: Caddy waits for them.
func (a *App) Start() error {
	err := a.start()
	a.gateway.Start(a.shared, err)
	warnOfSharedPorts()
	return err
}

func (a *App) start() error {
	confineOnce.Do(func() { confine(a.logger) })
	ctx := context.Background() // the store outlives this configuration
	shared, err := a.openShared(ctx)
	if err != nil {
		return fmt.Errorf("open the store %s: %w", a.opener.Location(), err)
	}
	a.shared = shared
	if err := a.gateway.CheckStore(shared); err != nil {
		return fmt.Errorf("use the store %s: %w", a.opener.Location(), err)
	}
	err = a.bootstrap(ctx, os.Stderr)
	if errors.Is(err, store.ErrNotReady) {
		go a.bootstrapLater(ctx, shared.Use())
		return nil
	}
	return err
}

// Stop does nothing: requests under way go on with the store until Cleanup.
func (a *App) Stop() error { return nil }

// Cleanup gives the store back. The last one to do so closes it, once the
// requests that use it have ended.
func (a *App) Cleanup() error {
	if a.ended != nil {
		close(a.ended)
	}
	if a.shared == nil {
		return nil
	}
	if caddy.Exiting() {
		gateway.CutOffAll()
	}
	_, err := stores.Delete(a.opener.Location())
	return err
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
