# SPDX-License-Identifier: MIT
# What ./run check links and how it compiles: the target `check`, and check.json for check.py.
file(GLOB program_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/check/program/*.cpp)
# Whole: its constructors and the functions that stand in for libc's must not be dropped.
add_library(cookbook_program STATIC ${program_sources})
target_link_libraries(cookbook_program PUBLIC cookbook_options cookbook_backend
  PRIVATE nlohmann_json::nlohmann_json)
add_library(cookbook_program_tracing STATIC $<TARGET_OBJECTS:cookbook_tracing>)
target_link_libraries(cookbook_program_tracing PUBLIC cookbook_backend)
# Marks where the program's own code ends, because it is linked behind the program.
add_library(cookbook_program_end OBJECT ${CMAKE_CURRENT_SOURCE_DIR}/check/program_end.cpp)
add_custom_target(check DEPENDS cookbook_backend cookbook_program cookbook_program_tracing
  cookbook_program_end)

# nvcc lets more pass than the standard; C++20 because the backend needs it.
cookbook_json(common -std=gnu++20 -DCOOKBOOK_SIMT=1 -fpermissive -Wno-narrowing -Wno-psabi
  -Wno-unknown-pragmas)
cookbook_json(plain -O1 ${COOKBOOK_KERNEL_OPTIONS})
# -fipa-icf would give a kernel the name and the lines of another one with the same code.
# A function that calls itself is not inlined there: the tracer counts the calls.
# g++ instruments no access of a copy that it makes itself. As calls, copies count (check.py).
cookbook_json(traced ${COOKBOOK_KERNEL_OPTIONS} ${COOKBOOK_TRACED_OPTIONS} -DCOOKBOOK_TRACED=1
  -fno-ipa-icf --param=max-inline-insns-recursive-auto=0 --param=max-inline-insns-recursive=0
  -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset -fno-builtin-memcmp)
set(whole -Wl,--whole-archive)
set(parts -Wl,--no-whole-archive)
set(rest $<TARGET_FILE:cookbook_backend> $<TARGET_FILE:fmt::fmt> -pthread -l${CMAKE_DL_LIBS}
  ${COOKBOOK_LINK_OPTIONS})
set(end $<TARGET_OBJECTS:cookbook_program_end>)
cookbook_json(link_plain ${end} ${whole} $<TARGET_FILE:cookbook_program> ${parts} ${rest})
cookbook_json(link_traced ${end} ${whole} $<TARGET_FILE:cookbook_program>
  $<TARGET_FILE:cookbook_program_tracing> ${parts} ${rest})
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/check.json CONTENT
"{\"compiler\": \"${CMAKE_CXX_COMPILER}\",
 \"common\": ${common},
 \"plain\": ${plain},
 \"traced\": ${traced},
 \"link_plain\": ${link_plain},
 \"link_traced\": ${link_traced}}
")
