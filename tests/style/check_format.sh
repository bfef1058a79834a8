#!/usr/bin/env bash
# check_format.sh ROOT: every C++ file is formatted as .clang-format says (`make format` does it). Prints the files that
# are not, each with its first line that differs.
set -euo pipefail
root=$1
source "$(dirname "${BASH_SOURCE[0]}")/files.sh"

report=$(list_files "$root" .h .cc | (cd "$root" && xargs -r -n 20 -P 2 clang-format-19 --dry-run --Werror 2>&1) || true)
[[ -n $report ]] || exit 0
# "FILE:LINE:COLUMN: error: ..." once per file; anything else is a failure of clang-format itself, shown as it is.
awk -F : '/clang-format-violations/ { if (!($1 in seen)) print $1 ":" $2 ": not formatted"; seen[$1] = 1; next }
          /^(xargs|[Ee]rror|YAML)/ { print }' <<<"$report" | sort
echo 'Run `make format`.'
exit 1
