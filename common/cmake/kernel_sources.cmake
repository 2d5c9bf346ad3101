# SPDX-License-Identifier: MIT
# Marks files with kernels as what the backend compiles them as, whatever their ending.
function(cookbook_kernel_sources)
  if(COOKBOOK_BACKEND STREQUAL "simt")
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX)
  else()
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CUDA)
  endif()
endfunction()
