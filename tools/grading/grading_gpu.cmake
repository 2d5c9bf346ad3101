# SPDX-License-Identifier: MIT
# What ./run grade links submissions with to time them, and how nvcc compiles them: the target
# `grading` of a CUDA build, and grading.json as in grading.cmake.
add_library(cookbook_grading_speed STATIC grading/speed_worker.cpp grading/gpu_clock.cpp
  grading/message.cpp)
target_link_libraries(cookbook_grading_speed PUBLIC cookbook_bench)
add_executable(grading-roofs grading/roofs.cpp)
target_link_libraries(grading-roofs PRIVATE cookbook_harness cookbook_roofs)
add_custom_target(grading DEPENDS cookbook_grading_speed grading-roofs)

set(architectures)
foreach(architecture ${CMAKE_CUDA_ARCHITECTURES})
  string(REGEX REPLACE "-.*" "" number ${architecture})
  list(APPEND architectures -gencode=arch=compute_${number},code=sm_${number})
endforeach()
separate_arguments(release UNIX_COMMAND "${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_RELEASE}")
cookbook_json(common -std=c++20 -DCOOKBOOK_CUDA=1 -w -Xcompiler=-fno-gnu-unique -lineinfo --expt-relaxed-constexpr ${release}
  ${architectures} -I${PROJECT_SOURCE_DIR} -I${PROJECT_BINARY_DIR})
cookbook_json(link_worker -Wl,--whole-archive $<TARGET_FILE:cookbook_grading_speed>
  -Wl,--no-whole-archive $<TARGET_FILE:cookbook_bench> $<TARGET_FILE:cookbook_harness>
  $<TARGET_FILE:cookbook_backend> $<TARGET_FILE:fmt::fmt> $<TARGET_FILE:CUDA::cudart_static>
  -pthread -l${CMAKE_DL_LIBS} -lrt)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/grading.json CONTENT
"{\"compiler\": \"${CMAKE_CUDA_COMPILER}\",
 \"linker\": \"${CMAKE_CXX_COMPILER}\",
 \"language\": \"cu\",
 \"roofs\": [\"${PROJECT_BINARY_DIR}/grading-roofs\"],
 \"common\": ${common},
 \"submission\": [],
 \"link_worker\": ${link_worker}}
")
