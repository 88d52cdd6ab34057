package caddymodule

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/tokens"
)

func init() {
	caddy.RegisterModule(new(HashingEmbedder))
	caddy.RegisterModule(new(RouterEmbedder))
}

// HashingEmbedder makes vectors from words and parts of words, offline.
type HashingEmbedder struct {
	// The length of the vectors. Default: 1024.
	Dimensions int `json:"dimensions,omitempty"`
}

const defaultHashingDimensions = 1024

// CaddyModule returns the Caddy module information.
func (*HashingEmbedder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "backstory.embedders.hashing", New: func() caddy.Module { return new(HashingEmbedder) }}
}

// Validate checks the configuration.
func (e *HashingEmbedder) Validate() error {
	if e.Dimensions < 0 || e.Dimensions > maxDimensions {
		return fmt.Errorf("dimensions must be from 1 to %d", maxDimensions)
	}
	return nil
}

// Embedder returns the embedder.
func (e *HashingEmbedder) Embedder() embed.Embedder {
	if e.Dimensions == 0 {
		return embed.NewHashing(defaultHashingDimensions)
	}
	return embed.NewHashing(e.Dimensions)
}

// UnmarshalCaddyfile reads
//
//	hashing [<dimensions>]
func (e *HashingEmbedder) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the kind
	args := d.RemainingArgs()
	if len(args) > 1 {
		return d.ArgErr()
	}
	if d.NextBlock(0) {
		return d.Errf("unrecognized option %q", d.Val())
	}
	if len(args) == 1 {
		return readDimensions(d, args[0], &e.Dimensions)
	}
	return nil
}

// maxDimensions is that of the largest models in use, with room to spare.
const maxDimensions = 16384

func readDimensions(d *caddyfile.Dispenser, arg string, to *int) error {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 || n > maxDimensions {
		return d.Errf("dimensions must be a number from 1 to %d, not %q", maxDimensions, arg)
	}
	*to = n
	return nil
}

// RouterEmbedder asks the model router's POST /embeddings, with the router key
// of the request at hand. With it, long sessions are searched by semantic similarity too.
type RouterEmbedder struct {
	// The embedding model, as the router names it.
	Model string `json:"model"`
	// The length of its vectors.
	Dimensions int `json:"dimensions"`
}

// CaddyModule returns the Caddy module information.
func (*RouterEmbedder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "backstory.embedders.router", New: func() caddy.Module { return new(RouterEmbedder) }}
}

// Validate checks the configuration.
func (e *RouterEmbedder) Validate() error {
	if e.Model == "" {
		return fmt.Errorf("the embedder needs a model")
	}
	if e.Dimensions < 1 || e.Dimensions > maxDimensions {
		return fmt.Errorf("dimensions must be from 1 to %d", maxDimensions)
	}
	return nil
}

// Embedder returns the embedder.
func (e *RouterEmbedder) Embedder() embed.Embedder {
	return embed.NewRouter(e.Model, e.Dimensions, embed.RouterOptions{
		Count: tokens.ForModel(e.Model).Count,
		// The only family that takes the field; others refuse it.
		SendDimensions: strings.Contains(e.Model, "text-embedding-3"),
	})
}

// UnmarshalCaddyfile reads
//
//	router <model> <dimensions>
func (e *RouterEmbedder) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the kind
	args := d.RemainingArgs()
	if len(args) != 2 {
		return d.ArgErr()
	}
	if d.NextBlock(0) {
		return d.Errf("unrecognized option %q", d.Val())
	}
	e.Model = args[0]
	return readDimensions(d, args[1], &e.Dimensions)
}

// Interface guards
var (
	_ EmbedderProvider      = (*HashingEmbedder)(nil)
	_ EmbedderProvider      = (*RouterEmbedder)(nil)
	_ caddy.Validator       = (*HashingEmbedder)(nil)
	_ caddy.Validator       = (*RouterEmbedder)(nil)
	_ caddyfile.Unmarshaler = (*HashingEmbedder)(nil)
	_ caddyfile.Unmarshaler = (*RouterEmbedder)(nil)
)
