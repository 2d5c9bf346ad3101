// SPDX-License-Identifier: MIT
// Chapter 10: its ladders and their levels.
#pragma once

#include "chapters/10_flash_attention/ladders.hpp"
#include "common/harness/contract/claiming.hpp"
#include "generated/chapter_10_levels.hpp"

namespace cookbook {

/// A sidebar over one kind of mask.
template <attention::MaskKind kKind>
Ladder mask_ladder(std::string name, std::string title) {
  Ladder ladder;
  ladder.name = std::move(name);
  ladder.title = std::move(title);
  ladder.dims = {"sequences", "heads_q", "heads_kv", "seq", "head_dim"};
  ladder.dtype = "bf16";
  ladder.layout = "bshd";
  ladder.roof = Roof::mma_bf16;
  ladder.make_problem = attention::MaskedProblem::make_any<kKind>;
  ladder.gpu_size = {2, 16, 16, 8192, 128};
  ladder.check_size = {3, 2, 1, 300, 128};
  ladder.trace_size = {2, 2, 1, 160, 64};
  ladder.test_sizes = {{1, 1, 1, 1, 64},
                       {3, 2, 1, 63, 128},
                       {2, 4, 2, 65, 64},
                       {4, 1, 1, 129, 64},
                       {1, 2, 2, 641, 128}};
  return ladder;
}

inline Chapter chapter_10() {
  using namespace attention;
  Chapter chapter;
  auto [full, causal, decode, decode_causal] = common_ladders<DType::bf16>();
  auto fusion = prefill_ladder<false>("fusion", "attention, bf16: one kernel, not three");
  fusion.levels = rows<Unfused, Tiled>();
  full.levels = rows<Tiled, TensorCores, Wgmma, Specialised, PingPong, Overlapped, Lazy, Persistent,
                     CrossTile, SplitSoftmax, MaxOfBits, LastWave>();
  causal.levels = rows<Unfused, Tiled, TensorCores, Wgmma, Specialised, PingPong, Overlapped, Lazy,
                       Persistent, CrossTile, SplitSoftmax, MaxOfBits>();
  decode.levels = rows<BlockPerHead, Split, GqaPacked, OneLaunch>();
  decode_causal.levels = rows<BlockPerHead, Split, GqaPacked, OneLaunch, WideTile>();

  // Where levels 8 and 9 pay: a query tile has few key tiles, so its beginning and end count.
  auto brief = attention_ladder<DType::bf16, true>("prefill_short",
                                                   "attention, bf16, causal mask, short sequences");
  brief.gpu_size = {16, 16, 16, 1024, 1024, 128};
  brief.levels = {claiming(make_level<Lazy>(), {}),
                  claiming(make_level<Persistent>(), {faster_than_previous(1.05)}),
                  claiming(make_level<CrossTile>(), {faster_than_previous(1.05)}),
                  claiming(make_level<SplitSoftmax>(),
                           {at_least_previous(
                               0.98, "tiles of 128 keys, and a first tile's softmax is whole")})};

  // Where level 12 pays: 160 query tiles are a wave of 132 and a rest of 28.
  auto last_wave = attention_ladder<DType::bf16, false>(
      "last_wave", "attention, bf16, a last wave of 28 tiles on 132 SMs");
  last_wave.gpu_size = {1, 5, 5, 4096, 4096, 128};
  last_wave.levels = {claiming(make_level<MaxOfBits>(), {}),
                      claiming(make_level<LastWave>(), {faster_than_previous(1.2)})};

  auto lengths = mask_ladder<MaskKind::variable_lengths>(
      "variable_lengths", "sidebar: packed sequences of different lengths");
  lengths.levels = rows<VariableLengths>();
  auto sparse =
      mask_ladder<MaskKind::block_sparse>("block_sparse", "sidebar: listed tiles of 64 keys");
  sparse.levels = rows<BlockSparse>();
  auto list = mask_ladder<MaskKind::index_list>("index_list", "sidebar: listed keys");
  list.levels = rows<IndexList>();

  auto multicast = attention_ladder<DType::bf16, false>(
      "multicast", "sidebar: two blocks share every tile of K and V");
  multicast.levels = rows<Persistent, Multicast>();

  chapter.ladders = {full,          fusion,  causal, brief, last_wave, decode,
                     decode_causal, lengths, sparse, list,  multicast};
  chapter.exercises = rows<Rescale, EarlyRelease>();
  return chapter;
}

}  // namespace cookbook
