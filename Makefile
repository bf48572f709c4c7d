.DEFAULT_GOAL := help
.PHONY: help build deps test race faults hosts lab lint bench bench-lua pgo fmt

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the program: bin/bench
	go build -o bin/bench ./bench

deps: ## install the servers that the tests start, or say what to install
	@sh deploy/deps.sh

# With the profile of package bench, everything it imports would be compiled a second time. Without
# tables for debuggers, each of the many test programs is linked in half the time.
lint test race: export GOFLAGS := $(shell go env GOFLAGS) -pgo=off -ldflags=-w

# Tests wait for servers and failovers as long as they compute, so more packages run at a time than
# there are processors. Those that take the longest begin first. Vet is for lint: here it would
# analyse all dependencies again.
test-flags := -vet off -p $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))
packages := ./bench/internal/cli ./store/sqlstore ./store/redisstore ./bench/internal/faults ./...

test: deps ## run all tests
	go test $(test-flags) $(packages)
	go -C saga/dtmclient test -vet off ./...
	go -C deploy/schemas test -vet off -count 1 ./...
	@[ "$$(id -u)" = 0 ] || echo "Skipped, because they need root: the tests of network namespaces." \
	"To run them: go test -exec sudo ./deploy/netlab ./bench/internal/hosts"

# The tag spares a minute of C: the detector sees Go only.
race: deps ## run all tests under the race detector
	go test $(test-flags) -race -tags pebblegozstd $(packages)
	go -C saga/dtmclient test -race -tags pebblegozstd -vet off ./...

faults: deps ## break hosts and stores under load, 20 times each; about 10 minutes on a quiet machine
	go test -v -count 1 -timeout 60m ./bench/internal/faults -rounds 20 -slack 0s

# The network of hosts and lab; how long the load of hosts lasts, and where its results go.
LINK = -delay 1ms
DURATION = 10s
OUT := sagabench-results/$(shell date +%Y%m%d-%H%M%S)-hosts
as-root = $(if $(filter 0,$(shell id -u)),,-exec sudo)

hosts: deps ## measure two app hosts, a store host and a load host on one Linux machine, as root
	go test $(as-root) -v -count 1 -timeout 0 ./bench/internal/hosts -run AreMeasuredTogether $(LINK) -duration $(DURATION) -out $(abspath $(OUT))
	@[ "$$(id -u)" = 0 ] || sudo chown -R "$$(id -u)" $(OUT)

lab: deps ## keep these hosts up, for commands of your own, as root
	go test $(as-root) -v -count 1 -timeout 0 ./bench/internal/hosts -up $(LINK)

lint: ## vet, gofumpt, staticcheck
	go vet ./...
	go -C saga/dtmclient vet ./...
	go -C deploy/schemas vet ./...
	go tool preprofile -i bench/default.pgo -o /dev/null
	@echo go tool gofumpt -l .; files=$$(go tool gofumpt -l .) || exit; \
	if [ -n "$$files" ]; then echo "not formatted, run make fmt:"; echo "$$files"; exit 1; fi
	go tool staticcheck ./...
	@for module in saga/dtmclient deploy/schemas; do echo staticcheck $$module; \
	staticcheck=$$(go tool -n staticcheck) && (cd $$module && $$staticcheck ./...) || exit; done

bench: ## measure this machine on the embedded store
	go run bench/main.go

bench-lua: ## price the scripts on a Redis started for it, for benchstat: make -s bench-lua >after.txt
	go test -run xxx -bench Script -benchtime 2000x -count 8 ./bench/internal/microbench

pgo: ## profile the bench server for the compiler, when what every saga runs through has changed
	@sh bench/pgo.sh

fmt: ## format the code
	go tool gofumpt -w .
