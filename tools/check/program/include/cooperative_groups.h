// SPDX-License-Identifier: MIT
// Cooperative groups over the SIMT backend. A group of threads of a warp is a mask of lanes.
#pragma once

#include "cuda_runtime.h"

namespace cookbook::simt::program {
/// All threads of a cooperative launch.
void sync_grid();
bool is_cooperative();
}  // namespace cookbook::simt::program

namespace cooperative_groups {

namespace detail {
__forceinline__ unsigned lane() { return cookbook::simt::lane_id(); }
__forceinline__ unsigned block_rank() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
__forceinline__ unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
__forceinline__ unsigned rank_in(unsigned mask) {
  return static_cast<unsigned>(__builtin_popcount(mask & ((1u << lane()) - 1)));
}
/// The lane of the `rank`-th member.
__forceinline__ unsigned member(unsigned mask, unsigned rank) {
  for (; rank > 0; --rank) mask &= mask - 1;
  return mask ? static_cast<unsigned>(__builtin_ctz(mask)) : 0;
}
/// A mask of lanes as a mask of ranks.
__forceinline__ unsigned to_ranks(unsigned lanes, unsigned mask) {
  unsigned result = 0;
  for (unsigned rank = 0; mask != 0; mask &= mask - 1, ++rank) {
    if (lanes & mask & -mask) result |= 1u << rank;
  }
  return result;
}
/// __shfl_sync() of a type of any size, in words of 8 bytes.
template <class T>
__forceinline__ T shuffle(unsigned mask, T value, unsigned from) {
  if constexpr (sizeof(T) <= 8) {
    return __shfl_sync(mask, value, static_cast<int>(from));
  } else {
    unsigned long long words[(sizeof(T) + 7) / 8] = {};
    __builtin_memcpy(words, static_cast<const void*>(&value), sizeof(T));
    for (unsigned long long& word : words) word = __shfl_sync(mask, word, static_cast<int>(from));
    __builtin_memcpy(static_cast<void*>(&value), words, sizeof(T));
    return value;
  }
}
/// The part of `mask` with as many members as `size`, that the calling lane is in.
__forceinline__ unsigned part_of(unsigned mask, unsigned size) {
  const unsigned first = rank_in(mask) / size * size;
  unsigned part = 0;
  for (unsigned rank = 0; mask != 0; mask &= mask - 1, ++rank) {
    if (rank >= first && rank < first + size) part |= mask & -mask;
  }
  return part;
}
}  // namespace detail

/// Any group: a block, a grid, or lanes of a warp.
class thread_group {
 public:
  enum class Kind { block, grid, lanes };
  unsigned long long size() const {
    if (kind_ == Kind::block) return detail::block_size();
    if (kind_ == Kind::grid) {
      return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z *
             detail::block_size();
    }
    return static_cast<unsigned long long>(__builtin_popcount(mask_));
  }
  unsigned long long num_threads() const { return size(); }
  unsigned long long thread_rank() const {
    if (kind_ == Kind::block) return detail::block_rank();
    if (kind_ == Kind::grid) {
      return (static_cast<unsigned long long>(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x +
              blockIdx.x) *
                 detail::block_size() +
             detail::block_rank();
    }
    return detail::rank_in(mask_);
  }
  __forceinline__ void sync() const {
    if (kind_ == Kind::block) {
      __syncthreads();
    } else if (kind_ == Kind::grid) {
      cookbook::simt::program::sync_grid();
    } else {
      __syncwarp(mask_);
    }
  }
  bool is_valid() const { return true; }
  unsigned lanes() const { return mask_; }
  Kind kind() const { return kind_; }
  thread_group(Kind kind, unsigned mask) : kind_(kind), mask_(mask) {}

 protected:
  Kind kind_;
  unsigned mask_;
};

class thread_block : public thread_group {
 public:
  thread_block() : thread_group(Kind::block, 0) {}
  static unsigned size() { return detail::block_size(); }
  static unsigned num_threads() { return detail::block_size(); }
  static unsigned thread_rank() { return detail::block_rank(); }
  static __forceinline__ void sync() { __syncthreads(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};

class grid_group : public thread_group {
 public:
  grid_group() : thread_group(Kind::grid, 0) {}
  bool is_valid() const { return cookbook::simt::program::is_cooperative(); }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 block_index() { return blockIdx; }
  static unsigned long long num_blocks() {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
  }
  static unsigned long long block_rank() {
    return static_cast<unsigned long long>(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x +
           blockIdx.x;
  }
};

/// Operations of the lanes of `mask`; lanes are given as ranks.
class lane_group : public thread_group {
 public:
  explicit lane_group(unsigned mask) : thread_group(Kind::lanes, mask) {}
  unsigned size() const { return static_cast<unsigned>(__builtin_popcount(mask_)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return detail::rank_in(mask_); }
  __forceinline__ void sync() const { __syncwarp(mask_); }
  template <class T>
  __forceinline__ T shfl(T value, int rank) const {
    return detail::shuffle(mask_, value, detail::member(mask_, rank % size()));
  }
  template <class T>
  __forceinline__ T shfl_down(T value, unsigned delta) const {
    const unsigned rank = thread_rank() + delta < size() ? thread_rank() + delta : thread_rank();
    return detail::shuffle(mask_, value, detail::member(mask_, rank));
  }
  template <class T>
  __forceinline__ T shfl_up(T value, unsigned delta) const {
    const unsigned rank = thread_rank() >= delta ? thread_rank() - delta : thread_rank();
    return detail::shuffle(mask_, value, detail::member(mask_, rank));
  }
  template <class T>
  __forceinline__ T shfl_xor(T value, unsigned bits) const {
    const unsigned rank = (thread_rank() ^ bits) < size() ? thread_rank() ^ bits : thread_rank();
    return detail::shuffle(mask_, value, detail::member(mask_, rank));
  }
  __forceinline__ int any(int predicate) const { return __any_sync(mask_, predicate); }
  __forceinline__ int all(int predicate) const { return __all_sync(mask_, predicate); }
  __forceinline__ unsigned ballot(int predicate) const {
    return detail::to_ranks(__ballot_sync(mask_, predicate), mask_);
  }
  template <class T>
  __forceinline__ unsigned match_any(T value) const {
    return detail::to_ranks(__match_any_sync(mask_, value), mask_);
  }
  template <class T>
  __forceinline__ unsigned match_all(T value, int& all_equal) const {
    return detail::to_ranks(__match_all_sync(mask_, value, &all_equal), mask_);
  }
};

class coalesced_group : public lane_group {
 public:
  explicit coalesced_group(unsigned mask, unsigned of = 0)
      : lane_group(mask), of_(of == 0 ? mask : of) {}
  unsigned meta_group_size() const {
    return static_cast<unsigned>((__builtin_popcount(of_) + size() - 1) / size());
  }
  unsigned meta_group_rank() const {
    return static_cast<unsigned>(__builtin_popcount(of_ & ((mask_ & -mask_) - 1))) / size();
  }

 private:
  unsigned of_;  // the lanes that were divided
};

template <unsigned kSize, class Parent = void>
class thread_block_tile : public lane_group {
  static_assert(kSize <= 32 && (kSize & (kSize - 1)) == 0,
                "./run check supports tiles of 1, 2, 4, 8, 16 and 32 threads");

 public:
  explicit thread_block_tile(unsigned mask) : lane_group(mask) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<kSize, Other>& tile) : lane_group(tile.lanes()) {}
  static constexpr unsigned size() { return kSize; }
  static constexpr unsigned num_threads() { return kSize; }
  unsigned thread_rank() const { return detail::lane() % kSize; }
  unsigned meta_group_size() const { return (detail::block_size() + kSize - 1) / kSize; }
  unsigned meta_group_rank() const { return detail::block_rank() / kSize; }
};

/// The blocks of a cluster.
class cluster_group {
 public:
  static __forceinline__ void sync() { cookbook::cluster_sync(); }
  static __forceinline__ void barrier_arrive() { cookbook::cluster_arrive(); }
  static __forceinline__ void barrier_wait() { cookbook::cluster_wait(); }
  static unsigned block_rank() { return cookbook::cluster_block_rank(); }
  static unsigned num_blocks() { return cookbook::cluster_size(); }
  static dim3 dim_blocks() {
    const uint3 shape = cookbook::simt::cluster_shape();
    return dim3(shape.x, shape.y, shape.z);
  }
  static dim3 block_index() {
    const uint3 shape = cookbook::simt::cluster_shape();
    return dim3(blockIdx.x % shape.x, blockIdx.y % shape.y, blockIdx.z % shape.z);
  }
  static unsigned num_threads() { return num_blocks() * detail::block_size(); }
  static unsigned size() { return num_threads(); }
  static unsigned thread_rank() {
    return block_rank() * detail::block_size() + detail::block_rank();
  }
  /// The same variable of block `rank`.
  template <class T>
  static __forceinline__ T* map_shared_rank(T* variable, unsigned rank) {
    return cookbook::map_shared(variable, rank);
  }
};

__forceinline__ cluster_group this_cluster() { return {}; }
__forceinline__ thread_block this_thread_block() { return {}; }
__forceinline__ grid_group this_grid() { return {}; }
__forceinline__ coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }
template <class Group>
__forceinline__ void sync(const Group& group) {
  group.sync();
}
template <class Group>
__forceinline__ void synchronize(const Group& group) {
  group.sync();
}
template <class Group>
unsigned long long thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
unsigned long long group_size(const Group& group) {
  return group.size();
}

template <unsigned kSize, class Parent>
thread_block_tile<kSize, Parent> tiled_partition(const Parent&) {
  const unsigned first = detail::lane() / kSize * kSize;
  return thread_block_tile<kSize, Parent>((kSize == 32 ? ~0u : (1u << kSize % 32) - 1) << first);
}
inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
  const unsigned mask = parent.kind() == thread_group::Kind::lanes ? parent.lanes() : ~0u;
  return thread_group(thread_group::Kind::lanes, detail::part_of(mask, size));
}
inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
  return coalesced_group(detail::part_of(parent.lanes(), size), parent.lanes());
}
template <class Label>
__forceinline__ coalesced_group labeled_partition(const lane_group& parent, Label label) {
  return coalesced_group(__match_any_sync(parent.lanes(), label), parent.lanes());
}
__forceinline__ coalesced_group binary_partition(const lane_group& parent, bool predicate) {
  const unsigned yes = __ballot_sync(parent.lanes(), predicate);
  return coalesced_group(predicate ? yes : parent.lanes() & ~yes, parent.lanes());
}

}  // namespace cooperative_groups
