// Command backstory is Caddy with the Backstory modules built in: what xcaddy
// would generate from caddymodule.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/backstory-proxy/backstory/caddymodule"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

func main() {
	caddycmd.Main()
}
