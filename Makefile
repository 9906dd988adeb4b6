# Shortcuts for people; nothing depends on them.

SEEDS ?= 10000
FROM ?= 0

# Simulated worlds, as many as you like: make sim SEEDS=100000 FROM=1000000
sim:
	SIM_SEEDS=$(SEEDS) SIM_FROM=$(FROM) go test -vet=off -timeout 0 -v -run '^Test(Echo|Mixed|Direct|Proxy|Chat|Flood|Manners|Files|FilesRead|HTTP|Forms|Stages|Processes)$$' ./sim ./stage ./process

.PHONY: sim
