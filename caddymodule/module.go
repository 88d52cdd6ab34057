package caddymodule

import (
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/tidwall/gjson"
	_ "github.com/tidwall/sjson"
	_ "modernc.org/sqlite"
	_ "golang.org/x/sync/singleflight"
	_ "github.com/hashicorp/golang-lru/v2"
)
