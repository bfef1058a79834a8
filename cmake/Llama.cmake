# llama.cpp as targets: `llama` (libllama + ggml), `llama-common`, `llama-json` (the nlohmann json headers), and
# COPPICE_BACKEND_DIR, the folder in which the program finds the compute backends (libggml-cpu-*.so, libggml-vulkan.so).
#
# By default these are the pinned release's prebuilt libraries, which scripts/fetch_llama.sh lays out under .deps/.
# COPPICE_LLAMA_SOURCE builds the same release from source instead, for another platform or with other backends, e.g.
#   cmake -B build-cuda -DCOPPICE_LLAMA_SOURCE=fetch -DGGML_CUDA=ON
set(COPPICE_LLAMA_VERSION v0.4.0)
set(COPPICE_LLAMA_DIR "${CMAKE_CURRENT_SOURCE_DIR}/.deps/llama-${COPPICE_LLAMA_VERSION}")
set(COPPICE_LLAMA_SOURCE "" CACHE STRING
    "Build llama.cpp from this source folder; 'fetch': from the pinned release's source; empty: use prebuilt libraries")

# Does nothing, and uses no network, when the release is there already.
function(coppice_fetch_llama)
  execute_process(COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/scripts/fetch_llama.sh" ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "scripts/fetch_llama.sh ${ARGN} failed, see above")
  endif()
endfunction()

function(coppice_import_llama name file)
  add_library(${name} SHARED IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${COPPICE_LLAMA_DIR}/lib/${file}")
endfunction()

function(coppice_use_prebuilt_llama)
  coppice_fetch_llama()
  set(include "${COPPICE_LLAMA_DIR}/include")
  coppice_import_llama(ggml-base libggml-base.so)
  coppice_import_llama(ggml libggml.${COPPICE_LLAMA_VERSION}.so)
  coppice_import_llama(llama libllama.${COPPICE_LLAMA_VERSION}.so)
  coppice_import_llama(llama-common libllama-common.so)
  target_include_directories(llama SYSTEM INTERFACE "${include}")
  target_link_libraries(llama INTERFACE ggml ggml-base)
  target_include_directories(llama-common SYSTEM INTERFACE "${include}/common")
  target_link_libraries(llama-common INTERFACE llama llama-json)
  add_library(llama-json INTERFACE)
  target_include_directories(llama-json SYSTEM INTERFACE "${include}/vendor")
endfunction()

function(coppice_build_llama source)
  if(NOT EXISTS "${source}/include/llama.h")
    message(FATAL_ERROR "COPPICE_LLAMA_SOURCE: ${source} is not a llama.cpp source folder (no include/llama.h)")
  endif()
  unset(CMAKE_CXX_STANDARD)  # llama.cpp asks for its own
  set(LLAMA_BUILD_NUMBER 0)  # else taken from the git history of whatever encloses the folder
  set(LLAMA_BUILD_COMMIT "${COPPICE_LLAMA_VERSION}")
  option(BUILD_SHARED_LIBS "Build llama.cpp's libraries as shared libraries" ON)
  option(LLAMA_BUILD_COMMON "" ON)
  foreach(part TESTS TOOLS EXAMPLES SERVER APP)
    option(LLAMA_BUILD_${part} "" OFF)
  endforeach()
  # SYSTEM: its headers are not held to our warnings. EXCLUDE_FROM_ALL: only what we link is built.
  add_subdirectory("${source}" "${CMAKE_BINARY_DIR}/llama" EXCLUDE_FROM_ALL SYSTEM)
  add_library(llama-json INTERFACE)
  target_include_directories(llama-json SYSTEM INTERFACE "${source}/vendor")
endfunction()

if(NOT COPPICE_LLAMA_SOURCE)
  coppice_use_prebuilt_llama()
  set(COPPICE_BACKEND_DIR "${COPPICE_LLAMA_DIR}/lib")
else()
  set(source "${COPPICE_LLAMA_SOURCE}")
  if(source STREQUAL "fetch")
    coppice_fetch_llama(--source)
    set(source "${COPPICE_LLAMA_DIR}/source")
  endif()
  get_filename_component(source "${source}" ABSOLUTE)
  coppice_build_llama("${source}")
  set(COPPICE_BACKEND_DIR "${CMAKE_BINARY_DIR}/bin")  # where llama.cpp's build puts every library
endif()
