package caddymodule

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"golang.org/x/term"

	"github.com/backstory-proxy/backstory/internal/keyring"
	"github.com/backstory-proxy/backstory/store"
)

// The tenant and the plan of the key that the first start makes.
const (
	firstTenant = "default"
	firstPlan   = "enterprise"
)

// bootstrap makes a service key where neither the configuration nor the store
// has one. It is shown once, on the terminal; without a terminal it goes into
// a file that only its owner can read.
func (a *App) bootstrap(ctx context.Context, terminal *os.File) error {
	if len(a.gateway.Keys().Configured()) > 0 {
		return nil
	}
	known, err := a.shared.ListKeys(ctx, "")
	if err != nil {
		return fmt.Errorf("look for service keys: %w", err)
	}
	if len(known) > 0 {
		return nil
	}
	key := keyring.NewKey()
	record := store.Key{
		Digest:  sha256.Sum256([]byte(key)),
		Tenant:  firstTenant,
		Plan:    firstPlan,
		Name:    "first start",
		Created: time.Now(),
	}
	if term.IsTerminal(int(terminal.Fd())) {
		if err := a.shared.PutKey(ctx, record); err != nil {
			return fmt.Errorf("save the first service key: %w", err)
		}
		_, err = fmt.Fprintf(terminal, firstKeyText, key, key)
		return err
	}
	// Each store has a key of its own, and a file for it.
	location := sha256.Sum256([]byte(a.opener.Location()))
	path := filepath.Join(caddy.AppDataDir(), "backstory", fmt.Sprintf("service-key-%x", location[:4]))
	if err := writeSecret(path, key); err != nil {
		return fmt.Errorf("write the first service key: %w", err)
	}
	if err := a.shared.PutKey(ctx, record); err != nil {
		return fmt.Errorf("save the first service key: %w", err)
	}
	a.logger.Info("made the first service key; clients send it in the header serviceKey. Keep it safe, then delete the file",
		zap.String("file", path))
	return nil
}

// bootstrapEvery is how often a store that isn't ready is asked whether it has
// keys.
const bootstrapEvery = time.Second

// bootstrapLater does so when the store is ready, and then calls done.
func (a *App) bootstrapLater(ctx context.Context, done func()) {
	defer done()
	for {
		select {
		case <-a.ended:
			return
		case <-time.After(bootstrapEvery):
		}
		if err := a.bootstrap(ctx, os.Stderr); !errors.Is(err, store.ErrNotReady) {
			if err != nil {
				a.logger.Error("there is no service key; make one with backstory keys create", zap.Error(err))
			}
			return
		}
	}
}

const firstKeyText = `
  Your service key, shown this once (only its digest is stored):

      %s

  Clients send it in the header serviceKey, beside the router's key:

      export SERVICE_KEY=%s

`

// writeSecret replaces the file with one that nobody else could ever read.
func writeSecret(path, secret string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".service-key-") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone after the rename
	if _, err = f.WriteString(secret + "\n"); err != nil {
		f.Close() //nolint:errcheck // the write's error counts
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
