// SPDX-License-Identifier: MIT
// The problem of chapter 13: the gradients of attention. Layouts, masks and grouped queries are
// those of chapter 10's problem, which is the forward pass.
//
//   q, o, do, dq: [batch, seq_q, heads_q,  head_dim]  bf16
//   k, v, dk, dv: [batch, seq_k, heads_kv, head_dim]  bf16
//   lse:          [batch, heads_q, seq_q]             fp32, natural logarithm
//
// Inputs are q, k, v, what the forward pass left (o, lse), and do, the gradient of o. With grouped
// queries dk and dv are the sums over the query heads of a group. Queries that see no key have
// dq = 0, and keys that no query sees have dk = dv = 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "chapters/10_flash_attention/problem.hpp"
#include "chapters/13_attention_backward/reference.hpp"
#include "common/harness/verdict/parallel.hpp"

namespace cookbook::attention::backward {

/// Keys up to which o and lse are exact. Beyond, they come from kSampledKeys keys, evenly spaced:
/// the gradients are right for any o and lse, and drawing inputs must not take minutes.
inline constexpr int kExactKeys = 1024, kSampledKeys = 64;

struct Problem {
  attention::Problem forward;
  std::shared_ptr<const std::vector<QueryFacts>> queries;  ///< by row; see begin_reference
  std::shared_ptr<const std::vector<char>> finite_keys;    ///< by row of k and v: all are finite
  static constexpr bool kExactOnIntegers = false;          // exponentials

  template <bool kCausal>
  static std::shared_ptr<AnyProblem> make_any(const Size& size, const Variant& variant) {
    return std::make_shared<ProblemHolder<Problem>>(make(size, variant, kCausal));
  }
  /// size: batch, heads_q, heads_kv, seq_q, seq_k, head_dim.
  static Problem make(const Size& size, const Variant& variant, bool causal = true) {
    Problem p{attention::Problem::make(size, variant, DType::bf16, causal), nullptr, nullptr};
    for (const char* tensor : {"do", "dq", "dk", "dv"}) {
      p.forward.misalign_elements |= variant.of(tensor).misalign_elements;
    }
    return p;
  }

  const Shape& shape() const { return forward.shape; }
  int head_dim() const { return forward.head_dim; }

  std::vector<TensorSpec> tensors() const {
    const std::int64_t q_rows = forward.q_rows(), k_rows = forward.k_rows(), d = head_dim();
    const auto matrix = [&](const char* name, std::int64_t rows, Role role) {
      return TensorSpec{name, DType::bf16, rows, d, shape().pitch, role};
    };
    return {matrix("q", q_rows, Role::input),   matrix("k", k_rows, Role::input),
            matrix("v", k_rows, Role::input),   matrix("o", q_rows, Role::input),
            matrix("do", q_rows, Role::input),  {"lse", DType::f32, q_rows, 1, 1, Role::input},
            matrix("dq", q_rows, Role::output), matrix("dk", k_rows, Role::output),
            matrix("dv", k_rows, Role::output)};
  }
  double bytes() const {
    const auto q_rows = static_cast<double>(forward.q_rows());
    return 2.0 * head_dim() * (4 * q_rows + 4 * static_cast<double>(forward.k_rows())) + 4 * q_rows;
  }
  /// Five matrix multiplications; the forward pass has two.
  double flops() const { return 2.5 * forward.flops(); }

  /// o and lse as the forward pass makes them of q, k and v.
  void complete_inputs(HostTensors& tensors) const {
    const Shape& s = shape();
    const std::int64_t rows = forward.q_rows();
    const HostTensor &q = tensors["q"], &k = tensors["k"], &v = tensors["v"];
    HostTensor &o = tensors["o"], &lse = tensors["lse"];
    parallel_for(rows, 64, [&](std::int64_t begin, std::int64_t end) {
      std::vector<double> query(head_dim()), key(head_dim()), sum(head_dim()), weights;
      for (std::int64_t row = begin; row < end; ++row) {
        const auto [b, i, head] = position(row);
        const int visible = std::max(0, s.visible_keys(i));
        const int step = s.seq_k <= kExactKeys ? 1 : std::max(1, visible / kSampledKeys);
        const double scale = 1 / std::sqrt(static_cast<double>(head_dim()));
        q.read_row(row, head_dim(), query.data());
        double max = kMinusInfinityOf<double>, total = 0;
        weights.clear();
        for (int j = 0; j < visible; j += step) {
          k.read_row(s.k_row(b, j, head), head_dim(), key.data());
          double score = 0;
          for (int x = 0; x < head_dim(); ++x) score += query[x] * key[x];
          weights.push_back(score * scale);
          max = std::max(max, score * scale);
        }
        if (max == kMinusInfinityOf<double>) max = 0;  // no key, or weights 0
        std::fill(sum.begin(), sum.end(), 0.0);
        for (std::size_t n = 0; n < weights.size(); ++n) {
          const double weight = std::exp(weights[n] - max);
          total += weight;
          v.read_row(s.k_row(b, static_cast<int>(n) * step, head), head_dim(), key.data());
          for (int x = 0; x < head_dim(); ++x) sum[x] += weight * key[x];
        }
        for (int x = 0; x < head_dim(); ++x) o.set(row, x, total == 0 ? 0 : sum[x] / total);
        lse.set(s.lse_index(b, i, head), 0,
                total == 0 ? kMinusInfinityOf<double> : max + std::log(total * step));
      }
    });
  }

  void begin_reference(const HostTensors& tensors) {
    auto of_queries = std::make_shared<std::vector<QueryFacts>>(forward.q_rows());
    parallel_for(forward.q_rows(), 256, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const auto [b, i, head] = position(row);
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

  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
                     double* value, double* bound) const {
    if (output == "dq") {
      query_gradient(tensors, row, value, bound);
    } else {
      key_gradient(tensors, output == "dk", row, value, bound);
    }
  }

 private:
  template <class T>
  static constexpr T kMinusInfinityOf = -std::numeric_limits<T>::infinity();

  struct Position {
    int batch, query, head;
  };
  /// Of a row of q.
  Position position(std::int64_t row) const {
    const Shape& s = shape();
    return {static_cast<int>(row / s.heads_q / s.seq_q),
            static_cast<int>(row / s.heads_q % s.seq_q), static_cast<int>(row % s.heads_q)};
  }

  void query_gradient(const HostTensors& tensors, std::int64_t row, double* value,
                      double* bound) const {
    const auto [b, i, head] = position(row);
    const Shape& s = shape();
    std::vector<double> q(head_dim()), k(head_dim()), d_o(head_dim()), v(head_dim());
    tensors["q"].read_row(row, head_dim(), q.data());
    tensors["do"].read_row(row, head_dim(), d_o.data());
    const double lse = tensors["lse"].at(s.lse_index(b, i, head), 0);
    GradientRow gradient(head_dim());
    bool masked_is_finite = true;
    for (int j = 0; j < s.seq_k; ++j) {
      const std::int64_t key = s.k_row(b, j, head);
      if (j >= s.visible_keys(i)) {
        masked_is_finite &= (*finite_keys)[key] != 0 && (*queries)[row].finite;
        continue;
      }
      tensors["k"].read_row(key, head_dim(), k.data());
      tensors["v"].read_row(key, head_dim(), v.data());
      const PairGradients pair = pair_gradients(q, k, d_o, v, lse, (*queries)[row]);
      gradient.add(pair.ds, pair.ds_error, k);
    }
    gradient.finish(1 / std::sqrt(static_cast<double>(head_dim())), masked_is_finite, value, bound);
  }

  /// A row of dk or of dv.
  void key_gradient(const HostTensors& tensors, bool of_key, std::int64_t row, double* value,
                    double* bound) const {
    const Shape& s = shape();
    const int kv_head = static_cast<int>(row % s.heads_kv), group = s.heads_q / s.heads_kv;
    const int j = static_cast<int>(row / s.heads_kv % s.seq_k);
    const int b = static_cast<int>(row / s.heads_kv / s.seq_k);
    std::vector<double> q(head_dim()), k(head_dim()), d_o(head_dim()), v(head_dim());
    tensors["k"].read_row(row, head_dim(), k.data());
    tensors["v"].read_row(row, head_dim(), v.data());
    GradientRow gradient(head_dim());
    bool masked_is_finite = true;
    for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (int i = 0; i < s.seq_q; ++i) {
        const std::int64_t query = s.q_row(b, i, head);
        const QueryFacts& facts = (*queries)[query];
        if (j >= s.visible_keys(i)) {
          masked_is_finite &= facts.finite && (*finite_keys)[row] != 0;
          continue;
        }
        tensors["q"].read_row(query, head_dim(), q.data());
        tensors["do"].read_row(query, head_dim(), d_o.data());
        const double lse = tensors["lse"].at(s.lse_index(b, i, head), 0);
        const PairGradients pair = pair_gradients(q, k, d_o, v, lse, facts);
        of_key ? gradient.add(pair.ds, pair.ds_error, q) : gradient.add(pair.p, pair.p_error, d_o);
      }
    }
    const double factor = of_key ? 1 / std::sqrt(static_cast<double>(head_dim())) : 1;
    gradient.finish(factor, masked_is_finite, value, bound);
  }
};

struct Buffers {
  const bf16 *q, *k, *v, *o, *d_o;
  const float* lse;
  bf16 *dq, *dk, *dv;
  const float* d_lse = nullptr;  // the gradient of lse, or null: the ladders have none
  static Buffers bind(const DevicePointers& at) {
    return {at.get<const bf16>("q"), at.get<const bf16>("k"),  at.get<const bf16>("v"),
            at.get<const bf16>("o"), at.get<const bf16>("do"), at.get<const float>("lse"),
            at.get<bf16>("dq"),      at.get<bf16>("dk"),       at.get<bf16>("dv")};
  }
};

using Level = LevelOf<Problem, Buffers>;

/// Calls launcher(std::integral_constant<int, head_dim>{}).
template <class Launcher>
void with_head_dim(const Problem& problem, Launcher&& launcher) {
  if (problem.head_dim() == 64) {
    launcher(std::integral_constant<int, 64>{});
  } else {
    launcher(std::integral_constant<int, 128>{});
  }
}

}  // namespace cookbook::attention::backward
