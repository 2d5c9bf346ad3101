// SPDX-License-Identifier: MIT
// The C interfaces of the library: every level that they name can be planned and is right,
// and what they reject leaves a message.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/device/cuda.cuh"
#include "library/attention/capi.hpp"
#include "library/gemm/capi.hpp"
#include "library/rows/capi.hpp"
#include "library/transpose/capi.hpp"

namespace cookbook {
namespace {

/// A device buffer of `count` elements: `value(i)` of each, or NaN in all of them.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count) : count_(count), memory_(count * sizeof(T), "buffer") {}
  Buffer(std::size_t count, const std::function<float(std::size_t)>& value) : Buffer(count) {
    std::vector<T> host(count);
    for (std::size_t i = 0; i < count; ++i) host[i] = static_cast<T>(value(i));
    memory_.copy_from_host(host.data(), count * sizeof(T));
  }
  T* data() { return static_cast<T*>(memory_.data()); }
  std::vector<float> values() const {
    std::vector<T> host(count_);
    memory_.copy_to_host(host.data(), count_ * sizeof(T));
    return {host.begin(), host.end()};
  }

 private:
  std::size_t count_;
  DeviceMemory memory_;
};

std::vector<std::string> lines(const char* text) {
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) result.push_back(line);
  return result;
}

TEST(CInterface, EveryProductThatIsNamedIsRight) {
  const cookbook_gemm_problem problem{5, 7, 16, 0, 0, 0, 0, 0};
  Buffer<bf16> a(5 * 16, [](std::size_t i) { return static_cast<float>(i / 16 + 1); });
  Buffer<bf16> b(16 * 7, [](std::size_t) { return 1.0f; });
  const auto names = lines(cookbook_gemm_levels());
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    Buffer<bf16> c(5 * 7);
    void* plan = cookbook_gemm_plan(name.c_str(), &problem, a.data(), b.data(), c.data());
    ASSERT_TRUE(plan) << name << ": " << cookbook_gemm_error();
    EXPECT_EQ(cookbook_gemm_run(plan, nullptr), 0) << cookbook_gemm_error();
    cookbook_gemm_destroy(plan);
    const auto got = c.values();
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i], 16.0f * static_cast<float>(i / 7 + 1)) << name << ", element " << i;
    }
  }
}

// 3 rows of r + 1: softmax makes them 1 / cols, and RMSNorm with weights of 2 makes them 2.
template <class T>
void expect_uniform_rows(int dtype, bool norm) {
  int supported = 0;
  for (const long long cols : {64, 4096, 16384, 131072}) {
    const cookbook_rows_problem problem{3, cols, 0, 0, dtype};
    const auto count = static_cast<std::size_t>(3 * cols);
    Buffer<T> in(count, [&](std::size_t i) { return static_cast<float>(i / (count / 3) + 1); });
    Buffer<T> weight(count / 3, [](std::size_t) { return 2.0f; });
    for (const std::string& name : lines(cookbook_rows_levels())) {
      Buffer<T> out(count);
      void* plan = cookbook_rows_plan(name.c_str(), &problem, in.data(),
                                      norm ? weight.data() : nullptr, out.data());
      if (!plan) {
        EXPECT_STREQ(cookbook_rows_error(),
                     "its threads do not hold these rows, or not with this alignment");
        EXPECT_NE(name, "rows");
        continue;
      }
      ++supported;
      EXPECT_EQ(cookbook_rows_run(plan, nullptr), 0) << cookbook_rows_error();
      cookbook_rows_destroy(plan);
      const float expected = norm ? 2.0f : 1.0f / static_cast<float>(cols);
      for (const float value : out.values()) ASSERT_NEAR(value, expected, 1e-5f * expected) << name;
    }
  }
  EXPECT_GE(supported, 20);
}

TEST(CInterface, EveryKernelOfRowsIsRight) {
  for (const bool norm : {false, true}) {
    expect_uniform_rows<bf16>(0, norm);
    expect_uniform_rows<float>(2, norm);
  }
}

TEST(CInterface, EveryTransposeThatIsNamedIsRight) {
  const cookbook_transpose_problem problem{16, 12, 0, 20};
  Buffer<float> in(16 * 12, [](std::size_t i) { return static_cast<float>(i); });
  for (const std::string& name : lines(cookbook_transpose_levels())) {
    Buffer<float> out(12 * 20);
    void* plan = cookbook_transpose_plan(name.c_str(), &problem, in.data(), out.data());
    ASSERT_TRUE(plan) << name << ": " << cookbook_transpose_error();
    EXPECT_EQ(cookbook_transpose_run(plan, nullptr), 0) << cookbook_transpose_error();
    cookbook_transpose_destroy(plan);
    const auto got = out.values();
    for (std::size_t col = 0; col < 12; ++col) {
      for (std::size_t row = 0; row < 16; ++row) {
        ASSERT_EQ(got[col * 20 + row], static_cast<float>(row * 12 + col)) << name;
      }
    }
  }
}

TEST(CInterface, EveryAttentionThatIsNamedIsRight) {
  // One query of eight heads that share their keys: every ladder takes it. A query of zeros weighs
  // all five keys alike.
  const cookbook_attention_problem problem{1, 8, 1, 1, 5, 64, 0, 0};
  Buffer<bf16> q(8 * 64, [](std::size_t) { return 0.0f; });
  Buffer<bf16> k(5 * 64, [](std::size_t) { return 1.0f; });
  Buffer<bf16> v(5 * 64, [](std::size_t i) { return static_cast<float>(i / 64); });
  const auto names = lines(cookbook_attention_levels());
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    Buffer<bf16> o(8 * 64);
    Buffer<float> lse(8);
    ASSERT_EQ(cookbook_attention_forward(name.c_str(), &problem, q.data(), k.data(), v.data(),
                                         o.data(), lse.data(), nullptr),
              0)
        << name << ": " << cookbook_attention_error();
    for (const float value : o.values()) EXPECT_NEAR(value, 2.0f, 0.02f) << name;
    for (const float value : lse.values()) EXPECT_NEAR(value, std::log(5.0f), 1e-3f) << name;
  }
}

/// Tensors of a backward pass with one batch and one head, and its gradients by `level`.
struct Gradients {
  cookbook_attention_problem problem;
  std::vector<std::vector<float>> in;  // q, k, v, d_o, as bf16 holds them
  std::vector<float> d_lse;
  std::vector<std::vector<float>> out;  // dq, dk, dv

  void run(const char* level) {
    const auto queries = static_cast<std::size_t>(problem.seq_q * problem.head_dim);
    const auto keys = static_cast<std::size_t>(problem.seq_k * problem.head_dim);
    const auto buffer = [](const std::vector<float>& values) {
      return Buffer<bf16>(values.size(), [&](std::size_t i) { return values[i]; });
    };
    Buffer<bf16> q = buffer(in[0]), k = buffer(in[1]), v = buffer(in[2]), d_o = buffer(in[3]);
    Buffer<bf16> o(queries), dq(queries), dk(keys), dv(keys);
    Buffer<float> lse(d_lse.size()), moved(d_lse.size(), [&](std::size_t i) { return d_lse[i]; });
    ASSERT_EQ(cookbook_attention_forward("tiled", &problem, q.data(), k.data(), v.data(), o.data(),
                                         lse.data(), nullptr),
              0);
    const cookbook_attention_gradients tensors{q.data(),   k.data(),   v.data(),     o.data(),
                                               d_o.data(), lse.data(), moved.data(), dq.data(),
                                               dk.data(),  dv.data()};
    void* plan = cookbook_attention_backward_plan(level, &problem, &tensors);
    ASSERT_TRUE(plan) << level << ": " << cookbook_attention_error();
    EXPECT_EQ(cookbook_attention_run(plan, nullptr), 0) << cookbook_attention_error();
    cookbook_attention_destroy(plan);
    out = {dq.values(), dk.values(), dv.values()};
  }

  /// sum(d_o o) + sum(d_lse lse) in fp64, where tensor `moved` is shifted by h times `direction`.
  double objective(std::size_t moved, const std::vector<float>& direction, double h) const {
    const auto dim = static_cast<std::size_t>(problem.head_dim);
    const auto value = [&](std::size_t tensor, std::size_t at) {
      return in[tensor][at] + (tensor == moved ? h * direction[at] : 0.0);
    };
    double total = 0;
    for (int i = 0; i < problem.seq_q; ++i) {
      const int seen = problem.causal ? i + 1 + problem.seq_k - problem.seq_q : problem.seq_k;
      double weights = 0, gained = 0;
      for (int j = 0; j < seen; ++j) {
        double score = 0, gain = 0;
        for (std::size_t x = 0; x < dim; ++x) {
          const std::size_t query = static_cast<std::size_t>(i) * dim + x;
          const std::size_t key = static_cast<std::size_t>(j) * dim + x;
          score += value(0, query) * value(1, key);
          gain += in[3][query] * value(2, key);
        }
        const double weight = std::exp(score / std::sqrt(static_cast<double>(dim)));
        weights += weight;
        gained += weight * gain;
      }
      if (seen > 0) {
        total += gained / weights + d_lse[static_cast<std::size_t>(i)] * std::log(weights);
      }
    }
    return total;
  }
};

// The forward and the backward pass through the C interface, against differences in fp64. More
// queries than keys and a mask: the first queries see no key.
TEST(CInterface, GradientsAreDirectionalDerivatives) {
  for (const auto& [seq_q, seq_k, dim] : {std::tuple{70, 66, 64}, std::tuple{20, 140, 128}}) {
    Gradients g{{1, 1, 1, seq_q, seq_k, dim, 1, 0}, {}, {}, {}};
    std::uint32_t state = 1;
    const auto draw = [&](int count) {
      std::vector<float> values(static_cast<std::size_t>(count));
      for (float& value : values) {
        state = state * 1664525 + 1013904223;
        value = static_cast<float>(static_cast<int>(state >> 24) - 128) / 64;  // exact in bf16
      }
      return values;
    };
    g.in = {draw(seq_q * dim), draw(seq_k * dim), draw(seq_k * dim), draw(seq_q * dim)};
    g.d_lse = draw(seq_q);
    EXPECT_GE(cookbook_attention_backward_workspace(&g.problem), 4LL * seq_q * (dim + 2));
    const auto names = lines(cookbook_attention_backward_levels());
    ASSERT_FALSE(names.empty());
    for (const std::string& name : names) {
      g.run(name.c_str());
      ASSERT_EQ(g.out.size(), 3U);
      for (int x = 0; x < (seq_q - seq_k) * dim; ++x) {
        ASSERT_EQ(g.out[0][static_cast<std::size_t>(x)], 0) << name;
      }
      for (std::size_t tensor = 0; tensor < 3; ++tensor) {
        const auto direction = draw(static_cast<int>(g.in[tensor].size()));
        double slope = 0, terms = 0;
        for (std::size_t x = 0; x < direction.size(); ++x) {
          const double term = static_cast<double>(g.out[tensor][x]) * direction[x];
          slope += term;
          terms += term * term;
        }
        constexpr double kStep = 1e-4;
        const double difference =
            (g.objective(tensor, direction, kStep) - g.objective(tensor, direction, -kStep)) /
            (2 * kStep);
        EXPECT_NEAR(slope, difference, 0.02 * std::sqrt(terms)) << name << ", tensor " << tensor;
      }
    }
  }
}

TEST(CInterface, BackwardSaysWhatItDoesNotTake) {
  cookbook_attention_problem problem{1, 1, 1, 8, 8, 64, 0, 1};
  const cookbook_attention_gradients tensors{};
  EXPECT_EQ(cookbook_attention_backward_plan("backward", &problem, &tensors), nullptr);
  EXPECT_STREQ(cookbook_attention_error(), "the backward pass takes bf16 only");
  EXPECT_EQ(cookbook_attention_backward_workspace(&problem), -1);
  problem.dtype = 0;
  EXPECT_EQ(cookbook_attention_backward_plan("forward", &problem, &tensors), nullptr);
  EXPECT_STREQ(cookbook_attention_error(), "no level is called forward");
}

// All scores are negative, and the maximum moves from key tile to key tile. A maximum that is only
// right for positive scores gives infinite weights.
TEST(CInterface, AttentionOfNegativeScores) {
  for (const int d : {64, 128}) {
    const cookbook_attention_problem problem{1, 1, 1, 1, 600, d, 0, 0};
    const auto width = static_cast<std::size_t>(d);
    // Scores of -2,000 and less, but for the keys from 200 on: -20, -220, -420 ...
    const auto key = [&](std::size_t i) {
      const std::size_t j = i / width;
      const float score =
          j < 200 || j >= 400 ? -2000.0f : -20.0f - 200.0f * static_cast<float>(j % 8);
      return score / std::sqrt(static_cast<float>(d));
    };
    Buffer<bf16> q(width, [](std::size_t) { return 1.0f; });
    Buffer<bf16> k(600 * width, key);
    Buffer<bf16> v(600 * width, [&](std::size_t i) { return i / width % 8 == 0 ? 2.0f : 100.0f; });
    for (const std::string& name : lines(cookbook_attention_levels())) {
      Buffer<bf16> o(width);
      Buffer<float> lse(1);
      ASSERT_EQ(cookbook_attention_forward(name.c_str(), &problem, q.data(), k.data(), v.data(),
                                           o.data(), lse.data(), nullptr),
                0)
          << name << ": " << cookbook_attention_error();
      for (const float value : o.values()) EXPECT_NEAR(value, 2.0f, 0.02f) << name << ", d " << d;
    }
  }
}

TEST(CInterface, WhatIsRefusedLeavesAMessage) {
  bf16* nowhere = nullptr;
  const cookbook_gemm_problem product{5, 7, 16, 8, 0, 0, 0, 0};
  EXPECT_FALSE(cookbook_gemm_plan("any_shape", &product, nowhere, nowhere, nowhere));
  EXPECT_STREQ(cookbook_gemm_error(), "a leading dimension is too small");
  const cookbook_rows_problem rows{3, 64, 0, 0, 1};
  EXPECT_FALSE(cookbook_rows_plan("rows", &rows, nowhere, nullptr, nowhere));
  EXPECT_STREQ(cookbook_rows_error(), "dtype must be 0 (bf16) or 2 (fp32)");
  const cookbook_transpose_problem narrow{17, 100, 0, 16};
  EXPECT_FALSE(cookbook_transpose_plan("transpose", &narrow, nullptr, nullptr));
  EXPECT_STREQ(cookbook_transpose_error(), "a pitch is too small");
  const cookbook_transpose_problem wide{17, 100, 0, 0};
  EXPECT_FALSE(cookbook_transpose_plan("few_rows_4", &wide, nullptr, nullptr));
  EXPECT_STREQ(cookbook_transpose_error(), "few_rows_4: more than 16 rows or columns");
  const cookbook_attention_problem heads{1, 8, 1, 1, 5, 64, 0, 0};
  EXPECT_EQ(cookbook_attention_forward("nothing", &heads, nowhere, nowhere, nowhere, nowhere,
                                       nullptr, nullptr),
            1);
  EXPECT_STREQ(cookbook_attention_error(), "no level is called nothing");
  const cookbook_attention_problem of_half{1, 8, 1, 1, 5, 64, 0, 1};
  EXPECT_EQ(cookbook_attention_forward("split", &of_half, nowhere, nowhere, nowhere, nowhere,
                                       nullptr, nullptr),
            1);
  EXPECT_STREQ(cookbook_attention_error(), "attention: this level takes bf16 only");
}

}  // namespace
}  // namespace cookbook
