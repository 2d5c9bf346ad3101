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

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
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

struct ReferenceScores {
  std::vector<double> weight;  ///< p_j, the largest 1
  double sum = 0;
  double max = 0;        ///< of the scores; -inf when no key is visible
  double deviation = 0;  ///< bound of the error of any s_j - max
};

inline ReferenceScores reference_scores(const ReferenceQuery& query) {
  const double scale = 1 / std::sqrt(static_cast<double>(query.head_dim));
  const double u = 0x1p-24;
  ReferenceScores out;
  out.max = -std::numeric_limits<double>::infinity();
  out.weight.resize(query.visible);
  // Several keys at a time: the sums of one key are a chain, in which each waits for the one
  // before.
  constexpr int kKeys = 4;
  const int dim = query.head_dim;
  std::vector<double> q(dim), keys(static_cast<std::size_t>(kKeys) * dim);
  query.q.read_row(query.query_row, dim, q.data());
  double largest_magnitude = 0, largest_score = 0;
  for (std::int64_t first = 0; first < query.visible; first += kKeys) {
    const int count = static_cast<int>(std::min<std::int64_t>(kKeys, query.visible - first));
    for (int t = 0; t < count; ++t) {
      const std::int64_t j = query.listed ? (*query.listed)[first + t] : first + t;
      query.k.read_row(query.key_row(j), dim, &keys[static_cast<std::size_t>(t) * dim]);
    }
    double sum[kKeys] = {}, magnitude[kKeys] = {};
    for (int x = 0; x < dim; ++x) {
      for (int t = 0; t < kKeys; ++t) {  // behind `count`: keys of before, whose sums nobody reads
        const double term = q[x] * keys[static_cast<std::size_t>(t) * dim + x];
        sum[t] += term;
        magnitude[t] += std::fabs(term);
      }
    }
    for (int t = 0; t < count; ++t) {
      const double score = sum[t] * scale;
      out.weight[first + t] = score;
      out.max = std::max(out.max, score);
      largest_magnitude = std::max(largest_magnitude, magnitude[t] * scale);
      largest_score = std::max(largest_score, std::fabs(score));
    }
  }
  if (out.max == -std::numeric_limits<double>::infinity()) out.max = 0;  // weights 0, as if masked
  for (double& weight : out.weight) {
    weight = std::exp(weight - out.max);  // NaN for inf - inf, and wherever the score is NaN
    out.sum += weight;
  }
  out.deviation =
      2 * (2 * query.head_dim * u * largest_magnitude + 4 * u * largest_score) + 0x1p-20;
  return out;
}

/// o[0 .. head_dim) of one query and the bounds. `output_dtype`: bf16 or f16. A bound of infinity
/// means that any value is right there. That is the case if a key that this query must not see, or
/// whose weight is below what the kernels represent, has an infinite or NaN v: a tile multiplies it
/// by zero or skips it.
inline void reference_output(const ReferenceQuery& query, DType output_dtype, double* value,
                             double* bound) {
  const ReferenceScores scores = reference_scores(query);
  const double u = 0x1p-24, u16 = unit_roundoff(output_dtype);
  const double tiny = output_dtype == DType::f16 ? 0x1p-25 : 0x1p-126;  // below it p may become 0
  std::vector<double> weights_of_keys(query.keys, -1);                  // -1: not visible
  for (std::int64_t j = 0; j < query.visible; ++j) {
    weights_of_keys[query.listed ? (*query.listed)[j] : j] = scores.weight[j];
  }
  struct Column {
    double sum = 0, magnitude = 0, largest = 0, flushed = 0;
    bool undefined = false;
  };
  std::vector<Column> columns(query.head_dim);
  std::vector<double> v(query.head_dim);
  for (std::int64_t j = 0; j < query.keys; ++j) {
    query.v.read_row(query.key_row(j), query.head_dim, v.data());
    const double weight = weights_of_keys[j];
    for (int x = 0; x < query.head_dim; ++x) {
      Column& column = columns[x];
      if (weight < 16 * tiny && !std::isfinite(v[x])) column.undefined = true;
      if (weight == -1) continue;
      column.sum += weight * v[x];
      column.magnitude += weight * std::fabs(v[x]);
      column.largest = std::max(column.largest, std::fabs(v[x]));
      column.flushed += tiny * std::fabs(v[x]);
    }
  }
  for (int x = 0; x < query.head_dim; ++x) {
    const auto [sum, total, largest, flushed, undefined] = columns[x];
    if (scores.sum == 0) {  // no key: 0, not 0 / 0
      value[x] = 0;
      bound[x] = 0;
    } else {
      value[x] = sum / scores.sum;
      const double magnitude = total / scores.sum;
      const double weights =
          std::min(std::expm1(std::min(scores.deviation, 50.0)) * (magnitude + std::fabs(value[x])),
                   2 * largest);
      bound[x] = weights + (u16 + 2 * static_cast<double>(query.keys) * u + 8 * u) * magnitude +
                 flushed / scores.sum;
      bound[x] += half_ulp(output_dtype, std::fabs(value[x]) + bound[x]);
    }
    if (undefined && !std::isnan(scores.sum)) {  // a NaN among the weights makes all of o NaN
      value[x] = 0;
      bound[x] = std::numeric_limits<double>::infinity();
    }
  }
}

/// log sum exp of one query's scores; -inf when no key is visible.
inline void reference_lse(const ReferenceQuery& query, double* value, double* bound) {
  const ReferenceScores scores = reference_scores(query);
  const double u = 0x1p-24;
  *value = scores.sum == 0 ? -std::numeric_limits<double>::infinity()
                           : scores.max + std::log(scores.sum);
  *bound = scores.deviation + 2 * static_cast<double>(query.keys) * u + 8 * u * std::fabs(*value) +
           0x1p-21;
  if (!std::isfinite(*value)) *bound = 0;
}

}  // namespace cookbook::attention
