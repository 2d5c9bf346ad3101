// SPDX-License-Identifier: MIT
/// @file
/// Shared by the levels of chapters 6 to 8; not the subject of any of them: which problems they
/// support, the kernel for problems that TMA cannot load, the kernels' small arguments, and the
/// host side.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "chapters/06_tma/operand.cuh"
#include "common/device/cuda.cuh"
#include "common/device/pair.cuh"
#include "common/device/raster_order.cuh"
#include "common/device/timeline.cuh"
#include "common/device/vector.cuh"
#include "common/device/warp.cuh"
#include "common/problems/gemm.hpp"

namespace cookbook::gemm {

/// Extents of the GEMM, as kernel arguments.
struct Extents {
  int m, n, k;
};

inline Extents extents_of(const Problem& p) {
  return {static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k)};
}

/// Where a kernel that does not store by TMA writes C.
struct Output {
  bf16* c;
  std::int64_t ldc;  // elements
};

/// Why TMA does not support this pitch, in elements ("... lda = 4095 is no multiple of 8"); empty
/// if it does.
inline std::string tma_pitch_problem(const char* name, std::int64_t pitch) {
  if (pitch % 8 == 0) return {};
  return "TMA steps in 16 bytes: " + std::string(name) + " = " + std::to_string(pitch) +
         " is no multiple of 8";
}

/// Supported if TMA can load A and B, row-major (NN) or in any layout.
inline Support supports_tma(const Problem& p, const DeviceInfo& device, bool any_layout = false) {
  if (device.cc() < 90) return Support::no("needs sm_90 (TMA)");
  if (!any_layout && (p.a_transposed || p.b_transposed)) {
    return Support::no(
        "reads row-major A and B only (NN); the last level supports all four layouts");
  }
  if (auto why = tma_pitch_problem("lda", p.lda); !why.empty()) return Support::no(why);
  if (auto why = tma_pitch_problem("ldb", p.ldb); !why.empty()) return Support::no(why);
  return Support::yes();
}

/// The same for kernels that use wgmma, which only Hopper (sm_90) has.
inline Support supports_wgmma(const Problem& p, const DeviceInfo& device, bool any_layout = false) {
  if (device.cc() != 90) return Support::no("needs sm_90a (wgmma)");
  return supports_tma(p, device, any_layout);
}

/// Whether TMA can store rows of n elements: it writes whole units of 16 bytes, so that a row of
/// another length would change what follows it.
inline bool tma_stores_rows_of(std::int64_t n) { return n % 8 == 0; }

/// The same for kernels that also store C by TMA.
inline Support supports_tma_store(const Problem& p, const DeviceInfo& device,
                                  bool any_layout = false) {
  if (auto why = tma_pitch_problem("ldc", p.ldc); !why.empty()) return Support::no(why);
  if (!tma_stores_rows_of(p.n)) {
    return Support::no("TMA stores whole units of 16 bytes: n = " + std::to_string(p.n) +
                       " is no multiple of 8");
  }
  return supports_wgmma(p, device, any_layout);
}

/// For what a tensor map cannot describe: K = 0, or a base address that is no multiple of 16 bytes
/// (known only once the buffers are allocated). One thread per element of C.
template <class C>
__global__ void __launch_bounds__(C::kThreads)
    fallback_gemm(const bf16* a, const bf16* b, std::int64_t a_row, std::int64_t a_col,
                  std::int64_t b_row, std::int64_t b_col, Output out, Extents e) {
  const std::int64_t index = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  const int row = static_cast<int>(index / e.n), col = static_cast<int>(index % e.n);
  if (row >= e.m) return;
  float sum = 0.0f;
  for (int i = 0; i < e.k; ++i) {
    sum = fmaf(__bfloat162float(a[row * a_row + i * a_col]),
               __bfloat162float(b[i * b_row + col * b_col]), sum);
  }
  out.c[row * out.ldc + col] = __float2bfloat16_rn(sum);
}

struct FallbackConfig {
  static constexpr int kThreads = 256;
};

/// What every level of these chapters prepares: its tensor maps, unless TMA is unsupported for the
/// problem.
struct TmaPlan {
  Problem problem;
  Buffers buffers;
  bool fallback = false;  // K = 0 or a misaligned base: fallback_gemm computes C
  TensorMap a{}, b{}, c{};

  bool is_empty() const { return problem.m == 0 || problem.n == 0; }
};

inline bool is_16_byte_aligned(const void* base) {
  return reinterpret_cast<std::uintptr_t>(base) % 16 == 0;
}

/// A plan with the tensor maps of A and B for tiles TileA and TileB.
template <class TileA, class TileB>
TmaPlan plan_operands(const Problem& p, const Buffers& at) {
  TmaPlan plan{p, at};
  if (plan.is_empty()) return plan;
  plan.fallback = p.k == 0 || !is_16_byte_aligned(at.a) || !is_16_byte_aligned(at.b);
  if (plan.fallback) return plan;
  plan.a = TileA::map(at.a, p.a_rows(), p.a_cols(), p.lda);
  plan.b = TileB::map(at.b, p.b_rows(), p.b_cols(), p.ldb);
  return plan;
}

/// TMA instructions that fetch A in one launch: one per block, k-block and panel.
template <class C>
double boxes_of_a(const Problem& p) {
  return C::kCluster *
         static_cast<double>(blocks_for(p.m, p.n, C::kBlockM * C::kCluster, C::kBlockN)) *
         ceil_div(static_cast<int>(p.k), C::kBlockK) * Stage<C>::A::kPanels;
}

/// True if no work is left: C is empty, or fallback_gemm was launched instead.
inline bool launched_fallback(const TmaPlan& plan, Stream stream) {
  if (plan.is_empty()) return true;
  if (!plan.fallback) return false;
  const Problem& p = plan.problem;
  const std::int64_t blocks = (p.m * p.n + FallbackConfig::kThreads - 1) / FallbackConfig::kThreads;
  launch(fallback_gemm<FallbackConfig>,
         {dim3(static_cast<unsigned>(blocks)), dim3(FallbackConfig::kThreads)}, stream,
         plan.buffers.a, plan.buffers.b, p.a_transposed ? std::int64_t{1} : p.lda,
         p.a_transposed ? p.lda : std::int64_t{1}, p.b_transposed ? std::int64_t{1} : p.ldb,
         p.b_transposed ? p.ldb : std::int64_t{1}, Output{plan.buffers.c, p.ldc}, extents_of(p));
  return true;
}

/// Calls f with the operands' majors as constants: std::integral_constant<Major, ...>.
template <class F>
decltype(auto) with_majors(const Problem& p, F&& f) {
  constexpr std::integral_constant<Major, Major::k> k{};
  constexpr std::integral_constant<Major, Major::mn> mn{};
  if (p.a_transposed) return p.b_transposed ? f(mn, k) : f(mn, mn);
  return p.b_transposed ? f(k, k) : f(k, mn);
}

/// Raster order: tiles from left to right, then down. blockIdx.x is a tile's index in it, until
/// chapter 7 changes the order.
__host__ __device__ __forceinline__ TileIndex row_major_tile(int block, int tiles_n) {
  return {block / tiles_n, block % tiles_n};
}

/// The same as a policy of a Config.
struct RowMajorOrder {
  static unsigned blocks(int tiles_m, int tiles_n) {
    return static_cast<unsigned>(tiles_m) * static_cast<unsigned>(tiles_n);
  }
  /// The tile of block `block`; false if it has none.
  static __host__ __device__ bool tile(int block, int /*tiles_m*/, int tiles_n, TileIndex& tile) {
    tile = row_major_tile(block, tiles_n);
    return true;
  }
};

/// C[row][col], C[row][col + 1] = low, high where they are inside C; col is even.
__device__ __forceinline__ void store_two(const Output& out, const Extents& e, int row, int col,
                                          float low, float high) {
  if (row >= e.m || col >= e.n) return;
  bf16* destination = out.c + row * out.ldc + col;
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(destination) % 4 == 0;
  if (is_aligned && col + 1 < e.n) {
    store_vector(destination, to_pair<bf16>(low, high));  // [pair]
  } else {
    destination[0] = __float2bfloat16_rn(low);
    if (col + 1 < e.n) destination[1] = __float2bfloat16_rn(high);
  }
}

/// Writes a warpgroup's 64 x kN accumulators (layout: wgmma.cuh) with their top left at (row, col),
/// directly from registers: eight rows of 16 bytes per instruction.
template <int kAccumulators>
__device__ __forceinline__ void store_accumulators(const float (&acc)[kAccumulators],
                                                   const Output& out, const Extents& e, int row,
                                                   int col) {
  row += warp_idx() % 4 * 16 + lane_idx() / 4;
  col += lane_idx() % 4 * 2;
#pragma unroll
  for (int j = 0; j < kAccumulators / 4; ++j) {
    store_two(out, e, row, col + 8 * j, acc[4 * j], acc[4 * j + 1]);
    store_two(out, e, row + 8, col + 8 * j, acc[4 * j + 2], acc[4 * j + 3]);
  }
}

/// The epilogue of levels 2 to 7: all accumulators of a warpgroup, 64 rows of C per wgmma. Its
/// first element of C is (row, col).
template <int kMmaM, int kAccumulators>
__device__ __forceinline__ void store_accumulators(float (&acc)[kMmaM][kAccumulators],
                                                   const Output& out, const Extents& e, int row,
                                                   int col) {
  wgmma_fence_operand(acc);  // the accumulators are read only from here
  timeline::begin(timeline::Kind::store);
#pragma unroll
  for (int i = 0; i < kMmaM; ++i) store_accumulators(acc[i], out, e, row + 64 * i, col);
  timeline::end(timeline::Kind::store);
}

/// Host side of the levels with wgmma: row-major A and B, one block per tile of C. A level adds its
/// texts, its claims and its kernel.
template <class C>
struct WgmmaLevel : LevelT<bf16> {
  using Config = C;
  using Plan = TmaPlan;

  static Support supports(const Problem& p, const DeviceInfo& device) {
    return supports_wgmma(p, device);
  }
  static Plan prepare(const Problem& p, const Buffers& at) {
    return plan_operands<typename Stage<C>::A, typename Stage<C>::B>(p, at);
  }
  /// Launches `kernel` with one block per tile and `smem_bytes` of shared memory per block.
  static void launch_tiles(void (*kernel)(TensorMap, TensorMap, Output, Extents), int smem_bytes,
                           const Plan& plan, Stream stream) {
    if (launched_fallback(plan, stream)) return;
    const Problem& p = plan.problem;
    launch(kernel,
           {dim3(blocks_for(p.m, p.n, C::kBlockM, C::kBlockN)), dim3(C::kThreads),
            static_cast<size_t>(smem_bytes)},
           stream, plan.a, plan.b, Output{plan.buffers.c, p.ldc}, extents_of(p));
  }
  /// TMA instructions that fetch A: all tiles, k-blocks and panels of the problem.
  static double boxes_of_a(const Problem& p) { return gemm::boxes_of_a<C>(p); }
};

}  // namespace cookbook::gemm
