# One static library per folder under src/, so that the layer order is what links.
#
#   coppice_layer(kv DEPS base)
#
# takes every src/<name>/*.cc that is not a test (nor main.cc) into library coppice_<name>, and every *_test.cc into the
# test program <name>_test. Dependencies are the layers named and nothing else; they point down only.
add_library(coppice_flags INTERFACE)
target_compile_options(coppice_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                       -Wno-missing-field-initializers)
if(COPPICE_WERROR)
  target_compile_options(coppice_flags INTERFACE -Werror)
endif()
target_include_directories(coppice_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")

# A short name of one test file may be a local name in the next. (A target, so that it comes after -Wshadow.)
add_library(coppice_test_flags INTERFACE)
target_compile_options(coppice_test_flags INTERFACE -Wno-shadow)

# Where things are in this build, as macros for the program and the tests:
#   COPPICE_BACKEND_DIR  folder of llama.cpp's compute backends
#   COPPICE_DEMO_MODEL   the built-in model (the program looks beside itself first: ../share or share/coppice/)
#   COPPICE_SOURCE_DIR   the project's root (tests only need it for data files)
#   COPPICE_BINARY_DIR   the build folder, in which the program is `coppice`
set(COPPICE_DEMO_MODEL "${CMAKE_BINARY_DIR}/share/coppice/coppice-demo.gguf")
configure_file("${CMAKE_SOURCE_DIR}/models/demo/coppice-demo.gguf" "${COPPICE_DEMO_MODEL}" COPYONLY)
add_library(coppice_paths INTERFACE)
target_compile_definitions(coppice_paths INTERFACE
  COPPICE_BACKEND_DIR="${COPPICE_BACKEND_DIR}"
  COPPICE_DEMO_MODEL="${COPPICE_DEMO_MODEL}"
  COPPICE_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
  COPPICE_BINARY_DIR="${CMAKE_BINARY_DIR}"
  COPPICE_VERSION="${PROJECT_VERSION}"
  COPPICE_LLAMA_VERSION="${COPPICE_LLAMA_VERSION}")

# A program of ours: warnings, paths, and the sanitizers' options when it is built with one.
function(coppice_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE coppice_flags coppice_paths)
  if(COPPICE_SANITIZE)
    target_sources(${name} PRIVATE "${CMAKE_SOURCE_DIR}/cmake/sanitizers/options.cc")
    target_compile_definitions(${name} PRIVATE COPPICE_SANITIZERS_DIR="${CMAKE_SOURCE_DIR}/cmake/sanitizers")
  endif()
endfunction()

function(coppice_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  coppice_program(${name} ${ARG_SOURCES})
  if(COPPICE_UNITY)
    target_link_libraries(${name} PRIVATE coppice_test_flags)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 900)
endfunction()

function(coppice_layer name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;PRIVATE_LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  list(TRANSFORM ARG_DEPS PREPEND coppice_)
  if(sources)
    add_library(coppice_${name} STATIC ${sources})
    # Not more than that: two compilers at once are to fit into 2 GB, and the largest layer is to keep all cores busy.
    set_target_properties(coppice_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 20)
    target_link_libraries(coppice_${name} PUBLIC coppice_flags ${ARG_DEPS} ${ARG_LIBS} PRIVATE ${ARG_PRIVATE_LIBS})
  else()
    add_library(coppice_${name} INTERFACE)
    target_link_libraries(coppice_${name} INTERFACE coppice_flags ${ARG_DEPS} ${ARG_LIBS} ${ARG_PRIVATE_LIBS})
  endif()
  if(COPPICE_TESTS AND tests)
    coppice_test(${name}_test SOURCES ${tests} LIBS coppice_${name} rapidcheck)
  endif()
endfunction()
