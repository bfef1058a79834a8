#!/usr/bin/env bash
# Runs the official client libraries against a server with the built-in model: tests/clients/*_sdk.mjs. They come from the
# npm registry into build/clients; nothing of them is part of the project.
#
#   scripts/test_clients.sh [SCRIPT...]     default: all
#
# Fails if a client does. Where the packages cannot be installed it says so and exits with 77 (skipped).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${COPPICE_PROGRAM:-$root/build/coppice}
folder=$root/build/clients

mkdir -p "$folder"
cp "$root"/tests/clients/*.mjs "$root"/tests/clients/package.json "$folder"
if ! (cd "$folder" && npm install --no-audit --no-fund --loglevel=error); then
  echo "test_clients: the packages cannot be installed; skipped" >&2
  exit 77
fi

log=$(mktemp)
"$program" serve --port 0 -np 4 -c 32768 >"$log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null; rm -f "$log"' EXIT
url=
for _ in $(seq 100); do
  url=$(sed -n 's/.*\(http:\/\/127\.0\.0\.1:[0-9]*\).*/\1/p' "$log" | head -1)
  if [[ -n $url ]] && curl -sf "$url/health" >/dev/null; then break; fi
  kill -0 "$server" || { cat "$log" >&2; exit 1; }
  sleep 0.1
done

scripts=("$@")
if [[ ${#scripts[@]} -eq 0 ]]; then scripts=("$folder"/*_sdk.mjs); fi
failed=0
for script in "${scripts[@]}"; do
  echo "== $(basename "$script")"
  (cd "$folder" && node "$(basename "$script")" "$url") || failed=1
done
exit $failed
