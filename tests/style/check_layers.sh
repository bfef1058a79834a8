#!/usr/bin/env bash
# check_layers.sh ROOT: folders below src/ include only what the layer order allows.
#
# - The order is the DEPS that src/CMakeLists.txt gives each layer: a layer includes its own headers and those of DEPS.
# - Our headers are named with their folder ("kv/reuse.h"), so a quoted include without one is llama.cpp's; those, and
#   <llama.h> and the like, belong to engine/ and chat/ (and tools/, which is below nothing).
# - Boost belongs to net/. Tests outside src/ may use it for their clients, and so may the benchmark's.
# - coppice-bench measures servers from outside: bench/ includes none of src/, but for the microbenchmarks (*_bench.cc).
# Prints FILE:LINE: what is wrong, and fails, for each forbidden include.
set -euo pipefail
root=$1
source "$(dirname "${BASH_SOURCE[0]}")/files.sh"

list_files "$root" .h .cc | grep -E '^(src|tools|bench)/' | (cd "$root" && xargs awk '
  function forbid(why) { printf "%s:%d: %s: %s\n", FILENAME, FNR, $0, why; bad = 1 }

  # First file: "coppice_layer(kv DEPS base LIBS ...)" -> allowed["kv", "base"].
  FILENAME == "src/CMakeLists.txt" {
    if (!match($0, /^ *coppice_layer\(/)) next
    n = split(substr($0, RLENGTH + 1), word, /[ ()]+/)
    layer[word[1]] = 1
    allowed[word[1], word[1]] = 1
    in_deps = 0
    for (i = 2; i <= n; i++) {
      if (word[i] ~ /^[A-Z_]+$/) in_deps = word[i] == "DEPS"
      else if (in_deps) allowed[word[1], word[i]] = 1
    }
    next
  }

  !/^ *# *include/ { next }
  {
    split(FILENAME, part, "/")
    here = part[1] == "src" ? part[2] : part[1]
    if (part[1] == "src" && !(here in layer)) forbid("src/" here " is no layer of src/CMakeLists.txt")
    header = $0
    sub(/^ *# *include *[<"]/, "", header)
    sub(/[>"].*/, "", header)
    quoted = $0 ~ /^ *# *include *"/
    folder = header
    sub(/\/.*/, "", folder)

    if (here == "bench") {
      if (FILENAME ~ /_bench\.cc$/) next
      if (folder != header && (folder in layer)) forbid("the benchmark may not use the code that it measures")
      if (header ~ /^(llama|gguf|ggml[-a-z]*)\.h$/ && part[2] != "floor") forbid("only the floor is llama.cpp itself")
      next
    }
    if (here != "tools" && folder != header && (folder in layer) && !((here, folder) in allowed))
      forbid(here " may not use " folder)
    else if (quoted && here != "tools" && folder != header && !(folder in layer))
      forbid("no such layer: " folder)
    llama = (quoted && folder == header) || header ~ /^(llama|llama-cpp|gguf|ggml[-a-z]*)\.h$/
    if (llama && here != "engine" && here != "chat" && here != "tools")
      forbid("llama.cpp is used in engine and chat alone")
    if (header ~ /^boost\// && here != "net") forbid("Boost is used in net alone")
  }
  END { exit bad }
' src/CMakeLists.txt)
