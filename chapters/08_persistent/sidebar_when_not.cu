// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar: when a persistent grid does not pay. Chapter 7's last kernel (one cluster per cluster
// tile) next to this chapter's levels, from less than one wave of tiles to many. Usage:
// chapter-8-when-not [M N K]...
#include "chapters/05_tensor_cores/sweep.hpp"
#include "chapters/08_persistent/linked_level.hpp"
#include "common/harness/run/arguments.hpp"

int main(int argc, char** argv) {
  using namespace cookbook::gemm;
  const cookbook::Chapter chapter = cookbook::chapter_8_entry();
  int status = 0;
  // Tiles of 256 x 256 for 66 clusters: a quarter of a wave, one wave, slightly more than one wave,
  // many waves; and many tiles with a very small K, where only the start and the stores matter.
  for (const auto& size : cookbook::product_sizes(argc, argv,
                                                  {{1024, 1024, 1024},
                                                   {2048, 2048, 2048},
                                                   {2304, 2048, 2048},
                                                   {4096, 4096, 4096},
                                                   {8192, 8192, 8192},
                                                   {8192, 8192, 128}})) {
    Sweep sweep(size, false, false);
    for (const char* name : {"multicast", "static", "hidden_epilogue", "stream_k"}) {
      sweep.add(name, [&] { return prepare_level(chapter, name, sweep.problem, sweep.buffers); });
    }
    status |= sweep.report();
  }
  return status;
}
