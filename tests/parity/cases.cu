// SPDX-License-Identifier: MIT
#include "tests/parity/cases.hpp"

#include <memory>
#include <set>
#include <stdexcept>

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
  float* data() const { return memory.as<float>(); }
  DeviceMemory memory;
};

unsigned blocks_for(std::int64_t work, std::int64_t per_block) {
  return static_cast<unsigned>((work + per_block - 1) / per_block);
}

constexpr int kThreads = 256;
constexpr unsigned kRows = 8;  // threadIdx.y of a transposing block

// in (n floats) -> out (n floats)
template <class Run>
Case vector_case(const char* name, Size size, Run run) {
  return {std::string("kernels/") + name, kNoChapter, std::move(size), [run](const Size& size) {
            std::int64_t n = 1;
            for (const std::int64_t extent : size) n *= extent;
            auto in = std::make_shared<Operands>(n, "in");
            auto out = std::make_shared<Operands>(n, "out");
            return Launches([run, in, out, size](Stream stream) {
              run(size, in->data(), out->data(), stream);
            });
          }};
}

// a, b, c (n x n floats each)
template <class Run>
Case product_case(const char* name, std::int64_t n, Run run) {
  return {std::string("kernels/") + name, kNoChapter, {n}, [run](const Size& size) {
            const std::int64_t n = size.at(0);
            auto a = std::make_shared<Operands>(n * n, "a");
            auto b = std::make_shared<Operands>(n * n, "b");
            auto c = std::make_shared<Operands>(n * n, "c");
            return Launches([run, a, b, c, n](Stream stream) {
              run(static_cast<int>(n), a->data(), b->data(), c->data(), stream);
            });
          }};
}

void add_small_kernels(std::vector<Case>& cases) {
  cases.push_back(vector_case(
      "copy_coalesced", {16384}, [](const Size& size, const float* in, float* out, Stream stream) {
        const int n = static_cast<int>(size[0]);
        launch(copy_coalesced<float>, {dim3(blocks_for(n, kThreads)), dim3(kThreads)}, stream, in,
               out, n);
      }));
  cases.push_back(vector_case(
      "copy_stride_32", {16384}, [](const Size& size, const float* in, float* out, Stream stream) {
        const int n = static_cast<int>(size[0]);
        launch(copy_strided<float>, {dim3(blocks_for(n, kThreads)), dim3(kThreads)}, stream, in,
               out, n, 32);
      }));
  cases.push_back(vector_case(
      "copy_float4", {16384}, [](const Size& size, const float* in, float* out, Stream stream) {
        const int n = static_cast<int>(size[0] / 4);
        launch(copy_coalesced<float4>, {dim3(blocks_for(n, kThreads)), dim3(kThreads)}, stream,
               reinterpret_cast<const float4*>(in), reinterpret_cast<float4*>(out), n);
      }));
  const auto add_sgemm = [&](const char* name, auto kernel) {
    cases.push_back(product_case(
        name, 64, [kernel](int n, const float* a, const float* b, float* c, Stream stream) {
          const unsigned tiles = blocks_for(n, kTile);
          launch(kernel, {dim3(tiles, tiles), dim3(kTile, kTile)}, stream, a, b, c, n);
        }));
  };
  add_sgemm("sgemm_x_to_row", sgemm<true>);
  add_sgemm("sgemm_x_to_column", sgemm<false>);
  add_sgemm("sgemm_tiled", sgemm_tiled<kTile>);
  const auto add_transpose = [&](const char* name, auto kernel) {
    cases.push_back(vector_case(
        name, {64, 64}, [kernel](const Size& size, const float* in, float* out, Stream stream) {
          const int n = static_cast<int>(size[0]);
          const unsigned tiles = blocks_for(n, kTile);
          launch(kernel, {dim3(tiles, tiles), dim3(kTile, kRows)}, stream, in, out, n);
        }));
  };
  add_transpose("transpose_32x32", transpose<0>);
  add_transpose("transpose_32x33", transpose<1>);
  cases.push_back(vector_case("reduce_shuffles", {10000},
                              [](const Size& size, const float* in, float* out, Stream stream) {
                                launch(reduce<kThreads / 32>, {dim3(4), dim3(kThreads)}, stream, in,
                                       out, static_cast<int>(size[0]));
                              }));
  cases.push_back(
      vector_case("softmax_online", {8, 1000},
                  [](const Size& size, const float* in, float* out, Stream stream) {
                    const int rows = static_cast<int>(size[0]), cols = static_cast<int>(size[1]);
                    launch(softmax_online<float>, {dim3(blocks_for(rows, 4)), dim3(4 * 32)}, stream,
                           in, out, rows, cols);
                  }));
}

/// Where lanes part and meet again.
void add_divergence(std::vector<Case>& cases) {
  const auto add = [&](const char* name, auto kernel) {
    cases.push_back(vector_case(
        name, {4096}, [kernel](const Size& size, const float* in, float* out, Stream stream) {
          const int n = static_cast<int>(size[0]);
          launch(kernel, {dim3(blocks_for(n / 2, kThreads)), dim3(kThreads)}, stream, in, out, n);
        }));
  };
  add("one_lane_ahead", one_lane_ahead);
  add("both_sides", both_sides);
  add("trip_counts", trip_counts);
  add("nested", nested);
  add("returns_and_continues", returns_and_continues);
  add("breaks", breaks);
  add("inlined_returns", inlined_returns);
  add("four_cases", four_cases);
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
    add_divergence(list);
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
