// SPDX-License-Identifier: MIT
#include "chapters/10_flash_attention/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cookbook::attention {
namespace {

struct ReferenceScores {
  std::vector<double> weight;  ///< p_j, the largest 1
  double sum = 0;
  double max = 0;        ///< of the scores; -inf when no key is visible
  double deviation = 0;  ///< bound of the error of any s_j - max
};

ReferenceScores reference_scores(const ReferenceQuery& query) {
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

}  // namespace

void reference_output(const ReferenceQuery& query, DType output_dtype, double* value,
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

void reference_lse(const ReferenceQuery& query, double* value, double* bound) {
  const ReferenceScores scores = reference_scores(query);
  const double u = 0x1p-24;
  *value = scores.sum == 0 ? -std::numeric_limits<double>::infinity()
                           : scores.max + std::log(scores.sum);
  *bound = scores.deviation + 2 * static_cast<double>(query.keys) * u + 8 * u * std::fabs(*value) +
           0x1p-21;
  if (!std::isfinite(*value)) *bound = 0;
}

}  // namespace cookbook::attention
