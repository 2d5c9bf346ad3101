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

namespace cookbook::attention::backward {

/// Keys up to which o and lse are exact. Beyond, they come from kSampledKeys keys, evenly spaced:
/// the gradients are right for any o and lse, and drawing inputs must not take minutes.
inline constexpr int kExactKeys = 1024, kSampledKeys = 64;

struct QueryFacts;  // reference.cpp

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
    if (p.shape().heads_q == 0) throw BadSize("attention backward: heads_q is at least 1");
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
  void complete_inputs(HostTensors& tensors) const;
  void begin_reference(const HostTensors& tensors);
  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
                     double* value, double* bound) const;
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
