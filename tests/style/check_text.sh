#!/usr/bin/env bash
# check_text.sh ROOT: the project's text holds nothing that is true on one machine only, and is clean.
#
# - no package registry's host name: where packages come from is the machine's configuration
# - no absolute path of a home or work folder
# - no conflict marker, no trailing white space, no tab but in Makefiles
set -euo pipefail
root=$1
source "$(dirname "${BASH_SOURCE[0]}")/files.sh"
list_files "$root" > /dev/null  # once, not in each subshell below
status=0

# forbid WHY PATTERN SUFFIX...: prints each line that matches, in files with the suffixes.
forbid() {
  local why=$1 pattern=$2 found
  shift 2
  found=$(list_files "$root" "$@" | (cd "$root" && xargs -r -d '\n' grep -nHIE -e "$pattern") || true)
  if [[ -n $found ]]; then
    echo "$why:"
    cut -c 1-200 <<<"$found"
    status=1
  fi
}

text=(.h .cc .cmake .txt .md .sh .json .yml .jinja .py Makefile .ci/run .clang-format .clang-tidy)
ours=(.h .cc .cmake CMakeLists.txt .md .sh Makefile .ci/run .supp)
forbid 'a registry host name' '(registry|deb|pypi|npm|apt|packages)\.[a-z0-9-]+\.(org|com|net|io)|npmjs[.]|pythonhosted[.]|crates[.]io' "${text[@]}"
forbid 'a path of one machine' '(^|[^[:alnum:]_./~*-])/(work|home|root|Users)/' "${text[@]}"
forbid 'a conflict marker' '^(<{7}|>{7}|={7})( |$)' "${ours[@]}"
forbid 'trailing white space' '[[:space:]]$' "${ours[@]}"
forbid 'a tab' $'\t' .h .cc .cmake CMakeLists.txt .md .sh .json
exit $status
