# SPDX-License-Identifier: MIT
# A solution is an exercise's own file with the edits of a file here: <exercise>.diff, in the folder
# of its chapter's number or its capstone's name. <exercise>.wrong.diff makes a wrong solution, which
# tools/exercises/variants.py writes for a chapter and cookbook_assemble for a capstone.
# tools/exercises/solution.py says how an edit is written, and assembles them at build time in a
# folder that is searched before the source tree. So for each chapter there is
# build/simt/solutions/chapter-N and its traced twin: the chapter's own ladder.hpp, in which the
# exercises are the solutions. What tests/exercises_test.cpp grades.

# cookbook_assemble(<target> <name> <folder> <shadow>): the target that makes all solutions of
# `folder`, whose edits are in solutions/<name>, in the same place of `shadow`. Sets `assembled` to
# their files, relative to `shadow`, the wrong ones of a capstone last.
function(cookbook_assemble target name folder shadow)
  file(GLOB edits CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/solutions/${name}/*.diff)
  if(name MATCHES "^[0-9]")
    list(FILTER edits EXCLUDE REGEX "[.]wrong[.]diff$")
  endif()
  set(script ${PROJECT_SOURCE_DIR}/tools/exercises/solution.py)
  set(right "")
  set(wrong "")
  foreach(file IN LISTS edits)
    get_filename_component(stem ${file} NAME_WLE)
    string(REGEX REPLACE "[.]wrong$" "" exercise ${stem})
    set(exercise ${PROJECT_SOURCE_DIR}/${folder}/exercises/${exercise}.cuh)
    set(made ${folder}/exercises/${stem}.cuh)
    add_custom_command(OUTPUT ${shadow}/${made} DEPENDS ${exercise} ${file} ${script}
      COMMAND ${Python3_EXECUTABLE} -B ${script} ${exercise} ${file} ${shadow}/${made}
      VERBATIM)
    if(stem MATCHES "[.]wrong$")
      list(APPEND wrong ${made})
    else()
      list(APPEND right ${made})
    endif()
  endforeach()
  set(assembled ${right} ${wrong})
  list(TRANSFORM assembled PREPEND ${shadow}/ OUTPUT_VARIABLE outputs)
  add_custom_target(${target} DEPENDS ${outputs})
  set(assembled ${assembled} PARENT_SCOPE)
endfunction()

# cookbook_solution_program(<name> <output> <source> <shadow> <files target>...): the executable
# build/simt/solutions/<output> and its traced twin, from the object library solution-<name>-source.
function(cookbook_solution_program name output source shadow)
  add_library(solution-${name}-source OBJECT EXCLUDE_FROM_ALL ${source})
  target_include_directories(solution-${name}-source BEFORE PRIVATE ${shadow})
  target_link_libraries(solution-${name}-source PRIVATE cookbook_kernel_traced cookbook_runner_traced)
  add_dependencies(solution-${name}-source ${ARGN})
  foreach(mode "" "-traced")
    set(target solution-${name}${mode})
    add_executable(${target} EXCLUDE_FROM_ALL)
    cookbook_link_traced(${target} "${mode}" solution-${name}-source ${output}-kernels-traced)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${output}${mode} LINKER_LANGUAGE CXX
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/solutions)
    add_dependencies(solutions ${target})
  endforeach()
endfunction()

set(COOKBOOK_VARIANTS 5 CACHE STRING "variants 1 to this of each exercise are tested")

# All solutions, which only maintainers build: in the tree of a reader who has solved an exercise, the
# edits of its solution no longer fit.
add_custom_target(solutions)
# The shipped exercises are graded by the chapters' own executables.
cookbook_test(exercises-test MAINTAINER "*" exercises_test.cpp)
set(solutions ${CMAKE_CURRENT_BINARY_DIR}/solutions)
set(wrong_files "")
foreach(number IN LISTS chapters)
  get_property(source GLOBAL PROPERTY COOKBOOK_CHAPTER_${number})
  get_filename_component(folder ${source} NAME)
  string(SUBSTRING ${folder} 0 2 digits)
  cookbook_assemble(solution-${number}-files ${digits} chapters/${folder} ${solutions}/${number})
  cookbook_solution_program(${number} chapter-${number} solutions/solution.cpp
    ${solutions}/${number} solution-${number}-files)
  add_dependencies(exercises-test chapter-${number})
  target_compile_definitions(solution-${number}-source PRIVATE COOKBOOK_CHAPTER=chapter_${number}
    COOKBOOK_LADDER="chapters/${folder}/ladder.hpp")
  if(number EQUAL 11)
    target_compile_definitions(solution-${number}-source PRIVATE COOKBOOK_WITHOUT_SPACES=1)
    target_link_libraries(solution-${number} PRIVATE cookbook_tune)
    target_link_libraries(solution-${number}-traced PRIVATE cookbook_tune)
  endif()
  # Wrong solutions, and variants with bugs and without, as further exercises.
  set(made ${solutions}/${number}/variants)
  file(GLOB data CONFIGURE_DEPENDS ${source}/exercises/*.json ${source}/exercises/*.cuh
    ${CMAKE_CURRENT_SOURCE_DIR}/solutions/${digits}/*.diff)
  file(GLOB tools ${PROJECT_SOURCE_DIR}/tools/exercises/*.py)
  file(MAKE_DIRECTORY ${made})
  add_custom_command(OUTPUT ${made}/variants.hpp DEPENDS ${data} ${tools}
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/exercises tests ${number}
      ${COOKBOOK_VARIANTS} ${made}
    VERBATIM)
  add_custom_target(variants-${number}-files DEPENDS ${made}/variants.hpp)
  add_dependencies(solution-${number}-source variants-${number}-files)
  target_include_directories(solution-${number}-source PRIVATE ${made})
endforeach()

# The same of the capstones, all in one program: build/simt/solutions/capstone-solutions.
set(shadow ${solutions}/capstones)
set(includes "")
set(files "")
foreach(capstone IN LISTS capstones)
  cookbook_assemble(solution-${capstone}-files ${capstone} capstones/${capstone} ${shadow})
  list(APPEND files solution-${capstone}-files)
  list(APPEND includes ${assembled})
  # A capstone includes its files by their place relative to its own.
  file(GLOB beside CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/capstones/${capstone}/*.cuh
    ${PROJECT_SOURCE_DIR}/capstones/${capstone}/*.hpp)
  file(MAKE_DIRECTORY ${shadow}/capstones/${capstone})
  foreach(file IN LISTS beside)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${file} ${shadow}/${file} SYMBOLIC)
  endforeach()
  add_dependencies(exercises-test capstone-${capstone})
endforeach()
file(GLOB levels CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/capstones/*/level_*.cuh)
list(TRANSFORM levels REPLACE "(.+)" "#include \"\\1\"")
list(TRANSFORM includes REPLACE "(.+)" "#include \"\\1\"")
list(JOIN levels "\n" levels)
list(JOIN includes "\n" includes)
string(PREPEND includes "${levels}\n")
set(folder "capstones, with solutions as their exercises")
configure_file(${PROJECT_SOURCE_DIR}/common/cmake/levels.hpp.in ${shadow}/generated/levels.hpp @ONLY)
cookbook_solution_program(capstones capstone-solutions solutions/capstones.cpp ${shadow} ${files})
