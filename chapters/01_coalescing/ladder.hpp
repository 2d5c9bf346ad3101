// SPDX-License-Identifier: MIT
// Chapter 1: its ladders and their levels. `copy` is the chapter; the others are its sidebars.
#pragma once

#include "common/harness/contract/named_row.hpp"
#include "generated/chapter_1_levels.hpp"

namespace cookbook {

/// A ladder of copies; the sidebars differ from `copy` only in their levels.
inline Ladder copy_ladder(std::string name, std::string title) {
  auto ladder = ladder_over<coalescing::Problem>(std::move(name), std::move(title), {"n"});
  ladder.gpu_size = {1 << 26};  // 256 MiB in, 256 MiB out: several times any L2
  ladder.check_size = {1 << 20};
  ladder.trace_size = {1 << 18};
  ladder.test_sizes = {{1}, {31}, {33}, {1021}, {4096}, {16385}};
  return ladder;
}

inline Chapter chapter_1() {
  using namespace coalescing;
  Chapter chapter;
  auto copy = copy_ladder("copy", "out[i] = in[i], n floats");
  copy.gpu_size = {1 << 28};  // 1 GiB in, 1 GiB out
  copy.test_sizes = {{1},    {2},    {3},    {4},    {5},     {31},    {32},    {33},
                     {127},  {255},  {256},  {257},  {1021},  {1024},  {1025},  {4095},
                     {4096}, {4097}, {8191}, {8193}, {32768}, {65537}, {100003}};
  copy.levels = rows<Strided, Coalesced, GridStride, Vectorised, InFlight, Streaming, InOrder>();

  auto alignment = copy_ladder("alignment", "sidebar: warps that start off a line boundary");
  alignment.levels = {named<Offset<0>>("offset_0"), named<Offset<1>>("offset_1"),
                      named<Offset<4>>("offset_4"), named<Offset<8>>("offset_8"),
                      named<Offset<17>>("offset_17")};

  auto structs = ladder_over<ParticleProblem>(
      "structs", "sidebar: two of eight fields, array of structs or struct of arrays", {"n"});
  structs.gpu_size = {1 << 24};
  structs.check_size = {1 << 16};
  structs.trace_size = {1 << 14};
  structs.test_sizes = {{1}, {31}, {33}, {1021}, {4096}};
  structs.levels = rows<ArrayOfStructs, StructOfArrays>();

  auto block_size = copy_ladder("block_size", "sidebar: threads per block");
  block_size.levels = {
      named<Shape<32, 4, 0>>("threads_32"),   named<Shape<64, 4, 0>>("threads_64"),
      named<Shape<128, 4, 0>>("threads_128"), named<Shape<256, 4, 0>>("threads_256"),
      named<Shape<512, 4, 0>>("threads_512"), named<Shape<1024, 4, 0>>("threads_1024")};

  auto grid_size = copy_ladder("grid_size", "sidebar: a loop in few blocks, or a block per batch");
  grid_size.levels = {
      named<Shape<256, 4, 4>>("blocks_per_sm_4"), named<Shape<256, 4, 8>>("blocks_per_sm_8"),
      named<Shape<256, 4, 16>>("blocks_per_sm_16"), named<Shape<256, 4, 64>>("blocks_per_sm_64"),
      named<Shape<256, 4, 0>>("one_batch")};

  // Resident threads (occupancy) times loads per thread times 16 bytes: KB in flight per SM.
  auto in_flight = copy_ladder("bytes_in_flight", "sidebar: occupancy and loads per thread");
  in_flight.levels = {named<Shape<256, 1, 1>>("kb_4_blocks_1_loads_1"),
                      named<Shape<256, 1, 2>>("kb_8_blocks_2_loads_1"),
                      named<Shape<256, 2, 1>>("kb_8_blocks_1_loads_2"),
                      named<Shape<256, 1, 4>>("kb_16_blocks_4_loads_1"),
                      named<Shape<256, 4, 1>>("kb_16_blocks_1_loads_4"),
                      named<Shape<256, 1, 8>>("kb_32_blocks_8_loads_1"),
                      named<Shape<256, 8, 1>>("kb_32_blocks_1_loads_8"),
                      named<Shape<256, 2, 8>>("kb_64_blocks_8_loads_2"),
                      named<Shape<256, 8, 2>>("kb_64_blocks_2_loads_8")};

  auto hints = copy_ladder("cache_hints", "sidebar: cache operators");
  hints.levels = rows<Hint<PlainAccess>, Hint<ReadOnlyAccess>, Hint<L2OnlyAccess>,
                      Hint<EvictFirstAccess>, Hint<NoAllocateAccess>>();

  auto launches = copy_ladder("launches", "sidebar: what a launch costs at small sizes");
  launches.gpu_size = {1 << 16};
  launches.levels = rows<Launches<1>, Launches<16>>();

  auto constant = ladder_over<KnotProblem>(
      "constant", "sidebar: constant memory, broadcast and scattered", {"n"});
  constant.gpu_size = {1 << 26};
  constant.check_size = {1 << 16};
  constant.trace_size = {1 << 14};
  constant.test_sizes = {{1}, {31}, {33}, {1021}, {4096}};
  constant.levels = rows<Knots<ConstantBroadcast>, Knots<ConstantScattered>, Knots<GlobalBroadcast>,
                         Knots<GlobalScattered>>();

  chapter.ladders = {copy,      alignment, structs,  block_size, grid_size,
                     in_flight, hints,     launches, constant};
  chapter.exercises = {make_level<Pairs>(), make_level<Tail>()};
  return chapter;
}

}  // namespace cookbook
