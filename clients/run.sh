#!/usr/bin/env bash
# Starts Backstory with the demo router behind it, in a directory of its own,
# and runs OpenAI's Node and Go clients against it.
#
#   BACKSTORY_BIN   the program; default: backstory in the repository's root
set -euo pipefail
cd "$(dirname "$0")"

bin=${BACKSTORY_BIN:-../backstory}
[ -x "$bin" ] || { echo "run.sh: no program at $bin: build it, or set BACKSTORY_BIN" >&2; exit 2; }
bin=$(realpath "$bin")
[ -d node/node_modules ] || (cd node && npm ci)

dir=$(mktemp -d)
server=
stop() {
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || true
		wait "$server" || true
	fi
	rm -rf "$dir"
}
trap stop EXIT

# Two free ports, held at once so that they differ.
read -r port router_port < <(node -e '
	const net = require("node:net");
	const servers = [0, 0].map(() => net.createServer().listen(0, "127.0.0.1"));
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
	}
}

http://127.0.0.1:$port {
	backstory_health
	handle_path /api/v1/* {
		route {
			backstory
			rewrite * /v1{uri}
			reverse_proxy http://127.0.0.1:$router_port
		}
	}
}

http://127.0.0.1:$router_port {
	backstory_demo_router
}
CADDYFILE

(cd "$dir" && exec "$bin" run --config Caddyfile) >"$dir/log" 2>&1 &
server=$!
ready=
for _ in $(seq 150); do
	kill -0 "$server" 2>/dev/null || break
	curl -fsS -o /dev/null "http://127.0.0.1:$port/readyz" 2>/dev/null && ready=1 && break
	sleep 0.2
done
[ -n "$ready" ] || { echo "run.sh: the server isn't ready:" >&2; tail -n 40 "$dir/log" >&2; exit 1; }

status=0
(cd node && FREE_KEY=$NODE_FREE_KEY npm test --silent) || status=1
(cd go && FREE_KEY=$GO_FREE_KEY go test -count=1 .) || status=1
[ "$status" = 0 ] || { echo "run.sh: the end of the server's log:" >&2; tail -n 40 "$dir/log" >&2; }
exit "$status"
