// SPDX-License-Identifier: MIT
// The spaces, and the chapter. This file compiles only the memory-bound kernels.
#include <filesystem>

#include "chapters/11_autotuning/ladder.hpp"
#include "chapters/11_autotuning/rmsnorm.cuh"
#include "chapters/11_autotuning/rope.cuh"
#include "common/harness/run/process.hpp"

namespace cookbook {
namespace autotuning {
namespace {

// This folder: as compiled in, or below the current directory if the program has moved.
const std::string& here() {
  static const std::string folder = [] {
    const std::string compiled = source_path("chapters/11_autotuning/");
    return std::filesystem::exists(compiled) ? compiled : "chapters/11_autotuning/";
  }();
  return folder;
}

// The space of the kernel that `problem` is called after, without its configurations.
template <class P>
tune::Space space_over(const Ladder& problem, Size (*size_of)(const P&)) {
  tune::Space space;
  space.kernel = problem.name;
  space.source = here() + problem.name + ".cuh";
  space.recordings = here() + "recorded";
  space.problem = problem;
  space.size_of = [size_of](const AnyProblem& any) {
    return size_of(*static_cast<const P*>(any.get()));
  };
  return space;
}

}  // namespace

const tune::Space& rmsnorm_space() {
  static const tune::Space made = [] {
    using rmsnorm::Config;
    auto space = space_over<rmsnorm::Problem>(rmsnorm_ladder(), [](const auto& p) {
      return Size{p.shape.rows, p.shape.cols};
    });
    space.model = rmsnorm::predict;
    space.training = {{8192, 8192},  {16384, 1024}, {32768, 512}, {4096, 4096},
                      {1024, 16384}, {64, 65536},   {8192, 8191}};
    space.held_out = {{4096, 12288}, {2048, 5120}, {100, 16384}};
    // threads per block, blocks per SM
    tune::add_candidates<rmsnorm::Tuned>(
        space, tune::Configs<Config<256, 8>, Config<256, 4>, Config<256, 2>, Config<128, 16>,
                             Config<128, 8>, Config<128, 4>, Config<64, 32>, Config<64, 16>,
                             Config<512, 4>, Config<512, 2>, Config<512, 1>, Config<1024, 2>,
                             Config<1024, 1>,
                             // Unsupported configurations, with their reasons.
                             Config<1024, 3>, Config<512, 8>, Config<2048, 1>>{});
    return space;
  }();
  return made;
}

const tune::Space& rope_space() {
  static const tune::Space made = [] {
    using rope::Config;
    auto space = space_over<rope::ProblemT<false>>(rope_ladder<false>(), [](const auto& p) {
      return Size{p.shape.tokens, p.shape.heads, 2 * p.shape.half};
    });
    space.search_problem = rope_ladder<true>();
    space.model = rope::predict;
    space.training = {{16384, 32, 128}, {4096, 32, 128}, {65536, 8, 128},
                      {1024, 32, 128},  {8192, 64, 64},  {256, 16, 128}};
    space.held_out = {{8192, 40, 128}, {2048, 16, 256}, {131072, 4, 64}};
    // threads per block, heads per thread
    tune::add_candidates<rope::InPlace, rope::Split>(
        space,
        tune::Configs<Config<256, 1>, Config<128, 1>, Config<64, 1>, Config<512, 1>,
                      Config<1024, 1>, Config<256, 2>, Config<256, 4>, Config<256, 8>,
                      Config<128, 2>, Config<128, 4>, Config<128, 8>, Config<64, 4>, Config<512, 4>,
                      // Unsupported configurations.
                      Config<2048, 1>>{});
    return space;
  }();
  return made;
}

const tune::Space& gemm_space() {
  static const tune::Space made = [] {
    auto space = space_over<gemm::Problem>(gemm_ladder(), [](const auto& p) {
      return Size{p.m, p.n, p.k};
    });
    space.training = {{512, 512, 512},     {1024, 1024, 1024}, {2048, 2048, 2048},
                      {4096, 4096, 4096},  {8192, 8192, 8192}, {4096, 14336, 4096},
                      {8192, 28672, 8192}, {128, 8192, 8192},  {4095, 4095, 4096}};
    space.held_out = {{3072, 3072, 3072}, {1536, 4096, 6144}, {256, 8192, 4096}};
    add_gemm(space);
    return space;
  }();
  return made;
}

const tune::Space& attention_space() {
  static const tune::Space made = [] {
    auto space = space_over<attention::tuned::Problem>(attention_ladder(),
                                                       [](const auto& p) { return p.size(); });
    // Full and causal; many waves of tiles and less than one; as many KV heads as query heads, and
    // fewer.
    space.training = {{2, 16, 16, 8192, 8192, 128, 2}, {2, 16, 16, 8192, 8192, 128, 1},
                      {8, 16, 16, 1024, 1024, 128, 2}, {4, 32, 8, 2048, 2048, 128, 1},
                      {1, 16, 16, 1024, 1024, 128, 1}, {1, 16, 16, 16384, 16384, 128, 1}};
    space.held_out = {{1, 32, 8, 4096, 4096, 128, 2}, {2, 32, 8, 3000, 3000, 128, 1}};
    add_attention(space);
    return space;
  }();
  return made;
}

}  // namespace autotuning

Chapter chapter_11_entry() { return headed(chapter_11()); }

}  // namespace cookbook
