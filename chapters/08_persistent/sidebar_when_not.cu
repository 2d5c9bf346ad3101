// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar: when a persistent grid does not pay. Chapter 7's last kernel (a cluster a tile) beside
// this chapter's levels, from less than one wave of tiles to many. Usage: chapter-8-when-not [M N
// K]...
#include <memory>

#include "chapters/06_tma/sweep.hpp"
#include "chapters/08_persistent/level_3_hidden_epilogue.cuh"
#include "chapters/08_persistent/level_5_stream_k.cuh"
#include "common/harness/arguments.hpp"

namespace cookbook::gemm {
namespace {

template <class L>
void add_level(Sweep& sweep) {
  sweep.add(L::name, [&] {
    auto plan = std::make_shared<typename L::Plan>(L::prepare(sweep.problem, sweep.buffers));
    return [plan](Stream stream) { L::run(*plan, stream); };
  });
}

}  // namespace
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  using namespace cookbook::gemm;
  int status = 0;
  // Tiles of 256 x 256 for 66 clusters: a quarter of a wave, one wave, one wave and a bit, many;
  // and many tiles with hardly any k, where starting and storing are all there is.
  for (const auto& size : cookbook::product_sizes(argc, argv,
                                                  {{1024, 1024, 1024},
                                                   {2048, 2048, 2048},
                                                   {2304, 2048, 2048},
                                                   {4096, 4096, 4096},
                                                   {8192, 8192, 8192},
                                                   {8192, 8192, 128}})) {
    Sweep sweep(size, false, false);
    add_level<Multicast>(sweep);
    add_level<PersistentStatic>(sweep);
    add_level<HiddenEpilogue>(sweep);
    add_level<StreamK>(sweep);
    status |= sweep.report();
  }
  return status;
}
