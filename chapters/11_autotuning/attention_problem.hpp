// SPDX-License-Identifier: MIT
// Chapter 10's problem with the mask as one more extent, so that full and causal attention are
// shapes of one space: they need different tiles, as large and small GEMMs do. The extent is the
// number of visible halves of the matrix of scores: 2 is full, 1 is causal.
#pragma once

#include "chapters/10_flash_attention/problem.hpp"

namespace cookbook::attention::tuned {

struct Problem : attention::Problem {
  static Problem make(const Size& size, const Variant& variant) {
    if (size.size() != 7 || (size[6] != 1 && size[6] != 2)) {
      throw BadSize(
          "attention takes batch x heads_q x heads_kv x seq_q x seq_k x head_dim x halves, the "
          "last 1 (causal) or 2 (full)");
    }
    return {attention::Problem::make({size.begin(), size.end() - 1}, variant, DType::bf16,
                                     size[6] == 1)};
  }
  Size size() const {
    return {shape.batch, shape.heads_q, shape.heads_kv,      shape.seq_q,
            shape.seq_k, head_dim,      shape.causal ? 1 : 2};
  }
};

}  // namespace cookbook::attention::tuned
