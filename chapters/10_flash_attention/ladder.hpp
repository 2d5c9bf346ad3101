// SPDX-License-Identifier: MIT
// Chapter 10: its ladders and their levels.
#pragma once

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

/// A ladder of attention with the given element type and mask.
template <DType kType, bool kCausal>
Ladder attention_ladder(std::string name, std::string title) {
  Ladder ladder;
  ladder.name = std::move(name);
  ladder.title = std::move(title);
  ladder.dims = {"batch", "heads_q", "heads_kv", "seq_q", "seq_k", "head_dim"};
  ladder.dtype = dtype_name(kType);
  ladder.layout = "bshd";
  ladder.roof = Roof::wgmma_bf16;
  ladder.make_problem = attention::Problem::make_any<kType, kCausal>;
  return ladder;
}

inline Chapter chapter_10() {
  using namespace attention;
  Chapter chapter;
  auto full = attention_ladder<DType::bf16, false>("prefill", "attention, bf16, every key visible");
  full.gpu_size = {2, 16, 16, 8192, 8192, 128};
  full.check_size = {1, 2, 1, 300, 260, 128};
  full.trace_size = {1, 5, 1, 40, 264, 64};
  full.test_sizes = {{1, 1, 1, 1, 1, 64},      {2, 2, 1, 1, 65, 128},    {1, 1, 1, 63, 64, 64},
                     {1, 2, 2, 65, 63, 128},   {2, 1, 1, 127, 129, 64},  {1, 2, 1, 129, 127, 128},
                     {1, 1, 1, 31, 353, 128},  {1, 1, 1, 193, 385, 64},  {1, 6, 2, 33, 97, 128},
                     {1, 1, 1, 1000, 1, 64},   {1, 1, 1, 257, 521, 128}, {3, 4, 2, 32, 32, 64},
                     {1, 1, 1, 130, 1000, 64}, {1, 5, 1, 10, 1200, 128}};
  full.levels =
      rows<Unfused, Fused, Tiled, TensorCores, Wgmma, Specialised, RegistersP, PingPong, Overlapped,
           Lazy, Persistent, Seam, FreeRunning, MaskOnce, LastWave, MaxOfBits>();

  auto causal = attention_ladder<DType::bf16, true>(
      "prefill_causal", "attention, bf16, causal mask aligned to the bottom right");
  causal.gpu_size = full.gpu_size;
  causal.check_size = {1, 2, 1, 300, 333, 128};
  causal.trace_size = full.trace_size;
  causal.test_sizes = full.test_sizes;
  causal.levels = full.levels;

  auto f16 = attention_ladder<DType::f16, true>("prefill_f16", "attention, fp16, causal mask");
  f16.gpu_size = full.gpu_size;
  f16.check_size = causal.check_size;
  f16.trace_size = full.trace_size;
  f16.test_sizes = {{1, 1, 1, 1, 1, 128},
                    {1, 2, 1, 64, 127, 128},
                    {2, 2, 2, 129, 65, 64},
                    {1, 1, 1, 255, 257, 128},
                    {1, 2, 1, 193, 385, 64}};
  f16.levels = rows<Tiled, TensorCores, Wgmma, RegistersP, Overlapped, Lazy, Persistent, Seam,
                    FreeRunning, MaskOnce, LastWave, MaxOfBits>();

  auto decode =
      attention_ladder<DType::bf16, false>("decode", "attention, bf16, one query per sequence");
  decode.roof = Roof::hbm_read;
  decode.gpu_size = {64, 64, 8, 1, 8192, 128};
  decode.check_size = {2, 8, 2, 1, 600, 128};
  decode.trace_size = {1, 8, 1, 1, 1024, 128};
  decode.test_sizes = {{1, 1, 1, 1, 1, 64},    {2, 8, 1, 1, 63, 128},  {1, 8, 2, 1, 65, 64},
                       {3, 4, 4, 1, 127, 128}, {1, 32, 2, 1, 129, 64}, {1, 8, 1, 1, 1000, 128},
                       {1, 40, 2, 1, 257, 64}, {2, 6, 2, 3, 1037, 64}, {1, 8, 8, 5, 2049, 128}};
  decode.levels = rows<BlockPerHead, Split, GqaPacked, OneLaunch, WideTile, EightWarps>();

  auto decode_causal = attention_ladder<DType::f16, true>(
      "decode_causal", "attention, fp16, a few new queries per sequence, causal mask");
  decode_causal.roof = Roof::hbm_read;
  decode_causal.gpu_size = {64, 64, 8, 4, 8192, 128};
  decode_causal.check_size = {2, 8, 2, 3, 500, 128};
  decode_causal.trace_size = {1, 8, 1, 2, 1024, 128};
  decode_causal.test_sizes = {{1, 1, 1, 1, 1, 64},
                              {2, 8, 1, 2, 63, 128},
                              {1, 8, 2, 4, 300, 64},
                              {1, 2, 1, 65, 33, 64},
                              {1, 4, 2, 17, 1025, 128}};
  decode_causal.levels = decode.levels;

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
  multicast.gpu_size = full.gpu_size;
  multicast.check_size = full.check_size;
  multicast.trace_size = full.trace_size;
  multicast.test_sizes = f16.test_sizes;
  multicast.levels = rows<Persistent, Multicast>();

  chapter.ladders = {full, causal, f16, decode, decode_causal, lengths, sparse, list, multicast};
  chapter.exercises = rows<Rescale, EarlyRelease>();
  return chapter;
}

}  // namespace cookbook
