#!/usr/bin/env bash
# The checks can fail: each is run on a small project that is clean, and on the same with one fault, which it must name.
set -euo pipefail
checks=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0

new_project() {
  rm -rf "$scratch/project"
  mkdir -p "$scratch/project"/{src/base,src/kv,src/engine,src/net,tools,bench/client,bench/floor,tests/style}
  cd "$scratch/project"
  cat > src/CMakeLists.txt <<'END'
coppice_layer(base LIBS llama-json)
coppice_layer(kv DEPS base)
coppice_layer(engine DEPS kv base LIBS Threads::Threads PRIVATE_LIBS llama)
coppice_layer(net DEPS base LIBS Boost::headers)
END
  printf '#include "base/ids.h"\n#include "kv/reuse.h"\n\nint kv() { return 1; }\n' > src/kv/reuse.cc
  printf '#include "kv/reuse.h"\n#include "llama.h"\n' > src/engine/runner.cc
  printf '#include <boost/asio.hpp>\n' > src/net/server.cc
  printf '#include "llama.h"\n\n#include "engine/runner.h"\n' > tools/tool.cc
  printf '#include <boost/asio.hpp>\n\n#include "client/url.h"\n' > bench/client/http.cc
  printf '#include <llama.h>\n' > bench/floor/main.cc
  printf '#include "kv/reuse.h"\n' > bench/kv_bench.cc
  printf 'BasedOnStyle: Google\nSortIncludes: Never\nIncludeBlocks: Preserve\n' > .clang-format
}

# expect CHECK PATTERN: on the project as it is now, CHECK fails and prints PATTERN; without a PATTERN it passes.
expect() {
  local check=$1 pattern=${2-} output code=0
  output=$(bash "$checks/check_$check.sh" "$scratch/project" 2>&1) || code=$?
  if [[ -z $pattern && $code -ne 0 ]]; then
    echo "FAILED: check_$check.sh refuses a clean project: $output"
    status=1
  elif [[ -n $pattern ]] && { [[ $code -eq 0 ]] || ! grep -qE "$pattern" <<<"$output"; }; then
    echo "FAILED: check_$check.sh (exit $code) should have said '$pattern'; it said: $output"
    status=1
  fi
}

# fault CHECK PATTERN FILE TEXT: the project with TEXT (printf) appended to FILE fails with PATTERN.
fault() {
  new_project
  mkdir -p "$(dirname "$3")"
  printf "$4" >> "$3"
  expect "$1" "$2"
}

lines() { for ((i = 0; i < $1; i++)); do printf '%s\\n' "$2"; done; }

new_project
for check in format layers sizes text; do expect $check; done

fault format 'src/kv/bad.cc:1: not formatted' src/kv/bad.cc 'int  a( int b ){return b;}\n'
fault layers 'src/kv/bad.cc:2: .*kv may not use engine' src/kv/bad.cc '#include "base/ids.h"\n#include "engine/runner.h"\n'
fault layers 'net may not use kv' src/net/bad_test.cc '#include "kv/reuse.h"\n'
fault layers 'llama.cpp is used in engine and chat alone' src/kv/bad.h '#include "llama.h"\n'
fault layers 'llama.cpp is used in engine and chat alone' src/net/bad.h '#include <ggml-backend.h>\n'
fault layers 'llama.cpp is used in engine and chat alone' src/net/bad.h '#include "common.h"\n'
fault layers 'Boost is used in net alone' src/engine/bad.cc '#include <boost/asio.hpp>\n'
fault layers 'Boost is used in net alone' tools/bad.cc '#include <boost/asio.hpp>\n'
fault layers 'no such layer: nothing' src/kv/bad.cc '#include "nothing/x.h"\n'
fault layers 'src/extra is no layer' src/extra/bad.cc '#include <vector>\n'
fault layers 'may not use the code that it measures' bench/client/bad.cc '#include "kv/reuse.h"\n'
fault layers 'only the floor is llama.cpp' bench/client/bad.cc '#include <llama.h>\n'
fault sizes 'src/kv/bad.cc: 401 lines, more than 400' src/kv/bad.cc "$(lines 401 'int a;')"
fault sizes 'src/kv/bad.cc:1: a function of 71 lines' src/kv/bad.cc "int f() {\n$(lines 69 '  g();')}\n"
fault sizes 'src/kv/bad.cc:2: a function of 71 lines' src/kv/bad.cc "struct S {\n  int f(int a,\n        int b) {\n$(lines 68 '    g();')  }\n};\n"
fault text 'a registry host name' README.md 'see https://registry.''example.org/x\n'
fault text 'a path of one machine' README.md 'see /ho''me/me/x\n'
fault text 'trailing white space' src/kv/bad.cc 'int a; \n'
fault text 'a tab' src/kv/bad.cc '\tint a;\n'

# At the limits, and long things that are no functions.
new_project
printf "$(lines 400 'int a;')" > src/kv/fits.cc
printf "int f() {\n$(lines 68 '  g();')}\n" > src/kv/fits2.cc
printf "namespace a {\n$(lines 100 'int a;')}  // namespace a\nstruct B {\n$(lines 100 '  int a;')};\n" > src/kv/fits3.cc
expect sizes
printf '# Why.\nsrc/kv/long.cc 500 100\n' > tests/style/size_exceptions.txt
printf "int f() {\n$(lines 98 '  g();')}\n$(lines 400 'int a;')" > src/kv/long.cc
expect sizes
exit $status
