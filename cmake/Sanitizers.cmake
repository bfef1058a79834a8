# -DCOPPICE_SANITIZE=address or thread (the presets `asan` and `tsan`). `address` brings the undefined-behaviour checks.
# Included after Llama.cmake: llama.cpp is never instrumented, so that its own code stays as fast and as unreported as
# the prebuilt libraries are. Run-time options and suppressions are compiled into every program by sanitizers/options.cc.
set(COPPICE_SANITIZE "" CACHE STRING "Sanitizer to build with: address, thread or empty")
if(COPPICE_SANITIZE STREQUAL "address")
  set(sanitizers address,undefined)
elseif(COPPICE_SANITIZE STREQUAL "thread")
  set(sanitizers thread)
elseif(COPPICE_SANITIZE)
  message(FATAL_ERROR "COPPICE_SANITIZE must be address, thread or empty, not ${COPPICE_SANITIZE}")
endif()
if(COPPICE_SANITIZE STREQUAL "address")
  # Its checks make GCC lose track of what is initialised, inside Boost's optional for one.
  add_compile_options(-Wno-maybe-uninitialized)
elseif(COPPICE_SANITIZE STREQUAL "thread")
  # GCC warns that ThreadSanitizer does not understand the fences that Boost.Asio uses; it then merely sees less.
  add_compile_options(-Wno-tsan)
endif()
if(COPPICE_SANITIZE)
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${sanitizers})
endif()
