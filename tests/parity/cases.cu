// SPDX-License-Identifier: MIT
#include "tests/parity/cases.hpp"

#include <array>
#include <memory>
#include <set>
#include <stdexcept>
#include <tuple>

#include "common/harness/verdict/check.hpp"
#include "library/transpose/transpose.cuh"
#include "tests/parity/kernels.cuh"

namespace cookbook {

#define COOKBOOK_CHAPTER(number) Chapter chapter_##number##_entry();
#include "parity_chapter_list.inc"
#undef COOKBOOK_CHAPTER

namespace parity {
namespace {

using Launches = std::function<void(Stream)>;

// Buffers of a small kernel. Values are small and differ; the counters do not depend on them.
struct Operands {
  explicit Operands(std::int64_t n, const char* name) : memory(bytes(n), name) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i * 37 % 101) / 64.0f;
    }
    memory.copy_from_host(values.data(), bytes(n));
  }
  static std::size_t bytes(std::int64_t n) { return static_cast<std::size_t>(n) * sizeof(float); }
  template <class T>
  explicit operator T*() const {
    return memory.as<T>();
  }
  DeviceMemory memory;
};

unsigned blocks_for(std::int64_t work, std::int64_t per_block) {
  return static_cast<unsigned>((work + per_block - 1) / per_block);
}

constexpr int kThreads = 256;
constexpr unsigned kRows = 8;  // threadIdx.y of a transposing block

/// Launches `kernel` on buffers of these names. plan(size): floats per buffer, extents of the
/// launch, the kernel's other arguments.
template <class Plan, class... P, class... Name>
Case small_case(const char* name, Size size, void (*kernel)(P...), Plan plan, Name... buffers) {
  return {std::string("kernels/") + name, kNoChapter, std::move(size), [=](const Size& size) {
            return std::apply(
                [=](std::int64_t floats, const LaunchConfig& config, auto... arguments) {
                  const auto memory = std::make_shared<std::array<Operands, sizeof...(buffers)>>(
                      std::array<Operands, sizeof...(buffers)>{Operands(floats, buffers)...});
                  return Launches([=](Stream stream) {
                    std::apply(
                        [&](const auto&... buffer) {
                          launch(kernel, config, stream, buffer..., arguments...);
                        },
                        *memory);
                  });
                },
                plan(size));
          }};
}

void add_small_kernels(std::vector<Case>& cases) {
  const auto add = [&](const char* name, const Size& size, auto kernel, auto plan) {
    cases.push_back(small_case(name, size, kernel, plan, "in", "out"));
  };
  const auto threads = [](std::int64_t n) {
    return LaunchConfig{dim3(blocks_for(n, kThreads)), dim3(kThreads)};
  };
  const auto tiles = [](std::int64_t n, unsigned rows) {
    const unsigned count = blocks_for(n, kTile);
    return LaunchConfig{dim3(count, count), dim3(kTile, rows)};
  };
  add("copy_coalesced", {16384}, copy_coalesced<float>,
      [=](const Size& size) { return std::tuple(size[0], threads(size[0]), size[0]); });
  add("copy_stride_32", {16384}, copy_strided<float>,
      [=](const Size& size) { return std::tuple(size[0], threads(size[0]), size[0], 32); });
  add("copy_float4", {16384}, copy_coalesced<float4>,
      [=](const Size& size) { return std::tuple(size[0], threads(size[0] / 4), size[0] / 4); });
  // Structs, which are less aligned than they are long. n: floats.
  const auto structs_of = [=](int floats) {
    return [=](const Size& size) {
      return std::tuple(size[0], threads(size[0] / floats), size[0] / floats);
    };
  };
  add("copy_2_floats", {16384}, copy_structs<Members<float, 2>>, structs_of(2));
  add("copy_4_floats", {16384}, copy_structs<Members<float, 4>>, structs_of(4));
  add("copy_6_floats", {12288}, copy_structs<Members<float, 6>>, structs_of(6));
  add("copy_2_doubles", {16384}, copy_structs<Members<double, 2>>, structs_of(4));
  add("copy_2_halves", {16384}, copy_structs<Members<std::uint16_t, 2>>, structs_of(1));
  const auto square = [=](const Size& size) {
    return std::tuple(size[0] * size[0], tiles(size[0], kTile), size[0]);
  };
  cases.push_back(small_case("sgemm_x_to_row", {64}, sgemm<true>, square, "a", "b", "c"));
  cases.push_back(small_case("sgemm_x_to_column", {64}, sgemm<false>, square, "a", "b", "c"));
  cases.push_back(small_case("sgemm_tiled", {64}, sgemm_tiled<kTile>, square, "a", "b", "c"));
  const auto transposed = [=](const Size& size) {
    return std::tuple(size[0] * size[1], tiles(size[0], kRows), size[0]);
  };
  add("transpose_32x32", {64, 64}, transpose<0>, transposed);
  add("transpose_32x33", {64, 64}, transpose<1>, transposed);
  add("reduce_shuffles", {10000}, reduce<kThreads / 32>, [](const Size& size) {
    return std::tuple(size[0], LaunchConfig{4, kThreads}, size[0]);
  });
  add("softmax_online", {8, 1000}, softmax_online<float>, [](const Size& size) {
    return std::tuple(size[0] * size[1], LaunchConfig{blocks_for(size[0], 4), 4 * 32}, size[0],
                      size[1]);
  });
  // Where lanes part and meet again.
  const auto half = [=](const Size& size) {
    return std::tuple(size[0], threads(size[0] / 2), size[0]);
  };
  add("one_lane_ahead", {4096}, one_lane_ahead, half);
  add("both_sides", {4096}, both_sides, half);
  add("trip_counts", {4096}, trip_counts, half);
  add("nested", {4096}, nested, half);
  add("returns_and_continues", {4096}, returns_and_continues, half);
  add("breaks", {4096}, breaks, half);
  add("inlined_returns", {4096}, inlined_returns, half);
  add("four_cases", {4096}, four_cases, half);
  add("inlined_returns_in_loop", {4096}, inlined_returns_in_loop, half);
  add("inlined_returns_twice", {4096}, inlined_returns_twice, half);
  add("sorted_insertion", {4096}, sorted_insertion, half);
  add("return_from_nested_loops", {4096}, return_from_nested_loops, half);
  add("returns_from_templates", {4096}, returns_from_templates, half);
  add("and_condition", {4096}, and_condition, half);
  add("or_condition", {4096}, or_condition, half);
  add("mixed_condition", {4096}, mixed_condition, half);
  add("ternary_chain", {4096}, ternary_chain, half);
  add("else_ifs", {4096}, else_ifs, half);
  add("falls_through", {4096}, falls_through, half);
  add("continue_in_inner_loop", {4096}, continue_in_inner_loop, half);
  add("break_of_inner_loop", {4096}, break_of_inner_loop, half);
  add("skipped_inner_loop", {4096}, skipped_inner_loop, half);
  add("loop_after_loop", {4096}, loop_after_loop, half);
  add("loops_on_both_sides", {4096}, loops_on_both_sides, half);
  add("do_while", {4096}, do_while, half);
  add("loading_condition", {4096}, loading_condition, half);
  add("endless_loop", {4096}, endless_loop, half);
  add("endless_loop_continues", {4096}, endless_loop_continues, half);
  add("same_condition_twice", {4096}, same_condition_twice, half);
  add("found_flag", {4096}, found_flag, half);
  add("states", {4096}, states, half);
}

void add_levels(std::vector<Case>& cases, int chapter, const Ladder& ladder,
                const std::string& name, const Size& size) {
  const std::string group =
      chapter == kNoChapter ? "library" : "chapter-" + std::to_string(chapter);
  for (const LevelEntry& level : ladder.levels) {
    Case one;
    one.name = group + "/" + name + "/" + level.name;
    one.chapter = chapter;
    one.size = size;
    one.prepare = [ladder, level](const Size& size) {
      // The same seed everywhere: a level's addresses may depend on its inputs.
      auto instance = std::make_shared<Instance>(ladder, size, InputKind::normal, 1);
      if (const Support support = level.supports(instance->problem(), device_info()); !support) {
        throw std::runtime_error(support.reason);
      }
      auto run = level.prepare(instance->problem(), instance->pointers());
      return Launches([instance, run](Stream stream) { run(stream); });
    };
    cases.push_back(std::move(one));
  }
}

/// A second size for ladders whose levels choose another kernel where rows are not whole 16-byte
/// pieces: one past a tile in every extent, so that edges are read and written too.
struct OddSize {
  int chapter;
  const char* ladder;
  Size size;
};
const OddSize kOddSizes[] = {
    {4, "sgemm", {129, 131, 67}}, {5, "gemm", {129, 131, 67}}, {5, "tf32", {129, 131, 67}}};

/// Ladders of chapter 0 whose instructions the SIMT backend does not have.
const std::set<std::string> kWithoutModel = {"mma_int8", "wgmma_tf32", "wgmma_int8"};

void add_chapter(std::vector<Case>& cases, const Chapter& chapter) {
  for (const Ladder& ladder : chapter.ladders) {
    if (kWithoutModel.count(ladder.name) > 0) continue;
    add_levels(cases, chapter.number, ladder, ladder.name, ladder.trace_size);
    for (const OddSize& odd : kOddSizes) {
      if (odd.chapter != chapter.number || odd.ladder != ladder.name) continue;
      add_levels(cases, chapter.number, ladder, ladder.name + "_odd", odd.size);
    }
  }
}

/// The library's kernel for few rows, and others of its candidates there.
void add_narrow(std::vector<Case>& cases) {
  using namespace transpose;
  auto narrow = ladder_over<Problem>("narrow", "few rows", {"rows", "cols"});
  narrow.levels = {make_level<Only<0>>(), make_level<Only<4>>(), make_level<Only<5>>(),
                   make_level<Only<8>>()};
  add_levels(cases, kNoChapter, narrow, narrow.name, {3, 4096});
}

}  // namespace

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> list;
    add_small_kernels(list);
#define COOKBOOK_CHAPTER(number) add_chapter(list, chapter_##number##_entry());
#include "parity_chapter_list.inc"
#undef COOKBOOK_CHAPTER
    add_narrow(list);
    return list;
  }();
  return cases;
}

const Case* find_case(const std::string& name) {
  for (const Case& one : all_cases()) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

}  // namespace parity
}  // namespace cookbook
