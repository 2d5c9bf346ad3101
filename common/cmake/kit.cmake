# SPDX-License-Identifier: MIT
# What a capstone outside the book links, for tools/capstone/CMakeLists.txt: the targets `kit` and
# `kit-tests`, and kit.cmake with the same libraries as imported targets.
set(libraries cookbook_backend cookbook_harness cookbook_runner)
set(settings cookbook_options cookbook_kernel)
if(COOKBOOK_BACKEND STREQUAL "simt")
  list(APPEND libraries cookbook_tracing cookbook_runner_traced)
  list(APPEND settings cookbook_kernel_traced)
else()
  get_property(roofs GLOBAL PROPERTY COOKBOOK_ROOFS)
  list(APPEND libraries cookbook_bench ${roofs})
  list(APPEND settings cookbook_libraries)
endif()
add_custom_target(kit DEPENDS ${libraries})
if(COOKBOOK_TESTS)
  set(tests level-cases levels-test-source)
  if(COOKBOOK_BACKEND STREQUAL "simt")
    list(APPEND tests levels-traced-test-source)
  endif()
  add_custom_target(kit-tests DEPENDS kit ${tests})
endif()
# To a file that is there already: then libraries of others, fmt for one, need not be exported.
file(WRITE ${PROJECT_BINARY_DIR}/kit.cmake "")
export(TARGETS ${settings} ${libraries} ${tests} APPEND FILE ${PROJECT_BINARY_DIR}/kit.cmake)
