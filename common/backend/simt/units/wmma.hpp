// SPDX-License-Identifier: MIT
// nvcuda::wmma on the SIMT backend: the subset that common/device/wmma.cuh names.
//
// CUDA leaves open which lane holds which element. Here it is as in mma.sync
// (common/device/mma.cuh) on 8x8 blocks, without the copies that nvcc keeps of half inputs:
// num_elements may be smaller. Loads and stores are the lanes' own typed accesses, two 16-bit
// neighbours at a time where they are contiguous, so that they are counted as a kernel's other
// accesses are.
#pragma once

#include <cstdint>
#include <type_traits>

#include "common/backend/simt/units/numbers.hpp"
#include "common/device/cuda.cuh"

namespace cookbook::simt {

struct WmmaShape {
  int m, n, k;
};

// Fails unless `pointer` is aligned to 32 bytes and rows are multiples of 16 bytes.
void wmma_check_access(const void* pointer, unsigned leading_bytes, const char* what);
// d = a * b + c; fragments as bits. `half_result`: those of c and d are fp16.
void wmma_multiply(void* d, const void* a, const void* b, const void* c, WmmaShape shape,
                   Format format, bool half_result);

struct WmmaPosition {
  int row, column;
};

// Element i of lane's fragment of A (M x K), B (K x N), the accumulator (M x N). `narrow`: tf32.
constexpr WmmaPosition wmma_a_position(int lane, int i, int m, bool narrow) {
  const int g = lane / 4, t = lane % 4;
  if (narrow) return {g + 8 * (i & 1), t + 4 * (i >> 1)};
  if (m == 8) return {g, 2 * t + (i & 1) + 8 * (i >> 1)};
  return {g + 8 * ((i >> 1) & 1) + 16 * (i >> 3), 2 * t + (i & 1) + 8 * ((i >> 2) & 1)};
}
constexpr WmmaPosition wmma_b_position(int lane, int i, bool narrow) {
  const int g = lane / 4, t = lane % 4;
  if (narrow) return {t + 4 * (i & 1), g + 8 * (i >> 1)};
  return {2 * t + (i & 1) + 8 * ((i >> 1) & 1), g + 8 * (i >> 2)};
}
constexpr WmmaPosition wmma_c_position(int lane, int i, int m) {
  const int g = lane / 4, t = lane % 4;
  if (m == 8) return {g, 8 * (i >> 1) + 2 * t + (i & 1)};
  if (m == 32) return {g + 8 * ((i >> 1) & 1) + 16 * (i >> 2), 2 * t + (i & 1)};
  return {g + 8 * ((i >> 1) & 1), 8 * (i >> 2) + 2 * t + (i & 1)};
}

}  // namespace cookbook::simt

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

namespace precision {
struct tf32 {};
}  // namespace precision

namespace detail {

template <class T>
struct Storage {
  using type = T;
};
template <>
struct Storage<precision::tf32> {
  using type = float;
};

template <class T>
constexpr cookbook::simt::Format format() {
  if constexpr (std::is_same_v<T, __half>) return cookbook::simt::Format::f16;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return cookbook::simt::Format::bf16;
  return cookbook::simt::Format::tf32;
}

template <class T, int kM, int kN, int kK>
constexpr bool supported() {
  if (std::is_same_v<T, precision::tf32>) return kM == 16 && kN == 16 && kK == 8;
  return kK == 16 && ((kM == 16 && kN == 16) || (kM == 32 && kN == 8) || (kM == 8 && kN == 32));
}

}  // namespace detail

template <class Use, int kM, int kN, int kK, class T, class Layout = void>
class fragment {
  static_assert(std::is_same_v<Use, accumulator>
                    ? std::is_same_v<T, float> || std::is_same_v<T, __half>
                    : detail::supported<T, kM, kN, kK>(),
                "a shape or type that the SIMT backend does not have");

 public:
  using element_type = T;
  using storage_element_type = typename detail::Storage<T>::type;
  static constexpr int num_elements = (std::is_same_v<Use, matrix_a>   ? kM * kK
                                       : std::is_same_v<Use, matrix_b> ? kK * kN
                                                                       : kM * kN) /
                                      32;
  alignas(4) storage_element_type x[num_elements];
};

template <class Use, int kM, int kN, int kK, class T, class Layout, class Value>
__forceinline__ void fill_fragment(fragment<Use, kM, kN, kK, T, Layout>& f, const Value& value) {
  for (int i = 0; i < f.num_elements; ++i) {
    f.x[i] = static_cast<typename detail::Storage<T>::type>(value);
  }
}

template <class Use, int kM, int kN, int kK, class T, class Layout, class Memory>
__forceinline__ void load_matrix_sync(fragment<Use, kM, kN, kK, T, Layout>& f,
                                      const Memory* pointer, unsigned leading) {
  static_assert(!std::is_same_v<Use, accumulator>, "an accumulator's layout is an argument");
  constexpr bool kRows = std::is_same_v<Layout, row_major>;
  constexpr bool kIsA = std::is_same_v<Use, matrix_a>;
  constexpr bool kNarrow = std::is_same_v<T, precision::tf32>;
  cookbook::simt::wmma_check_access(pointer, leading * sizeof(Memory), "load_matrix_sync");
  const int lane = static_cast<int>(cookbook::simt::lane_id());
  // Neighbours in a fragment are neighbours along k: contiguous in A by rows and in B by columns.
  constexpr int kStep = !kNarrow && kIsA == kRows ? 2 : 1;
#pragma GCC unroll 16
  for (int i = 0; i < f.num_elements; i += kStep) {
    const auto at = kIsA ? cookbook::simt::wmma_a_position(lane, i, kM, kNarrow)
                         : cookbook::simt::wmma_b_position(lane, i, kNarrow);
    const Memory* from =
        pointer + (kRows ? at.row * leading + at.column : at.column * leading + at.row);
    if constexpr (kStep == 2) {
      const uint32_t both = *reinterpret_cast<const uint32_t*>(from);
      __builtin_memcpy(static_cast<void*>(&f.x[i]), &both, 4);
    } else {
      f.x[i] = *from;
    }
  }
}

// Two neighbours of a row of an accumulator.
template <class T>
using Pair = std::conditional_t<std::is_same_v<T, float>, float2, uint32_t>;

template <int kM, int kN, int kK, class T>
__forceinline__ void load_matrix_sync(fragment<accumulator, kM, kN, kK, T>& f, const T* pointer,
                                      unsigned leading, layout_t layout) {
  cookbook::simt::wmma_check_access(pointer, leading * sizeof(T), "load_matrix_sync");
  const int lane = static_cast<int>(cookbook::simt::lane_id());
#pragma GCC unroll 8
  for (int i = 0; i < f.num_elements; i += 2) {
    const auto at = cookbook::simt::wmma_c_position(lane, i, kM);
    if (layout == mem_row_major) {
      const Pair<T> both =
          *reinterpret_cast<const Pair<T>*>(pointer + at.row * leading + at.column);
      __builtin_memcpy(static_cast<void*>(&f.x[i]), static_cast<const void*>(&both), sizeof both);
    } else {
      f.x[i] = pointer[at.column * leading + at.row];
      f.x[i + 1] = pointer[(at.column + 1) * leading + at.row];
    }
  }
}

template <int kM, int kN, int kK, class T>
__forceinline__ void store_matrix_sync(T* pointer, const fragment<accumulator, kM, kN, kK, T>& f,
                                       unsigned leading, layout_t layout) {
  cookbook::simt::wmma_check_access(pointer, leading * sizeof(T), "store_matrix_sync");
  const int lane = static_cast<int>(cookbook::simt::lane_id());
#pragma GCC unroll 8
  for (int i = 0; i < f.num_elements; i += 2) {
    const auto at = cookbook::simt::wmma_c_position(lane, i, kM);
    if (layout == mem_row_major) {
      Pair<T> both;
      __builtin_memcpy(static_cast<void*>(&both), static_cast<const void*>(&f.x[i]), sizeof both);
      *reinterpret_cast<Pair<T>*>(pointer + at.row * leading + at.column) = both;
    } else {
      pointer[at.column * leading + at.row] = f.x[i];
      pointer[(at.column + 1) * leading + at.row] = f.x[i + 1];
    }
  }
}

template <int kM, int kN, int kK, class T, class Sum, class LayoutA, class LayoutB>
__forceinline__ void mma_sync(fragment<accumulator, kM, kN, kK, Sum>& d,
                              const fragment<matrix_a, kM, kN, kK, T, LayoutA>& a,
                              const fragment<matrix_b, kM, kN, kK, T, LayoutB>& b,
                              const fragment<accumulator, kM, kN, kK, Sum>& c) {
  static_assert(std::is_same_v<Sum, float> || std::is_same_v<T, __half>,
                "fp16 accumulators go with fp16 operands");
  cookbook::simt::wmma_multiply(d.x, a.x, b.x, c.x, {kM, kN, kK}, detail::format<T>(),
                                std::is_same_v<Sum, __half>);
}

/// The nearest tf32, as a float (CUDA C++ Programming Guide, "Alternate Floating Point").
float __float_to_tf32(float value);

}  // namespace nvcuda::wmma
