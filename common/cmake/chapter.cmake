# SPDX-License-Identifier: MIT

# A chapter of the book and a reader's capstone are one thing: a folder with
#   *level_*.cuh, sidebar_*.cuh, exercises/exercise_*.cuh
#                  what ladder.hpp includes as "generated/chapter_<number>_levels.hpp", or in a
#                  capstone as "generated/levels.hpp"
#   ladder.hpp     the ladders: chapter_<number>() or capstone(). It is compiled once per backend and
#                  mode, into an object library that the executable and the tests link
#   kernels_*.cu   kernels that these and other programs use, compiled once per backend and mode into
#                  the library <program>-kernels (optional)
#   libraries.cu   what a user would pick instead (CUDA only, optional). If it holds no kernel, g++
#                  compiles it once; nvcc would for each GPU. With the line "// needs: nvcc" nvcc
#                  compiles it, which CUB needs
#   levels.cu, main.cu   in place of what common/cmake/levels.cu.in and
#                        common/harness/run/main.cpp say (optional)
#   sidebar_*.cu   experiments, each an executable <program>-<name> that `./run <program>-<name>`
#                  builds and runs; with the line
#                  "// needs: cuda" only for that backend, and with "// needs: cuda sm_90a" not for
#                  older GPUs besides: that kernels compile for them, if only to a trap, the
#                  levels show

# cookbook_chapter(<number> <folder> <title>): the executable chapter-<number>.
function(cookbook_chapter number folder title)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  set_property(GLOBAL APPEND PROPERTY COOKBOOK_CHAPTERS ${number})
  set_property(GLOBAL PROPERTY COOKBOOK_CHAPTER_${number} ${source})
  set(generated ${PROJECT_BINARY_DIR}/generated/chapter_${number})
  set(headers ${generated}_levels.hpp)
  set(make "Chapter made = headed(chapter_${number}());")
  set(heading "
namespace cookbook {

/// The chapter with its number and title, as in chapters/contents.txt.
[[maybe_unused]] static Chapter headed(Chapter chapter) {
  chapter.number = ${number};
  chapter.title = \"${title}\";
  chapter.speed_claims_for = \"H200\";
  return chapter;
}

}  // namespace cookbook
")
  set(libraries chapter_${number}_libraries)
  # Relative, because solutions of exercises stand in for files of the source tree.
  cookbook_ladders(chapter-${number} ${source} ${PROJECT_SOURCE_DIR})
  if(COOKBOOK_BACKEND STREQUAL "simt" AND NOT EXISTS ${source}/levels.cu)
    cookbook_exercises(chapter-${number})
  endif()
endfunction()

# cookbook_link_traced(<program> <mode> <objects> <kernels>): links a program with the harness, the
# levels in the object library <objects> and, if there is one, the library <kernels>, both compiled
# for the tracer. With the mode "-traced" the program counts, with "" it checks.
function(cookbook_link_traced program mode objects kernels)
  target_sources(${program} PRIVATE $<TARGET_OBJECTS:${objects}>)
  if(TARGET ${kernels})
    target_link_libraries(${program} PRIVATE $<LINK_ONLY:${kernels}>)
  endif()
  if(mode STREQUAL "-traced")
    target_link_libraries(${program} PRIVATE cookbook_runner_traced)
  else()
    target_link_libraries(${program} PRIVATE cookbook_runner cookbook_tracing)
  endif()
endfunction()

# cookbook_exercises(<program>): the target <program>-exercises, for `./run exercise`, which makes
# exercises/<program> and its traced twin: as <program>, but of its levels only the exercises are
# compiled, and an edit of one takes a fraction of the time. The caller sets `generated`.
function(cookbook_exercises name)
  string(REPLACE "-" "_" entry ${name}_entry)
  file(CONFIGURE OUTPUT ${generated}_exercises.cu CONTENT
    "#include \"common/harness/contract/exercises_only.hpp\"\n// The above comes first.\n#include \"${generated}_levels.cu\"\n"
    @ONLY)
  cookbook_kernel_sources(${generated}_exercises.cu)
  add_library(${name}-exercises-levels OBJECT EXCLUDE_FROM_ALL ${generated}_exercises.cu)
  target_link_libraries(${name}-exercises-levels PRIVATE cookbook_kernel_traced)
  foreach(mode "" "-traced")
    set(target ${name}-exercises${mode})
    add_executable(${target} EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/common/harness/run/main.cpp)
    target_compile_definitions(${target} PRIVATE COOKBOOK_CHAPTER=${entry})
    cookbook_link_traced(${target} "${mode}" ${name}-exercises-levels ${name}-kernels-traced)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}${mode}
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/exercises)
  endforeach()
  add_dependencies(${name}-exercises ${name}-exercises-traced)
endfunction()

# cookbook_capstone(<name> <folder>): the executable capstone-<name>. `folder` may be anywhere.
function(cookbook_capstone name folder)
  get_filename_component(source ${folder} ABSOLUTE)
  set_property(GLOBAL APPEND PROPERTY COOKBOOK_CAPSTONES ${name})
  set(generated ${PROJECT_BINARY_DIR}/generated/capstone_${name})
  # In a folder of its own: every capstone includes the same name.
  set(headers ${generated}/generated/levels.hpp)
  set(make "Chapter made = capstone();\n  made.capstone = \"${name}\";")
  set(libraries capstone_libraries)
  cookbook_ladders(capstone-${name} ${source} "")
  foreach(target levels levels-traced timeline)  # whichever this backend has
    if(TARGET capstone-${name}-${target})
      target_include_directories(capstone-${name}-${target} PRIVATE ${generated})
    endif()
  endforeach()
endfunction()

# cookbook_ladders(<program> <source> <root>): what both have in common. Generated files include
# those of `source` relative to `root`; by their full paths if it is empty. The caller sets
# `generated`, how the names of generated files begin, `headers`, the file that includes the levels,
# `make`, the statements that define the Chapter `made`, and `libraries`, the function of libraries.cu.
function(cookbook_ladders name source root)
  set(book ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../..)
  string(REPLACE "-" "_" identifier ${name})
  set(entry ${identifier}_entry)
  file(GLOB includes CONFIGURE_DEPENDS ${source}/*level_*.cuh ${source}/sidebar_*.cuh
    ${source}/exercises/exercise_*.cuh)
  set(files ${includes})
  list(FILTER files INCLUDE REGEX "level_[0-9]+_[^/]*$")
  list(TRANSFORM files REPLACE ".*/(.+)" "\"\\1\"")
  list(JOIN files ", " files)
  set(folder ${source})
  set(ladder ${source}/ladder.hpp)
  if(root)
    list(TRANSFORM includes REPLACE "^${root}/" "")
    string(REPLACE "${root}/" "" folder ${source})
    set(ladder ${folder}/ladder.hpp)
  endif()
  list(TRANSFORM includes REPLACE "(.+)" "#include \"\\1\"")
  list(JOIN includes "\n" includes)
  configure_file(${book}/common/cmake/levels.hpp.in ${headers} @ONLY)
  set(levels ${source}/levels.cu)
  if(NOT EXISTS ${levels})
    set(levels ${generated}_levels.cu)
    configure_file(${book}/common/cmake/levels.cu.in ${levels} @ONLY)
  endif()
  set(main ${source}/main.cu)
  if(NOT EXISTS ${main})
    set(main ${book}/common/harness/run/main.cpp)
  endif()
  file(GLOB kernels CONFIGURE_DEPENDS ${source}/kernels_*.cu)
  cookbook_kernel_sources(${levels} ${kernels})
  set_source_files_properties(${source}/main.cu PROPERTIES LANGUAGE CXX)

  # The hashes of the levels' sources (common/harness/contract/tokens.hpp).
  set(identity ${book}/tools/identity)
  set(tokens ${generated}_tokens.cpp)
  file(GLOB texts ${source}/*.cuh ${source}/exercises/*.cuh)
  add_custom_command(OUTPUT ${tokens} DEPFILE ${generated}_tokens.d
    COMMAND Python3::Interpreter -B ${identity}/identity.py table ${tokens} ${source}/ladder.hpp
      ${texts}
    DEPENDS ${texts} ${identity}/identity.py ${identity}/tokens.py ${identity}/machine_code.py
    COMMENT "Hashing the sources of ${name}" VERBATIM)

  add_library(${name}-levels OBJECT ${levels} ${tokens})
  if(COOKBOOK_BACKEND STREQUAL "simt")  # few tests want them without the tracer's hooks
    set_target_properties(${name}-levels PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_link_libraries(${name}-levels PUBLIC cookbook_kernel)
  if(kernels)
    add_library(${name}-kernels STATIC ${kernels})
    target_link_libraries(${name}-kernels PUBLIC cookbook_kernel cookbook_harness)
    target_link_libraries(${name}-levels PUBLIC ${name}-kernels)
  endif()
  add_executable(${name} ${main})
  target_compile_definitions(${name} PRIVATE COOKBOOK_CHAPTER=${entry})
  if(COOKBOOK_BACKEND STREQUAL "cuda")
    target_link_libraries(${name} PRIVATE ${name}-levels cookbook_runner)
  endif()
  if(COOKBOOK_BACKEND STREQUAL "cuda" AND EXISTS ${source}/libraries.cu)
    file(STRINGS ${source}/libraries.cu needs_nvcc REGEX "^// needs: nvcc" LIMIT_COUNT 1)
    if(NOT needs_nvcc)
      set_source_files_properties(${source}/libraries.cu PROPERTIES LANGUAGE CXX)
    endif()
    add_library(${name}-libraries OBJECT ${source}/libraries.cu)
    if(COOKBOOK_PTXAS_REPORT AND COOKBOOK_HOPPER)  # as for the sidebars below
      set_target_properties(${name}-libraries PROPERTIES CUDA_ARCHITECTURES ${COOKBOOK_HOPPER})
    endif()
    target_link_libraries(${name}-libraries PUBLIC cookbook_kernel cookbook_libraries)
    target_link_libraries(${name} PRIVATE ${name}-libraries)
    target_compile_definitions(${name} PRIVATE COOKBOOK_LIBRARIES=${libraries})
  endif()

  # Kernels with marks, for --timeline: built when ./run is asked for it.
  if(COOKBOOK_BACKEND STREQUAL "simt" OR NOT EXISTS ${source}/levels.cu)
    add_executable(${name}-timeline EXCLUDE_FROM_ALL ${main})
    target_compile_definitions(${name}-timeline PRIVATE COOKBOOK_CHAPTER=${entry})
    target_link_libraries(${name}-timeline PRIVATE cookbook_runner)
    if(COOKBOOK_BACKEND STREQUAL "cuda")
      target_sources(${name}-timeline PRIVATE ${levels} ${tokens} ${kernels})
      target_compile_definitions(${name}-timeline PRIVATE COOKBOOK_TIMELINE=1)
      target_link_libraries(${name}-timeline PRIVATE cookbook_kernel)
    else()
      target_link_libraries(${name}-timeline PRIVATE ${name}-levels)
    endif()
  endif()

  if(COOKBOOK_BACKEND STREQUAL "simt")
    add_library(${name}-levels-traced OBJECT ${levels} ${tokens})
    target_link_libraries(${name}-levels-traced PUBLIC cookbook_kernel_traced)
    if(kernels)
      add_library(${name}-kernels-traced STATIC ${kernels})
      target_link_libraries(${name}-kernels-traced PUBLIC cookbook_kernel_traced cookbook_harness)
      target_link_libraries(${name}-levels-traced PUBLIC ${name}-kernels-traced)
    endif()
    add_executable(${name}-traced ${main})
    target_compile_definitions(${name}-traced PRIVATE COOKBOOK_CHAPTER=${entry})
    target_link_libraries(${name}-traced PRIVATE ${name}-levels-traced cookbook_runner_traced)
    add_dependencies(${name} ${name}-traced)
    # The program checks the kernels that the other one counts, and so do the tests of levels. They
    # take 1.3 times as long as those without hooks, and compiling both takes longer than that.
    cookbook_link_traced(${name} "" ${name}-levels-traced ${name}-kernels-traced)
  endif()

  file(GLOB sidebars CONFIGURE_DEPENDS ${source}/sidebar_*.cu)
  set(together "")
  foreach(file IN LISTS sidebars)
    get_filename_component(sidebar ${file} NAME_WE)
    string(REPLACE "sidebar_" "${name}-" target ${sidebar})
    string(REPLACE "_" "-" target ${target})
    file(STRINGS ${file} cuda_only REGEX "^// needs: cuda" LIMIT_COUNT 1)
    if(cuda_only AND NOT COOKBOOK_BACKEND STREQUAL "cuda")
      continue()
    endif()
    if(COOKBOOK_PTXAS_REPORT)  # all together, below
      string(APPEND together "#define main main_of_${sidebar}\n#include \"${file}\"\n#undef main\n")
      continue()
    endif()
    cookbook_kernel_sources(${file})
    add_executable(${target} ${file})
    if(COOKBOOK_HOPPER AND cuda_only MATCHES "sm_90a")
      set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES ${COOKBOOK_HOPPER})
    endif()
    target_link_libraries(${target} PRIVATE cookbook_kernel cookbook_harness)
    if(kernels)
      target_link_libraries(${target} PRIVATE ${name}-kernels)
    endif()
    if(COOKBOOK_BACKEND STREQUAL "cuda")
      target_link_libraries(${target} PRIVATE cookbook_bench cookbook_libraries)
    endif()
    set_property(GLOBAL APPEND PROPERTY COOKBOOK_SIDEBARS ${target})
  endforeach()

  # A compile check compiles a chapter's sidebars as one file, links none, and takes one GPU: their
  # kernels are levels, or variants of them, and nvcc needs seconds for the headers that they share.
  # Every other CUDA build compiles each alone.
  if(together)
    file(CONFIGURE OUTPUT ${generated}_sidebars.cu CONTENT "${together}" @ONLY)
    cookbook_kernel_sources(${generated}_sidebars.cu)
    add_library(${name}-sidebars OBJECT ${generated}_sidebars.cu)
    if(COOKBOOK_HOPPER)
      set_target_properties(${name}-sidebars PROPERTIES CUDA_ARCHITECTURES ${COOKBOOK_HOPPER})
    endif()
    target_link_libraries(${name}-sidebars PRIVATE cookbook_kernel cookbook_harness cookbook_bench
      cookbook_libraries)
    # main() may end without a return statement, and a function of another name may not.
    target_compile_options(${name}-sidebars PRIVATE
      "$<$<COMPILE_LANGUAGE:CUDA>:-diag-suppress=940;-Xcompiler=-Wno-return-type>")
    set_property(GLOBAL APPEND PROPERTY COOKBOOK_SIDEBARS ${name}-sidebars)
  endif()
endfunction()
