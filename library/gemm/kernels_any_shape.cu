// SPDX-License-Identifier: MIT
// The kernels of all candidates, in a file of their own because several programs link them.
#include "library/gemm/any_shape.cuh"
#include "library/gemm/gemv.cuh"
#include "library/gemm/short_k.cuh"
#include "library/gemm/skinny.cuh"
#include "library/gemm/split_k.cuh"
#include "library/gemm/stream_k_tiles.cuh"
#include "library/gemm/whole_tiles.cuh"

namespace cookbook::gemm::any_shape {
namespace {

//                           M    N    K  stages  cluster  group
using Large = Config<128, 256, 64, 4, 2, 8, Schedule::cooperative>;
using Medium = Config<128, 128, 64, 6, 1, 8, Schedule::cooperative>;
using Small = Config<128, 64, 64, 8, 1, 8, Schedule::cooperative>;
using PingPong64 = Config<64, 256, 64, 5, 1, 16, Schedule::ping_pong>;
using PingPong128 = Config<128, 192, 64, 5, 2, 8, Schedule::ping_pong>;

/// The plan with the configuration that has the candidate's tile.
template <class... Configs>
Plan prepare_whole_of(const Candidate& c, const Problem& p, const Buffers& at) {
  Plan plan;
  const auto prepared = [&](auto config) {
    using C = decltype(config);
    if (c.m != C::kBlockM || c.n != C::kBlockN || c.transposed != C::kTransposed) return false;
    plan = prepare_whole<C>(p, at);
    return true;
  };
  if (!(prepared(Configs{}) || ...)) throw std::logic_error("no kernel has this tile");
  return plan;
}

/// cut: the tiles of the last wave are cut along K.
template <class C>
Plan prepare_persistent(const Problem& p, const Buffers& at, bool cut) {
  const Work work = work_of(p, C::kBlockM * C::kCluster, C::kBlockN, C::kBlockK, C::kGroup);
  return prepare_with<C>(p, at, cut ? work.tiles() % (grid_blocks<C>() / C::kCluster) : 0);
}

}  // namespace

Plan prepare(const Candidate& c, const Problem& p, const Buffers& at, int splits) {
  switch (c.kernel) {
    case Kernel::gemv: return prepare_gemv(p, at);
    case Kernel::short_k: return prepare_short_k(p, at);
    case Kernel::skinny: return prepare_skinny(p, at);
    case Kernel::cluster_k: return prepare_skinny(p, at, splits);
    case Kernel::split_k:
      return c.n == 32    ? prepare_split_k<1, 32>(p, at, splits)
             : c.n == 96  ? prepare_split_k<2, 96>(p, at, splits)
             : c.n == 160 ? prepare_split_k<2, 160>(p, at, splits)
                          : prepare_split_k<2, 256>(p, at, splits);
    case Kernel::any_pitch:
    case Kernel::stream_k: {
      const bool cut = c.kernel == Kernel::stream_k;
      return c.n == 256   ? prepare_persistent<Large>(p, at, cut)
             : c.n == 128 ? prepare_persistent<Medium>(p, at, cut)
                          : prepare_persistent<Small>(p, at, cut);
    }
    case Kernel::whole: break;
  }
  if (c.ping_pong && c.n == 256) return prepare_with<PingPong64>(p, at, 0);
  if (c.ping_pong) {
    Plan plan = prepare_with<PingPong128>(p, at, 0);
    if (p.k > 12288) plan.work.group = 4;  // so that the rows of A of a group stay in L2
    return plan;
  }
  //                                  M    N  stages warpgroups
  return prepare_whole_of<TileConfig<64, 64, 12, 1>, TileConfig<64, 128, 8, 1>,
                          TileConfig<128, 256, 4, 2, true>, TransposedConfig<64, 96, 10, 1>,
                          TransposedConfig<64, 160, 7, 1>, TransposedConfig<64, 192, 6, 1>,
                          TransposedConfig<128, 96, 7, 2>, TransposedConfig<128, 112, 7, 2>,
                          TransposedConfig<128, 128, 7, 2>, TransposedConfig<128, 144, 6, 2>,
                          TransposedConfig<128, 176, 5, 2>, TransposedConfig<128, 208, 5, 2>>(c, p,
                                                                                              at);
}

}  // namespace cookbook::gemm::any_shape
