// SPDX-License-Identifier: MIT
// What the pages of the library show, compiled and run: the pages quote it.
#include <gtest/gtest.h>

#include <vector>

#include "library/gemm/any_shape.cuh"
#include "library/rows/rows.cuh"
#include "library/transpose/transpose.cuh"

namespace cookbook {
namespace {

/// A device buffer of `count` elements, all `value`.
template <class T>
DeviceMemory filled(std::int64_t count, float value) {
  const std::vector<T> host(static_cast<std::size_t>(count), static_cast<T>(value));
  DeviceMemory memory(host.size() * sizeof(T), "buffer");
  memory.copy_from_host(host.data(), memory.bytes());
  return memory;
}

template <class T>
float last_of(const DeviceMemory& memory) {
  T value{};
  memory.copy_to_host(&value, sizeof value, memory.bytes() - sizeof value);
  return static_cast<float>(value);
}

const Stream stream{};  // the default stream

TEST(LibraryPages, Gemm) {
  const std::int64_t m = 5, n = 8, k = 16;
  const DeviceMemory of_a = filled<bf16>(m * k, 1.0f), of_b = filled<bf16>(n * 4160, 2.0f);
  const DeviceMemory of_c = filled<bf16>(m * n, 0.0f);
  const auto *a = of_a.as<bf16>(), *b = of_b.as<bf16>();
  auto* c = of_c.as<bf16>();
  // [quote gemm]
  auto problem = gemm::Problem::make_layout({m, n, k}, {}, /*a_transposed=*/false,
                                            /*b_transposed=*/true);
  problem.ldb = 4160;  // elements from one stored row to the next
  const auto plan = gemm::AnyShape::prepare(problem, {a, b, c});  // device pointers
  gemm::AnyShape::run(plan, Stream{stream});
  // [end quote]
  EXPECT_EQ(last_of<bf16>(of_c), 32.0f);
}

TEST(LibraryPages, Rows) {
  const std::int64_t rows = 3, cols = 64;
  const DeviceMemory of_in = filled<float>(rows * 4160, 1.0f);
  const DeviceMemory of_out = filled<float>(rows * cols, 0.0f);
  const auto* in = of_in.as<float>();
  auto* out = of_out.as<float>();
  // [quote rows]
  using Rows = softmax::Rows<softmax::Softmax<float>>;
  auto problem = softmax::Problem<float>::make({rows, cols}, {});
  problem.shape.in_pitch = 4160;                        // elements from one row to the next
  const auto plan = Rows::prepare(problem, {in, out});  // device pointers
  Rows::run(plan, Stream{stream});
  // [end quote]
  EXPECT_EQ(last_of<float>(of_out), 1.0f / 64);
}

TEST(LibraryPages, Transpose) {
  const std::int64_t rows = 5, cols = 7;
  const DeviceMemory of_in = filled<float>(rows * 4160, 3.0f);
  const DeviceMemory of_out = filled<float>(rows * cols, 0.0f);
  const auto* in = of_in.as<float>();
  auto* out = of_out.as<float>();
  // [quote transpose]
  auto problem = transpose::Problem::make({rows, cols}, {});
  problem.shape.in_pitch = 4160;  // elements from one row to the next
  const auto plan = transpose::Transpose::prepare(problem, {in, out});  // device pointers
  transpose::Transpose::run(plan, Stream{stream});
  // [end quote]
  EXPECT_EQ(last_of<float>(of_out), 3.0f);
}

}  // namespace
}  // namespace cookbook
