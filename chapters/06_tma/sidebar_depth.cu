// SPDX-License-Identifier: MIT
// needs: cuda sm_90a
// Sidebar: how many k-blocks to load ahead. Levels 6 (waits for each batch) and 8 (one batch in
// flight) with one to four stages of 48 KB. Usage: chapter-6-depth [M N K]...   (default 4096,
// square)
#include "chapters/06_tma/level_6_two_consumers.cuh"
#include "chapters/06_tma/level_8_tma_store.cuh"
#include "chapters/05_tensor_cores/sweep.hpp"
#include "common/harness/run/arguments.hpp"

namespace cookbook::gemm {
namespace {

template <int kDepth>
struct Waiting : two_consumers::Config {
  static constexpr int kStages = kDepth;
};
template <int kDepth>
struct InFlight : tma_store::Config<> {
  static constexpr int kStages = kDepth;
};

template <int kDepth>
void add_waiting(Sweep& sweep) {
  sweep.add("waits for each batch, " + std::to_string(kDepth) + " stages", [&] {
    const TmaPlan plan = TwoConsumers::prepare(sweep.problem, sweep.buffers);
    return [plan](Stream stream) { warp_specialised::LevelOn<Waiting<kDepth>>::run(plan, stream); };
  });
}

template <int kDepth>
void add_in_flight(Sweep& sweep) {
  sweep.add("one batch in flight,  " + std::to_string(kDepth) + " stages", [&] {
    const TmaPlan plan = TmaStore::prepare(sweep.problem, sweep.buffers);
    return [plan](Stream stream) { tma_store::launch_tiles<InFlight<kDepth>>(plan, stream); };
  });
}

}  // namespace
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  using namespace cookbook::gemm;
  int status = 0;
  for (const auto& size : cookbook::product_sizes(argc, argv, {{4096, 4096, 4096}})) {
    Sweep sweep(size, false, false);
    add_waiting<1>(sweep);
    add_waiting<2>(sweep);
    add_waiting<3>(sweep);
    add_waiting<4>(sweep);
    // With one batch in flight a stage is released one round later. A single stage would never be.
    add_in_flight<2>(sweep);
    add_in_flight<3>(sweep);
    add_in_flight<4>(sweep);
    status |= sweep.report();
  }
  return status;
}
