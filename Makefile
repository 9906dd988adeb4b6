# The tests come in tiers: see CONTRIBUTING.md. Each says in the end what took longest and what it left out.
# "go test ./..." runs the tier quick as well, without that list.

# All tests. Installs the programs that they need where it may: a C compiler, curl, openssl, PostgreSQL,
# PgBouncer, strace, wrk, ssh, Chromium, HAProxy, nginx.
test:
	go run ./internal/testing/tier/run full

# What needs nothing but Go.
quick:
	go run ./internal/testing/tier/run quick

# All mutants, all interleavings, long random runs, and each fuzzer for half a minute.
long:
	go run ./internal/testing/tier/run long

# What measures time, processor time and memory, one test at a time: a row for each figure. Leave the machine alone meanwhile.
measure:
	go run ./internal/testing/tier/run measure

# All simulated worlds, as many of each as you like: make sim SEEDS=100000 FROM=1000000
SEEDS ?= 10000
FROM ?= 0
WORLDS = $$(grep -rl --include='*_test.go' '^func TestWorld' . | xargs -n1 dirname | sort -u)
sim:
	SIM_SEEDS=$(SEEDS) SIM_FROM=$(FROM) go test -vet=off -timeout 0 -v -run '^TestWorld' $(WORLDS)

.PHONY: test quick long measure sim
