#!/usr/bin/env bash
# Installs the Debian packages that building Coppice needs and that are not there yet. Without root and without sudo it
# prints the line to run and fails. When nothing is missing it uses no network. llama.cpp is not a package: cmake has
# scripts/fetch_llama.sh bring it.
#
#   scripts/setup.sh [--test] [--clients] [--dev] [--check]
#     --test    also what the tests need
#     --clients also what the client libraries' tests need
#     --dev     also clang-tidy and ccache
#     --check   install nothing: say what is missing, and fail if anything is
#   GPU=vulkan               also the Vulkan loader (the GPU's driver is yours to install, for CUDA as well)
#   LLAMA_SOURCE=DIR|fetch   what cmake's COPPICE_LLAMA_SOURCE is going to be
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# PACKAGE, PACKAGE|ALTERNATIVE, or PACKAGE:COMMAND where having the command is enough, whoever installed it.
build_needs=(g++:g++ cmake:cmake ninja-build:ninja 'libboost1.81-dev|libboost-dev' libspdlog-dev libfmt-dev
  prometheus-cpp-dev libssl-dev libsqlite3-dev libxxhash-dev libcli11-dev libsimdjson-dev)
fetch_needs=(npm:npm git:git ca-certificates)
test_needs=(libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev clang-format-19:clang-format-19 git:git)
clients_needs=(npm:npm curl:curl)
dev_needs=(clang-tidy-19:clang-tidy-19 clang-tidy-19:run-clang-tidy-19 ccache:ccache)

installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# REQUIRES: dpkg, or a need with a command.
satisfied() {
  local need=$1 package
  if [[ $need == *:* ]] && command -v "${need#*:}" >/dev/null; then return 0; fi
  for package in ${need//|/ }; do
    if installed "${package%%:*}"; then return 0; fi
  done
  return 1
}

# The package to install for a need: the first alternative that apt knows. Before `apt-get update` that is a guess.
package_for() {
  local need=${1%%:*} package
  for package in ${need//|/ }; do
    if apt-cache show "$package" >/dev/null 2>&1; then
      echo "$package"
      return
    fi
  done
  echo "${need%%|*}"
}

# Prints the needs that are not met, one a line. Without dpkg only commands can be checked; cmake finds out the rest.
missing_needs() {
  local need
  for need in "$@"; do
    if [[ $need != *:* ]] && ! command -v dpkg-query >/dev/null; then continue; fi
    satisfied "$need" || echo "$need"
  done
}

# Prints what may come before a command for root: nothing, or sudo. Fails when this user cannot become root. A terminal
# lets sudo ask for the password; without one only a sudo that needs none is of use.
root_prefix() {
  [[ $EUID -ne 0 ]] || return 0
  command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; } && echo sudo
}

# REQUIRES: $prefix from root_prefix.
run_apt() {
  local log
  log=$(mktemp)
  # env, since sudo passes no variables on. The output is shown only if it fails: it is hundreds of lines.
  if ! $prefix env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    echo "setup: failed: apt-get $*" >&2
    exit 1
  fi
  rm -f "$log"
}

install_missing() {
  local prefix packages need
  if ! prefix=$(root_prefix); then
    readarray -t packages < <(for need in "$@"; do package_for "$need"; done)
    echo "setup: packages are missing, and this user cannot install them. Run this as root, then try again:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends ${packages[*]}" >&2
    exit 1
  fi
  echo "setup: installing ${*%%:*}"
  run_apt update
  readarray -t packages < <(for need in "$@"; do package_for "$need"; done)
  run_apt install -y --no-install-recommends "${packages[@]}"
}

main() {
  local needs=("${build_needs[@]}") check='' argument missing
  for argument in "$@"; do
    case $argument in
      --test) needs+=("${test_needs[@]}") ;;
      --clients) needs+=("${clients_needs[@]}") ;;
      --dev) needs+=("${dev_needs[@]}") ;;
      --check) check=1 ;;
      *) echo "setup: unknown argument $argument (see the head of scripts/setup.sh)" >&2; exit 2 ;;
    esac
  done
  # Fetching needs nothing once it is done.
  local fetch_llama=("$root/scripts/fetch_llama.sh" --check)
  case ${LLAMA_SOURCE-} in
    '') "${fetch_llama[@]}" || needs+=("${fetch_needs[@]}") ;;
    fetch) "${fetch_llama[@]}" --source || needs+=("${fetch_needs[@]}") ;;
  esac
  if [[ ${GPU-} == vulkan ]]; then needs+=(libvulkan1); fi
  readarray -t missing < <(missing_needs "${needs[@]}" | sort -u)

  [[ ${#missing[@]} -gt 0 ]] || return 0
  if [[ -n $check ]]; then
    echo "setup: missing: ${missing[*]%%:*}"
    exit 1
  fi
  if ! command -v apt-get >/dev/null; then
    echo "setup: there is no apt here; install what these Debian packages bring: ${missing[*]%%:*}" >&2
    exit 1
  fi
  install_missing "${missing[@]}"
}

main "$@"
