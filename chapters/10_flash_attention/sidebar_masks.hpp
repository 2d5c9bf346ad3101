// SPDX-License-Identifier: MIT
// Sidebar problems: attention where the keys that a query sees are given as data.
//
//   variable lengths: sequences of different lengths packed one after the other, [total, heads, d];
//                     offsets[b] .. offsets[b + 1] are the positions of sequence b
//   block-sparse:     a tile of 64 queries sees the listed tiles of 64 keys
//   index list:       a tile of 64 queries sees the listed keys, in any order
//
// The last two are stored as rows of a table: offsets[m] .. offsets[m + 1] are the positions in
// `indices` that belong to query tile m, the same for all heads and sequences.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chapters/10_flash_attention/problem.hpp"

namespace cookbook::attention {

enum class MaskKind { variable_lengths, block_sparse, index_list };

struct MaskedProblem {
  static constexpr int kTile = 64;                 // queries, and keys, of a tile
  static constexpr bool kExactOnIntegers = false;  // as attention::Problem

  MaskKind kind = MaskKind::variable_lengths;
  Problem dense;  // of one sequence of full length; batch: the number of sequences
  std::vector<std::int32_t> offsets;  // see above
  std::vector<std::int32_t> indices;

  template <MaskKind kKind>
  static std::shared_ptr<AnyProblem> make_any(const Size& size, const Variant& variant) {
    return std::make_shared<ProblemHolder<MaskedProblem>>(make(size, variant, kKind));
  }
  static MaskedProblem make(const Size& size, const Variant& variant) {
    return make(size, variant, MaskKind::variable_lengths);
  }
  static MaskedProblem make(const Size& size, const Variant& variant, MaskKind kind) {
    if (size.size() != 5)
      throw BadSize("masks take sequences x heads_q x heads_kv x seq x head_dim");
    MaskedProblem p;
    p.kind = kind;
    p.dense = Problem::make({size[0], size[1], size[2], size[3], size[3], size[4]}, variant,
                            DType::bf16, false);
    const auto seq = static_cast<std::int32_t>(size[3]);
    // An irregular pattern that is the same on every machine.
    const auto hash = [](std::uint32_t a, std::uint32_t b) {
      std::uint32_t x = a * 2654435761u ^ b * 2246822519u;
      x = (x ^ (x >> 15)) * 2246822519u;
      return (x ^ (x >> 13)) * 3266489917u >> 16;
    };
    p.offsets = {0};
    if (kind == MaskKind::variable_lengths) {
      for (int b = 0; b < size[0]; ++b) {  // the first is full; others are shorter, down to empty
        const std::int32_t length =
            b == 0 ? seq : static_cast<std::int32_t>(hash(b, 1) % (seq + 1));
        p.offsets.push_back(p.offsets.back() + length);
      }
    } else {
      const int tiles = ceil_div(seq, kTile);
      for (int m = 0; m < tiles; ++m) {
        const int units = kind == MaskKind::block_sparse ? tiles : seq;
        for (int j = 0; j < units && m % 5 != 4; ++j) {  // every fifth tile sees nothing
          const bool diagonal = kind == MaskKind::block_sparse && j == m;
          if (diagonal || hash(m, j) % 4 == 0) p.indices.push_back(j);
        }
        p.offsets.push_back(static_cast<std::int32_t>(p.indices.size()));
      }
    }
    return p;
  }

  bool packed() const { return kind == MaskKind::variable_lengths; }
  std::int64_t positions() const {
    return packed() ? offsets.back() : std::int64_t{dense.shape.batch} * dense.shape.seq_q;
  }
  /// Positions of sequence b.
  int length(int b) const { return packed() ? offsets[b + 1] - offsets[b] : dense.shape.seq_q; }
  std::int64_t first_position(int b) const {
    return packed() ? offsets[b] : std::int64_t{b} * dense.shape.seq_q;
  }
  /// Keys listed for query tile m.
  std::vector<std::int64_t> listed(int m) const {
    std::vector<std::int64_t> keys;
    for (int i = offsets[m]; i < offsets[m + 1]; ++i) {
      if (kind == MaskKind::index_list) {
        keys.push_back(indices[i]);
      } else {
        for (int j = indices[i] * kTile; j < std::min((indices[i] + 1) * kTile, dense.shape.seq_k);
             ++j) {
          keys.push_back(j);
        }
      }
    }
    return keys;
  }

  std::vector<TensorSpec> tensors() const {
    const auto table = [](std::string name, std::vector<std::int32_t> values) {
      if (values.empty()) values.push_back(0);  // no key is listed at all
      TensorSpec spec{std::move(name),
                      DType::i32,
                      1,
                      static_cast<std::int64_t>(values.size()),
                      static_cast<std::int64_t>(values.size()),
                      Role::input};
      spec.fill = [values](HostTensor& tensor, std::uint64_t) {
        std::copy(values.begin(), values.end(), tensor.data<std::int32_t>());
      };
      return spec;
    };
    const std::int64_t q_rows = positions() * dense.shape.heads_q;
    const std::int64_t k_rows = positions() * dense.shape.heads_kv;
    const std::int64_t pitch = dense.shape.pitch;
    return {{"q", dense.dtype, q_rows, dense.head_dim, pitch, Role::input},
            {"k", dense.dtype, k_rows, dense.head_dim, pitch, Role::input},
            {"v", dense.dtype, k_rows, dense.head_dim, pitch, Role::input},
            table("offsets", offsets),
            table("indices", indices),
            {"o", dense.dtype, q_rows, dense.head_dim, pitch, Role::output},
            {"lse", DType::f32, q_rows, 1, 1, Role::output}};  // [positions][heads]
  }
  /// Pairs (query, key) of one head, all sequences.
  double visible_pairs() const {
    double pairs = 0;
    for (int b = 0; b < dense.shape.batch; ++b) {
      for (int i = 0; i < length(b); ++i) {
        pairs += packed() ? length(b) : static_cast<double>(listed(i / kTile).size());
      }
    }
    return pairs;
  }
  double bytes() const {
    return 4.0 * dense.head_dim * static_cast<double>(positions()) *
           (dense.shape.heads_q + dense.shape.heads_kv);
  }
  double flops() const { return 4.0 * dense.head_dim * visible_pairs() * dense.shape.heads_q; }

  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
                     double* value, double* bound) const {
    const int head = static_cast<int>(row % dense.shape.heads_q);
    const std::int64_t position = row / dense.shape.heads_q;
    int b = 0;
    while (position >= first_position(b) + length(b)) ++b;
    const int i = static_cast<int>(position - first_position(b));
    std::vector<std::int64_t> list;
    if (!packed()) list = listed(i / kTile);
    const ReferenceQuery query{tensors["q"],
                               tensors["k"],
                               tensors["v"],
                               row,
                               first_position(b) * dense.shape.heads_kv + dense.shape.kv_head(head),
                               dense.shape.heads_kv,
                               length(b),
                               packed() ? length(b) : static_cast<std::int64_t>(list.size()),
                               dense.head_dim,
                               packed() ? nullptr : &list};
    if (output == "lse") {
      reference_lse(query, value, bound);
    } else {
      reference_output(query, dense.dtype, value, bound);
    }
  }
};

struct MaskedBuffers {
  Buffers dense;
  const int* offsets;
  const int* indices;
  static MaskedBuffers bind(const DevicePointers& at) {
    return {Buffers::bind(at), at.get<const int>("offsets"), at.get<const int>("indices")};
  }
};

}  // namespace cookbook::attention
