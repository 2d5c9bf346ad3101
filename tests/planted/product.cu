// SPDX-License-Identifier: MIT
// The kernels of product.hpp.
#include "tests/planted/product.hpp"

#include "common/device/cp_async.cuh"
#include "common/device/mma.cuh"
#include "tests/planted/every_bug.hpp"

namespace cookbook::planted {

template <ProductBug kBug>
__global__ void product(const bf16* a, int64_t lda, const bf16* b, int64_t ldb, bf16* c,
                        int64_t ldc, int k) {
  constexpr int kStep = 64;  // of k: 8 pieces of 16 bytes in a row of A
  __shared__ uint4 a_stage[2][16][8];
  __shared__ uint4 b_stage[2][kStep];  // 8 columns a row
  const int lane = threadIdx.x, tiles = k / kStep;
  a += blockIdx.y * 16 * lda;
  b += blockIdx.x * 8;
  c += blockIdx.y * 16 * ldc + blockIdx.x * 8;

  const auto fill = [&](int tile) {
    const int stage = tile % 2;
    for (int i = lane; i < 16 * 8; i += 32) {
      const int row = i / 8, piece = i % 8;
      cp_async<16>(&a_stage[stage][row][piece ^ (row % 8)],
                   a + row * lda + tile * kStep + piece * 8);
    }
    for (int row = lane; row < kStep; row += 32) {
      cp_async<16>(&b_stage[stage][row], b + (tile * kStep + row) * ldb);
    }
  };
  float sums[4] = {};
  fill(0);
  cp_async_commit();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) fill(tile + 1);
    cp_async_commit();
    if constexpr (kBug == ProductBug::stage_used_too_early) {
      cp_async_wait<2>();
    } else if constexpr (kBug != ProductBug::missing_wait) {
      cp_async_wait<1>();
    }
    __syncthreads();
    for (int step = 0; step < kStep / 16; ++step) {
      uint32_t a_part[4], b_part[2];
      const int row = lane % 16, piece = 2 * step + lane / 16;
      const int at = kBug == ProductBug::one_sided_swizzle ? piece : piece ^ (row % 8);
      ldmatrix_x4(a_part, &a_stage[tile % 2][row][at]);
      if constexpr (kBug == ProductBug::wrong_fragment_layout) {
        ldmatrix_x2(b_part, &b_stage[tile % 2][16 * step + row]);
      } else {
        ldmatrix_x2_trans(b_part, &b_stage[tile % 2][16 * step + row]);
      }
      mma_m16n8k16<bf16>(sums, a_part, b_part);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    c[(lane / 4 + i / 2 * 8) * ldc + lane % 4 * 2 + i % 2] = __float2bfloat16(sums[i]);
  }
}

template <ProductBug kBug>
void Product<kBug>::run(const Plan& plan, Stream stream) {
  const auto& p = plan.problem;
  const auto& at = plan.buffers;
  launch(product<kBug>,
         {dim3(static_cast<unsigned>(p.n / 8), static_cast<unsigned>(p.m / 16)), dim3(32)}, stream,
         at.a, p.lda, at.b, p.ldb, at.c, p.ldc, static_cast<int>(p.k));
}

auto all_product = every_bug<ProductBug, ProductBug::one_sided_swizzle, Product>();

}  // namespace cookbook::planted
