#!/usr/bin/env bash
# Measures the built server against the floor and, where it was built (make llama-server), against llama-server.
#
#   scripts/bench.sh quick [BUILD]   every scenario in small on a tiny model, Coppice's counts checked; part of `make test`
#   scripts/bench.sh full [BUILD]    ten minutes on two cores; models are made on demand; results in BUILD/bench/
#
# PEERS="NAME=URL ..." are measured too: servers that run already, with a model of their own. BUILD is build by default.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kind=${1-}
build=$(realpath "${2:-$root/build}")
threads=${THREADS:-$(nproc 2>/dev/null || echo 2)}  # of each server, and of the floor
bench=$build/bench/coppice-bench
models=$build/bench/models
results=$build/bench/results

llama_server=$root/build-llama-server/bin/llama-server
flags="--host 127.0.0.1 --port {port} -m {model} -c {cells} -np {slots} -t {threads}"

# use_servers [FLAGS]: what is measured from here on; FLAGS are Coppice's.
use_servers() {
  servers=(--spawn "coppice=$build/coppice serve $flags ${1-}")
  # -kvu: one set of cells for all slots, as Coppice has it; otherwise each slot has its share of -c.
  [[ $kind == quick || ! -x $llama_server ]] || servers+=(--spawn "llama-server=$llama_server $flags -kvu")
  local peer
  for peer in ${PEERS-}; do servers+=(--peer "$peer"); done
}

# model SIZE: makes the model unless it is there; its path is $models/SIZE/qwen3.gguf.
model() {
  [[ -f $models/$1/qwen3.gguf ]] || "$build/tools/make_models" --out "$models/$1" --arch qwen3 --size "$1" > /dev/null
}

# measure SIZE FILE ARGUMENTS...
measure() {
  local size=$1 file=$2
  shift 2
  "$bench" run --model "$size=$file" "${servers[@]}" --floor "$build/bench/coppice-floor" --threads "$threads" \
    --commit "$commit" --out "$results/results.jsonl" "$@"
}

case $kind in
  quick)
    commit=quick
    threads=1  # it is about counts, and spinning threads on a busy machine wait for each other
    results=$(mktemp -d)
    trap 'rm -rf "$results"' EXIT
    tiny=(tiny "$build/models/qwen3.gguf" --scale quick --repeats 1 --require coppice)
    use_servers
    measure "${tiny[@]}" --scenario turn2,fanout,switch,idle-tax,overhead,concurrency,replay
    use_servers "--cache-disk {disk}"
    measure "${tiny[@]}" --scenario restart
    "$bench" report "$results/results.jsonl" --html "$results/report.html" --markdown "$results/report.md"
    ;;
  full)
    commit=$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)
    mkdir -p "$results"
    rm -f "$results/results.jsonl"
    for size in 600k 5m 60m 600m; do model $size; done
    use_servers
    measure 60M "$models/60m/qwen3.gguf" --scenario turn2,fanout,switch,idle-tax
    measure 5M "$models/5m/qwen3.gguf" --scenario concurrency
    # The server's own part does not depend on the model, long prompts do.
    measure 0.6M "$models/600k/qwen3.gguf" --scenario overhead,replay
    measure 600M "$models/600m/qwen3.gguf" --scenario turn2 --scale large --repeats 2
    use_servers "--cache-disk {disk}"
    measure 60M "$models/60m/qwen3.gguf" --scenario restart
    "$bench" report "$results/results.jsonl" --html "$results/report.html" --markdown "$results/report.md"
    echo
    echo "results: $results/results.jsonl, report.html, report.md"
    ;;
  *)
    echo "Usage: scripts/bench.sh quick|full [BUILD]" >&2
    exit 2
    ;;
esac
