package caddymodule

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/gateway"
)

// KeyConfig is a service key in the configuration.
type KeyConfig struct {
	// The key, best as a placeholder such as {env.SERVICE_KEY}, so that it
	// isn't written into the configuration that the admin API shows. A
	// variable that isn't set means no key; an empty one is an error.
	Key string `json:"key"`
	// The tenant that the key belongs to: 1 to 64 of a-z, 0-9, '.', '_', '-'.
	Tenant string `json:"tenant"`
	// The plan that it names.
	Plan string `json:"plan"`
}

// expandKeys replaces the placeholders of service keys. No error quotes one.
func expandKeys(configs []KeyConfig, logger *zap.Logger) ([]gateway.Key, error) {
	keys := make([]gateway.Key, len(configs))
	for i, c := range configs {
		keys[i] = gateway.Key{Tenant: c.Tenant, Plan: c.Plan}
		variable, unset := unsetVariable(c.Key)
		if unset {
			logger.Info("no service key from the environment", zap.String("variable", variable))
			keys[i].Unset = true
			continue
		}
		key, err := caddy.NewReplacer().ReplaceOrErr(c.Key, true, true)
		switch {
		case variable != "" && err != nil:
			return nil, fmt.Errorf("key %d: the key is empty: give the variable %s a key, or unset it", i+1, variable)
		case c.Key == "" || err != nil: // which would quote the key
			return nil, fmt.Errorf("key %d: the key is empty, or holds a placeholder that stands for nothing", i+1)
		}
		keys[i].Key = key
	}
	return keys, nil
}

// expandRouterKey reads the operator's router key. A variable that isn't set
// means none.
func expandRouterKey(config string, logger *zap.Logger) (string, error) {
	if config == "" {
		return "", nil
	}
	if name, unset := unsetVariable(config); unset {
		logger.Info("no router key from the environment: clients bring their own", zap.String("variable", name))
		return "", nil
	}
	key, err := caddy.NewReplacer().ReplaceOrErr(config, true, true)
	if err != nil {
		return "", errors.New("router_key is empty, or holds a placeholder that stands for nothing")
	}
	return key, nil
}

// unsetVariable names the variable of a key that is nothing but a reference to
// one, and reports whether it isn't set.
func unsetVariable(key string) (string, bool) {
	name, ok := strings.CutPrefix(key, "{env.")
	name, closed := strings.CutSuffix(name, "}")
	if !ok || !closed || strings.ContainsAny(name, "{}") {
		return "", false
	}
	_, set := os.LookupEnv(name)
	return name, !set
}
