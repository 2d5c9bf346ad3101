// SPDX-License-Identifier: MIT
// The backward pass of attention in fp64, a row of a gradient at a time, and the error bound of a
// bf16 kernel. With c = 1 / sqrt(d), for a query i and a key j that it sees:
//
//   s = c (q_i . k_j)     p = exp(s - lse_i)      delta_i = do_i . o_i
//   dp = do_i . v_j       ds = p (dp - delta_i)
//   dv_j = sum_i p do_i   dk_j = c sum_i ds q_i   dq_i = c sum_j ds k_j
//
// o and lse are inputs, rounded as the forward pass left them: their rounding is no error of a
// backward kernel. With u = 2^-24 and u16 = 2^-8 (bf16), a correct kernel errs by
//   1. s - lse: 2 d u c |q|.|k| from the tensor core, a few u (|s| + |lse|) from the exponent's
//      arithmetic, 2^-20 from exp2. An error e of it multiplies p by exp(+-e).
//   2. dp and delta: 2 d u |do|.|v| and 2 d u |do|.|o|.
//   3. p and ds rounded to bf16, operands of the last three matrix multiplications.
//   4. the sums of n terms: 2 n u of the sum of their magnitudes; atomics add in any order.
//   5. rounding the result: half an ulp of bf16.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "chapters/13_attention_backward/problem.hpp"
#include "common/harness/verdict/parallel.hpp"

namespace cookbook::attention::backward {

/// Of a query's row: delta, the sum of the magnitudes of its terms, whether all its numbers are
/// finite. (lse = -inf, of a query without keys, counts as finite.)
struct QueryFacts {
  double delta = 0, magnitude = 0;
  bool finite = true;
};

namespace {

bool all_finite(const std::vector<double>& row) {
  return std::all_of(row.begin(), row.end(), [](double x) { return std::isfinite(x); });
}

/// `lse_row`: of the query in lse, which has another order of rows.
QueryFacts query_facts(const HostTensors& tensors, std::int64_t row, std::int64_t lse_row,
                       int head_dim) {
  std::vector<double> q(head_dim), o(head_dim), d_o(head_dim);
  tensors["q"].read_row(row, head_dim, q.data());
  tensors["o"].read_row(row, head_dim, o.data());
  tensors["do"].read_row(row, head_dim, d_o.data());
  const double lse = tensors["lse"].at(lse_row, 0);
  QueryFacts facts;
  for (int x = 0; x < head_dim; ++x) {
    facts.delta += d_o[x] * o[x];
    facts.magnitude += std::fabs(d_o[x] * o[x]);
  }
  facts.finite = all_finite(q) && all_finite(o) && all_finite(d_o) && !std::isnan(lse) &&
                 lse != std::numeric_limits<double>::infinity();
  return facts;
}

/// p and ds of a query and a key, and their errors before they are rounded to bf16.
struct PairGradients {
  double p = 0, p_error = 0, ds = 0, ds_error = 0;
};

PairGradients pair_gradients(const std::vector<double>& q, const std::vector<double>& k,
                             const std::vector<double>& d_o, const std::vector<double>& v,
                             double lse, const QueryFacts& facts) {
  const double u = 0x1p-24, scale = 1 / std::sqrt(static_cast<double>(q.size()));
  const double dot = 2 * static_cast<double>(q.size()) * u;  // relative error of a dot product
  double s = 0, s_magnitude = 0, dp = 0, dp_magnitude = 0;
  for (std::size_t x = 0; x < q.size(); ++x) {
    s += q[x] * k[x];
    s_magnitude += std::fabs(q[x] * k[x]);
    dp += d_o[x] * v[x];
    dp_magnitude += std::fabs(d_o[x] * v[x]);
  }
  PairGradients pair;
  const double difference = dp - facts.delta;
  if (lse == -std::numeric_limits<double>::infinity()) {  // all scores are: weights 0, as if masked
    pair.ds = 0 * difference;
    return pair;
  }
  const double exponent = s * scale - lse;
  const double deviation =
      scale * dot * s_magnitude + 8 * u * (std::fabs(s * scale) + std::fabs(lse)) + 0x1p-20;
  pair.p = std::exp(exponent);
  pair.p_error = std::exp(std::min(exponent + deviation, 700.0)) - pair.p + 0x1p-126;
  pair.ds = pair.p * difference;
  const double factor_error = dot * (dp_magnitude + facts.magnitude) +
                              4 * u * std::fabs(difference) +
                              static_cast<double>(q.size()) * 0x1p-149;
  pair.ds_error =
      (pair.p + pair.p_error) * factor_error + pair.p_error * std::fabs(difference) + 0x1p-149;
  return pair;
}

/// A row of a gradient as it is summed up: factor * sum of weight * vector.
class GradientRow {
 public:
  explicit GradientRow(int head_dim) : sum_(head_dim), magnitude_(head_dim), error_(head_dim) {}

  void add(double weight, double weight_error, const std::vector<double>& vector) {
    const double rounding = half_ulp(DType::bf16, std::fabs(weight) + weight_error);
    for (std::size_t x = 0; x < sum_.size(); ++x) {
      sum_[x] += weight * vector[x];
      magnitude_[x] += (std::fabs(weight) + weight_error) * std::fabs(vector[x]);
      error_[x] += (weight_error + rounding) * std::fabs(vector[x]);
    }
    ++terms_;
  }
  /// `masked_is_finite`: whether what the mask hides from this row is. A tile multiplies that by
  /// zero or skips it, so if not, any value is right.
  void finish(double factor, bool masked_is_finite, double* value, double* bound) const {
    const double u = 0x1p-24;
    for (std::size_t x = 0; x < sum_.size(); ++x) {
      value[x] = factor * sum_[x];
      bound[x] = factor * (error_[x] + (2 * static_cast<double>(terms_) + 8) * u * magnitude_[x]);
      bound[x] += half_ulp(DType::bf16, std::fabs(value[x]) + bound[x]);
      // An infinity may be a NaN instead, where a weight is below what fp32 represents.
      const bool undefined = std::isinf(value[x]) || std::isnan(bound[x]) || !masked_is_finite;
      if (undefined && !std::isnan(value[x])) {
        value[x] = 0;
        bound[x] = std::numeric_limits<double>::infinity();
      }
    }
  }

 private:
  std::vector<double> sum_, magnitude_, error_;
  std::int64_t terms_ = 0;
};

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

struct Position {
  int batch, query, head;
};
/// Of a row of q.
Position position(const Shape& s, std::int64_t row) {
  return {static_cast<int>(row / s.heads_q / s.seq_q), static_cast<int>(row / s.heads_q % s.seq_q),
          static_cast<int>(row % s.heads_q)};
}

void query_gradient(const Problem& p, const HostTensors& tensors, std::int64_t row, double* value,
                    double* bound) {
  const auto [b, i, head] = position(p.shape(), row);
  const Shape& s = p.shape();
  std::vector<double> q(p.head_dim()), k(p.head_dim()), d_o(p.head_dim()), v(p.head_dim());
  tensors["q"].read_row(row, p.head_dim(), q.data());
  tensors["do"].read_row(row, p.head_dim(), d_o.data());
  const double lse = tensors["lse"].at(s.lse_index(b, i, head), 0);
  GradientRow gradient(p.head_dim());
  bool masked_is_finite = true;
  for (int j = 0; j < s.seq_k; ++j) {
    const std::int64_t key = s.k_row(b, j, head);
    if (j >= s.visible_keys(i)) {
      masked_is_finite &= (*p.finite_keys)[key] != 0 && (*p.queries)[row].finite;
      continue;
    }
    tensors["k"].read_row(key, p.head_dim(), k.data());
    tensors["v"].read_row(key, p.head_dim(), v.data());
    const PairGradients pair = pair_gradients(q, k, d_o, v, lse, (*p.queries)[row]);
    gradient.add(pair.ds, pair.ds_error, k);
  }
  gradient.finish(1 / std::sqrt(static_cast<double>(p.head_dim())), masked_is_finite, value, bound);
}

/// A row of dk or of dv.
void key_gradient(const Problem& p, const HostTensors& tensors, bool of_key, std::int64_t row,
                  double* value, double* bound) {
  const Shape& s = p.shape();
  const int kv_head = static_cast<int>(row % s.heads_kv), group = s.heads_q / s.heads_kv;
  const int j = static_cast<int>(row / s.heads_kv % s.seq_k);
  const int b = static_cast<int>(row / s.heads_kv / s.seq_k);
  std::vector<double> q(p.head_dim()), k(p.head_dim()), d_o(p.head_dim()), v(p.head_dim());
  tensors["k"].read_row(row, p.head_dim(), k.data());
  tensors["v"].read_row(row, p.head_dim(), v.data());
  GradientRow gradient(p.head_dim());
  bool masked_is_finite = true;
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (int i = 0; i < s.seq_q; ++i) {
      const std::int64_t query = s.q_row(b, i, head);
      const QueryFacts& facts = (*p.queries)[query];
      if (j >= s.visible_keys(i)) {
        masked_is_finite &= facts.finite && (*p.finite_keys)[row] != 0;
        continue;
      }
      tensors["q"].read_row(query, p.head_dim(), q.data());
      tensors["do"].read_row(query, p.head_dim(), d_o.data());
      const double lse = tensors["lse"].at(s.lse_index(b, i, head), 0);
      const PairGradients pair = pair_gradients(q, k, d_o, v, lse, facts);
      of_key ? gradient.add(pair.ds, pair.ds_error, q) : gradient.add(pair.p, pair.p_error, d_o);
    }
  }
  const double factor = of_key ? 1 / std::sqrt(static_cast<double>(p.head_dim())) : 1;
  gradient.finish(factor, masked_is_finite, value, bound);
}

}  // namespace

void Problem::complete_inputs(HostTensors& tensors) const {
  const Shape& s = shape();
  const std::int64_t rows = forward.q_rows();
  const HostTensor &q = tensors["q"], &k = tensors["k"], &v = tensors["v"];
  HostTensor &o = tensors["o"], &lse = tensors["lse"];
  parallel_for(rows, 64, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> query(head_dim()), key(head_dim()), sum(head_dim()), weights;
    for (std::int64_t row = begin; row < end; ++row) {
      const auto [b, i, head] = position(shape(), row);
      const int visible = std::max(0, s.visible_keys(i));
      const int step = s.seq_k <= kExactKeys ? 1 : std::max(1, visible / kSampledKeys);
      const double scale = 1 / std::sqrt(static_cast<double>(head_dim()));
      q.read_row(row, head_dim(), query.data());
      double max = kMinusInfinity, total = 0;
      weights.clear();
      for (int j = 0; j < visible; j += step) {
        k.read_row(s.k_row(b, j, head), head_dim(), key.data());
        double score = 0;
        for (int x = 0; x < head_dim(); ++x) score += query[x] * key[x];
        weights.push_back(score * scale);
        max = std::max(max, score * scale);
      }
      if (max == kMinusInfinity) max = 0;  // no key, or weights 0
      std::fill(sum.begin(), sum.end(), 0.0);
      for (std::size_t n = 0; n < weights.size(); ++n) {
        const double weight = std::exp(weights[n] - max);
        total += weight;
        v.read_row(s.k_row(b, static_cast<int>(n) * step, head), head_dim(), key.data());
        for (int x = 0; x < head_dim(); ++x) sum[x] += weight * key[x];
      }
      for (int x = 0; x < head_dim(); ++x) o.set(row, x, total == 0 ? 0 : sum[x] / total);
      lse.set(s.lse_index(b, i, head), 0,
              total == 0 ? kMinusInfinity : max + std::log(total * step));
    }
  });
}

void Problem::begin_reference(const HostTensors& tensors) {
  auto of_queries = std::make_shared<std::vector<QueryFacts>>(forward.q_rows());
  parallel_for(forward.q_rows(), 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto [b, i, head] = position(shape(), row);
      (*of_queries)[row] = query_facts(tensors, row, shape().lse_index(b, i, head), head_dim());
    }
  });
  auto of_keys = std::make_shared<std::vector<char>>(forward.k_rows());
  std::vector<double> key(head_dim()), value(head_dim());
  for (std::int64_t row = 0; row < forward.k_rows(); ++row) {
    tensors["k"].read_row(row, head_dim(), key.data());
    tensors["v"].read_row(row, head_dim(), value.data());
    (*of_keys)[row] = all_finite(key) && all_finite(value);
  }
  queries = of_queries;
  finite_keys = of_keys;
}

void Problem::reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
                            double* value, double* bound) const {
  if (output == "dq") {
    query_gradient(*this, tensors, row, value, bound);
  } else {
    key_gradient(*this, tensors, output == "dk", row, value, bound);
  }
}

}  // namespace cookbook::attention::backward
