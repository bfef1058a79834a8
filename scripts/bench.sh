#!/usr/bin/env bash
# Measures the built server against the floor and, where it was built (make llama-server), against llama-server.
#
#   scripts/bench.sh quick [BUILD]   every scenario in small on a tiny model, Coppice's counts checked; part of `make test`
#   scripts/bench.sh full [BUILD]    at most MINUTES (9) of measuring; models are made on demand, before; results, and a
#                                    report of what there is if it is interrupted, in BUILD/bench/results/
#
# PEERS="NAME=URL ..." are measured too: servers that run already, with a model of their own. BUILD is build by default.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kind=${1-}
build=$(realpath --relative-to="$root" "${2:-$root/build}")
cd "$root"  # the reports show commands, and those are to be the same on any machine
threads=${THREADS:-$(nproc 2>/dev/null || echo 2)}  # of each server, and of the floor
bench=$build/bench/coppice-bench
models=$build/bench/models
results=$build/bench/results

llama_server=build-llama-server/bin/llama-server
flags="--host 127.0.0.1 --port {port} -m {model} -c {cells} -np {slots} -t {threads}"

# use_servers [FLAGS]: what is measured from here on; FLAGS are Coppice's.
use_servers() {
  servers=(--spawn "coppice=$build/coppice serve $flags ${1-}")
  # -kvu: one set of cells for all slots, as Coppice has it; otherwise each slot has its share of -c.
  [[ $kind == quick || ! -x $llama_server ]] || servers+=(--spawn "llama-server=$llama_server $flags -kvu")
  local peer
  for peer in ${PEERS-}; do servers+=(--peer "$peer"); done
}

# use_chat_servers: the same with a template that thinks, and that leaves old thoughts out once the user speaks again.
use_chat_servers() {
  local template peer
  template=$(compgen -G ".deps/llama-*/templates/Qwen3.5-4B.jinja" | tail -n 1)
  servers=(--spawn "coppice=$build/coppice serve $flags --chat-template-file $template")
  if [[ $kind == full ]]; then
    servers+=(--spawn "coppice-no-idle=$build/coppice serve $flags --chat-template-file $template --idle-prefill off")
    [[ ! -x $llama_server ]] ||
      servers+=(--spawn "llama-server=$llama_server $flags -kvu --jinja --chat-template-file $template")
  fi
  for peer in ${PEERS-}; do servers+=(--peer "$peer"); done
}

# model SIZE: makes the model unless it is there; its path is $models/SIZE/qwen3.gguf.
model() {
  [[ -f $models/$1/qwen3.gguf ]] || "$build/tools/make_models" --out "$models/$1" --arch qwen3 --size "$1" > /dev/null
}

# measure SIZE FILE ARGUMENTS... In the background, so that a signal to this script alone ends what it started.
measure() {
  local size=$1 file=$2
  shift 2
  "$bench" run --model "$size=$file" "${servers[@]}" --floor "$build/bench/coppice-floor" --threads "$threads" \
    --commit "$commit" --out "$results/results.jsonl" "$@" &
  running=$!
  wait "$running" || failed=$?
  running=
  [[ $failed == 0 || $kind == full ]] || exit "$failed"
}

# part SECONDS SIZE SCENARIOS ARGUMENTS...: one of the full run's parts. What an earlier one did not use, it has as well.
part() {
  local seconds=$1 size=$2 scenarios=$3
  shift 3
  ((later -= seconds, number += 1))
  measure "${size^^}" "$models/$size/qwen3.gguf" --scenario "$scenarios" --logs "$results/logs" \
    --budget $((total - later - SECONDS)) --later "$later" --part "$number/$parts" "$@"
}

report() {
  [[ ! -s $results/results.jsonl ]] ||
    "$bench" report "$results/results.jsonl" --html "$results/report.html" --markdown "$results/report.md"
}

running= failed=0
# end STATUS: interrupted; what there is, is reported.
end() {
  trap '' INT TERM HUP
  [[ -z $running ]] || kill "$running" 2> /dev/null || true
  wait
  [[ $kind != full ]] || { report && echo "interrupted; what was measured until then: $results/report.html"; }
  exit "$1"
}
trap 'end 130' INT
trap 'end 143' TERM
trap 'end 129' HUP

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
    use_chat_servers
    measure "${tiny[@]}" --scenario user-turn
    report
    ;;
  full)
    commit=$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)
    mkdir -p "$results"
    rm -rf "$results"/*
    for size in 600k 5m 60m 600m; do model $size; done
    # The parts' shares of the time are estimates. A repeat that would not fit is left out, and the report says so.
    total=$((${MINUTES:-9} * 60)) later=$((${MINUTES:-9} * 60)) number=0 parts=7
    share() { echo $((total * $1 / 100)); }
    SECONDS=0
    use_servers
    part "$(share 26)" 60m turn2,fanout,idle-tax
    part "$(share 10)" 5m concurrency
    # The server's own part does not depend on the model, long prompts do.
    part "$(share 10)" 600k overhead
    part "$(share 16)" 600k replay --repeats 2
    part "$(share 18)" 600m turn2 --scale large --repeats 2
    use_servers "--cache-disk {disk}"
    part "$(share 10)" 60m switch,restart
    use_chat_servers
    part "$(share 10)" 5m user-turn
    report
    echo
    echo "results: $results/results.jsonl, report.html, report.md (to be pasted into docs/benchmarks.md)"
    exit "$failed"
    ;;
  *)
    echo "Usage: scripts/bench.sh quick|full [BUILD]" >&2
    exit 2
    ;;
esac
