package caddymodule

import (
	"encoding/json"
	"math"
	"os"
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"

	"github.com/backstory-proxy/backstory/gateway"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("backstory", parseApp)

	for name, handler := range map[string]func() caddyhttp.MiddlewareHandler{
		"backstory":             func() caddyhttp.MiddlewareHandler { return &Handler{Unset: unsetVariables()} },
		"backstory_health":      func() caddyhttp.MiddlewareHandler { return new(Health) },
		"backstory_errors":      func() caddyhttp.MiddlewareHandler { return new(Errors) },
		"backstory_demo_router": func() caddyhttp.MiddlewareHandler { return new(DemoRouter) },
	} {
		httpcaddyfile.RegisterHandlerDirective(name, func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
			return handler(), parseBare(h.Dispenser)
		})
	}
	httpcaddyfile.RegisterDirectiveOrder("backstory", httpcaddyfile.Before, "reverse_proxy")
	httpcaddyfile.RegisterDirectiveOrder("backstory_health", httpcaddyfile.Before, "handle")
	httpcaddyfile.RegisterDirectiveOrder("backstory_errors", httpcaddyfile.Before, "respond")
	httpcaddyfile.RegisterDirectiveOrder("backstory_demo_router", httpcaddyfile.After, "reverse_proxy")
}

// unsetVariables are those of the shipped Caddyfile that {$NAME} puts a default in
// place of, here and now: `backstory reload` makes the Caddyfile JSON in a process
// of its own, with the environment of the shell.
func unsetVariables() (unset []string) {
	for _, name := range []string{"ROUTER_URL", "ROUTER_PATH"} {
		if _, set := os.LookupEnv(name); !set {
			unset = append(unset, name)
		}
	}
	return unset
}

// parseBare reads a directive that takes nothing.
func parseBare(d *caddyfile.Dispenser) error {
	d.Next()
	directive := d.Val()
	if d.NextArg() || d.NextBlock(0) {
		return d.Errf("%s takes no arguments and no block; its options stand in the global option backstory", directive)
	}
	return nil
}

func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
		return nil, d.Err("the global option backstory is given twice")
	}
	a := new(App)
	if err := a.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "backstory", Value: caddyconfig.JSON(a, nil)}, nil
}

// UnmarshalCaddyfile reads the global option:
//
//	backstory {
//		store sqlite [<path>] {
//			synchronous full|normal
//		}
//		embedder hashing [<dimensions>]
//		embedder router <model> <dimensions>
//		key <key> <tenant> <plan>
//		plan <name> <requests_per_minute> {
//			tokens_per_month <n>
//			files <n>
//			file_size <size>
//			storage <size>
//			sessions_ttl <duration>
//			models <pattern...>
//		}
//		context {
//			max_added_tokens <n>
//			max_file_tokens <n>
//			reserve <n>
//			default_length <n>
//			recall on|off
//			model <pattern> <length>
//		}
//		max_body <size>
//		max_file <size>
//		max_bodies <size>
//		bare_models
//		router_key <key>
//		session_from <source...>
//		cors <origin>...
//		journal <path>|off
//	}
//
// key and plan may be repeated, and model in context; the others may not.
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the option
	if d.NextArg() {
		return d.ArgErr()
	}
	seen := map[string]bool{"key": true, "plan": true}
	for d.NextBlock(0) {
		option := d.Val()
		if err := once(d, seen, option); err != nil {
			return err
		}
		var err error
		switch option {
		case "store":
			a.StoreRaw, err = parseGuest(d, "backstory.stores.")
		case "embedder":
			a.EmbedderRaw, err = parseGuest(d, "backstory.embedders.")
		case "key":
			err = a.parseKey(d)
		case "plan":
			err = a.parsePlan(d)
		case "context":
			err = parseContext(d, &a.Context)
		case "max_body":
			a.MaxBody, err = parseSize(d)
		case "max_file":
			a.MaxFile, err = parseSize(d)
		case "max_bodies":
			a.MaxBodies, err = parseSize(d)
		case "cors":
			if a.CORS = d.RemainingArgs(); len(a.CORS) == 0 {
				err = d.ArgErr()
			}
			for _, origin := range a.CORS {
				if e := gateway.CheckOrigin(origin); e != nil {
					err = d.Errf("%v", e)
				}
			}
		case "journal":
			if !d.AllArgs(&a.Journal) || a.Journal == "" {
				err = d.Err("expected: journal <path>|off")
			}
		case "bare_models":
			a.BareModels = true
			err = noArgs(d)
		case "router_key":
			a.RouterKey, err = parseRouterKey(d)
		case "session_from":
			if a.SessionFrom = d.RemainingArgs(); len(a.SessionFrom) == 0 {
				err = d.ArgErr()
			}
		default:
			err = d.Errf("unrecognized option %q", option)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// once refuses an option that was seen, except those that seen held before.
func once(d *caddyfile.Dispenser, seen map[string]bool, option string) error {
	repeatable, known := seen[option]
	if known && !repeatable {
		return d.Errf("%s is given twice", option)
	}
	if !known {
		seen[option] = false
	}
	return nil
}

// parseGuest reads a module that is named by the first argument.
func parseGuest(d *caddyfile.Dispenser, namespace string) (json.RawMessage, error) {
	if !d.NextArg() {
		return nil, d.ArgErr()
	}
	kind := d.Val()
	module, err := caddyfile.UnmarshalModule(d, namespace+kind)
	if err != nil {
		return nil, err
	}
	return caddyconfig.JSONModuleObject(module, "kind", kind, nil), nil
}

func (a *App) parseKey(d *caddyfile.Dispenser) error {
	var k KeyConfig
	if !d.AllArgs(&k.Key, &k.Tenant, &k.Plan) {
		return d.Err("expected: key <key> <tenant> <plan>")
	}
	a.Keys = append(a.Keys, k)
	return nil
}

func parseContext(d *caddyfile.Dispenser, c *gateway.ContextConfig) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	options := map[string]*int{
		"max_added_tokens": &c.MaxAddedTokens, "max_file_tokens": &c.MaxFileTokens,
		"reserve": &c.Reserve, "default_length": &c.DefaultLength,
	}
	seen := map[string]bool{"model": true}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		option := d.Val()
		if err := once(d, seen, option); err != nil {
			return err
		}
		if parse, ok := map[string]func(*caddyfile.Dispenser, *gateway.ContextConfig) error{"model": parseModel, "recall": parseRecall}[option]; ok {
			if err := parse(d, c); err != nil {
				return err
			}
			continue
		}
		to, ok := options[option]
		if !ok {
			return d.Errf("unrecognized context option %q", option)
		}
		var arg string
		if !d.AllArgs(&arg) {
			return d.ArgErr()
		}
		n, err := parseCount(d, arg)
		if err != nil {
			return err
		}
		*to = n
	}
	return nil
}

func parseRecall(d *caddyfile.Dispenser, c *gateway.ContextConfig) error {
	var arg string
	if !d.AllArgs(&arg) || arg != "on" && arg != "off" {
		return d.Err("expected: recall on|off")
	}
	c.DisableRecall = arg == "off"
	return nil
}

func parseModel(d *caddyfile.Dispenser, c *gateway.ContextConfig) error {
	var pattern, arg string
	if !d.AllArgs(&pattern, &arg) {
		return d.Err("expected: model <pattern> <length>")
	}
	if _, ok := c.Models[pattern]; ok {
		return d.Errf("model %s is given twice", pattern)
	}
	n, err := parseCount(d, arg)
	if err != nil {
		return err
	}
	if c.Models == nil {
		c.Models = map[string]int{}
	}
	c.Models[pattern] = n
	return nil
}

// parseCount reads a positive number.
func parseCount(d *caddyfile.Dispenser, arg string) (int, error) {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 {
		return 0, d.Errf("expected a number of at least 1, not %q", arg)
	}
	return n, nil
}

// parseSize reads a size such as 25MB.
func parseSize(d *caddyfile.Dispenser) (int64, error) {
	var arg string
	if !d.AllArgs(&arg) {
		return 0, d.ArgErr()
	}
	n, err := humanize.ParseBytes(arg)
	if err != nil || n < 1 || n > math.MaxInt64 {
		return 0, d.Errf("expected a size such as 25MB, not %q", arg)
	}
	return int64(n), nil
}

// parseRouterKey reads the operator's key. An empty one would silently be none.
func parseRouterKey(d *caddyfile.Dispenser) (string, error) {
	var key string
	if !d.AllArgs(&key) {
		return "", d.ArgErr()
	}
	if key == "" {
		return "", d.Err("the router key is empty")
	}
	return key, nil
}

func noArgs(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	return nil
}

// Interface guard
var _ caddyfile.Unmarshaler = (*App)(nil)
