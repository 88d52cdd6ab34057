package caddymodule

import (
	"math"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/backstory-proxy/backstory/gateway"
)

// PlanConfig is what a tenant may do.
type PlanConfig struct {
	// The most requests in any 60 seconds.
	RequestsPerMinute int `json:"requests_per_minute"`
	// The most tokens in a calendar month of UTC, as the router counts them.
	// Default: no bound, and then they aren't counted.
	TokensPerMonth int64 `json:"tokens_per_month,omitempty"`
	// The most files that a tenant may have. Default: no bound.
	Files int `json:"files,omitempty"`
	// The largest file, in bytes. Default: max_file, which bounds it too.
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

func (p *PlanConfig) gateway() gateway.Plan {
	return gateway.Plan{
		RequestsPerMinute: p.RequestsPerMinute, TokensPerMonth: p.TokensPerMonth,
		Files: p.Files, FileSize: p.FileSize, Storage: p.Storage,
		SessionsTTL: time.Duration(p.SessionsTTL), Models: p.Models,
	}
}

// parsePlan reads one plan.
func (a *App) parsePlan(d *caddyfile.Dispenser) error {
	var name, requests string
	if !d.AllArgs(&name, &requests) {
		return d.Err("expected: plan <name> <requests_per_minute>")
	}
	if _, ok := a.Plans[name]; ok {
		return d.Errf("plan %s is given twice", name)
	}
	n, err := parseCount(d, requests)
	if err != nil {
		return err
	}
	p := PlanConfig{RequestsPerMinute: n}
	if err := p.parse(d); err != nil {
		return err
	}
	if a.Plans == nil {
		a.Plans = map[string]PlanConfig{}
	}
	a.Plans[name] = p
	return nil
}

// parse reads the block of a plan.
func (p *PlanConfig) parse(d *caddyfile.Dispenser) (err error) {
	seen := map[string]bool{}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		option := d.Val()
		if err := once(d, seen, option); err != nil {
			return err
		}
		switch option {
		case "tokens_per_month":
			p.TokensPerMonth, err = parseAmount(d)
		case "files":
			var arg string
			if !d.AllArgs(&arg) {
				return d.ArgErr()
			}
			p.Files, err = parseCount(d, arg)
		case "file_size":
			p.FileSize, err = parseSize(d)
		case "storage":
			p.Storage, err = parseSize(d)
		case "sessions_ttl":
			var arg string
			if !d.AllArgs(&arg) {
				return d.ArgErr()
			}
			err = parseDuration(d, arg, &p.SessionsTTL)
		case "models":
			if p.Models = d.RemainingArgs(); len(p.Models) == 0 {
				return d.Err("expected: models <pattern...>")
			}
		default:
			err = d.Errf("unrecognized plan option %q", option)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseAmount reads a number such as 20M.
func parseAmount(d *caddyfile.Dispenser) (int64, error) {
	var arg string
	if !d.AllArgs(&arg) {
		return 0, d.ArgErr()
	}
	digits, times := arg, 1.0
	if arg != "" {
		switch arg[len(arg)-1] {
		case 'k', 'K':
			times = 1e3
		case 'm', 'M':
			times = 1e6
		case 'g', 'G', 'b', 'B':
			times = 1e9
		}
	}
	if times > 1 {
		digits = arg[:len(arg)-1]
	}
	n, err := strconv.ParseFloat(digits, 64)
	if n *= times; err != nil || !(n >= 1 && n <= 1<<53) || n != math.Trunc(n) {
		return 0, d.Errf("expected a number such as 500000, 500k or 20M, not %q", arg)
	}
	return int64(n), nil
}
