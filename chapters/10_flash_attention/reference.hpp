// SPDX-License-Identifier: MIT
// Attention in fp64, one query at a time, and the error bound of a 16-bit kernel.
//
//   s_j = scale (q . k_j)      p_j = exp(s_j - max s)      o = sum p_j v_j / sum p_j
//   lse = log sum exp s_j
//
// The sources of error of a correct kernel, which the bound adds up:
//   1. s_j. A dot product of d terms on tensor cores: at most 2 d u |q|.|k_j| (u = 2^-24), scaled.
//      The exponential's own rounding is a few u of the largest |s|. An error e in s_j multiplies
//      p_j by exp(+-e). Normalisation keeps o a weighted mean of the v_j whatever the weights, so
//      this part never exceeds the spread of v.
//   2. p_j rounded to 16 bits before P V: u16 each, so u16 sum p|v|. The denominator sums the p_j
//      before they are rounded. A plain implementation that also rounds s_j to 16 bits errs by
//      u16 |s_j| more; these kernels are not granted that.
//   3. P V and its rescalings: 2 n u sum p|v|.
//   4. rounding o: half an ulp of the output type.
#pragma once

#include <cstdint>
#include <vector>

#include "common/harness/contract/tensor.hpp"

namespace cookbook::attention {

/// One query's rows of the tensors. Key j is row first_key + j * key_stride of k and v.
struct ReferenceQuery {
  const HostTensor& q;
  const HostTensor& k;
  const HostTensor& v;
  std::int64_t query_row;
  std::int64_t first_key, key_stride;
  std::int64_t keys;     ///< keys that exist
  std::int64_t visible;  ///< of these, keys 0 .. visible - 1 are not masked
  int head_dim;
  /// If set: the indices of the visible keys; `visible` is their number. `keys` still counts all.
  const std::vector<std::int64_t>* listed = nullptr;

  std::int64_t key_row(std::int64_t j) const { return first_key + j * key_stride; }
};

/// o[0 .. head_dim) of one query and the bounds. `output_dtype`: bf16 or f16. A bound of infinity
/// means that any value is right there. That is the case if a key that this query must not see, or
/// whose weight is below what the kernels represent, has an infinite or NaN v: a tile multiplies it
/// by zero or skips it.
void reference_output(const ReferenceQuery& query, DType output_dtype, double* value,
                      double* bound);

/// log sum exp of one query's scores; -inf when no key is visible.
void reference_lse(const ReferenceQuery& query, double* value, double* bound);

}  // namespace cookbook::attention
