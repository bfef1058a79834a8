#!/usr/bin/env bash
# Lays the pinned llama.cpp release out under .deps/llama-VERSION/: include/, lib/, templates/, LICENSE; with --source
# source/ instead. Nothing is compiled. Does nothing, and uses no network, when all of it is there already.
#
#   scripts/fetch_llama.sh                 headers and prebuilt CPU libraries
#   GPU=vulkan scripts/fetch_llama.sh      and the Vulkan backend (or GPU=cuda: the CUDA backend)
#   scripts/fetch_llama.sh --source        the sources, for cmake -DCOPPICE_LLAMA_SOURCE=fetch
#   scripts/fetch_llama.sh --check         fetches nothing; fails if something is missing
#
# Where from: the npm packages of the node-llama-cpp project (MIT licence). `node-llama-cpp` holds llama.cpp's release as
# a git bundle, `@node-llama-cpp/PLATFORM` the libraries built from it. Every package is checked against the SHA-512 below.
# Each part is unpacked aside and moved into place; its stamp is written last, so an interrupted run counts for nothing.
set -euo pipefail
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE  # set when git runs us from a hook

release=v0.4.0
package_version=3.21.1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$root/.deps
dest=$deps/llama-$release
scratch=

# The hex form of the registry's own integrity value, and of what `sha512sum` says of the downloaded file.
checksum_of() {
  case $1 in
    node-llama-cpp) echo 13737412fd956b4c33c9dbd7605c0cf47bf2a34ecfa168edf13ffd18c738dc2bedf18915fcd53fb5852010c0b582b4cfbf6a3d3d18d08b41b759be4ffdac2232 ;;
    @node-llama-cpp/linux-x64) echo 4e8b63e914c3306a371682b6c8d51acffa069990f4a2502a4eb465b855169aed245b68bd4cecc7496d0e5820221a4cd10955f45ac5360b2510a3f5b6358b5d3c ;;
    @node-llama-cpp/linux-arm64) echo 788dda9d2106cc98b0176ae93296554dd1f3c38ecbced6ef7efb91ce5bbf7cf3b5f113a704e77eef944f501955eaa10d3e998db5ba2ff39fb754e0f013006eae ;;
    @node-llama-cpp/linux-x64-vulkan) echo 7e511e4b338d43a3889b96d828b41fe1e127073702e56ba015bc8f530902ab2c8e159f291f41fdba543b64d0cb48873378a9de311268ae79726351eaedddc60c ;;
    @node-llama-cpp/linux-x64-cuda) echo 89db04e795680ff15bbcb867042f64ad425a5280b45e779bb1e0009c2a66fdbaca7fad4711bbbe89d81b6f978dea6c648cb4ab1ed20ba6b2749c371426356b16 ;;
    @node-llama-cpp/linux-x64-cuda-ext) echo d4fb94468c1c701724b37082a0c7b59931e1e6f0f45796c51cc50482d6c8fce4838e93fe3dd6e7fa57f8d82194adea53cd1f24087d47a2f43b77cabafefb8828 ;;
    *) return 1 ;;
  esac
}

say() { echo "fetch_llama: $*"; }

fail() {
  echo "fetch_llama: error: $1" >&2
  shift
  for line in "$@"; do echo "  $line" >&2; done
  exit 1
}

# npm pack PACKAGE into $scratch; prints the file's path. Fails unless the checksum is the pinned one.
download() {
  local package=$1 expected file actual
  expected=$(checksum_of "$package") || fail "no checksum is pinned for $package"
  say "downloading $package@$package_version" >&2
  if ! file=$(cd "$scratch" && npm pack --loglevel=error --pack-destination "$scratch" "$package@$package_version" 2>"$scratch/npm.log"); then
    head -n 6 "$scratch/npm.log" >&2
    fail "could not download $package@$package_version with npm" \
      "Check the network and npm's registry and proxy settings (npm config list), then run the same command again," \
      "or use a llama.cpp $release checkout: cmake -B build -DCOPPICE_LLAMA_SOURCE=/path/to/llama.cpp"
  fi
  file=$scratch/$(tail -n 1 <<<"$file")
  actual=$(sha512sum "$file" | cut -d ' ' -f 1)
  [[ $actual == "$expected" ]] || fail "$package@$package_version is not the package this script was written for" \
    "expected SHA-512 $expected" "received SHA-512 $actual" \
    "Something between here and the registry changed it. Nothing of it was kept."
  echo "$file"
}

# Writes the paths given of llama.cpp's release below $scratch/release.
unpack_release() {
  local package
  package=$(download node-llama-cpp)
  tar -xzf "$package" -C "$scratch" package/llama/gitRelease.bundle
  git init -q --bare "$scratch/git"
  git -C "$scratch/git" fetch -q "$scratch/package/llama/gitRelease.bundle" HEAD
  mkdir -p "$scratch/release"
  git -C "$scratch/git" -c tar.umask=0022 archive FETCH_HEAD "$@" | tar -x -C "$scratch/release"
}

# The libraries of PACKAGE whose names match the glob, into $scratch/lib.
unpack_libraries() {
  local package=$1 glob=$2 file
  file=$(download "$package")
  mkdir -p "$scratch/lib"
  tar -xzf "$file" -C "$scratch" --no-same-owner --wildcards "package/bins/*/$glob"
  find "$scratch/package/bins" -name '*.so' -exec mv -t "$scratch/lib" {} +
  rm "$file"
}

# install_part PART FOLDER...: moves $scratch/stage/FOLDER... to $dest, then says that PART is complete.
install_part() {
  local part=$1 item
  shift
  mkdir -p "$dest"
  rm -f "$dest/.complete-$part"
  for item in "$@"; do
    rm -rf "${dest:?}/$item"
    mv "$scratch/stage/$item" "$dest/$item"
  done
  stamp "$part"
}

# Says that PART is complete. The last step of each.
stamp() {
  identity > "$scratch/stamp"
  mv "$scratch/stamp" "$dest/.complete-$1"
}

identity() { echo "llama.cpp $release, node-llama-cpp $package_version, $(uname -s)-$(uname -m)"; }

is_complete() { [[ -f $dest/.complete-$1 && $(<"$dest/.complete-$1") == "$(identity)" ]]; }

platform() {
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) echo linux-x64 ;;
    Linux-aarch64) echo linux-arm64 ;;
    *) fail "there are no prebuilt llama.cpp libraries for $(uname -s) on $(uname -m)" \
      "Build them instead: cmake -B build -DCOPPICE_LLAMA_SOURCE=fetch" ;;
  esac
}

fetch_prebuilt() {
  local platform stage=$scratch/stage
  platform=$(platform)
  unpack_libraries "@node-llama-cpp/$platform" '*.so'
  unpack_release include ggml/include common vendor/nlohmann models/templates LICENSE
  mkdir -p "$stage/include/common" "$stage/include/vendor"
  mv "$scratch/lib" "$stage/lib"
  cd "$scratch/release"
  mv include/*.h ggml/include/*.h "$stage/include/"
  (cd common && find . \( -name '*.h' -o -name '*.hpp' \) -print0 | tar -c --null -T -) | tar -x -C "$stage/include/common"
  mv vendor/nlohmann "$stage/include/vendor/"
  mv models/templates LICENSE "$stage/"
  cd "$root"
  rm -f "$dest"/.complete-vulkan "$dest"/.complete-cuda*  # lib/ is going to be new
  install_part prebuilt include lib templates LICENSE
}

fetch_source() {
  unpack_release .
  mkdir -p "$scratch/stage"
  mv "$scratch/release" "$scratch/stage/source"
  install_part source source
}

# The CUDA backend comes built for CUDA 13 (newer GPUs) and CUDA 12 (also older ones), linked to that release's runtime,
# which it does not contain. Prints which of them the machine can load; 13 when neither is found.
cuda_part() {
  local folders=() major
  IFS=: read -ra folders <<<"${LD_LIBRARY_PATH-}"
  for major in 13 12; do
    if has_library "libcudart.so.$major" "${folders[@]}"; then
      echo "cuda$major"
      return
    fi
  done
  say "warning: no CUDA 12 or 13 runtime (libcudart, libcublas) was found; the backend loads only when one is there" >&2
  echo cuda13
}

has_library() {
  local name=$1 folder
  shift
  for folder in "$@"; do [[ ! -e $folder/$name ]] || return 0; done
  PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -F "$name" >/dev/null
}

# Adds a backend to lib/: the loader takes every libggml-*.so that it finds there and that can run on the machine.
fetch_gpu() {
  local part=$1 gpu=${1%1[23]} package
  case $part in
    vulkan) package=linux-x64-vulkan ;;
    cuda13) package=linux-x64-cuda ;;
    cuda12) package=linux-x64-cuda-ext ;;
  esac
  [[ $(platform) == linux-x64 ]] || fail "there is no prebuilt $gpu backend for $(platform)" \
    "Build it instead: cmake -B build -DCOPPICE_LLAMA_SOURCE=fetch -DGGML_${gpu^^}=ON"
  unpack_libraries "@node-llama-cpp/$package" "libggml-$gpu.so"
  rm -f "$dest/.complete-$gpu"*
  mv "$scratch/lib/libggml-$gpu.so" "$dest/lib/"
  stamp "$part"
}

# fetch PART: unless it is there.
fetch() {
  is_complete "$1" && return
  local tool
  for tool in npm git tar sha512sum; do
    command -v "$tool" >/dev/null || fail "$tool is missing" "Run scripts/setup.sh first."
  done
  scratch=$(mktemp -d "$deps/.fetch.XXXXXX")
  say "fetching llama.cpp $release ($1)"
  case $1 in
    prebuilt) fetch_prebuilt ;;
    source) fetch_source ;;
    *) fetch_gpu "$1" ;;
  esac
  rm -rf "$scratch"
  say "done: $dest"
}

cleanup() { [[ -z $scratch ]] || rm -rf "$scratch"; }

main() {
  local parts=(prebuilt) check='' argument
  for argument in "$@"; do
    case $argument in
      --source) parts=(source) GPU='' ;;
      --check) check=1 ;;
      *) fail "unknown argument $argument" "Usage: [GPU=vulkan|cuda] scripts/fetch_llama.sh [--source] [--check]" ;;
    esac
  done
  case ${GPU-} in
    '') ;;
    vulkan) parts+=(vulkan) ;;
    cuda) parts+=("$(cuda_part)") ;;
    *) fail "GPU must be vulkan or cuda, not $GPU" ;;
  esac
  trap cleanup EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  local part missing=''
  for part in "${parts[@]}"; do is_complete "$part" || missing=1; done
  [[ -n $missing ]] || return 0
  [[ -z $check ]] || exit 1

  mkdir -p "$deps"
  exec 9>"$deps/.lock"
  if ! flock -n 9; then
    say "waiting for another fetch to end"
    flock 9
  fi
  rm -rf "$deps"/.fetch.*  # left by a run that was killed; none runs now, we hold the lock
  for part in "${parts[@]}"; do fetch "$part"; done
}

main "$@"
