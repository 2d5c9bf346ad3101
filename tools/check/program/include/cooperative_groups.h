// SPDX-License-Identifier: MIT
// Cooperative groups over the SIMT backend. A group of threads of a warp is a mask of lanes.
#pragma once

#include "cuda_runtime.h"

namespace cookbook::simt::program {
/// All threads of a cooperative launch.
void sync_grid();
bool is_cooperative();
/// Of a tile of more than one warp: its threads meet.
void sync_tile(unsigned size);
/// They meet, and each has given what lies at `value`; then any may read what the `rank`-th gave,
/// and last they meet again. This orders no memory.
void begin_exchange(unsigned size, const void* value);
void read_exchanged(unsigned size, unsigned rank, void* to, size_t bytes);
void end_exchange(unsigned size);
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

namespace detail {
template <class T>
concept Tile = requires {
  T::kThreads;
};
/// The threads of what is divided into tiles.
template <class Parent>
__forceinline__ unsigned divided() {
  if constexpr (Tile<Parent>) {
    return Parent::kThreads;
  } else {
    return block_size();
  }
}
}  // namespace detail

/// Where a tile is among those that its parent was divided into.
template <unsigned kSize>
class tile_place {
 public:
  static constexpr unsigned kThreads = kSize;
  explicit tile_place(unsigned of) : of_(of) {}
  static constexpr unsigned size() { return kSize; }
  static constexpr unsigned num_threads() { return kSize; }
  unsigned thread_rank() const { return detail::block_rank() % kSize; }
  unsigned meta_group_size() const { return (of_ + kSize - 1) / kSize; }
  unsigned meta_group_rank() const { return detail::block_rank() % of_ / kSize; }
  unsigned of() const { return of_; }

 private:
  unsigned of_;
};

/// A tile of several warps.
template <unsigned kSize, class Parent = void>
class thread_block_tile : public tile_place<kSize> {
  static_assert(kSize <= 512 && (kSize & (kSize - 1)) == 0,
                "a tile has 1, 2, 4, ... or 512 threads");

 public:
  using tile_place<kSize>::tile_place;
  template <class Other>
  thread_block_tile(const thread_block_tile<kSize, Other>& tile) : tile_place<kSize>(tile.of()) {}
  __forceinline__ void sync() const { cookbook::simt::program::sync_tile(kSize); }
  /// Calls read(other values by their rank) while all threads are here.
  template <class T, class Read>
  __forceinline__ auto exchange(const T& value, const Read& read) const {
    cookbook::simt::program::begin_exchange(kSize, &value);
    const auto result = read([](unsigned rank) {
      T other;
      cookbook::simt::program::read_exchanged(kSize, rank, &other, sizeof(T));
      return other;
    });
    cookbook::simt::program::end_exchange(kSize);
    return result;
  }
  template <class T>
  __forceinline__ T shfl(T value, int rank) const {
    return exchange(value, [rank](const auto& of) { return of(unsigned(rank) % kSize); });
  }
  __forceinline__ int any(int predicate) const {
    return exchange(predicate, [](const auto& of) {
      int found = 0;
      for (unsigned rank = 0; rank < kSize; ++rank) found |= of(rank) != 0;
      return found;
    });
  }
  __forceinline__ int all(int predicate) const { return !any(!predicate); }
};

/// A tile within a warp.
template <unsigned kSize, class Parent>
requires(kSize <= 32) class thread_block_tile<kSize, Parent> : public lane_group,
                                                               public tile_place<kSize> {
  static_assert((kSize & (kSize - 1)) == 0, "a tile has 1, 2, 4, ... or 512 threads");

 public:
  explicit thread_block_tile(unsigned of)
      : lane_group((kSize == 32 ? ~0u : (1u << kSize % 32) - 1) << detail::lane() / kSize * kSize),
        tile_place<kSize>(of) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<kSize, Other>& tile) : thread_block_tile(tile.of()) {}
  using tile_place<kSize>::size;
  using tile_place<kSize>::num_threads;
  using tile_place<kSize>::thread_rank;
};

/// What a tile of several warps needs before compute capability 8.0. There is no need here.
template <unsigned kMost = 1024, unsigned = 0>
struct block_tile_memory {
  char bytes[64];
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
template <unsigned kMost, unsigned kOther>
__forceinline__ thread_block this_thread_block(block_tile_memory<kMost, kOther>&) {
  return {};
}
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
__forceinline__ thread_block_tile<kSize, Parent> tiled_partition(const Parent&) {
  return thread_block_tile<kSize, Parent>(detail::divided<Parent>());
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

/// One thread of the group calls `function`. Which one is not specified.
template <class Group, class F, class... A>
__forceinline__ void invoke_one(const Group& group, F&& function, A&&... arguments) {
  if (group.thread_rank() == 0) function(std::forward<A>(arguments)...);
}
/// ... and all get what it returns.
template <class Group, class F, class... A>
__forceinline__ auto invoke_one_broadcast(const Group& group, F&& function, A&&... arguments) {
  decltype(function(std::forward<A>(arguments)...)) result{};
  if (group.thread_rank() == 0) result = function(std::forward<A>(arguments)...);
  return group.shfl(result, 0);
}

namespace experimental {  // as CUDA 11 calls them
using cooperative_groups::block_tile_memory;
using cooperative_groups::this_thread_block;
using cooperative_groups::tiled_partition;
}  // namespace experimental

}  // namespace cooperative_groups
