# SPDX-License-Identifier: MIT
# Marks files with kernels as what the backend compiles them as, whatever their ending.
function(cookbook_kernel_sources)
  if(COOKBOOK_BACKEND STREQUAL "simt")
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX)
  else()
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CUDA)
  endif()
endfunction()

# cookbook_compile_together(<target>... [BATCH <files>]): the files of each target as one, or so many at
# a time, unless COOKBOOK_TOGETHER is OFF. What differs by file, such as COMPILE_OPTIONS, keeps a file
# out of it. With many cores three at a time: there the longest file decides when the first ladder
# begins.
function(cookbook_compile_together)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "BATCH" "")
  if(COOKBOOK_TOGETHER)
    cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
    set(batch 0)
    if(cores GREATER_EQUAL 8)
      set(batch 3)
    elseif(arg_BATCH)
      set(batch ${arg_BATCH})
    endif()
    set_target_properties(${arg_UNPARSED_ARGUMENTS} PROPERTIES UNITY_BUILD ON
      UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
endfunction()
