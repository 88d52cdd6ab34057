package caddymodule

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
)

func init() {
	caddy.RegisterModule(new(SQLite))
}

// SQLite is the embedded store: one file, no server.
type SQLite struct {
	// The database file. Default: data/backstory.db in the working directory.
	Path string `json:"path,omitempty"`
	// How much a power cut may cost: "full" (default) nothing that was
	// acknowledged; "normal" perhaps the last exchanges, for saves that cost
	// less.
	Synchronous string `json:"synchronous,omitempty"`
}

const defaultPath = "data/backstory.db"

// CaddyModule returns the Caddy module information.
func (*SQLite) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "backstory.stores.sqlite", New: func() caddy.Module { return new(SQLite) }}
}

// Provision sets the defaults.
func (s *SQLite) Provision(caddy.Context) error {
	if s.Path == "" {
		s.Path = defaultPath
	}
	return nil
}

// Validate checks the configuration.
func (s *SQLite) Validate() error {
	switch s.level() {
	case "", sqlite.Full, sqlite.Normal:
		return nil
	}
	return fmt.Errorf("synchronous must be full or normal, not %q", s.Synchronous)
}

// Location is the file's absolute path. How it is written doesn't make another
// store of it: that changes with a restart.
func (s *SQLite) Location() string {
	path := s.path()
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return "sqlite:" + path
}

// Local says that the store has no journal by default.
func (*SQLite) Local() {}

// Open opens the file, and creates it if need be.
func (s *SQLite) Open(ctx context.Context, _ embed.Embedder) (store.Store, error) {
	db, err := sqlite.Open(ctx, s.path(), sqlite.Options{Synchronous: s.level(), Unwritable: logUnwritable})
	if err != nil {
		return nil, err
	}
	if db.OpenElsewhere() {
		storeLogger().Warn("another process has this database open: each allows a tenant its full request rate; run one, or use Redis for several", zap.String("path", s.path()))
	}
	return db, nil
}

func storeLogger() *zap.Logger { return caddy.Log().Named("backstory.store") }

// logUnwritable tells the operator, by the process's own log: the store outlives
// configurations.
func logUnwritable(why error) {
	logger := storeLogger()
	if why == nil {
		logger.Info("the store can be written again")
		return
	}
	logger.Error("the store can't be written: requests that would save are refused until it can be", zap.Error(why))
}

func (s *SQLite) level() sqlite.Synchronous {
	return sqlite.Synchronous(strings.ToLower(s.Synchronous))
}

func (s *SQLite) path() string { return caddy.NewReplacer().ReplaceAll(s.Path, "") }

// UnmarshalCaddyfile reads
//
//	sqlite [<path>] {
//		synchronous full|normal
//	}
func (s *SQLite) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the kind
	switch args := d.RemainingArgs(); len(args) {
	case 0:
	case 1:
		s.Path = args[0]
	default:
		return d.ArgErr()
	}
	for d.NextBlock(0) {
		switch d.Val() {
		case "synchronous":
			if s.Synchronous != "" {
				return d.Err("synchronous is given twice")
			}
			if !d.AllArgs(&s.Synchronous) {
				return d.ArgErr()
			}
		default:
			return d.Errf("unrecognized option %q", d.Val())
		}
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner     = (*SQLite)(nil)
	_ caddy.Validator       = (*SQLite)(nil)
	_ caddyfile.Unmarshaler = (*SQLite)(nil)
	_ StoreOpener           = (*SQLite)(nil)
	_ localStore            = (*SQLite)(nil)
)
