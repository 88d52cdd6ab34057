package caddymodule_test

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
)

func init() {
	caddy.RegisterModule(new(flakyModule))
}

// flakyModule is a store of somebody else's, as a guest module: SQLite that can
// be made to fail.
type flakyModule struct {
	Path string `json:"path"`
}

func (*flakyModule) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "backstory.stores.flaky", New: func() caddy.Module { return new(flakyModule) }}
}

func (m *flakyModule) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.AllArgs(&m.Path) {
		return d.ArgErr()
	}
	return nil
}

func (m *flakyModule) Location() string { return "flaky:" + m.Path }

func (m *flakyModule) Open(ctx context.Context, _ embed.Embedder) (store.Store, error) {
	if f := whileOpening.Load(); f != nil {
		if err := (*f)(); err != nil {
			return nil, err
		}
	}
	s, err := sqlite.Open(ctx, m.Path, sqlite.Options{})
	return &flaky{Store: s}, err
}

type flaky struct{ *sqlite.Store }

var (
	failGather, failAppend atomic.Bool
	errDown                = errors.New("the disk is on fire")

	// whileOpening, where set, runs before the store is opened.
	whileOpening atomic.Pointer[func() error]
)

func (f *flaky) Gather(ctx context.Context, r store.GatherRequest) (store.Gathered, error) {
	if failGather.Load() {
		return store.Gathered{}, errDown
	}
	return f.Store.Gather(ctx, r)
}
