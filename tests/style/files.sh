# shellcheck shell=bash
# Sourced by the checks. list_files ROOT SUFFIX...: the project's files below ROOT that end in one of the suffixes, one a
# line and relative to ROOT: those that git knows or would add, or outside a git checkout all but hidden and built ones.
all_files=''  # of the one ROOT of this process

list_files() {
  local root=$1 file suffix
  shift
  if [[ -z $all_files ]]; then
    if [[ -e $root/.git ]] && command -v git >/dev/null; then
      # safe.directory: the checkout may belong to another user, as it does in many CI containers.
      all_files=$(git -c safe.directory='*' -C "$root" ls-files --cached --others --exclude-standard)
    else
      all_files=$(cd "$root" && find . -type f -not -path './.*' -not -path './build*' -printf '%P\n')
    fi
  fi
  while IFS= read -r file; do
    for suffix in "$@"; do
      if [[ $file == *"$suffix" && -f $root/$file ]]; then  # git still lists a file that was deleted but not committed
        printf '%s\n' "$file"
        break
      fi
    done
  done <<<"$all_files"
}
