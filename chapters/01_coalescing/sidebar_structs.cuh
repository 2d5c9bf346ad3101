// SPDX-License-Identifier: MIT
// Sidebar: an array of structs compared with a struct of arrays, when only two of eight fields are
// read.
#pragma once

#include "chapters/01_coalescing/problem.hpp"

namespace cookbook::coalescing {

constexpr int kFields = 8;  // x, y, z, vx, vy, vz, mass, charge: 32 bytes per particle
constexpr int kFieldX = 0;
constexpr int kFieldVx = 3;
constexpr float kTimeStep = 0.5f;

/// next_x[i] = x[i] + kTimeStep * vx[i] for n particles, which are stored in both layouts.
struct ParticleProblem {
  std::int64_t n = 0;

  static ParticleProblem make(const Size& size, const Variant&) {
    if (size.size() != 1 || size[0] < 0) throw BadSize("particles take one size, n >= 0");
    return {size[0]};
  }

  /// Both layouts must hold the same particles, so a field depends only on its index.
  static float field(std::int64_t particle, std::int64_t index) {
    return static_cast<float>((particle * 37 + index * 101) % 1021 - 510) / 8;
  }

  std::vector<TensorSpec> tensors() const {
    TensorSpec structs{"structs", DType::f32, n, kFields, kFields, Role::input};
    structs.fill = [](HostTensor& tensor, std::uint64_t) {
      for (std::int64_t i = 0; i < tensor.spec.rows; ++i) {
        for (int f = 0; f < kFields; ++f) tensor.data<float>()[i * kFields + f] = field(i, f);
      }
    };
    TensorSpec arrays{"arrays", DType::f32, n == 0 ? 0 : kFields, n, n, Role::input};
    arrays.fill = [](HostTensor& tensor, std::uint64_t) {
      const std::int64_t n = tensor.spec.cols;
      for (int f = 0; f < tensor.spec.rows; ++f) {
        for (std::int64_t i = 0; i < n; ++i) tensor.data<float>()[f * n + i] = field(i, f);
      }
    };
    return {structs, arrays, {"next_x", DType::f32, n, 1, 1, Role::output}};
  }

  double bytes() const { return 3.0 * 4.0 * static_cast<double>(n); }  // x and vx in, next_x out
  double flops() const { return 2.0 * static_cast<double>(n); }

  void reference_row(const HostTensors&, const std::string&, std::int64_t row, double* value,
                     double* bound) const {
    value[0] = double{field(row, kFieldX)} + double{kTimeStep} * field(row, kFieldVx);
    bound[0] = 0;  // small multiples of 1/16: exact in fp32
  }
};

struct ParticleBuffers {
  const float* structs = nullptr;  // (n, kFields)
  const float* arrays = nullptr;   // (kFields, n)
  float* next_x = nullptr;         // (n)

  static ParticleBuffers bind(const DevicePointers& at) {
    return {at.get<const float>("structs"), at.get<const float>("arrays"), at.get<float>("next_x")};
  }
};

using ParticleLevel = LevelOf<ParticleProblem, ParticleBuffers>;

struct ParticleConfig {
  static constexpr int kThreads = 256;
};

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    structs_step(const float* __restrict__ structs, float* __restrict__ next_x, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (i >= n) return;
  const float x = structs[i * kFields + kFieldX];  // lanes 32 bytes apart: a sector each
  const float vx = structs[i * kFields + kFieldVx];
  next_x[i] = x + kTimeStep * vx;
}

template <class C>
__global__ void __launch_bounds__(C::kThreads)
    arrays_step(const float* __restrict__ arrays, float* __restrict__ next_x, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (i >= n) return;
  const float x = arrays[kFieldX * n + i];  // lanes 4 bytes apart
  const float vx = arrays[kFieldVx * n + i];
  next_x[i] = x + kTimeStep * vx;
}

struct ArrayOfStructs : ParticleLevel {
  using Config = ParticleConfig;
  static constexpr LevelText text{
      .name = "array_of_structs",
      .changed = "start: the eight fields of a particle are contiguous",
      .expect = "32 sectors per request: 32 bytes per particle are moved for the 8 that are used",
      .cost = "nothing",
  };

  static Claims claims(const Problem&) {
    return {global_loads("structs").sectors_per_request(32), global_stores("next_x").coalesced()};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const auto blocks = static_cast<unsigned>(ceil_div(n, Config::kThreads));
    launch(structs_step<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream,
           plan.buffers.structs, plan.buffers.next_x, n);
  }
};

struct StructOfArrays : ParticleLevel {
  using Config = ParticleConfig;
  static constexpr LevelText text{
      .name = "struct_of_arrays",
      .changed = "each field has its own array",
      .expect = "12 bytes per particle through memory instead of 36: up to 3 times as fast",
      .cost = "a particle's fields are n elements apart",
  };

  static Claims claims(const Problem&) {
    return {global_loads("arrays").sectors_per_request(4), global_loads("arrays").coalesced(),
            global_stores("next_x").coalesced(), faster_than_previous(1.8)};
  }

  static void run(const Plan& plan, Stream stream) {
    const std::int64_t n = plan.problem.n;
    const auto blocks = static_cast<unsigned>(ceil_div(n, Config::kThreads));
    launch(arrays_step<Config>, {dim3(blocks), dim3(Config::kThreads)}, stream, plan.buffers.arrays,
           plan.buffers.next_x, n);
  }
};

}  // namespace cookbook::coalescing
