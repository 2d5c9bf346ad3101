// SPDX-License-Identifier: MIT
// The problem: how many edges each vertex of a directed graph is away from vertex 0, up to a limit.
// The graph is in CSR: the targets of vertex v's edges are targets[offsets[v] .. offsets[v + 1]).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/backend/device_bytes.hpp"
#include "common/device/ceil_div.cuh"
#include "common/device/cuda.cuh"
#include "common/device/sync.cuh"
#include "common/device/warp.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::bfs {

/// Edges that leave vertex `v`. Half of the vertices have about mean / 5, and each doubling is half
/// as frequent, up to 256 times that: few vertices have most of the edges, as in real graphs.
inline std::int64_t edges_of(std::int64_t v, std::int64_t mean) {
  const std::uint64_t bits = mix_bits(static_cast<std::uint64_t>(v) + 1);
  const int doublings = std::countr_zero(bits | 1u << 8);
  return ((mean << doublings) + static_cast<std::int64_t>((bits >> 16) % 5)) / 5;
}

struct Problem {
  std::int64_t vertices = 0;
  std::int64_t mean = 0;   // edges per vertex, about
  std::int64_t steps = 0;  // vertices farther than this are not searched for
  std::int64_t edges = 0;
  // Where the edges of the vertices begin, and where the last ones end. Shared by copies.
  std::shared_ptr<const std::vector<std::int32_t>> offsets = {};
  std::vector<std::int32_t> found = {};  // the reference

  static Problem make(const Size& size, const Variant&) {
    if (size.size() != 3 || size[0] < 0 || size[0] >= 1 << 28 || size[1] < 0 ||
        size[1] >= 1 << 16 || size[2] < 0 || size[2] >= 1 << 16) {
      throw BadSize("takes vertices (below 2^28), mean edges per vertex and steps (below 2^16)");
    }
    Problem problem{size[0], size[1], size[2]};
    std::vector<std::int32_t> offsets(static_cast<std::size_t>(problem.vertices) + 1, 0);
    for (std::int64_t v = 0; v < problem.vertices; ++v) {
      problem.edges += edges_of(v, problem.mean);
      if (problem.edges >= std::int64_t{1} << 31) throw BadSize("takes fewer than 2^31 edges");
      offsets[static_cast<std::size_t>(v) + 1] = static_cast<std::int32_t>(problem.edges);
    }
    problem.offsets = std::make_shared<const std::vector<std::int32_t>>(std::move(offsets));
    return problem;
  }

  std::vector<TensorSpec> tensors() const {
    TensorSpec starts{"offsets", DType::i32, 1, vertices + 1, vertices + 1, Role::input};
    starts.fill = [all = offsets](HostTensor& tensor, std::uint64_t) {
      std::copy(all->begin(), all->end(), tensor.data<std::int32_t>());
    };
    TensorSpec targets{"targets", DType::i32, 1, edges, edges, Role::input};
    targets.fill = [count = static_cast<std::uint64_t>(vertices)](HostTensor& tensor,
                                                                  std::uint64_t seed) {
      auto* to = tensor.data<std::int32_t>();
      for (std::int64_t e = 0; e < tensor.spec.cols; ++e) {
        const std::uint64_t bits = mix_bits((seed << 40) + static_cast<std::uint64_t>(e));
        to[e] = static_cast<std::int32_t>((bits >> 32) * count >> 32);
      }
    };
    return {starts, targets, {"distances", DType::i32, 1, vertices, vertices, Role::output}};
  }

  /// The fewest bytes through device memory: the graph is read once, each distance written once.
  double bytes() const {
    return 4.0 * static_cast<double>(edges) + 8.0 * static_cast<double>(vertices) + 4;
  }
  double flops() const { return 0; }

  void begin_reference(const HostTensors& tensors) {
    const auto* targets = tensors["targets"].data<std::int32_t>();
    found.assign(static_cast<std::size_t>(vertices), -1);
    std::vector<std::int32_t> frontier, next;
    if (vertices > 0) found[0] = 0, frontier = {0};
    for (std::int32_t step = 1; step <= steps && !frontier.empty(); ++step) {
      for (const std::int32_t v : frontier) {
        for (std::int32_t e = (*offsets)[v]; e < (*offsets)[v + 1]; ++e) {
          if (found[targets[e]] >= 0) continue;
          found[targets[e]] = step;
          next.push_back(targets[e]);
        }
      }
      frontier.swap(next);
      next.clear();
    }
  }

  /// Whole numbers: exact. -1 stands for a vertex that is farther away, or not reached at all.
  void reference_row(const HostTensors& /*tensors*/, const std::string& /*output*/,
                     std::int64_t /*row*/, double* value, double* bound) const {
    for (std::size_t v = 0; v < found.size(); ++v) value[v] = found[v], bound[v] = 0;
  }
};

struct Buffers {
  const std::int32_t* offsets = nullptr;
  const std::int32_t* targets = nullptr;
  std::int32_t* distances = nullptr;

  static Buffers bind(const DevicePointers& at) {
    return {at.get<const std::int32_t>("offsets"), at.get<const std::int32_t>("targets"),
            at.get<std::int32_t>("distances")};
  }
};

using Level = LevelOf<Problem, Buffers>;

}  // namespace cookbook::bfs
