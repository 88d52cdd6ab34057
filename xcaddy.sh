#!/usr/bin/env bash
# Packages Caddy with Backstory by xcaddy, from this checkout: the same binary
# that `make build` makes. Writes ./backstory, or the file named as argument.
set -euo pipefail
cd "$(dirname "$0")"

out=$(realpath -m "${1:-backstory}")
caddy=$(go list -m -f '{{.Version}}' github.com/caddyserver/caddy/v2)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -modfile=tools/go.mod -o "$work/xcaddy" github.com/caddyserver/xcaddy/cmd/xcaddy ||
	{ echo "xcaddy.sh: xcaddy itself could not be built" >&2; exit 1; }

# Of a module that is replaced by a folder, Go knows no version.
version=$(git describe --tags --always --dirty 2>/dev/null || true)

export CGO_ENABLED=0
ldflags="-w -s -X github.com/caddyserver/caddy/v2.CustomBinaryName=backstory -X github.com/backstory-proxy/backstory/internal/version.stamp=$version"
export XCADDY_GO_BUILD_FLAGS="-trimpath -tags=nobadger,nomysql,nopgx -ldflags='$ldflags'"
build() {
	"$work/xcaddy" build "$caddy" --output "$out" \
		--with github.com/backstory-proxy/backstory/caddymodule \
		--replace github.com/backstory-proxy/backstory="$PWD"
}

# xcaddy asks the module proxy for lists of versions, which some proxies refuse;
# what this checkout pins is then taken from the local module cache.
if ! build; then
	echo "xcaddy.sh: trying again with the local module cache" >&2
	go mod download
	export GOPROXY="file://$(go env GOMODCACHE)/cache/download" GONOSUMDB='*' GOFLAGS=-mod=mod
	build || { echo "xcaddy.sh: xcaddy could not build; make build does without it" >&2; exit 1; }
fi
echo "built $out with Caddy $caddy"
