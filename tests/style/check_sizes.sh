#!/usr/bin/env bash
# check_sizes.sh ROOT: no C++ file is longer than 400 lines, no function longer than 70.
#
# A function is found by its shape, which the formatter guarantees: from the last line that is indented like its closing
# brace and opened something with parentheses, to that brace. size_exceptions.txt names files that may be longer.
set -euo pipefail
root=$1
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/files.sh"

list_files "$root" .h .cc | (cd "$root" && xargs -r awk -v exceptions="$root/tests/style/size_exceptions.txt" '
  BEGIN {
    lines_max = 400
    function_lines_max = 70
    while ((getline line < exceptions) > 0) {
      if (line ~ /^#/ || line == "") continue
      split(line, word, " ")
      file_lines_max[word[1]] = word[2]
      if (word[3]) file_function_lines_max[word[1]] = word[3]
    }
  }
  function check_file() {
    limit = (previous in file_lines_max) ? file_lines_max[previous] : lines_max
    if (previous != "" && n_lines > limit) {
      printf "%s: %d lines, more than %d: split it by concept\n", previous, n_lines, limit
      bad = 1
    }
  }
  FNR == 1 {
    check_file()
    previous = FILENAME
    function_limit = (FILENAME in file_function_lines_max) ? file_function_lines_max[FILENAME] : function_lines_max
    delete start
    delete text
  }
  { n_lines = FNR }
  /^[ \t]*$/ || /^[ \t]*(#|\/\/|public:|private:|protected:)/ { next }
  {
    match($0, /^ */)
    indent = RLENGTH
    if ($0 !~ /^ *\}/) {
      start[indent] = FNR
      text[indent] = $0
      next
    }
    if (!(indent in text)) next
    opened = text[indent]
    delete text[indent]  # so that the end of a namespace does not look like the end of the last function in it
    length_lines = FNR - start[indent] + 1
    if (opened ~ /\(/ && opened !~ /^ *(if|for|while|switch|do|else|try|namespace|class|struct|union|enum|return)[ ({]/ &&
        length_lines > function_limit) {
      printf "%s:%d: a function of %d lines, more than %d\n", FILENAME, start[indent], length_lines, function_limit
      bad = 1
    }
  }
  END { check_file(); exit bad }
')
