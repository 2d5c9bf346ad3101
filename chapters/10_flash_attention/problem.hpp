// SPDX-License-Identifier: MIT
// The problem of chapter 10: o = softmax(q k^T / sqrt(d)) v for every query and head.
//
//   q, o: [batch, seq_q, heads_q,  head_dim]     as PyTorch and FlashAttention lay them out,
//   k, v: [batch, seq_k, heads_kv, head_dim]     flattened to one row per (batch, position, head)
//   lse:  [batch, heads_q, seq_q] fp32           log of the softmax's denominator (natural
//                                               logarithm)
//
// Grouped-query attention: heads_q is a multiple of heads_kv; query head h reads KV head h /
// (heads_q / heads_kv). The causal mask is aligned to the bottom right: the last query sees every
// key, query i sees keys j <= i + seq_k - seq_q. A query that sees no key gives o = 0 and lse =
// -inf.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "chapters/10_flash_attention/reference.hpp"
#include "common/backend/backend.hpp"
#include "common/backend/tensor_map.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::attention {

/// The parameters that every kernel of the chapter gets.
struct Shape {
  int batch, heads_q, heads_kv, seq_q, seq_k;
  int64_t pitch;  // elements from one (batch, position, head) row to the next, in q, k, v and o
  bool causal;
  float scale_log2;  // log2(e) / sqrt(head_dim): exp(s / sqrt(d)) = exp2(q.k * scale_log2)

  __host__ __device__ int kv_head(int head) const { return head / (heads_q / heads_kv); }
  __host__ __device__ int64_t q_row(int b, int i, int head) const {
    return (static_cast<int64_t>(b) * seq_q + i) * heads_q + head;
  }
  __host__ __device__ int64_t k_row(int b, int j, int head) const {
    return (static_cast<int64_t>(b) * seq_k + j) * heads_kv + kv_head(head);
  }
  __host__ __device__ int64_t lse_index(int b, int i, int head) const {
    return (static_cast<int64_t>(b) * heads_q + head) * seq_q + i;
  }
  /// Number of keys that query i sees: keys 0 .. result - 1. None if the result is 0 or negative.
  __host__ __device__ int visible_keys(int i) const {
    const int limit = i + 1 + seq_k - seq_q;
    return causal && limit < seq_k ? limit : seq_k;
  }
};

struct Problem {
  Shape shape{};
  int head_dim = 128;
  DType dtype = DType::bf16;
  std::int64_t misalign_elements = 0;  ///< by which q, k, v and o are shifted: all bits of the four
  static constexpr bool kExactOnIntegers = false;  // exponentials, a division

  static Problem make(const Size& size, const Variant& variant) {
    return make(size, variant, DType::bf16, false);
  }
  static Problem make(const Size& size, const Variant& variant, DType dtype, bool causal) {
    if (size.size() != 6)
      throw BadSize("attention takes batch x heads_q x heads_kv x seq_q x seq_k x head_dim");
    for (std::int64_t extent : size) {
      if (extent < 0 || extent > (1 << 24))
        throw BadSize("attention: every extent lies in 0 .. 16777216");
    }
    if (size[5] != 64 && size[5] != 128) throw BadSize("attention: head_dim is 64 or 128");
    if (size[2] == 0 || size[1] % size[2] != 0) {
      throw BadSize("attention: heads_q is a multiple of heads_kv, which is at least 1");
    }
    Problem p;
    p.head_dim = static_cast<int>(size[5]);
    p.dtype = dtype;
    for (const char* tensor : {"q", "k", "v", "o"}) {
      p.misalign_elements |= variant.of(tensor).misalign_elements;
    }
    p.shape = {static_cast<int>(size[0]),
               static_cast<int>(size[1]),
               static_cast<int>(size[2]),
               static_cast<int>(size[3]),
               static_cast<int>(size[4]),
               size[5] + variant.of("q").extra_pitch,  // q, k, v and o share it
               causal,
               static_cast<float>(1.4426950408889634 / std::sqrt(static_cast<double>(size[5])))};
    return p;
  }
  template <DType kType, bool kCausal>
  static std::shared_ptr<AnyProblem> make_any(const Size& size, const Variant& variant) {
    return std::make_shared<ProblemHolder<Problem>>(make(size, variant, kType, kCausal));
  }

  std::int64_t q_rows() const { return std::int64_t{shape.batch} * shape.seq_q * shape.heads_q; }
  std::int64_t k_rows() const { return std::int64_t{shape.batch} * shape.seq_k * shape.heads_kv; }

  std::vector<TensorSpec> tensors() const {
    return {{"q", dtype, q_rows(), head_dim, shape.pitch, Role::input},
            {"k", dtype, k_rows(), head_dim, shape.pitch, Role::input},
            {"v", dtype, k_rows(), head_dim, shape.pitch, Role::input},
            {"o", dtype, q_rows(), head_dim, shape.pitch, Role::output},
            {"lse", DType::f32, q_rows(), 1, 1, Role::output}};
  }
  double bytes() const {
    return 2.0 * head_dim *
               (2.0 * static_cast<double>(q_rows()) + 2.0 * static_cast<double>(k_rows())) +
           4.0 * static_cast<double>(q_rows());
  }
  /// Pairs (query, key) that the mask leaves, for one batch and head.
  double visible_pairs() const {
    double pairs = 0;
    for (int i = 0; i < shape.seq_q; ++i) pairs += std::max(0, shape.visible_keys(i));
    return pairs;
  }
  double flops() const { return 4.0 * head_dim * visible_pairs() * shape.batch * shape.heads_q; }

  /// Bytes of K (or of V) that tiles of block_m queries read, in whole tiles as far as keys exist.
  /// For claims.
  double key_tile_bytes(int block_m, int block_n) const {
    double keys = 0;
    for (int i = 0; i < shape.seq_q; i += block_m) {
      const int visible = shape.visible_keys(std::min(i + block_m, shape.seq_q) - 1);
      keys += std::min(shape.seq_k, (std::max(0, visible) + block_n - 1) / block_n * block_n);
    }
    return keys * head_dim * 2.0 * shape.batch * shape.heads_q;
  }

  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
                     double* value, double* bound) const {
    int b, i, head;
    if (output == "lse") {  // row = (b * heads_q + head) * seq_q + i
      i = static_cast<int>(row % shape.seq_q);
      head = static_cast<int>(row / shape.seq_q % shape.heads_q);
      b = static_cast<int>(row / shape.seq_q / shape.heads_q);
    } else {  // row = (b * seq_q + i) * heads_q + head
      head = static_cast<int>(row % shape.heads_q);
      i = static_cast<int>(row / shape.heads_q % shape.seq_q);
      b = static_cast<int>(row / shape.heads_q / shape.seq_q);
    }
    const ReferenceQuery query{tensors["q"],
                               tensors["k"],
                               tensors["v"],
                               shape.q_row(b, i, head),
                               shape.k_row(b, 0, head),
                               shape.heads_kv,
                               shape.seq_k,
                               std::max(0, shape.visible_keys(i)),
                               head_dim};
    if (output == "lse") {
      reference_lse(query, value, bound);
    } else {
      reference_output(query, dtype, value, bound);
    }
  }
};

struct Buffers {
  const void* q;
  const void* k;
  const void* v;
  void* o;
  float* lse;
  static Buffers bind(const DevicePointers& at) {
    return {at.get<const void>("q"), at.get<const void>("k"), at.get<const void>("v"),
            at.get<void>("o"), at.get<float>("lse")};
  }
};

using Level = LevelOf<Problem, Buffers>;

/// Element type and head dimension as a type.
template <class T, int kDim>
struct Case {
  using Element = T;
  static constexpr int kHeadDim = kDim;
};

/// Calls `launcher(Case<T, d>{}, q, k, v, o)` with the problem's types. `Elements`: the types that
/// the caller's kernels are compiled for: bf16 in every level, and half too in those that
/// library/attention launches. Throws std::logic_error for any other.
template <class... Elements, class Launcher>
void dispatch(const Problem& problem, const Buffers& at, Launcher&& launcher) {
  const auto with = [&](auto c) {
    using T = typename decltype(c)::Element;
    launcher(c, static_cast<const T*>(at.q), static_cast<const T*>(at.k),
             static_cast<const T*>(at.v), static_cast<T*>(at.o));
  };
  const auto take = [&]<class T>(std::type_identity<T>) {
    if (problem.dtype != (std::is_same_v<T, bf16> ? DType::bf16 : DType::f16)) return false;
    problem.head_dim == 64 ? with(Case<T, 64>{}) : with(Case<T, 128>{});
    return true;
  };
  if (!(take(std::type_identity<Elements>{}) || ...)) {
    throw std::logic_error("attention: this level takes bf16 only");
  }
}

/// What TMA and 16-byte copies require of the operands.
inline Support supports_aligned_rows(const Problem& problem) {
  if (problem.shape.pitch % 8 != 0) return Support::no("rows must start at multiples of 16 bytes");
  if (problem.misalign_elements % 8 != 0)
    return Support::no("base addresses must be multiples of 16 bytes");
  return Support::yes();
}

inline Support supports_hopper(const Problem& problem, const DeviceInfo& device) {
  if (device.cc_major != 9) return Support::no("needs wgmma: compute capability 9.0 (sm_90a)");
  return supports_aligned_rows(problem);
}

/// Tensor map of q, k, v or o: [batch][seq][heads][d], boxes of 64 elements x `box_rows` positions
/// of one head. A sequence is a dimension of its own: a box that extends past its end is
/// zero-filled (or clipped in a store) instead of reaching into the next sequence.
inline TensorMap sequence_map(const Problem& problem, const void* base, int heads, int seq,
                              int box_rows) {
  const auto at_least_1 = [](int64_t extent) {
    return static_cast<uint64_t>(extent > 0 ? extent : 1);
  };
  const uint64_t row_bytes = 2 * problem.shape.pitch;
  TensorMapSpec spec;
  spec.dtype = problem.dtype == DType::bf16 ? TensorType::bf16 : TensorType::f16;
  spec.base = base;
  spec.extents = {static_cast<uint64_t>(problem.head_dim), at_least_1(heads), at_least_1(seq),
                  at_least_1(problem.shape.batch)};
  spec.strides_bytes = {row_bytes, row_bytes * at_least_1(heads),
                        row_bytes * at_least_1(heads) * at_least_1(seq)};
  spec.box = {64, 1, static_cast<uint32_t>(box_rows), 1};
  spec.swizzle = Swizzle::b128;
  spec.l2_promotion = L2Promotion::b256;
  return make_tensor_map(spec);
}

}  // namespace cookbook::attention
