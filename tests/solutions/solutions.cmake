# SPDX-License-Identifier: MIT
# Of every chapter that has solutions here, build/simt/solutions/chapter-N and its traced twin: the
# chapter's own ladder.hpp, in which the exercises are the solutions. A folder that is searched
# before the source tree holds links to them. What tests/exercises_test.cpp grades.

# Wrong solutions, graded as one more exercise of their chapter: <chapter> <file> <level>
set(wrong_solutions
  0 00/wrong_words.cuh roofs::wrong::Words
  1 01/wrong_pairs.cuh coalescing::wrong::Pairs
  2 02/wrong_barrier.cuh sgemm::wrong::MissingBarrier
  3 03/wrong_rotation.cuh transpose::wrong::ConflictFree)

function(cookbook_solutions number folder)
  set(shadow ${CMAKE_CURRENT_BINARY_DIR}/solutions/${number})
  get_filename_component(chapter ${folder} NAME)
  string(SUBSTRING ${chapter} 0 2 digits)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/solutions/${digits}/exercise_*.cuh)
  if(NOT files)
    return()
  endif()
  file(MAKE_DIRECTORY ${shadow}/chapters/${chapter}/exercises)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    file(CREATE_LINK ${file} ${shadow}/chapters/${chapter}/exercises/${name} SYMBOLIC)
  endforeach()

  foreach(mode "" "-traced")
    string(REPLACE "-" "_" suffix "${mode}")
    set(target solution-${number}${mode})
    add_executable(${target} solutions/solution.cpp)
    target_include_directories(${target} BEFORE PRIVATE ${shadow})
    target_compile_definitions(${target} PRIVATE COOKBOOK_CHAPTER=chapter_${number}
      COOKBOOK_LADDER="chapters/${chapter}/ladder.hpp")
    target_link_libraries(${target} PRIVATE cookbook_kernel${suffix} cookbook_runner${suffix})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME chapter-${number}${mode}
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/solutions)
    if(TARGET chapter-${number}-kernels${mode})
      target_link_libraries(${target} PRIVATE chapter-${number}-kernels${mode})
    endif()
    if(number EQUAL 11)
      target_compile_definitions(${target} PRIVATE COOKBOOK_WITHOUT_SPACES=1)
      target_link_libraries(${target} PRIVATE cookbook_tune)
    endif()
    list(FIND wrong_solutions ${number} at)
    if(at GREATER_EQUAL 0)
      list(SUBLIST wrong_solutions ${at} 3 wrong)
      list(GET wrong 1 wrong_file)
      list(GET wrong 2 wrong_level)
      target_compile_definitions(${target} PRIVATE COOKBOOK_WRONG_LEVEL=${wrong_level}
        COOKBOOK_WRONG_FILE="tests/solutions/${wrong_file}")
    endif()
    add_dependencies(exercises-test ${target})
  endforeach()
endfunction()

# The shipped exercises are graded by the chapters' own executables.
cookbook_test(exercises-test MAINTAINER "*/Shipped*.*:ChosenSizes.*:Exercises.*" exercises_test.cpp)
set(wrong_files ${wrong_solutions})
list(FILTER wrong_files INCLUDE REGEX "[.]cuh$")
list(JOIN wrong_files " " wrong_files)
target_compile_definitions(exercises-test PRIVATE COOKBOOK_WRONG_SOLUTIONS="${wrong_files}")
foreach(number IN LISTS chapters)
  add_dependencies(exercises-test chapter-${number})
  get_property(folder GLOBAL PROPERTY COOKBOOK_CHAPTER_${number})
  cookbook_solutions(${number} ${folder})
endforeach()

# The same of the capstones, all in one program: build/simt/solutions/capstone-solutions.
set(generated ${CMAKE_CURRENT_BINARY_DIR}/solutions/capstones/generated/levels.hpp)
file(GLOB includes CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/capstones/*/level_*.cuh
  ${CMAKE_CURRENT_SOURCE_DIR}/solutions/capstones/exercises/*.cuh)
list(TRANSFORM includes REPLACE "(.+)" "#include \"\\1\"")
list(JOIN includes "\n" includes)
set(folder "capstones, with solutions as their exercises")
configure_file(${PROJECT_SOURCE_DIR}/common/cmake/levels.hpp.in ${generated} @ONLY)
foreach(mode "" "-traced")
  string(REPLACE "-" "_" suffix "${mode}")
  set(target solution-capstones${mode})
  add_executable(${target} solutions/capstones/solutions.cpp)
  target_include_directories(${target} BEFORE PRIVATE
    ${CMAKE_CURRENT_BINARY_DIR}/solutions/capstones)
  target_link_libraries(${target} PRIVATE cookbook_kernel${suffix} cookbook_runner${suffix})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME capstone-solutions${mode}
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/solutions)
  add_dependencies(exercises-test ${target})
endforeach()
foreach(capstone IN LISTS capstones)
  add_dependencies(exercises-test capstone-${capstone})
endforeach()
set_source_files_properties(solutions/solution.cpp solutions/capstones/solutions.cpp PROPERTIES
  COMPILE_OPTIONS "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:COOKBOOK_TRACED>>>:-O1>")
