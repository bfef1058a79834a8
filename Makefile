# Sets up, builds, runs and checks Coppice; `make` lists the targets. Everything is made in build/ (and build-asan/,
# build-tsan/) and .deps/; nothing is installed but the Debian packages in scripts/setup.sh.
#
#   make serve MODEL=path.gguf ARGS="-c 65536 -np 4"    a model of yours, with any flag of `coppice serve --help`
#   make serve GPU=vulkan                               (or cuda) also fetches that backend for llama.cpp
#   make build LLAMA_SOURCE=fetch CMAKE_ARGS=-DGGML_CUDA=ON     llama.cpp from source: its release's, or a folder's
SHELL := /bin/bash
.DEFAULT_GOAL := help

# Once chosen, it stays chosen.
LLAMA_SOURCE ?= $(shell sed -n 's/^COPPICE_LLAMA_SOURCE:STRING=//p' build/CMakeCache.txt 2>/dev/null)
export GPU LLAMA_SOURCE
jobs := $(shell nproc 2>/dev/null || echo 2)
sources = git ls-files -co --exclude-standard 'src/*.h' 'src/*.cc' 'tests/*.h' 'tests/*.cc' 'tools/*.h' 'tools/*.cc' 'bench/*.h' 'bench/*.cc'
configure = cmake -S . -B build -G Ninja $(if $(LLAMA_SOURCE),-DCOPPICE_LLAMA_SOURCE=$(LLAMA_SOURCE)) $(CMAKE_ARGS)
build = cmake --build build -j $(jobs) --target

# GCC 12's thread sanitizer cannot run where the kernel randomises addresses by more than 28 bits.
fixed_addresses = $(shell test "$$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28)" -le 28 || echo setarch -R)

.PHONY: bench-programs help setup program build serve test test-clients models microbench bench bench-quick llama-server simulate simulate-replay kill-loop check format tidy asan tsan clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' Makefile

# A build without the tests needs none of their libraries. Once build/ is configured, it stays as it is.
program:
	@scripts/setup.sh
	@$(if $(LLAMA_SOURCE),,scripts/fetch_llama.sh)
	@$(if $(LLAMA_SOURCE)$(CMAKE_ARGS),,test -f build/build.ninja ||) $(configure) -DCOPPICE_TESTS=OFF
	@$(build) coppice

serve: program ## start the server on 127.0.0.1:8080; MODEL=path.gguf, ARGS="flags", GPU=vulkan or cuda
	@exec build/coppice serve $(if $(MODEL),-m '$(MODEL)') $(ARGS)

build: program ## build the server: build/coppice

test: ## build everything and run every test
	@scripts/setup.sh --test
	@$(configure) -DCOPPICE_TESTS=ON
	@$(build) all
	@ctest --test-dir build --output-on-failure -j 2

test-clients: program ## run the official OpenAI, Anthropic and Vercel AI libraries against the built-in model
	@scripts/setup.sh --clients
	@scripts/test_clients.sh || [ $$? -eq 77 ]

models: ## write random-weight test models to build/models
	@scripts/setup.sh
	@test -f build/build.ninja || $(configure) -DCOPPICE_TESTS=OFF
	@$(build) models

microbench: ## measure what the server adds to the model's own work
	@scripts/setup.sh --test
	@$(configure) -DCOPPICE_TESTS=ON
	@$(build) microbench
	@build/bench/microbench $(ARGS)

# PEERS="NAME=URL ..." measures servers that run already as well.
bench: bench-programs ## measure the server against llama.cpp alone, and against llama-server if that was built: ten minutes
	@scripts/bench.sh full

bench-quick: bench-programs ## every benchmark in small on a tiny model: counts are checked, times are not
	@$(build) models
	@scripts/bench.sh quick

bench-programs:
	@scripts/setup.sh --test
	@$(configure) -DCOPPICE_TESTS=ON
	@$(build) coppice coppice-bench coppice-floor make_models

llama-server: ## build llama-server of the pinned release, for make bench to measure beside: build-llama-server/
	@LLAMA_SOURCE=fetch scripts/setup.sh
	@cmake -S bench/llama-server -B build-llama-server -G Ninja
	@cmake --build build-llama-server -j $(jobs)

simulate-replay: ## recorded agent sessions against the scheduler without a model, beside other policies (docs/simulation.md)
	@scripts/setup.sh --test
	@$(configure) -DCOPPICE_TESTS=ON
	@$(build) coppice-simulate
	@build/tools/coppice-simulate $(ARGS)

simulate: ## run the scheduler's simulation for STEPS steps (10,000,000) with each kind of memory; SEED=N replays one
	@scripts/setup.sh --test
	@$(configure) -DCOPPICE_TESTS=ON
	@$(build) sched_test
	@COPPICE_SIM_STEPS=$(or $(STEPS),10000000) $(if $(SEED),COPPICE_SIM_SEED=$(SEED)) build/src/sched_test --gtest_filter='*Simulation*'

kill-loop: ## kill -9 the server ROUNDS times (200) while it writes its cache, and check every answer; FAMILY=qwen35
	@scripts/setup.sh --test
	@$(configure) -DCOPPICE_TESTS=ON
	@$(build) http_test
	@$(if $(FAMILY),$(build) models)
	@COPPICE_KILL_ROUNDS=$(or $(ROUNDS),200) $(if $(FAMILY),COPPICE_KILL_MODEL=$(FAMILY)) build/tests/http/http_test --gtest_filter='Tiers.C_KilledAtAnyMoment'

check: ## run the style checks alone: format, layers, sizes, text
	@for check in tests/style/check_*.sh; do bash $$check . || failed=1; done; exit $${failed-0}

format: ## format the sources
	@$(sources) | xargs clang-format-19 -i

tidy: ## run clang-tidy over the sources
	@scripts/setup.sh --test --dev
	@cmake --preset files
	@$(sources) | grep '\.cc$$' | xargs run-clang-tidy-19 -quiet -p build-files -j $(jobs)

asan: ## run every test under the address and undefined-behaviour sanitizers, in build-asan
tsan: ## run every test under the thread sanitizer, in build-tsan
asan tsan:
	@scripts/setup.sh --test
	@cmake --preset $@
	@cmake --build --preset $@ -j $(jobs)
	@$(fixed_addresses) ctest --preset $@

clean: ## remove what was built
	rm -rf build build-asan build-tsan build-debug build-files build-llama-server

distclean: clean ## and the fetched llama.cpp
	rm -rf .deps
