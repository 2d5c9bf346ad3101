# SPDX-License-Identifier: MIT
# Compiler settings of the two backends, as interface targets:
#   cookbook_kernel         how a file with kernels is compiled
#   cookbook_kernel_traced  the same with memory accesses and basic blocks reported (SIMT only)
if(NOT COOKBOOK_BACKEND MATCHES "^(simt|cuda)$")
  message(FATAL_ERROR "COOKBOOK_BACKEND is '${COOKBOOK_BACKEND}'; it must be simt or cuda")
endif()

add_library(cookbook_options INTERFACE)
target_include_directories(cookbook_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_options(cookbook_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-std=c++20;-Wall;-Wextra;-Wno-unknown-pragmas;-Wno-psabi>")

add_library(cookbook_kernel INTERFACE)
target_link_libraries(cookbook_kernel INTERFACE cookbook_options)

if(COOKBOOK_BACKEND STREQUAL "simt")
  target_compile_definitions(cookbook_options INTERFACE COOKBOOK_SIMT=1)
  # With a larger heap g++ collects its garbage less often, which takes 5 % of its time off.
  target_compile_options(cookbook_options INTERFACE --param=ggc-min-heapsize=524288)
  # A 64-bit index that is kept in 32 bits is right in every test and wrong for a large tensor. g++
  # compiles kernels too here, so this backend's build finds it in both. For the book's own targets:
  # a capstone in a folder of its own takes the options of cookbook_options only.
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:-Wconversion;-Wno-sign-conversion;-Wno-float-conversion>")
  # Reports name source lines and the functions inlined there: -g1 has both, and compiles in two
  # thirds of the time of -g, which adds the variables that only a debugger shows. DWARF 4, because
  # addr2line before 2.41 takes the first file of a DWARF 5 table for another; said first, because
  # it stands for -g as well.
  # As variables, because ./run check compiles with them too.
  if(COOKBOOK_DEBUGGER)
    set(COOKBOOK_KERNEL_OPTIONS -gdwarf-4 -g)
  else()
    set(COOKBOOK_KERNEL_OPTIONS -gdwarf-4 -g1)
  endif()
  # Passes after the hooks of the tracer are in: they take a sixth of the compiler's time, and kernels
  # on a CPU are hardly quicker for them.
  list(APPEND COOKBOOK_KERNEL_OPTIONS -fno-gcse -fno-schedule-insns2 -fno-rerun-cse-after-loop
    -fno-cse-follow-jumps -fno-ree -fno-caller-saves -fno-ipa-ra -fno-peephole2 -fno-crossjumping
    -fno-forward-propagate)
  # fmaf() as an instruction: a call of the C library's, which picks that instruction, too, costs
  # more than the rest of a GEMM's main loop. Not `a * b + c` as one, which would round differently.
  # An access stays at most 16 bytes wide, as a GPU's.
  include(CheckCXXSourceRuns)
  check_cxx_source_runs("int main() { return !__builtin_cpu_supports(\"fma\"); }" COOKBOOK_HAS_FMA)
  # Host code that throws is named by its line: a function of ours stands in for the C++ library's
  # (throw.cpp). Where that library is linked statically, only the linker can put it there.
  include(CheckCXXSourceCompiles)
  check_cxx_source_compiles("#include <exception>
    extern \"C\" [[noreturn]] void __cxa_throw(void*, void*, void (*)(void*)) { __builtin_trap(); }
    int main() { std::rethrow_exception(std::make_exception_ptr(1)); }" COOKBOOK_REPLACES_THROW)
  if(NOT COOKBOOK_REPLACES_THROW)
    set(COOKBOOK_LINK_OPTIONS -Wl,--wrap=__cxa_throw)
  endif()
  if(COOKBOOK_HAS_FMA)
    list(APPEND COOKBOOK_KERNEL_OPTIONS -mfma -ffp-contract=off -mprefer-vector-width=128)
  endif()
  # -O1, because -O2 takes g++ a third longer, and kernels are no quicker for it.
  target_compile_options(cookbook_kernel INTERFACE -O1 ${COOKBOOK_KERNEL_OPTIONS})
  add_library(cookbook_kernel_traced INTERFACE)
  target_link_libraries(cookbook_kernel_traced INTERFACE cookbook_options)
  target_compile_definitions(cookbook_kernel_traced INTERFACE COOKBOOK_TRACED=1)
  # Compiled with, never linked with, -fsanitize: the hooks are our own (common/backend/simt).
  # Without passes that copy blocks, or merge those of two branches: lanes in two copies of a block
  # cannot meet, and stores on two lines stay two. No jump tables, because reconvergence follows
  # jumps (common/backend/simt/runtime/control_flow.cpp).
  # Statement frontiers, which -g implies and -g1 does not: without them, a few accesses get the line
  # of the previous statement.
  # A volatile access may be a flag between blocks, so it has hooks of its own.
  # -O2, as nvcc optimises: what a kernel accesses is what g++ left of it.
  set(COOKBOOK_TRACED_OPTIONS -O2
    -fsanitize=thread --param=tsan-distinguish-volatile=1
    -fsanitize-coverage=trace-pc -gstatement-frontiers
    -fno-reorder-blocks -fno-reorder-blocks-and-partition -fno-thread-jumps
    -fno-tree-tail-merge -fno-jump-tables
    -fsanitize=signed-integer-overflow)
  # Without those passes g++ takes variables for uninitialised that are not. nvcc warns.
  target_compile_options(cookbook_kernel_traced INTERFACE ${COOKBOOK_TRACED_OPTIONS}
    ${COOKBOOK_KERNEL_OPTIONS}
    -Wno-maybe-uninitialized)
else()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    # The GPU present; wgmma and tcgen05 need the "a" variant, which `native` does not give.
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE capability OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    string(REGEX MATCH "^[0-9]+\\.[0-9]+" capability "${capability}")
    string(REPLACE "." "" capability "${capability}")
    if(capability MATCHES "^(90|100|103)$")
      set(capability ${capability}a)
    elseif(capability STREQUAL "")
      set(capability 80 90a)
    endif()
    set(CMAKE_CUDA_ARCHITECTURES ${capability} CACHE STRING "GPU architectures")
    message(STATUS "Compiling kernels for: ${CMAKE_CUDA_ARCHITECTURES}")
  endif()
  # For what only Hopper runs: 90a, or 90a-real as the preset cuda-ci says it. Empty if not wanted.
  string(REGEX MATCH "90a(-real)?" COOKBOOK_HOPPER "${CMAKE_CUDA_ARCHITECTURES}")
  enable_language(CUDA)
  find_package(CUDAToolkit 12.8 REQUIRED)
  target_compile_definitions(cookbook_options INTERFACE COOKBOOK_CUDA=1)
  target_include_directories(cookbook_options SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  # The language standard is given as a flag, for both compilers: CMake before 3.25.2 does not know
  # C++20 for CUDA, and would demand it of CUDA as soon as CXX_STANDARD asks for it.
  # Not compressed, so that tools/identity can read the machine code.
  target_compile_options(cookbook_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;-lineinfo;--no-compress;--expt-relaxed-constexpr>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-diag-suppress=186>")
  if(COOKBOOK_PTXAS_REPORT)
    target_compile_options(cookbook_options INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>")
  endif()
endif()
