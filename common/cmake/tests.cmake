# SPDX-License-Identifier: MIT
include(GoogleTest)

# cookbook_test(<name> [TRACED] [BY_SUITE] [OWN_MAIN] [MAINTAINER <filter>] <sources>...). The
# sources define no kernel: on either backend the host compiler compiles them, and nvcc never sees GoogleTest or
# fmt. Kernels that only tests need are in files of their own (planted/*.cu).
# BY_SUITE: the tests of a suite (the levels of a ladder) share a process, and with it inputs and
# references; on a GPU each process begins with a second for its context, besides. After an error
# that ruins the context or the process, the first failure of a suite is the one to believe.
# OWN_MAIN: the sources define `main`.
# MAINTAINER: the tests of this GoogleTest filter, "*" for all (with BY_SUITE: of the suites that
# match this regular expression), hold for the book as it is committed and not for every tree that a
# reader edits. They get the label `maintainer`, which `./run test` leaves out.
function(cookbook_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TRACED;BY_SUITE;OWN_MAIN" "MAINTAINER" "")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  if(arg_TRACED)
    target_link_libraries(${name}
      PRIVATE cookbook_kernel_traced cookbook_runner_traced GTest::gtest)
  else()
    target_link_libraries(${name} PRIVATE cookbook_kernel cookbook_runner GTest::gtest)
  endif()
  if(NOT arg_OWN_MAIN)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  if(arg_BY_SUITE)
    set(maintainer "${arg_MAINTAINER}")
    configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/suites.cmake.in
      ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake @ONLY)
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES
      ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
  else()
    set(others "")
    if(arg_MAINTAINER)
      set(others TEST_FILTER "-${arg_MAINTAINER}")
      gtest_discover_tests(${name} TEST_FILTER "${arg_MAINTAINER}" DISCOVERY_TIMEOUT 60
        PROPERTIES TIMEOUT 600 LABELS maintainer)
    endif()
    if(NOT arg_MAINTAINER STREQUAL "*")
      gtest_discover_tests(${name} ${others} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
    endif()
  endif()
endfunction()

# cookbook_levels_test(<name> <program>): the executable <name>-<number> for a chapter's program, or
# <name>-capstone-<name> for a capstone's, so that an edit in one rebuilds and reruns that one only.
# <name> is levels-test or levels-traced-test. The sources, in <name>-source, are compiled once;
# what differs is the levels that they are linked with. The target <name>, if there is one, builds
# them all.
function(cookbook_levels_test name program)
  string(REPLACE "chapter-" "" id ${program})
  string(REPLACE "-" "_" entry ${program}_entry)
  set(levels ${program}-levels)
  set(options BY_SUITE OWN_MAIN)
  if(COOKBOOK_BACKEND STREQUAL "simt")
    # As the programs: compiling the kernels once more, without hooks, takes longer than they cost.
    string(APPEND levels -traced)
  endif()
  if(name MATCHES "traced")
    list(APPEND options TRACED)
  endif()
  set(source ${PROJECT_BINARY_DIR}/generated/${entry}.cpp)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/chapter_entry.cpp.in ${source} @ONLY)
  cookbook_test(${name}-${id} ${options} $<TARGET_OBJECTS:${name}-source>
    $<TARGET_OBJECTS:level-cases> ${source})
  target_link_libraries(${name}-${id} PRIVATE ${levels})
  if(COOKBOOK_BACKEND STREQUAL "simt" AND NOT name MATCHES "traced")
    target_link_libraries(${name}-${id} PRIVATE cookbook_tracing)
  endif()
  if(TARGET ${name})
    add_dependencies(${name} ${name}-${id})
  endif()
endfunction()
