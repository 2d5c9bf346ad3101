// SPDX-License-Identifier: MIT
// A small GEMM for planted bugs of the tensor-core chapters: a warp computes 16 x 8 of C from two
// stages that cp.async fills. M, N and K are multiples of 16, 8 and 64.
#pragma once

#include "common/problems/gemm.hpp"

namespace cookbook::planted {

enum class ProductBug {
  none,
  missing_wait,           // nobody waits for the copies
  stage_used_too_early,   // waits until two groups are under way, where one may be
  wrong_fragment_layout,  // B as if it were stored column by column
  one_sided_swizzle,      // A's rows are swizzled when they are written and not when they are read
};

template <ProductBug kBug>
struct Product : gemm::LevelT<bf16> {
  static constexpr LevelText text{.name = "product", .changed = "one planted bug"};
  static Claims claims(const gemm::ProblemT<bf16>&) { return {}; }
  static void run(const Plan& plan, Stream stream);  // product.cu
};

template <ProductBug kBug>
Ladder product_ladder() {
  auto ladder = ladder_over<gemm::ProblemT<bf16>>("product", "C = A B", {"M", "N", "K"});
  ladder.gpu_size = ladder.check_size = ladder.trace_size = {32, 16, 192};
  ladder.test_sizes = {{16, 8, 64}, {32, 16, 192}};
  ladder.levels = rows<Product<kBug>>();
  return ladder;
}

}  // namespace cookbook::planted
