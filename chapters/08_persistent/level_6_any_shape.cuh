// SPDX-License-Identifier: MIT
// Level 6: all techniques at once, for any shape: tiles chosen by size, rows of any pitch.
#pragma once

#include <algorithm>
#include <limits>

#include "chapters/08_persistent/choose.hpp"
#include "chapters/08_persistent/cut_tiles.cuh"
#include "chapters/08_persistent/gemv.cuh"
#include "chapters/08_persistent/short_k.cuh"
#include "chapters/08_persistent/skinny.cuh"
#include "chapters/08_persistent/split_k.cuh"
#include "chapters/08_persistent/whole_tiles.cuh"

namespace cookbook::gemm {

namespace any_shape {

//                           M    N    K  stages  cluster  group
using Large = Config<128, 256, 64, 4, 2, 8, Schedule::cooperative>;   // many tiles
using Medium = Config<128, 128, 64, 6, 1, 8, Schedule::cooperative>;  // if those are too few
using Small = Config<128, 64, 64, 8, 1, 8, Schedule::cooperative>;    // if those are too few

/// The plan of the configuration that is predicted to be fastest: its tiles assigned whole, or
/// those of the last wave cut into k-blocks.
template <class... Configs>
Plan prepare_best(const Problem& p, const Buffers& at) {
  const Prediction guesses[] = {predict<Configs>(p)...};
  Plan (*const prepare[])(const Problem&, const Buffers&, int) = {&prepare_with<Configs>...};
  const auto clocks = [](const Prediction& guess) { return std::min(guess.whole, guess.shared); };
  size_t best = 0;
  for (size_t i = 1; i < sizeof...(Configs); ++i) {
    if (clocks(guesses[i]) < clocks(guesses[best])) best = i;
  }
  const bool share = guesses[best].shared < guesses[best].whole;
  return prepare[best](p, at, share ? guesses[best].tiles_to_share : 0);
}

/// A padded copy has rows on lines.
inline RowsOfB rows_of_b_in(const Problem& p, const Buffers& at) {
  const bool on_lines = p.b_transposed || p.ldb % 64 == 0 || !rows_are_16_byte_aligned(at.b, p.ldb);
  return on_lines ? RowsOfB::on_lines : RowsOfB::off_lines;
}

/// The plan of a GEMM of which TMA stores C, with these tiles. A template only for the sake of
/// `extern template` below.
template <class = void>
Plan prepare_tiles(Tiles tiles, const Problem& p, const Buffers& at) {
  constexpr Schedule kPing = Schedule::ping_pong;
  switch (tiles) {  //                             M    N  stages cluster warpgroups
    case Tiles::one_64x64: return prepare_whole<TileConfig<64, 64, 12, 1, 1>>(p, at);
    case Tiles::one_64x128: return prepare_whole<TileConfig<64, 128, 8, 1, 1>>(p, at);
    case Tiles::turned_64x96: return prepare_whole<TurnedConfig<64, 96, 10, 1>>(p, at);
    case Tiles::turned_64x160: return prepare_whole<TurnedConfig<64, 160, 7, 1>>(p, at);
    case Tiles::turned_64x192: return prepare_whole<TurnedConfig<64, 192, 6, 1>>(p, at);
    case Tiles::turned_128x96: return prepare_whole<TurnedConfig<128, 96, 7, 2>>(p, at);
    case Tiles::turned_128x112: return prepare_whole<TurnedConfig<128, 112, 7, 2>>(p, at);
    case Tiles::turned_128x128: return prepare_whole<TurnedConfig<128, 128, 7, 2>>(p, at);
    case Tiles::turned_128x144: return prepare_whole<TurnedConfig<128, 144, 6, 2>>(p, at);
    case Tiles::turned_128x176: return prepare_whole<TurnedConfig<128, 176, 5, 2>>(p, at);
    case Tiles::turned_128x208: return prepare_whole<TurnedConfig<128, 208, 5, 2>>(p, at);
    case Tiles::loop_128x256: return prepare_whole<TileConfig<128, 256, 4, 1, 2, true>>(p, at);
    case Tiles::ping_64x256: return prepare_with<Config<64, 256, 64, 5, 1, 16, kPing>>(p, at, 0);
    case Tiles::ping_128x192: break;
  }
  Plan plan = prepare_with<Config<128, 192, 64, 5, 2, 8, kPing>>(p, at, 0);
  if (p.k > 12288) plan.work.group = 4;  // so that the rows of A of a group stay in L2
  return plan;
}

// Compiled once, in kernels_any_shape.cu: 118 kernels, which every file that includes this one
// would otherwise compile again.
extern template Plan prepare_tiles<>(Tiles, const Problem&, const Buffers&);
extern template Plan prepare_best<Large, Medium, Small>(const Problem&, const Buffers&);
extern template Plan prepare_with<Large>(const Problem&, const Buffers&, int);
extern template Plan prepare_with<Medium>(const Problem&, const Buffers&, int);
extern template Plan prepare_with<Small>(const Problem&, const Buffers&, int);
extern template Plan prepare_gemv<8>(const Problem&, const Buffers&);
extern template Plan prepare_gemv<1>(const Problem&, const Buffers&);
extern template Plan prepare_skinny_for<Major::k>(const Problem&, const Buffers&, const Gemv&);
extern template Plan prepare_skinny_for<Major::mn>(const Problem&, const Buffers&, const Gemv&);
extern template Plan prepare_short_k<>(const Problem&, const Buffers&, const Gemv&);
extern template Plan prepare_splitting_for<Major::k>(const Problem&, const Buffers&, int);
extern template Plan prepare_splitting_for<Major::mn>(const Problem&, const Buffers&, int);
extern template Plan prepare_split_k<>(SplitTiles, const Problem&, const Buffers&, int);

}  // namespace any_shape

struct AnyShape : LevelT<bf16> {
  using Plan = any_shape::Plan;
  static constexpr LevelText text{
      .name = "any_shape",
      .changed =
          "tiles and schedule chosen by shape; operands with odd pitches are copied to padded rows",
      .expect =
          "the best level below at every size; 3.5x and more of cuBLAS where a pitch is odd; one "
          "row or column: reads at 0.85 of the roof; 2 to 64 take little longer than one",
      .cost = "21 kernels for tiles, others for one and for few vectors; workspace for odd pitches",
  };

  static Claims claims(const Problem& p) {
    if (p.m == 1) {  // B, in loads of 16 bytes, and each byte once
      return {global_loads("b").coalesced(), global_loads("b").sectors_per_request(16),
              global_loads("b").bytes(2.0 * static_cast<double>(p.n * p.k)),
              against_library("cuBLAS", 0.97)};
    }
    if (p.m <= any_shape::kFewVectors && p.m < p.n) {  // the same by TMA: each box once
      const double tiles = ceil_div(static_cast<int>(p.n), 64);
      return {tma_loads("b").requests(tiles * ceil_div(static_cast<int>(p.k), 64)),
              shared_stores().conflict_free()};
    }
    return {shared_stores().on("stage").conflict_free(), against_library("cuBLAS", 0.97)};
  }
  static Support supports(const Problem&, const DeviceInfo& device) {
    if (device.cc() != 90) return Support::no("needs sm_90a (wgmma)");
    return Support::yes();
  }

  static Plan prepare(const Problem& p, const Buffers& at) {
    using namespace any_shape;
    if (p.m == 0 || p.n == 0 || p.k == 0) return prepare_with<Large>(p, at, 0);
    if (p.m == 1 || p.n == 1) {
      return loads_vectors(gemv_of(p, at)) ? prepare_gemv<8>(p, at) : prepare_gemv<1>(p, at);
    }
    const int sms = device_info().sm_count;
    const Gemv g = gemv_of(p, at);
    if (has_short_k(g)) return prepare_short_k(p, at, g);
    if (is_skinny(g, sms)) return prepare_skinny(p, at);
    const RowsOfB rows_of_b = rows_of_b_in(p, at);
    const TileKernel& kernel = choose_kernel(p.m, p.n, p.k, sms, rows_of_b);
    const double tiles_us = predicted_us(kernel, p.m, p.n, p.k, sms, rows_of_b);
    const bool many_vectors = g.batch > kFewVectors;
    const bool tma_stores_c = rows_are_16_byte_aligned(at.c, p.ldc) && tma_stores_rows_of(p.n);
    const double stream_k_us = tma_stores_c && many_vectors
                                   ? predicted_stream_k_us(p.m, p.n, p.k, sms, rows_of_b)
                                   : std::numeric_limits<double>::infinity();
    const double us = std::min(tiles_us, stream_k_us);
    const Splitting in_cluster = choose_splitting(p.m, p.n, p.k, sms);
    const SplitKernel& split = choose_split_kernel(p.m, p.n, p.k, sms);
    const Splitting through_l2 = predicted_splitting(split, p.m, p.n, p.k, sms);
    if (through_l2.us < std::min(us, in_cluster.us)) {
      return prepare_split_k(split.tiles, p, at, through_l2.splits);
    }
    if (many_vectors && in_cluster.us < us) {
      return prepare_splitting(p, at, in_cluster.splits);
    }
    if (stream_k_us < tiles_us) {
      return prepare_with<Large>(p, at, predict<Large>(p).tiles_to_share);
    }
    if (tma_stores_c && many_vectors) return prepare_tiles(kernel.tiles, p, at);
    return prepare_best<Large, Medium, Small>(p, at);
  }
  static void run(const Plan& plan, Stream stream) {
    if (!launched_plain(plan.tma, stream)) plan.launch_product(plan, stream);
  }
};

}  // namespace cookbook::gemm
