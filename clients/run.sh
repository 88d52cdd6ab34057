#!/usr/bin/env bash
# Starts Backstory with the demo router behind it, in a directory of its own,
# and runs clients that others wrote against it: OpenAI's for Node and for Go,
# the Vercel AI SDK and LangChain.js. It does so once more with a model router
# that others wrote, Portkey's gateway, in between. It ends with a table.
#
#   BACKSTORY_BIN   the program; default: backstory in the repository's root
set -euo pipefail
cd "$(dirname "$0")"

bin=${BACKSTORY_BIN:-../backstory}
[ -x "$bin" ] || { echo "run.sh: no program at $bin: build it, or set BACKSTORY_BIN" >&2; exit 2; }
bin=$(realpath "$bin")
[ node/node_modules -nt node/package-lock.json ] || (cd node && npm ci)

dir=$(mktemp -d)
servers=()
stop() {
	for server in "${servers[@]}"; do
		kill "$server" 2>/dev/null || true
		wait "$server" || true
	done
	rm -rf "$dir"
}
trap stop EXIT

# Free ports, held at once so that they differ.
read -r port router_port portkey_port by_portkey_port flaky_port by_flaky_port < <(node -e '
	const net = require("node:net");
	const servers = [0, 0, 0, 0, 0, 0].map(() => net.createServer().listen(0, "127.0.0.1"));
	setImmediate(() => {
		console.log(servers.map((s) => s.address().port).join(" "));
		servers.forEach((s) => s.close());
	});
')

# The free plan's ten requests a minute are used up by one run of one suite, so
# each suite has a free tenant of its own.
new_key() { node -p 'require("node:crypto").randomBytes(18).toString("base64url")'; }
SERVICE_KEY=$(new_key) NODE_FREE_KEY=$(new_key) GO_FREE_KEY=$(new_key)
export SERVICE_KEY NODE_FREE_KEY GO_FREE_KEY
export ROUTER_KEY=sk-demo BASE_URL=http://127.0.0.1:$port/api/v1
# Backstory in front of Portkey, and of a router that the tests play.
export PORTKEY_URL=http://127.0.0.1:$by_portkey_port/api/v1
export FLAKY_URL=http://127.0.0.1:$by_flaky_port/api/v1 FLAKY_PORT=$flaky_port ROUTER_URL=http://127.0.0.1:$router_port
export XDG_DATA_HOME=$dir/data XDG_CONFIG_HOME=$dir/config

cat >"$dir/Caddyfile" <<CADDYFILE
{
	admin off
	backstory {
		store sqlite ./backstory.db
		embedder hashing
		key {env.SERVICE_KEY} acme enterprise
		key {env.NODE_FREE_KEY} tiny-node free
		key {env.GO_FREE_KEY} tiny-go free
		router_key {env.ROUTER_KEY}
		session_from header:X-Thread
		max_body 1MiB
	}
}

(api) {
	backstory_health
	handle_path /api/v1/* {
		route {
			backstory
			rewrite * /v1{uri}
			reverse_proxy {args[0]} {
				header_up X-Portkey-Provider openai
				header_up X-Portkey-Custom-Host http://127.0.0.1:$router_port/v1
			}
		}
	}
}

http://127.0.0.1:$port {
	import api http://127.0.0.1:$router_port
}
http://127.0.0.1:$by_portkey_port {
	import api http://127.0.0.1:$portkey_port
}
http://127.0.0.1:$by_flaky_port {
	import api http://127.0.0.1:$flaky_port
}

http://127.0.0.1:$router_port {
	backstory_demo_router
}
CADDYFILE

(cd "$dir" && exec "$bin" run --config Caddyfile) >"$dir/log" 2>&1 &
servers+=($!)
(cd node && exec node --import ./portkey.js node_modules/@portkey-ai/gateway/build/start-server.js --port="$portkey_port" --headless) >"$dir/portkey.log" 2>&1 &
servers+=($!)

# ready waits until a server answers at the address.
ready() {
	for _ in $(seq 150); do
		kill -0 "$1" 2>/dev/null || break
		curl -fsS -o /dev/null "$2" 2>/dev/null && return
		sleep 0.2
	done
	echo "run.sh: nobody answers at $2:" >&2
	tail -n 40 "$dir/log" "$dir/portkey.log" >&2
	exit 1
}
ready "${servers[0]}" "http://127.0.0.1:$port/readyz"
ready "${servers[1]}" "http://127.0.0.1:$portkey_port/"

status=0
(cd node && RESULTS=$dir/node.results FREE_KEY=$NODE_FREE_KEY npm test --silent) || status=1
(cd go && FREE_KEY=$GO_FREE_KEY go test -count=1 -json . >"$dir/go.results") || status=1
node node/table.js "$dir/node.results" "$dir/go.results" || status=1
[ "$status" = 0 ] || grep -hE '"Output":.*(_test\.go|panic|FAIL)' "$dir/go.results" >&2 || true
[ "$status" = 0 ] || { echo "run.sh: the end of the server's log:" >&2; tail -n 40 "$dir/log" >&2; }
exit "$status"
