// SPDX-License-Identifier: MIT
// Two computations on rows with one structure: every thread holds part of a row in registers and
// reduces it to a Partial. Partials merge until the whole row is known. Then each element is
// finished separately. Levels 5 to 8 are written once, for any such client.
//
//   struct Op {                                // passed to the kernel by value
//     struct Partial;                          // what is known about part of a row; {} for none
//     static constexpr float kPadding;         // an element that changes no Partial
//     Partial reduce(float (&x)[V][P]);        // of this thread's elements; may overwrite them
//     static Partial merge(a, b);              // any order, any grouping
//     static Partial merge_lanes<kLanes>(p);   // over groups of lanes
//     float factor(mine, row);                 // common to all elements of this thread
//     void skip(int cols);                     // columns now count from there
//     void finish<kPeeled>(float (&x)[P], factor, col);  // elements from column col on; if
//     kPeeled,
//                                                        // col may be any number
//     float scale(row);                        // as factor, for finish_anew
//     void finish_anew<kPeeled>(float (&x)[P], row, scale, col);  // as finish, for elements that
//                                                                 // reduce has not overwritten
//   };
#pragma once

#include <memory>

#include "chapters/09_online_softmax/level_4_vectorised.cuh"
#include "chapters/09_online_softmax/partial.cuh"
#include "chapters/09_online_softmax/problem.hpp"
#include "chapters/09_online_softmax/rms_level_0_two_passes.cuh"
#include "chapters/09_online_softmax/row_io.cuh"

namespace cookbook::softmax {

/// The exponential of the levels: see `exponential`.
struct FastExp {
  __device__ static float of(float x) { return exponential(x); }
};

template <class Exp>
struct SoftmaxOp {
  using Partial = MaxSum;
  static constexpr float kPadding = kMinusInfinity;  // its exponential is 0
  static constexpr bool kWeights = false;            // one per column

  // One exponential per element, relative to this thread's own maximum, since the row's is not
  // known yet. `factor` corrects the difference.
  template <int kVectors, int kPack>
  __device__ Partial reduce(float (&x)[kVectors][kPack]) const {
    Partial part;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) part.max = fmaxf(part.max, x[v][j]);
    }
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) part.sum += x[v][j] = Exp::of(x[v][j] - part.max);
    }
    return part;
  }
  __device__ static Partial merge(const Partial& a, const Partial& b) {
    return softmax::merge(a, b);
  }
  template <int kLanes>
  __device__ static Partial merge_lanes(const Partial& part) {
    return softmax::merge_lanes<kLanes>(part);
  }
  __device__ float factor(const Partial& mine, const Partial& row) const {
    return Exp::of(mine.max - row.max) / row.sum;
  }
  __device__ void skip(int) {}
  template <bool kPeeled = false, int kPack>
  __device__ void finish(float (&x)[kPack], float factor, int) const {
#pragma unroll
    for (int j = 0; j < kPack; ++j) x[j] *= factor;
  }
  __device__ float scale(const Partial& row) const { return 1 / row.sum; }
  template <bool kPeeled = false, int kPack>
  __device__ void finish_anew(float (&x)[kPack], const Partial& row, float scale, int) const {
#pragma unroll
    for (int j = 0; j < kPack; ++j) x[j] = Exp::of(x[j] - row.max) * scale;
  }
};

template <class T>
struct RmsNormOp {
  const T* weight;
  float per_col;  // 1 / columns

  struct Partial {
    float squares = 0;
  };
  static constexpr float kPadding = 0;
  static constexpr bool kWeights = true;

  template <int kVectors, int kPack>
  __device__ Partial reduce(float (&x)[kVectors][kPack]) const {
    Partial part;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) part.squares += x[v][j] * x[v][j];
    }
    return part;
  }
  __device__ static Partial merge(const Partial& a, const Partial& b) {
    return {a.squares + b.squares};
  }
  template <int kLanes>
  __device__ static Partial merge_lanes(const Partial& part) {
    return {warp_sum<kLanes>(part.squares)};
  }
  __device__ float factor(const Partial&, const Partial& row) const {
    return rsqrtf(row.squares * per_col + kEpsilon);
  }
  __device__ void skip(int cols) { weight += cols; }
  template <bool kPeeled = false, int kPack>
  __device__ void finish(float (&x)[kPack], float factor, int col) const {
    float w[kPack];           // the same for every row, so it stays in the caches
    if constexpr (kPeeled) {  // the row's boundaries are not those of the weights
#pragma unroll
      for (int j = 0; j < kPack; ++j) w[j] = as_float(weight[col + j]);
    } else {
      load_pack(w, weight + col);
    }
#pragma unroll
    for (int j = 0; j < kPack; ++j) x[j] *= factor * w[j];
  }
  __device__ float scale(const Partial& row) const { return factor(row, row); }
  template <bool kPeeled = false, int kPack>
  __device__ void finish_anew(float (&x)[kPack], const Partial&, float scale, int col) const {
    finish<kPeeled>(x, scale, col);  // reduce overwrites nothing
  }
};

/// How a kernel accesses rows: all of it 16 bytes at a time; peeled, which is 16 bytes at a time
/// between a row's boundaries and single elements before and after; or in single elements.
enum class Access { vectors, peeled, elements };

/// Whether `address` may be accessed 16 bytes at a time.
inline bool on_boundary(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

/// Whether 16-byte accesses are aligned in every row and cover it: bases, pitches and columns.
template <class T>
bool rows_on_boundaries(const Shape& shape, const T* in, const T* out) {
  return on_boundary(in) && on_boundary(out) &&
         (shape.cols | shape.in_pitch | shape.out_pitch) % kPackOf<T> == 0;
}

/// The widest access. A row can be peeled if `in` and `out` reach boundaries at the same element.
template <class T>
Access access_of(const Shape& shape, const T* in, const T* out) {
  if (rows_on_boundaries(shape, in, out)) return Access::vectors;
  const auto apart = reinterpret_cast<std::uintptr_t>(in) - reinterpret_cast<std::uintptr_t>(out);
  const bool together = apart % 16 == 0 && (shape.in_pitch - shape.out_pitch) % kPackOf<T> == 0;
  return together ? Access::peeled : Access::elements;
}

/// What all Configs of row kernels have. kPack: elements per access.
template <class ClientValue, bool kVectors = true>
struct RowConfig {
  using Client = ClientValue;
  using T = typename Client::T;
  using Op = typename Client::Op;
  static constexpr int kPack = kVectors ? kPackOf<T> : 1;
};

/// This thread's elements of a row, or of its block's slice of one: (accesses, elements). The
/// accesses are kThreads apart.
template <class C>
using Elements = float[C::kVectors][C::kPack];

/// Loads them from `in`, this thread's first one. `left`: accesses from there to the end of the row
/// or slice.
template <class C>
__device__ __forceinline__ void load_elements(Elements<C>& x, const typename C::T* in, int left) {
#pragma unroll
  for (int v = 0; v < C::kVectors; ++v) {
#pragma unroll
    for (int j = 0; j < C::kPack; ++j) x[v][j] = C::Op::kPadding;
    if (v * C::kThreads < left) load_pack_streaming(x[v], in + v * C::kThreads * C::kPack);
  }
}

/// Finishes them with `factor`, and stores them to `out`, in the same way.
template <class C, bool kPeeled = false>
__device__ __forceinline__ void store_elements(const typename C::Op& op, Elements<C>& x,
                                               float factor, typename C::T* out, int left) {
#pragma unroll
  for (int v = 0; v < C::kVectors; ++v) {
    if (v * C::kThreads < left) {
      op.template finish<kPeeled>(x[v], factor, v * C::kThreads * C::kPack);
      store_pack(out + v * C::kThreads * C::kPack, x[v]);
    }
  }
}

/// Merges the `count` Partials of a table into `whole`, in every lane.
template <class Op>
__device__ __forceinline__ void merge_table(const Op& op, typename Op::Partial& whole,
                                            const typename Op::Partial* table, int count) {
  whole = {};
  for (int i = lane_idx(); i < count; i += kWarpSize) {
    whole = op.merge(whole, load_vector<typename Op::Partial>(&table[i]));
  }
  whole = op.template merge_lanes<kWarpSize>(whole);
}

/// The elements of a row before its first boundary and after its last. Only peeled rows have any.
template <bool kPeeled, class T, class Op, int kThreads>
struct Edges {
  using Partial = typename Op::Partial;
  __device__ Edges(const T*, int, int, int, int) {}
  __device__ Partial merged(const Op&, const Partial& mine) const { return mine; }
  __device__ void finish(const Op&, const Partial&, T*) {}
};

/// Less than 16 bytes at each end: one element, or a few, for each of the first threads.
template <class T, class Op, int kThreads>
struct Edges<true, T, Op, kThreads> {
  using Partial = typename Op::Partial;
  static constexpr int kCount = ceil_div(2 * (kPackOf<T> - 1), kThreads);
  int thread, head, count, between;
  float x[kCount][1];

  /// `vectors` accesses begin at element `head` of the row, which has `cols` elements.
  __device__ Edges(const T* row, int thread, int head, int vectors, int cols)
      : thread(thread), head(head), count(cols - vectors * kPackOf<T>), between(cols - count) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      x[i][0] = Op::kPadding;
      if (has(i)) load_pack_streaming(x[i], row + col(i));
    }
  }
  __device__ bool has(int i) const { return thread + i * kThreads < count; }
  __device__ int col(int i) const {
    const int edge = thread + i * kThreads;
    return edge < head ? edge : edge + between;
  }
  /// `mine`, merged with this thread's edge elements.
  __device__ Partial merged(const Op& op, const Partial& mine) const {
    float copy[kCount][1];  // reduce may overwrite them
#pragma unroll
    for (int i = 0; i < kCount; ++i) copy[i][0] = x[i][0];
    return op.merge(mine, op.reduce(copy));
  }
  __device__ void finish(const Op& op, const Partial& whole, T* out) {
    const float scale = op.scale(whole);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (!has(i)) continue;
      op.template finish_anew<true>(x[i], whole, scale, col(i));
      store_pack(out + col(i), x[i]);
    }
  }
};

/// Client of the row kernels: the types, the operation, and the kernel for a row of any length.
template <class Element, class Exp = FastExp>
struct Softmax {
  using T = Element;
  using Level = softmax::Level<T>;
  using Op = SoftmaxOp<Exp>;
  static constexpr bool kExponentials = true;
  static Op op(const typename Level::Plan&) { return {}; }
  static Access access(const typename Level::Plan& plan) {
    return access_of(plan.problem.shape, plan.buffers.in, plan.buffers.out);
  }
  static void any_length(const typename Level::Plan& plan, Stream stream) {
    Vectorised<T>::run(plan, stream);
  }
};

template <class Element>
struct RmsNorm {
  using T = Element;
  using Level = RmsLevel<T>;
  using Op = RmsNormOp<T>;
  static constexpr bool kExponentials = false;
  static Op op(const typename Level::Plan& plan) {
    return {plan.buffers.weight, 1.0f / static_cast<float>(plan.problem.shape.cols)};
  }
  static Access access(const typename Level::Plan& plan) {
    const Access rows = access_of(plan.problem.shape, plan.buffers.in, plan.buffers.out);
    return rows == Access::vectors && !on_boundary(plan.buffers.weight) ? Access::peeled : rows;
  }
  static void any_length(const typename Level::Plan& plan, Stream stream) {
    RmsTwoPasses<T>::run(plan, stream);
  }
};

/// What prepare() decides from level 5 on: the compiled kernel and its launch configuration.
template <class Client>
struct RowLaunch : Client::Level::Plan {
  void (*start)(const RowLaunch&, Stream) = nullptr;
  int cluster = 1;            // blocks that hold one row together
  int batch = 1;              // rows that a block (or cluster) computes one after the other
  std::int64_t resident = 0;  // blocks (or clusters) of a persistent kernel
  std::shared_ptr<DeviceMemory> counter = nullptr;  // of rows, which they share
  bool aligned() const { return Client::access(*this) == Access::vectors; }
};
template <class Client>
using StartRows = void (*)(const RowLaunch<Client>&, Stream);

template <class Client>
void start_any_length(const RowLaunch<Client>& plan, Stream stream) {
  Client::any_length(plan, stream);
}

/// Launches a kernel with blocks of `threads`: one, or a cluster, per `rows` rows.
template <class Client, class Kernel, class... Extra>
void launch_row_kernel(Kernel kernel, const RowLaunch<Client>& plan, Stream stream, int threads,
                       std::int64_t rows, std::size_t shared_bytes = 0, Extra... extra) {
  const Shape& shape = plan.problem.shape;
  dim3 grid = row_grid(shape, rows);
  grid.x *= plan.cluster;
  launch(kernel, {grid, dim3(static_cast<unsigned>(threads)), shared_bytes, plan.cluster}, stream,
         plan.buffers.in, plan.buffers.out, shape, Client::op(plan), extra...);
}

/// What level L of row kernels inherits. L::choose(plan) sets the kernel and its launch.
template <class Client, class L>
struct RowLevel : Client::Level {
  using Plan = RowLaunch<Client>;
  using Problem = typename Client::Level::Problem;
  using Buffers = typename Client::Level::Buffers;

  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    Plan plan{{problem, buffers}};
    L::choose(plan);
    return plan;
  }
  static void run(const Plan& plan, Stream stream) { plan.start(plan, stream); }
};

template <class Client>
using RowProblem = typename Client::Level::Problem;

/// Of a kernel that reads a row once: coalesced, with 16-byte accesses. And `more`.
template <class Client>
Claims one_read(const RowProblem<Client>& p, const Claims& more) {
  using T = typename Client::T;
  const double accesses = static_cast<double>(p.shape.elements()) / kPackOf<T> / 32;
  Claims claims = {global_loads("in").coalesced(), global_stores("out").coalesced(),
                   global_loads("in").bytes(pass_bytes<T>(p.shape)),
                   global_loads("in").requests(accesses), global_stores("out").requests(accesses)};
  claims.insert(claims.end(), more.begin(), more.end());
  return claims;
}
/// The same where bulk copies load it into shared memory.
template <class Client>
Claims one_bulk_read(const RowProblem<Client>& p, const Claims& more) {
  using T = typename Client::T;
  const double accesses = static_cast<double>(p.shape.elements()) / kPackOf<T> / 32;
  Claims claims = {tma_loads("in").bytes(pass_bytes<T>(p.shape)), global_stores("out").coalesced(),
                   global_stores("out").requests(accesses), shared_loads().conflict_free()};
  claims.insert(claims.end(), more.begin(), more.end());
  return claims;
}

/// Copies by cp.async: the SIMT backend counts them with the other asynchronous ones.
inline Accesses async_loads(std::string buffer) { return tma_loads(std::move(buffer)); }

/// Elements of a row that each thread holds in registers, whatever their type.
constexpr int kElementsPerThread = 32;

}  // namespace cookbook::softmax
