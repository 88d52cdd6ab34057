package caddymodule

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"path"
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"

	"github.com/backstory-proxy/backstory/openai"
)

func (p *Plan) validate() error {
	if p.RequestsPerMinute < 1 {
		return errors.New("requests_per_minute must be at least 1")
	}
	for name, n := range map[string]int64{
		"tokens_per_month": p.TokensPerMonth, "files": int64(p.Files), "file_size": p.FileSize,
		"storage": p.Storage, "sessions_ttl": int64(p.SessionsTTL),
	} {
		if n < 0 {
			return fmt.Errorf("%s must not be negative", name)
		}
	}
	for _, pattern := range p.Models {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("model pattern %q: %w", pattern, err)
		}
	}
	return nil
}

// checkModels refuses a request that names a model which the plan doesn't have,
// be it one that the router may fall back to.
func (p *Plan) checkModels(model string, others []string) error {
	if len(p.Models) == 0 {
		return nil
	}
	for _, other := range others {
		if err := p.checkModel(other); err != nil {
			return err
		}
	}
	return p.checkModel(model)
}

// checkModel refuses a model that the plan doesn't have, as OpenAI refuses one
// that a project has no access to.
func (p *Plan) checkModel(model string) error {
	for _, pattern := range p.Models {
		if ok, _ := path.Match(pattern, model); ok {
			return nil
		}
	}
	return &openai.Error{
		Status: http.StatusNotFound, Type: openai.TypeInvalidRequest, Param: "model", Code: openai.CodeModelNotFound,
		Message: fmt.Sprintf("The model `%s` does not exist or your plan does not include it.", model),
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
	p := Plan{RequestsPerMinute: n}
	if err := p.parse(d); err != nil {
		return err
	}
	if a.Plans == nil {
		a.Plans = map[string]Plan{}
	}
	a.Plans[name] = p
	return nil
}

// parse reads the block of a plan.
func (p *Plan) parse(d *caddyfile.Dispenser) (err error) {
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

// sizeText is a size for people.
func sizeText(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }
