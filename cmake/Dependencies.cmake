# Libraries from Debian; each is named with its reason in README.md, and installed by scripts/setup.sh.
find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto)
find_package(Boost 1.81 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(simdjson 3 REQUIRED)

# prometheus-cpp's own CMake package insists on the libraries of its pull and push servers (civetweb, curl, zlib), which
# we do not use: metrics are served by net/. So its core library is found directly.
find_path(PROMETHEUS_CPP_INCLUDE_DIR prometheus/registry.h REQUIRED)
find_library(PROMETHEUS_CPP_CORE_LIBRARY prometheus-cpp-core REQUIRED)
mark_as_advanced(PROMETHEUS_CPP_INCLUDE_DIR PROMETHEUS_CPP_CORE_LIBRARY)
add_library(prometheus-cpp::core UNKNOWN IMPORTED)
set_target_properties(prometheus-cpp::core PROPERTIES
  IMPORTED_LOCATION "${PROMETHEUS_CPP_CORE_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${PROMETHEUS_CPP_INCLUDE_DIR}")

# Debian's xxhash brings no CMake package.
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
mark_as_advanced(XXHASH_INCLUDE_DIR XXHASH_LIBRARY)
add_library(xxhash::xxhash UNKNOWN IMPORTED)
set_target_properties(xxhash::xxhash PROPERTIES
  IMPORTED_LOCATION "${XXHASH_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${XXHASH_INCLUDE_DIR}")

if(COPPICE_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
