// SPDX-License-Identifier: MIT
// Sidebar: what is where. Which lanes of tensor memory a warp reaches; which rows of A, columns of
// B and accumulators each block of a pair holds, and a block alone; where the bytes of an atom of
// scales go; and in which order a block of level 4 uses it all (SIMT backend). Needs sm_100a.
// Usage: chapter-14-tensor-memory, or
//        chapter-14-tensor-memory --json FILE     the data of pictures (docs/pictures.md)
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chapters/14_blackwell/level_5_pairs.cuh"
#include "chapters/14_blackwell/problem.hpp"
#include "common/backend/backend.hpp"
#include "common/backend/marks.hpp"
#include "common/harness/run/arguments.hpp"
#include "common/harness/run/picture_data.hpp"

namespace cookbook::gemm {
namespace tensor_memory {

// ---- which lanes a warp reaches ----

constexpr int kWarps = 8, kQuarters = 4;  // of 32 lanes

/// Warp `warp` reads 32 columns of the lanes from 32 quarter on.
__global__ void __launch_bounds__(256) read_quarter(int warp, int quarter) {
  auto* address = dynamic_shared<uint32_t>();
  if (warp_idx() == 0) tmem_alloc(address, 32);
  __syncthreads();
  const uint32_t base = *address;
  if (warp_idx() == warp) {
    float values[32];
    tmem_load(values, base + (static_cast<uint32_t>(32 * quarter) << 16));
    tmem_wait_load(values);
  }
  __syncthreads();
  if (warp_idx() == 0) tmem_dealloc(base, 32);
}

/// By asking the model, in which a load from other lanes is an error. A GPU would only fail.
std::vector<double> reached_by(int warp) {
  std::vector<double> found;
  for (int quarter = 0; quarter < kQuarters; ++quarter) {
    try {
      launch(read_quarter, {dim3(1), dim3(32 * kWarps), sizeof(uint32_t)}, {}, warp, quarter);
      synchronize();
      found.push_back(32 * quarter);
    } catch (const std::exception&) {
      continue;  // other lanes
    }
  }
  return found;
}

// ---- what each block of a tile holds ----

using Pair = blackwell_pairs::Config;
struct Alone : blackwell_two_accumulators::Config {};
template <class C>
using SmemOf = std::conditional_t<C::kPair == 2, blackwell_pairs::Smem<Pair>,
                                  blackwell_two_accumulators::Smem<Alone>>;

/// One k-block of one tile. held: the stage of each block as it lies in shared memory; d: its lanes
/// and columns of tensor memory.
template <class C>
__global__ void __launch_bounds__(128)
    multiply(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
             uint16_t* held, float* d) {
  auto& smem = *dynamic_shared<SmemOf<C>>();
  constexpr bool kIsPair = C::kPair == 2;
  const int rank = kIsPair ? static_cast<int>(cluster_block_rank()) : 0;
  if (warp_idx() == 0) blackwell::allocate<C>(&smem.tmem);
  if (threadIdx.x == 0) {
    blackwell_two_accumulators::init_accumulator_barriers(smem, 4);
    init_barriers(smem, 1);
  }
  if constexpr (kIsPair) {
    cluster_sync();
  } else {
    __syncthreads();
  }
  const uint32_t base = smem.tmem;
  if (threadIdx.x == 0) {
    StageCursor<C::kStages> write;
    if constexpr (kIsPair) {
      blackwell_pairs::load_next(smem, write, &map_a, &map_b, TileIndex{0, 0}, 0, rank);
    } else {
      load_next(smem, write, &map_a, &map_b, TileIndex{0, 0}, 0);
    }
    if (rank == 0) {
      mbarrier_wait(&smem.full[0], 0);
      blackwell::mma_k_block(base, smem.stages[0], false);
      if constexpr (kIsPair) {
        tcgen05_commit_pair(&smem.multiplied[0]);
      } else {
        tcgen05_commit(&smem.multiplied[0]);
      }
    }
  }
  __syncwarp();
  mbarrier_wait(&smem.multiplied[0], 0);
  tcgen05_fence_after_thread_sync();
  constexpr int kElements = sizeof(smem.stages[0]) / 2;
  for (int i = threadIdx.x; i < kElements; i += 128) {
    held[rank * kElements + i] = reinterpret_cast<const uint16_t*>(&smem.stages[0])[i];
  }
  for (int c = 0; c < C::kTileN; c += 32) {
    float values[32];
    const uint32_t lanes = static_cast<uint32_t>(32 * warp_idx()) << 16;
    tmem_load(values, base + lanes + static_cast<uint32_t>(c));
    tmem_wait_load(values);
    for (int i = 0; i < 32; ++i) {
      d[(rank * 128 + static_cast<int>(threadIdx.x)) * C::kTileN + c + i] = values[i];
    }
  }
  tcgen05_fence_before_thread_sync();  // a precaution: the levels free without it
  if constexpr (kIsPair) {
    cluster_sync();
  } else {
    __syncthreads();
  }
  if (warp_idx() == 0) tmem_dealloc<C::kPair>(base, blackwell::kTmemColumns<C>);
}

float bf16_value(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

std::vector<double> first_and_count(const std::set<int>& found) {
  if (found.empty() || *found.rbegin() - *found.begin() + 1 != static_cast<int>(found.size())) {
    throw std::runtime_error("rows or columns that are no range");
  }
  return {static_cast<double>(*found.begin()), static_cast<double>(found.size())};
}

/// A[m][0] = m + 1, A[m][1] = -1, B[0][n] = 256, B[1][n] = -(n + 1), all exact; else 0. So every
/// number tells where it is from: the accumulator of (m, n) is 256 (m + 1) + n + 1.
template <class C>
PictureData held_by_blocks() {
  constexpr int kK = C::kBlockK;
  std::vector<bf16> a(C::kTileM * kK), b(kK * C::kTileN);
  for (int m = 0; m < C::kTileM; ++m) {
    a[m * kK] = __float2bfloat16(static_cast<float>(m + 1));
    a[m * kK + 1] = __float2bfloat16(-1.0f);
  }
  for (int n = 0; n < C::kTileN; ++n) {
    b[n] = __float2bfloat16(256.0f);
    b[C::kTileN + n] = __float2bfloat16(static_cast<float>(-(n + 1)));
  }
  using S = Stage<C>;
  DeviceMemory at_a(a.size() * 2, "a"), at_b(b.size() * 2, "b");
  DeviceMemory at_held(C::kPair * sizeof(S), "held");
  DeviceMemory at_d(size_t{C::kPair} * 128 * C::kTileN * 4, "d");
  at_a.copy_from_host(a.data(), at_a.bytes());
  at_b.copy_from_host(b.data(), at_b.bytes());
  launch(multiply<C>, {dim3(C::kPair), dim3(128), sizeof(SmemOf<C>), C::kPair}, {},
         S::A::map(at_a.as<bf16>(), C::kTileM, kK, kK),
         S::B::map(at_b.as<bf16>(), kK, C::kTileN, C::kTileN), at_held.as<uint16_t>(),
         at_d.as<float>());
  synchronize();
  std::vector<uint16_t> held(at_held.bytes() / 2);
  std::vector<float> d(at_d.bytes() / 4);
  at_held.copy_to_host(held.data(), at_held.bytes());
  at_d.copy_to_host(d.data(), at_d.bytes());
  std::vector<PictureData> blocks;
  for (int block = 0; block < C::kPair; ++block) {
    std::set<int> rows, columns, rows_of_c, columns_of_c;
    const uint16_t* stage = held.data() + block * sizeof(S) / 2;
    for (size_t i = 0; i < sizeof(S) / 2; ++i) {
      const auto value = static_cast<int>(bf16_value(stage[i]));
      if (i < S::A::kBytes / 2 && value > 0) rows.insert(value - 1);
      if (i >= S::A::kBytes / 2 && value < 0) columns.insert(-value - 1);
    }
    std::vector<double> row_of_lane, column_of_column;
    for (int lane = 0; lane < 128; ++lane) {
      for (int c = 0; c < C::kTileN; ++c) {
        const int value = static_cast<int>(d[(block * 128 + lane) * C::kTileN + c]) - 1;
        rows_of_c.insert(value / 256 - 1);
        columns_of_c.insert(value % 256);
        if (c == 0) row_of_lane.push_back(value / 256 - 1);
        if (lane == 0) column_of_column.push_back(value % 256);
      }
    }
    blocks.push_back(PictureData()
                         .set("rows_of_a", first_and_count(rows))
                         .set("columns_of_b", first_and_count(columns))
                         .set("rows_of_c", first_and_count(rows_of_c))
                         .set("columns_of_c", first_and_count(columns_of_c))
                         .set("row_of_lane", row_of_lane)
                         .set("column_of_column", column_of_column));
  }
  return PictureData()
      .set("level", C::kPair == 2 ? "pairs" : "two_accumulators")
      .set("block_k", kK)
      .set("stage_bytes", static_cast<double>(sizeof(S)))
      .set("blocks", blocks);
}

// ---- an atom of scales ----

using microscaling::kAtomBytes;

/// Two atoms, of the lower and the upper bytes of each place's number, to columns 0 and 4.
__global__ void __launch_bounds__(128) copy_atoms(const unsigned char* atoms, uint32_t* words) {
  struct Smem {
    alignas(128) unsigned char atoms[2 * kAtomBytes];
    uint64_t full, copied;
    uint32_t tmem;
  };
  auto& smem = *dynamic_shared<Smem>();
  if (warp_idx() == 0) tmem_alloc(&smem.tmem, 32);
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.full, 1);
    mbarrier_init(&smem.copied, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  const uint32_t base = smem.tmem;
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&smem.full, sizeof(smem.atoms));
    bulk_load(smem.atoms, atoms, sizeof(smem.atoms), &smem.full);
    mbarrier_wait(&smem.full, 0);
    const uint64_t source = tcgen05_descriptor<Swizzle::none>(smem.atoms, 0, 128);
    tcgen05_copy_scales(base, source);
    tcgen05_copy_scales(base + 4, tcgen05_descriptor_advance(source, kAtomBytes));
    tcgen05_commit(&smem.copied);
  }
  __syncwarp();
  mbarrier_wait(&smem.copied, 0);
  tcgen05_fence_after_thread_sync();
  float values[32];
  tmem_load(values, base + (static_cast<uint32_t>(32 * warp_idx()) << 16));
  tmem_wait_load(values);
  for (int c = 0; c < 8; ++c) words[threadIdx.x * 8 + c] = __float_as_uint(values[c]);
  tcgen05_fence_before_thread_sync();
  __syncthreads();
  if (warp_idx() == 0) tmem_dealloc(base, 32);
}

/// Of each lane, column and byte of tensor memory: which byte of the atom is there.
std::vector<double> scales() {
  std::vector<unsigned char> atoms(2 * kAtomBytes);
  for (int i = 0; i < kAtomBytes; ++i) {
    atoms[i] = static_cast<unsigned char>(i);
    atoms[kAtomBytes + i] = static_cast<unsigned char>(i >> 8);
  }
  DeviceMemory in(atoms.size(), "atoms"), out(128 * 8 * 4, "words");
  in.copy_from_host(atoms.data(), in.bytes());
  launch(copy_atoms, {dim3(1), dim3(128), 2 * kAtomBytes + 256}, {}, in.as<unsigned char>(),
         out.as<uint32_t>());
  synchronize();
  std::vector<uint32_t> words(128 * 8);
  out.copy_to_host(words.data(), out.bytes());
  std::vector<double> found;
  for (int lane = 0; lane < 128; ++lane) {
    for (int byte = 0; byte < 16; ++byte) {
      const auto part = [&](int column) {
        return words[lane * 8 + column + byte / 4] >> (8 * (byte % 4)) & 0xff;
      };
      found.push_back(part(0) | part(4) << 8);
    }
  }
  return found;
}

// ---- one block of level 4 ----

/// Three tiles of three k-blocks: the copies of TMA, each until a warp has waited for it, and what
/// happens in tensor memory, as numbers of marks.
void add_order(PictureData& data) {
  using C = blackwell_two_accumulators::Config;
  constexpr int kM = C::kTileM, kN = 3 * C::kTileN, kK = 3 * C::kBlockK;
  DeviceMemory a(size_t{kM} * kK * 2, "a"), b(size_t{kK} * kN * 2, "b"),
      c(size_t{kM} * kN * 2, "c");
  const TensorMap map_a = Stage<C>::A::map(a.as<bf16>(), kM, kK, kK);
  const TensorMap map_b = Stage<C>::B::map(b.as<bf16>(), kK, kN, kN);
  const auto run = [&] {
    launch(blackwell_two_accumulators::kernel<C>,
           {dim3(1), dim3(C::kThreads), sizeof(blackwell_two_accumulators::Smem<C>)}, {}, map_a,
           map_b, Output{c.as<bf16>(), kN}, Extents{kM, kN, kK});
    synchronize();
  };
  std::vector<PictureData> copies, events;
  std::vector<uint32_t> barriers;         // by stage
  std::vector<std::vector<double>> open;  // by stage: when a copy began
  for (const timeline::Event& event : marks_of(run)) {
    const auto when = static_cast<double>(event.clock);
    const auto stage = static_cast<size_t>(
        std::find(barriers.begin(), barriers.end(), event.object) - barriers.begin());
    const char* what = event.kind == timeline::Kind::tensor_alloc  ? "allocate"
                       : event.kind == timeline::Kind::tensor_mma  ? "mma"
                       : event.kind == timeline::Kind::tensor_load ? "read"
                       : event.kind == timeline::Kind::tensor_free ? "free"
                                                                   : nullptr;
    if (what != nullptr) {
      events.push_back(
          PictureData()
              .set("what", what)
              .set("when", when)
              .set("warp", event.warp)
              .set("columns", std::vector<double>{double(event.object), double(event.value)}));
    } else if (event.kind == timeline::Kind::expect_bytes) {
      if (stage == barriers.size()) barriers.push_back(event.object), open.emplace_back();
      open[stage].push_back(when);
    } else if (event.kind == timeline::Kind::wait_barrier && event.edge == timeline::Edge::end &&
               stage < barriers.size()) {
      copies.push_back(PictureData().set(
          "copy", std::vector<double>{static_cast<double>(stage), open[stage].front(), when}));
      open[stage].erase(open[stage].begin());
    }
  }
  data.set("size", std::vector<double>{kM, kN, kK}).set("copies", copies).set("events", events);
}
int run(const std::optional<std::string>& file) {
  if (device_info().cc_major != 10) {
    std::printf("needs sm_100a: COOKBOOK_SIMT_DEVICE=b200\n");
    return 0;
  }
  const std::vector<PictureData> tiles = {held_by_blocks<Alone>(), held_by_blocks<Pair>()};
  std::vector<PictureData> warps;
  for (int warp = 0; warp < kWarps && device_info().is_simt; ++warp) {
    warps.push_back(PictureData().set("lanes", reached_by(warp)));
  }
  PictureData data("tensor_memory", 14);
  data.set("warps", warps).set("tiles", tiles).set("byte_of_atom", scales());
  add_order(data);
  if (file) {
    data.write(*file);
  } else {
    std::printf("%s\n", data.json().c_str());
  }
  return 0;
}

}  // namespace tensor_memory
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  const auto file = cookbook::json_argument(argc, argv);
  if (!file) cookbook::take_no_arguments(argc, argv);
  try {
    return cookbook::gemm::tensor_memory::run(file);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chapter-14-tensor-memory: %s\n", error.what());
    return 1;
  }
}
