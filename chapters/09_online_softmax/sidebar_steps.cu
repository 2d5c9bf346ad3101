// SPDX-License-Identifier: MIT
// Sidebar: the online softmax over eight numbers, step by step: after each one the maximum and the
// sum so far, as the kernels of this chapter compute them. Usage: chapter-9-steps, or
// chapter-9-steps --json FILE: the data of a picture (docs/pictures.md).
#include <cstdio>
#include <string>
#include <vector>

#include "chapters/09_online_softmax/partial.cuh"
#include "common/backend/backend.hpp"
#include "common/harness/run/arguments.hpp"
#include "common/harness/run/picture_data.hpp"

namespace cookbook::softmax {
namespace {

constexpr int kNumbers = 8;
constexpr float kX[kNumbers] = {1, 3, 2, 5, 4, 5, 0, 6};

struct Steps {
  MaxSum after[kNumbers];  // after number i
  MaxSum halves[2], merged;
};

template <class C>
__global__ void add_one_by_one(const float* x, Steps* steps) {
  MaxSum part, halves[2];
  for (int i = 0; i < kNumbers; ++i) {
    add(part, x[i]);
    steps->after[i] = part;
    add(halves[i / (kNumbers / 2)], x[i]);
  }
  for (int i = 0; i < 2; ++i) steps->halves[i] = halves[i];
  steps->merged = merge(halves[0], halves[1]);
}

Steps all_steps() {
  DeviceMemory x(sizeof kX, "x"), memory(sizeof(Steps), "steps");
  x.copy_from_host(kX, sizeof kX);
  launch(add_one_by_one<void>, {dim3(1), dim3(1)}, {}, x.as<float>(), memory.as<Steps>());
  synchronize();
  Steps steps;
  memory.copy_to_host(&steps, sizeof steps);
  return steps;
}

PictureData pair_data(const MaxSum& pair) {
  return PictureData().set("max", pair.max).set("sum", pair.sum);
}

void write_data(const std::string& file, const Steps& steps) {
  std::vector<PictureData> after;
  for (int i = 0; i < kNumbers; ++i) after.push_back(pair_data(steps.after[i]).set("x", kX[i]));
  PictureData("online_softmax", 9)
      .set("steps", after)
      .set("halves", std::vector{pair_data(steps.halves[0]), pair_data(steps.halves[1])})
      .set("merged", std::vector{pair_data(steps.merged)})
      .write(file);
}

}  // namespace
}  // namespace cookbook::softmax

int main(int argc, char** argv) {
  using namespace cookbook;
  const auto file = json_argument(argc, argv);
  if (!file) take_no_arguments(argc, argv);
  const softmax::Steps steps = softmax::all_steps();
  if (file) {
    softmax::write_data(*file, steps);
    return 0;
  }
  for (int i = 0; i < softmax::kNumbers; ++i) {
    std::printf("x %g  max %g  sum %.6f\n", softmax::kX[i], steps.after[i].max, steps.after[i].sum);
  }
  std::printf("two halves, merged: max %g  sum %.6f\n", steps.merged.max, steps.merged.sum);
}
