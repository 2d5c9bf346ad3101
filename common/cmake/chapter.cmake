# SPDX-License-Identifier: MIT

# cookbook_chapter(<number> <folder>): the executable chapter-<number> from a chapter's folder.
#   levels.cu      all kernels; compiled once per backend and mode into an object library that the
#                  executable and the tests link
#   main.cu        the command line
#   libraries.cu   what a user would pick instead (CUDA only, optional)
#                  (neither holds a kernel: g++ compiles them once, nvcc would for each GPU)
#   sidebar_*.cu   experiments, each an executable chapter-<number>-<name>; with the line
#                  "// needs: cuda" only for that backend, and with "// needs: cuda sm_90a" not for
#                  older GPUs besides: that kernels compile for them, if only to a trap, the
#                  levels show
function(cookbook_chapter number folder)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  set(name chapter-${number})
  set_property(GLOBAL APPEND PROPERTY COOKBOOK_CHAPTERS ${number})
  set_property(GLOBAL PROPERTY COOKBOOK_CHAPTER_${number} ${source})
  cookbook_kernel_sources(${source}/levels.cu)
  set_source_files_properties(${source}/main.cu ${source}/libraries.cu PROPERTIES LANGUAGE CXX)

  add_library(${name}-levels OBJECT ${source}/levels.cu)
  target_link_libraries(${name}-levels PUBLIC cookbook_kernel)
  add_executable(${name} ${source}/main.cu)
  target_link_libraries(${name} PRIVATE ${name}-levels cookbook_runner)
  if(COOKBOOK_BACKEND STREQUAL "cuda" AND EXISTS ${source}/libraries.cu)
    add_library(${name}-libraries OBJECT ${source}/libraries.cu)
    target_link_libraries(${name}-libraries PUBLIC cookbook_kernel cookbook_libraries)
    target_link_libraries(${name} PRIVATE ${name}-libraries)
  endif()

  if(COOKBOOK_BACKEND STREQUAL "simt")
    add_library(${name}-levels-traced OBJECT ${source}/levels.cu)
    target_link_libraries(${name}-levels-traced PUBLIC cookbook_kernel_traced)
    add_executable(${name}-traced ${source}/main.cu)
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
