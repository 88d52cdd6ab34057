# What a checkout needs to be run, tested and packaged. `make help` lists it.

GO      ?= go
LDFLAGS := -w -s -X github.com/caddyserver/caddy/v2.CustomBinaryName=backstory
# Go takes the version from git. Where there is none: make build VERSION=v1.2.3
LDFLAGS += $(if $(VERSION),-X github.com/backstory-proxy/backstory/internal/version.stamp=$(VERSION))
TAGS    := nobadger,nomysql,nopgx
BENCH   ?= .

# The binary has no cgo in it. The linters look at the same build, so that what
# they need is compiled once.
NOCGO   := CGO_ENABLED=0 GOFLAGS=-trimpath

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build ./backstory: Caddy with Backstory
	$(NOCGO) $(GO) build -ldflags '$(LDFLAGS)' -tags $(TAGS) -o backstory ./cmd/backstory

.PHONY: run
run: build ## start Backstory at http://localhost:8080/api/v1
	@# Caddy shares its ports with another instance without a word.
	@! curl -sf -o /dev/null http://localhost:8080/healthz || \
		{ echo "Backstory already runs at http://localhost:8080: stop it first"; exit 1; }
	./backstory run --config Caddyfile

.PHONY: test
test: deps lint ## check and test everything
	$(GO) tool -modfile=tools/go.mod gotestsum --format standard-quiet -- -race -timeout 12m ./...
	@[ -n "$$BACKSTORY_TEST_REDIS" ] || echo "The Redis store's search was tested against recorded replies;" \
		"set BACKSTORY_TEST_REDIS=redis://… to test it on a server with the search module."

# The Redis store is tested on servers of its own, and PDFs are best read with
# poppler's pdftotext.
.PHONY: deps
deps:
	@{ command -v redis-server && command -v pdftotext; } >/dev/null || ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ] || \
		{ apt-get update -qq && apt-get install -y -qq redis-server poppler-utils; }

.PHONY: lint
lint: ## go vet, gofmt and staticcheck
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
		if [ -n "$$unformatted" ]; then echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; fi
	$(NOCGO) $(GO) vet -tags $(TAGS) ./...
	$(NOCGO) $(GO) tool -modfile=tools/go.mod staticcheck -tags $(TAGS) ./...

.PHONY: vuln
vuln: ## look for known vulnerabilities in what the binary calls
	$(NOCGO) $(GO) tool -modfile=tools/go.mod govulncheck -tags $(TAGS) ./...

# deadcode itself is content with what it finds.
.PHONY: deadcode
deadcode: ## look for functions that no program and no test reaches
	@dead=$$($(NOCGO) $(GO) tool -modfile=tools/go.mod deadcode -test -tags $(TAGS) ./...) || exit 1; \
		if [ -n "$$dead" ]; then echo "$$dead"; exit 1; fi

.PHONY: test-clients
test-clients: build ## drive ./backstory with clients that others wrote
	./clients/run.sh

.PHONY: bench
bench: ## run the benchmarks (BENCH=pattern selects some)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

# DATA is a folder of conversations and files with known answers; ARGS are more
# flags, such as -only memory and -json figures.json.
.PHONY: bench-quality
bench-quality: build ## measure what gets into prompts (DATA=dir: on data of yours)
	$(NOCGO) $(GO) run ./bench/quality $(if $(DATA),-data '$(DATA)') $(ARGS)

# It takes about eight minutes; FAULTS are flags, such as -rounds 1 -only Redis.
.PHONY: test-faults
test-faults: build ## break what ./backstory stands on, and count what was lost
	$(GO) run ./bench/faults $(FAULTS)

.PHONY: soak
soak: build ## ten minutes of load; draws memory, goroutines and descriptors into soak.png
	$(GO) run ./bench/faults -soak 10m $(FAULTS)
	$(GO) run -C bench/chart . "$(CURDIR)/soak.png" < soak.csv

# ARGS are more flags, such as -times 5.
.PHONY: overload
overload: build ## offer it three times what it carries, and count what became of it
	$(NOCGO) $(GO) run ./bench/overload $(ARGS)

.PHONY: clean
clean: ## remove what was built
	rm -f backstory soak.csv soak.png
