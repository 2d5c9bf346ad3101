// SPDX-License-Identifier: MIT
// needs: cuda sm_90a
// Sidebar: the last level's kernel with other tiles, stages, clusters, group sizes and schedules,
// all timed interleaved with cuBLAS. Usage: chapter-8-configs [M N K LAYOUT]...   LAYOUT: NN NT TN
// TT
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "chapters/06_tma/sweep.hpp"
#include "chapters/08_persistent/level_6_any_shape.cuh"
#include "common/harness/arguments.hpp"

namespace cookbook::gemm {
namespace {

using any_shape::Config;
using any_shape::Schedule;

constexpr Schedule kCoop = Schedule::cooperative, kPing = Schedule::ping_pong;

struct Candidate {
  std::string name;
  std::function<any_shape::Plan(const Problem&, const Buffers&)> prepare;
};

/// One configuration; `share`: the last wave's tiles are cut into k-blocks (stream-K).
template <class C>
Candidate candidate(bool share, int group = C::kGroup) {
  char name[96];
  std::snprintf(name, sizeof name, "%-9s %dx%dx%d, %d stages, cluster %d, group %d%s",
                C::kSchedule == kPing ? "ping-pong" : "coop", C::kBlockM, C::kBlockN, C::kBlockK,
                C::kStages, C::kCluster, group, share ? ", stream-K" : "");
  return {name, [=](const Problem& p, const Buffers& at) {
            const int tiles = share ? any_shape::predict<C>(p).tiles_to_share : 0;
            any_shape::Plan plan = any_shape::prepare_with<C>(p, at, tiles);
            plan.work.group = group;
            return plan;
          }};
}

/// The kernel for few rows or columns of C. It also supports one, which `any_shape` leaves to
/// gemv.cuh.
any_shape::Plan prepare_skinny(const Problem& p, const Buffers& at) {
  if (!any_shape::is_skinny(any_shape::gemv_of(p, at), device_info().sm_count)) {
    throw std::invalid_argument("not for this shape");
  }
  return any_shape::prepare_skinny(p, at);
}

std::vector<Candidate> candidates() {
  using Large = any_shape::Large;
  std::vector<Candidate> all = {
      candidate<Large>(false),
      candidate<Large>(true),
      candidate<Large>(false, 2),
      candidate<Large>(false, 4),
      candidate<Large>(false, 16),
      candidate<Config<128, 256, 64, 4, 1, 16, kCoop>>(false),
      candidate<Config<128, 256, 64, 4, 1, 16, kCoop>>(true),
      candidate<Config<256, 128, 64, 4, 1, 8, kCoop>>(false),
      candidate<Config<256, 192, 64, 3, 2, 4, kCoop>>(false),
      candidate<Config<128, 192, 64, 5, 2, 8, kCoop>>(false),
      candidate<Config<128, 192, 64, 5, 2, 8, kPing>>(false),
      candidate<Config<64, 256, 64, 5, 2, 16, kPing>>(false),
      candidate<Config<128, 128, 64, 6, 2, 8, kPing>>(false),
      candidate<Config<128, 128, 64, 6, 2, 8, kCoop>>(false),
      candidate<Config<128, 128, 64, 6, 2, 8, kCoop>>(true),
      candidate<Config<128, 128, 128, 3, 2, 8, kCoop>>(false),
      candidate<any_shape::Medium>(false),
      candidate<any_shape::Medium>(true),
      candidate<Config<64, 128, 64, 8, 2, 8, kPing>>(false),
      candidate<Config<64, 128, 64, 8, 1, 8, kPing>>(false),
      candidate<Config<64, 128, 64, 8, 1, 8, kPing>>(true),
      candidate<any_shape::Small>(false),
      candidate<any_shape::Small>(true),
      candidate<Config<128, 64, 64, 8, 2, 8, kCoop>>(false),
      {"few rows or columns (skinny)", prepare_skinny},
      {"any_shape (chosen)", AnyShape::prepare},
  };
  for (const any_shape::TileKernel& kernel : any_shape::kTileKernels) {  // what it chooses from
    char name[96];
    std::snprintf(name, sizeof name, "choose.hpp: %dx%d, cluster %d, kernel %d", kernel.m, kernel.n,
                  kernel.cluster, static_cast<int>(kernel.tiles));
    all.push_back({name, [tiles = kernel.tiles](const Problem& p, const Buffers& at) {
                     return any_shape::prepare_tiles(tiles, p, at);
                   }});
  }
  return all;
}

int sweep_all(const Size& size, bool a_transposed, bool b_transposed) {
  Sweep sweep(size, a_transposed, b_transposed);
  for (const Candidate& each : candidates()) {
    sweep.add(each.name, [&] {
      // A shared_ptr, because a std::function must be copyable and a plan owns memory.
      auto plan = std::make_shared<any_shape::Plan>(each.prepare(sweep.problem, sweep.buffers));
      return [plan](Stream stream) { AnyShape::run(*plan, stream); };
    });
  }
  return sweep.report();
}

}  // namespace
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  using cookbook::gemm::sweep_all;
  const std::string accepted = "[M N K LAYOUT]..., LAYOUT being NN, NT, TN or TT";
  std::vector<std::pair<cookbook::Size, std::string>> wanted;
  for (int i = 1; i < argc; i += 4) {  // read all sizes first: a run takes minutes
    const cookbook::Size size = cookbook::product_size(argc, argv, i, accepted);
    const std::string layout = i + 3 < argc ? argv[i + 3] : "";
    if (layout != "NN" && layout != "NT" && layout != "TN" && layout != "TT") {
      cookbook::refuse_argument(argv, accepted, layout);
    }
    wanted.push_back({size, layout});
  }
  int status = 0;
  for (const auto& [size, layout] : wanted) {
    status |= sweep_all(size, layout[0] == 'T', layout[1] == 'T');
  }
  if (argc > 1) return status;
  for (const cookbook::Size& size : std::vector<cookbook::Size>{{4096, 4096, 4096},
                                                                {8192, 8192, 8192},
                                                                {4096, 14336, 4096},
                                                                {8192, 28672, 8192},
                                                                {128, 8192, 8192},
                                                                {1024, 1024, 1024},
                                                                {2048, 2048, 2048},
                                                                {4095, 4095, 4096}}) {
    status |= sweep_all(size, false, false);
  }
  return status | sweep_all({4095, 4095, 4096}, false, true);
}
