// SPDX-License-Identifier: MIT
// Decode, level 2: GQA packed. The query heads that share a KV head become rows of one tile; with
// several queries, their rows as well. K and V are then read once for all of them, and tensor cores
// compute the scores and the output. Each warp loads its own keys through its own ring of shared
// memory, so the loop has no barrier.
#pragma once

#include "chapters/10_flash_attention/decode_level_1_split.cuh"
#include "chapters/10_flash_attention/level_3_tensor_cores.cuh"  // group
#include "chapters/10_flash_attention/tile.cuh"

namespace cookbook::attention {

template <class CaseT>
struct GqaPackedConfig : CaseT {
  static constexpr int kWarps = 4;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kRows = 16;    // query rows per block: (query, head) pairs of one KV head
  static constexpr int kBlockN = 16;  // keys per warp and step
  static constexpr int kStages = CaseT::kHeadDim == 128 ? 3 : 6;  // steps in flight, per warp
  static constexpr int kTileBytes = kBlockN * CaseT::kHeadDim * 2;
  struct Smem {
    alignas(1024) unsigned char k[kWarps][kStages][kTileBytes];
    alignas(1024) unsigned char v[kWarps][kStages][kTileBytes];
  };
  static constexpr int kMergePitch = CaseT::kHeadDim + 8;
  struct Merge {  // replaces Smem after the loop
    float o[kWarps][kRows][kMergePitch];
    float max[kWarps][kRows], sum[kWarps][kRows];
  };
  static constexpr size_t kSmemBytes = sizeof(Smem) > sizeof(Merge) ? sizeof(Smem) : sizeof(Merge);
};

/// Copies 16 rows of one head to this warp's tile, 16 bytes per lane and step. Rows from `rows` on
/// become zero.
template <class C, class T>
__device__ __forceinline__ void copy_keys(unsigned char* tile, const T* head, int64_t stride,
                                          int first_row, int rows) {
  constexpr int kChunks = C::kHeadDim / 8;  // of 16 bytes, per row
#pragma unroll
  for (int c = 0; c < C::kBlockN * kChunks; c += 32) {
    const int row = (c + lane_idx()) / kChunks, column = (c + lane_idx()) % kChunks * 8;
    const bool exists = first_row + row < rows;
    cp_async_zfill<16>(tile + tile_offset<C::kBlockN>(row, column),
                       head + (exists ? (first_row + row) * stride + column : 0), exists ? 16 : 0);
  }
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    gqa_packed_kernel(const typename C::Element* q, const typename C::Element* k,
                      const typename C::Element* v, Shares out, Shape shape, int row_tiles,
                      int keys_per_share, int64_t rows) {
  using T = typename C::Element;
  constexpr int kHeadDim = C::kHeadDim, kBlockN = C::kBlockN, kStages = C::kStages;
  auto& smem = *dynamic_shared<typename C::Smem>();
  const int lane = lane_idx(), warp = warp_idx();
  const int sharing = shape.heads_q / shape.heads_kv;  // query heads per KV head
  const int tile = static_cast<int>(blockIdx.x % row_tiles);
  const int kv_head = static_cast<int>(blockIdx.x / row_tiles % shape.heads_kv);
  const int64_t rest = blockIdx.x / row_tiles / shape.heads_kv;
  const int batch = static_cast<int>(rest % shape.batch);
  const int share = static_cast<int>(rest / shape.batch);

  // Row r of the tile is query r / sharing of head kv_head * sharing + r % sharing.
  const int packed_rows = shape.seq_q * sharing, first_row = tile * C::kRows;
  const auto q_row = [&](int r) {
    return shape.q_row(batch, r / sharing, kv_head * sharing + r % sharing);
  };
  // Step 1: the queries, as A operands.
  uint32_t a[kHeadDim / 16][4];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = first_row + lane / 4 + 8 * half;
    const T* row = q + q_row(min(r, packed_rows - 1)) * shape.pitch + 2 * (lane % 4);
#pragma unroll
    for (int d = 0; d < kHeadDim / 16; ++d) {
      a[d][half] = r < packed_rows ? load_vector<uint32_t>(row + 16 * d) : 0;
      a[d][half + 2] = r < packed_rows ? load_vector<uint32_t>(row + 16 * d + 8) : 0;
    }
  }

  // Step 2: this warp's steps are warp, warp + kWarps, ... of the block's keys.
  const int first_key = share * keys_per_share;
  const int last_query = min(first_row + C::kRows, packed_rows) - 1;
  const int end = min(first_key + keys_per_share, shape.visible_keys(last_query / sharing));
  const int all_steps = end <= first_key ? 0 : (end - first_key + kBlockN - 1) / kBlockN;
  const int steps = (all_steps - warp + C::kWarps - 1) / C::kWarps;
  const int64_t stride = shape.heads_kv * shape.pitch;
  const int64_t kv_offset = shape.k_row(batch, 0, kv_head * sharing) * shape.pitch;
  const auto key_of_step = [&](int step) {
    return first_key + (step * C::kWarps + warp) * kBlockN;
  };
  const auto copy = [&](int step) {
    if (step < steps) {
      const int stage = step % kStages;
      copy_keys<C>(smem.k[warp][stage], k + kv_offset, stride, key_of_step(step), end);
      copy_keys<C>(smem.v[warp][stage], v + kv_offset, stride, key_of_step(step), end);
    }
    cp_async_commit();  // even if it is empty: the waits count groups
  };
#pragma unroll
  for (int step = 0; step < kStages - 1; ++step) copy(step);

  float acc[kHeadDim / 2] = {};  // (16 rows, d) per warp
  RowStates states;
  for (int step = 0; step < steps; ++step) {
    cp_async_wait<kStages - 2>();
    __syncwarp();              // this step's tile has arrived; no lane reads the previous one
    copy(step + kStages - 1);  // overwrites the previous step's tile
    const unsigned char* k_tile = smem.k[warp][step % kStages];
    const unsigned char* v_tile = smem.v[warp][step % kStages];
    // Step 3: scores of 16 rows and 16 keys.
    float s[kBlockN / 2] = {};
#pragma unroll
    for (int d = 0; d < kHeadDim / 16; ++d) {
      uint32_t b[4];
      ldmatrix_x4(
          b, k_tile + tile_offset<kBlockN>(lane / 16 * 8 + lane % 8, 16 * d + lane / 8 % 2 * 8));
      mma_m16n8k16<T>(group(s, 0), a[d], {b[0], b[1]});
      mma_m16n8k16<T>(group(s, 1), a[d], {b[2], b[3]});
    }
    const int row = first_row + lane / 4, key = key_of_step(step);
    const int visible[2] = {min(end, shape.visible_keys(row / sharing)) - key,
                            min(end, shape.visible_keys((row + 8) / sharing)) - key};
    mask_scores(s, visible);
    // Step 4: softmax and output.
    float rescale[2];
    uint32_t p[1][4];
    if (lazy_softmax<8>(s, states, rescale, shape.scale_log2)) scale_rows(acc, rescale);
    pack_weights<T>(p, s);
#pragma unroll
    for (int d = 0; d < kHeadDim; d += 16) {
      uint32_t b[4];
      ldmatrix_x4_trans(b, v_tile + tile_offset<kBlockN>(lane % 16, d + lane / 16 * 8));
      mma_m16n8k16<T>(group(acc, d / 8), p[0], {b[0], b[1]});
      mma_m16n8k16<T>(group(acc, d / 8 + 1), p[0], {b[2], b[3]});
    }
  }

  // Step 5: merge the warps' softmaxes through shared memory.
  cp_async_wait<0>();
  __syncthreads();
  auto& merge = *dynamic_shared<typename C::Merge>();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = lane / 4 + 8 * half;
    const float sum = warp_sum<4>(states.sum[half]);
    if (lane % 4 == 0) merge.max[warp][r] = states.max[half], merge.sum[warp][r] = sum;
#pragma unroll
    for (int j = 0; j < kHeadDim / 8; ++j) {
      store_vector(&merge.o[warp][r][8 * j + 2 * (lane % 4)],
                   floatx2{acc[4 * j + 2 * half], acc[4 * j + 2 * half + 1]});
    }
  }
  __syncthreads();
  constexpr int kPerLane = kHeadDim / 32;
  for (int r = warp; r < C::kRows && first_row + r < packed_rows; r += C::kWarps) {
    Partial<kPerLane> partial;
    for (int w = 0; w < C::kWarps; ++w) {
      float o[kPerLane];
#pragma unroll
      for (int x = 0; x < kPerLane; ++x) o[x] = merge.o[w][r][x * 32 + lane];
      partial.merge(merge.max[w][r], merge.sum[w][r], o, shape.scale_log2);
    }
    const int64_t at = share * rows + q_row(first_row + r);
#pragma unroll
    for (int x = 0; x < kPerLane; ++x) out.o[at * kHeadDim + x * 32 + lane] = partial.o[x];
    if (lane == 0) out.max[at] = partial.max, out.sum[at] = partial.sum;
  }
}

struct GqaPacked : Level {
  static constexpr LevelText text{
      .name = "gqa_packed",
      .changed = "query heads of one KV head as rows of one tensor-core tile",
      .expect =
          "K and V are read once: heads_q / heads_kv times fewer bytes, at the speed at which "
          "memory streams",
      .cost = "half of the tile's rows idle when 8 heads share",
  };

  struct Plan {
    Problem problem;
    Buffers buffers;
    int row_tiles;
    SharedOut out;
  };
  static Support supports(const Problem& p, const DeviceInfo& device) {
    if (device.cc() < 80) return Support::no("needs mma.sync m16n8k16: compute capability 8.0");
    return supports_aligned_rows(p);
  }
  static Plan prepare(const Problem& p, const Buffers& buffers) {
    const Shape& s = p.shape;
    const int row_tiles = ceil_div(int64_t{s.seq_q} * (s.heads_q / s.heads_kv), 16);
    const int64_t blocks = int64_t{row_tiles} * s.heads_kv * s.batch;
    return {p, buffers, row_tiles, SharedOut(p, blocks, 4 * device_info().sm_count, 256)};
  }
  static Claims claims(const Problem& p) {
    const double once = 2.0 * p.head_dim * static_cast<double>(p.k_rows());
    const int tiles = ceil_div(int64_t{p.shape.seq_q} * (p.shape.heads_q / p.shape.heads_kv), 16);
    return {Accesses("global", "async_load", "k").bytes(once * tiles, Relation::at_most),
            Accesses("global", "async_load", "v").bytes(once * tiles, Relation::at_most),
            Accesses("global", "async_load", "k").sectors_per_request(16),  // 16 bytes per lane
            Accesses("global", "async_load", "v").sectors_per_request(16), faster_than_previous(2)};
  }
  static void run(const Plan& plan, Stream stream) {
    const Shape& s = plan.problem.shape;
    const SharedOut& out = plan.out;
    dispatch(plan.problem, plan.buffers, [&](auto c, auto* q, auto* k, auto* v, auto* o) {
      using C = GqaPackedConfig<decltype(c)>;
      using Combine = DecodeConfig<decltype(c)>;
      const Shares shares = out.at(C::kHeadDim);
      const int64_t blocks = int64_t{plan.row_tiles} * s.heads_kv * s.batch * out.shares;
      launch(gqa_packed_kernel<C>, {static_cast<unsigned>(blocks), C::kThreads, C::kSmemBytes},
             stream, q, k, v, shares, s, plan.row_tiles, out.keys_per_share, out.rows);
      launch(combine_kernel<Combine>,
             {static_cast<unsigned>(ceil_div(out.rows, Combine::kWarps)), Combine::kThreads},
             stream, shares, o, plan.buffers.lse, s, out.rows, out.shares);
    });
  }
};

}  // namespace cookbook::attention
