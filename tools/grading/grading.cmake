# SPDX-License-Identifier: MIT
# What ./run grade links submissions and teachers' files with, and how it compiles them: the target
# `grading`, and grading.json for tools/grading/*.py.
# Whole: the linker must keep the tracer's constructors and hooks.
# Compiled once for both, and for the tests.
foreach(part message speed)
  add_library(cookbook_grading_${part} OBJECT grading/${part}.cpp)
  target_link_libraries(cookbook_grading_${part} PUBLIC cookbook_harness)
endforeach()
add_library(cookbook_grading_worker STATIC grading/worker.cpp grading/jumps.cpp
  $<TARGET_OBJECTS:cookbook_grading_message> $<TARGET_OBJECTS:cookbook_tracing>)
target_link_libraries(cookbook_grading_worker PUBLIC cookbook_harness)
add_library(cookbook_grading_grader STATIC grading/grader.cpp
  $<TARGET_OBJECTS:cookbook_grading_speed> $<TARGET_OBJECTS:cookbook_grading_message>)
target_link_libraries(cookbook_grading_grader PUBLIC cookbook_harness)
add_custom_target(grading ALL DEPENDS cookbook_grading_worker cookbook_grading_grader)
set_source_files_properties(grading/worker.cpp grading/jumps.cpp grading/message.cpp grading/grader.cpp grading/speed.cpp
  PROPERTIES COMPILE_OPTIONS -O1)

cookbook_json(common -std=c++20 -DCOOKBOOK_SIMT=1 -w -fno-gnu-unique -I${PROJECT_SOURCE_DIR}
  -I${PROJECT_BINARY_DIR})
cookbook_json(teacher -O1)
# Copies are calls, which count (counted.hpp). Distributions define _FORTIFY_SOURCE, with which the C
# library's headers make a builtin of memcpy.
set(checked_jumps)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(checked_jumps -fcf-protection=none -pg -mfentry -mrecord-mcount -mindirect-branch=thunk-extern
    -mfunction-return=thunk-extern)  # jumps.cpp
endif()
cookbook_json(submission ${checked_jumps} ${COOKBOOK_KERNEL_OPTIONS} ${COOKBOOK_TRACED_OPTIONS}
  -fsanitize=bounds-strict -DCOOKBOOK_TRACED=1 -U_FORTIFY_SOURCE -fno-builtin-memcpy
  -fno-builtin-memmove -fno-builtin-memset -fno-builtin-memcmp -include ${CMAKE_CURRENT_SOURCE_DIR}/grading/counted.hpp)
set(rest $<TARGET_FILE:cookbook_harness> $<TARGET_FILE:cookbook_backend>
  $<TARGET_FILE:fmt::fmt> -pthread -l${CMAKE_DL_LIBS}
  ${COOKBOOK_LINK_OPTIONS})
cookbook_json(link_worker ${whole} $<TARGET_FILE:cookbook_grading_worker> ${parts} ${rest})
cookbook_json(link_grader ${whole} $<TARGET_FILE:cookbook_grading_grader> ${parts} ${rest})
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/grading.json CONTENT
"{\"compiler\": \"${CMAKE_CXX_COMPILER}\",
 \"source\": \"${PROJECT_SOURCE_DIR}\",
 \"common\": ${common},
 \"teacher\": ${teacher},
 \"submission\": ${submission},
 \"link_worker\": ${link_worker},
 \"link_grader\": ${link_grader}}
")
