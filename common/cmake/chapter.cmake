# SPDX-License-Identifier: MIT

# cookbook_chapter(<number> <folder>): the executable chapter-<number> from a chapter's folder.
#   *level_*.cuh, sidebar_*.cuh, exercises/exercise_*.cuh
#                  what ladder.hpp includes as "generated/chapter_<number>_levels.hpp"
#   ladder.hpp     the chapter: chapter_<number>(). It is compiled once per backend and mode, into an
#                  object library that the executable and the tests link
#   libraries.cu   what a user would pick instead (CUDA only, optional). It holds no kernel: g++
#                  compiles it once, nvcc would for each GPU
#   levels.cu, main.cu   in place of what common/cmake/levels.cu.in and common/harness/main.cpp say
#                  (optional)
#   sidebar_*.cu   experiments, each an executable chapter-<number>-<name>; with the line
#                  "// needs: cuda" only for that backend, and with "// needs: cuda sm_90a" not for
#                  older GPUs besides: that kernels compile for them, if only to a trap, the
#                  levels show
function(cookbook_chapter number folder)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  set(name chapter-${number})
  set_property(GLOBAL APPEND PROPERTY COOKBOOK_CHAPTERS ${number})
  set_property(GLOBAL PROPERTY COOKBOOK_CHAPTER_${number} ${source})

  file(GLOB headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${source}/*level_*.cuh
    ${source}/sidebar_*.cuh ${source}/exercises/exercise_*.cuh)
  list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"" OUTPUT_VARIABLE includes)
  list(JOIN includes "\n" includes)
  set(generated ${PROJECT_BINARY_DIR}/generated/chapter_${number})
  configure_file(${PROJECT_SOURCE_DIR}/common/cmake/levels.hpp.in ${generated}_levels.hpp @ONLY)
  set(levels ${source}/levels.cu)
  if(NOT EXISTS ${levels})
    set(levels ${generated}_levels.cu)
    configure_file(${PROJECT_SOURCE_DIR}/common/cmake/levels.cu.in ${levels} @ONLY)
  endif()
  set(main ${source}/main.cu)
  if(NOT EXISTS ${main})
    set(main ${PROJECT_SOURCE_DIR}/common/harness/main.cpp)
  endif()
  cookbook_kernel_sources(${levels})
  set_source_files_properties(${source}/main.cu ${source}/libraries.cu PROPERTIES LANGUAGE CXX)

  add_library(${name}-levels OBJECT ${levels})
  target_link_libraries(${name}-levels PUBLIC cookbook_kernel)
  add_executable(${name} ${main})
  target_compile_definitions(${name} PRIVATE COOKBOOK_CHAPTER=chapter_${number}_entry)
  target_link_libraries(${name} PRIVATE ${name}-levels cookbook_runner)
  if(COOKBOOK_BACKEND STREQUAL "cuda" AND EXISTS ${source}/libraries.cu)
    add_library(${name}-libraries OBJECT ${source}/libraries.cu)
    target_link_libraries(${name}-libraries PUBLIC cookbook_kernel cookbook_libraries)
    target_link_libraries(${name} PRIVATE ${name}-libraries)
    target_compile_definitions(${name} PRIVATE COOKBOOK_LIBRARIES=chapter_${number}_libraries)
  endif()

  if(COOKBOOK_BACKEND STREQUAL "simt")
    add_library(${name}-levels-traced OBJECT ${levels})
    target_link_libraries(${name}-levels-traced PUBLIC cookbook_kernel_traced)
    add_executable(${name}-traced ${main})
    target_compile_definitions(${name}-traced PRIVATE COOKBOOK_CHAPTER=chapter_${number}_entry)
    target_link_libraries(${name}-traced PRIVATE ${name}-levels-traced cookbook_runner_traced)
    add_dependencies(${name} ${name}-traced)
  endif()

  file(GLOB sidebars CONFIGURE_DEPENDS ${source}/sidebar_*.cu)
  foreach(file IN LISTS sidebars)
    get_filename_component(sidebar ${file} NAME_WE)
    string(REPLACE "sidebar_" "${name}-" target ${sidebar})
    string(REPLACE "_" "-" target ${target})
    file(STRINGS ${file} cuda_only REGEX "^// needs: cuda" LIMIT_COUNT 1)
    if(cuda_only AND NOT COOKBOOK_BACKEND STREQUAL "cuda")
      continue()
    endif()
    cookbook_kernel_sources(${file})
    add_executable(${target} ${file})
    if(cuda_only MATCHES "sm_90a" AND "90a" IN_LIST CMAKE_CUDA_ARCHITECTURES)
      set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES 90a)
    endif()
    target_link_libraries(${target} PRIVATE cookbook_kernel cookbook_harness)
    if(COOKBOOK_BACKEND STREQUAL "cuda")
      target_link_libraries(${target} PRIVATE cookbook_bench cookbook_libraries)
    endif()
    add_dependencies(${name} ${target})
    set_property(GLOBAL APPEND PROPERTY COOKBOOK_SIDEBARS ${target})
  endforeach()
endfunction()
