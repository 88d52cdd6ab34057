package caddymodule

import (
	"github.com/caddyserver/caddy/v2"

	"github.com/backstory-proxy/backstory/internal/version"
)

// The version command is Caddy's, and can't be registered again. What it prints
// begins with the custom version; one that the linker was given is kept.
func init() {
	if caddy.CustomVersion == "" {
		caddy.CustomVersion = "Backstory " + version.Version() + ", Caddy"
	}
}
