# SPDX-License-Identifier: MIT
# Libraries: the installed ones where there are any, otherwise fetched at a pinned version.
include(FetchContent)

function(cookbook_dependency package target url)
  find_package(${package} QUIET)
  if(NOT TARGET ${target})
    message(STATUS "${package} is not installed: fetching ${url}")
    FetchContent_Declare(${package} URL ${url})
    FetchContent_MakeAvailable(${package})
  endif()
endfunction()

set(JSON_BuildTests OFF)
set(CLI11_BUILD_TESTS OFF)
set(BENCHMARK_ENABLE_TESTING OFF)
set(INSTALL_GTEST OFF)
cookbook_dependency(fmt fmt::fmt https://github.com/fmtlib/fmt/archive/refs/tags/9.1.0.tar.gz)
cookbook_dependency(nlohmann_json nlohmann_json::nlohmann_json
  https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz)
cookbook_dependency(CLI11 CLI11::CLI11
  https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.4.1.tar.gz)
if(COOKBOOK_TESTS)
  cookbook_dependency(GTest GTest::gtest
    https://github.com/google/googletest/archive/refs/tags/v1.14.0.tar.gz)
endif()
if(COOKBOOK_BACKEND STREQUAL "cuda")
  cookbook_dependency(benchmark benchmark::benchmark
    https://github.com/google/benchmark/archive/refs/tags/v1.8.3.tar.gz)
endif()
find_package(Threads REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)  # tools/identity
