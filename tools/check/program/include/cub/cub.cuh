// SPDX-License-Identifier: MIT
// The common parts of CUB: reductions and scans of a warp and of a block, and device-wide calls
// that run on the CPU. As in CUB, a block must synchronise before it uses a TempStorage again.
#pragma once

#include <climits>
#include <limits>

#include "../thrust/detail/thrust.h"

namespace cub {

struct Sum {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a + b;
  }
};
using Max = thrust::maximum<>;
using Min = thrust::minimum<>;
template <class Key_, class Value_>
struct KeyValuePair {
  typedef Key_ Key;
  typedef Value_ Value;
  Key key;
  Value value;
};
/// The pair with the extreme value; of equal ones that with the smaller key.
struct ArgMax {
  template <class Key, class T>
  KeyValuePair<Key, T> operator()(const KeyValuePair<Key, T>& a,
                                  const KeyValuePair<Key, T>& b) const {
    return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class Key, class T>
  KeyValuePair<Key, T> operator()(const KeyValuePair<Key, T>& a,
                                  const KeyValuePair<Key, T>& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};

namespace detail {
__forceinline__ int thread_rank() {
  return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}
/// The lanes of the warp that exist.
template <int kThreads>
__forceinline__ unsigned lanes() {
  const int first = thread_rank() / 32 * 32, rest = kThreads - first;
  return rest >= 32 ? ~0u : (1u << rest) - 1;
}
/// One value, or an array of them.
template <class T>
inline constexpr int kItemsOf = std::is_array_v<T> ? std::extent_v<T> : 1;
template <class T>
__forceinline__ auto& item(T& items, [[maybe_unused]] int i) {
  if constexpr (std::is_array_v<T>) {
    return items[i];
  } else {
    return items;
  }
}
/// A T of any size, 8 bytes at a time; `shuffle` moves an unsigned long long.
template <class T, class F>
__forceinline__ T shuffle(const T& value, F shuffle) {
  unsigned long long words[(sizeof(T) + 7) / 8] = {};
  __builtin_memcpy(words, static_cast<const void*>(&value), sizeof(T));
  for (unsigned long long& word : words) word = shuffle(word);
  T result;
  __builtin_memcpy(static_cast<void*>(&result), words, sizeof(T));
  return result;
}
template <class T>
__forceinline__ T shuffle_up(unsigned mask, T value, unsigned by, int width) {
  return shuffle(value, [=](auto word) { return __shfl_up_sync(mask, word, by, width); });
}
/// The sum of the lanes up to this one, in a segment of kWidth lanes.
template <int kWidth, class T, class F>
__forceinline__ T scan(unsigned mask, T value, F f) {
  const int lane = thread_rank() % kWidth;
  for (int by = 1; by < kWidth; by *= 2) {
    const T before = shuffle_up(mask, value, static_cast<unsigned>(by), kWidth);
    if (lane >= by) value = f(before, value);
  }
  return value;
}
}  // namespace detail

template <class T, int kWidth = 32>
class WarpScan {
 public:
  struct TempStorage {};
  explicit WarpScan(TempStorage&) {}
  template <class F>
  __forceinline__ void InclusiveScan(T value, T& result, F f) {
    result = detail::scan<kWidth>(~0u, value, f);
  }
  template <class F>
  __forceinline__ void ExclusiveScan(T value, T& result, T first, F f) {
    T all;
    ExclusiveScan(value, result, first, f, all);
  }
  template <class F>
  __forceinline__ void InclusiveScan(T value, T& result, F f, T& all) {
    InclusiveScan(value, result, f);
    all = Broadcast(result, kWidth - 1);
  }
  template <class F>
  __forceinline__ void ExclusiveScan(T value, T& result, T first, F f, T& all) {
    ExclusiveScan(value, result, f, all);
    result = detail::thread_rank() % kWidth == 0 ? first : f(first, result);
  }
  /// Without an initial value lane 0 gets none.
  template <class F>
  __forceinline__ void ExclusiveScan(T value, T& result, F f) {
    T all;
    ExclusiveScan(value, result, f, all);
  }
  template <class F>
  __forceinline__ void ExclusiveScan(T value, T& result, F f, T& all) {
    const T own = detail::scan<kWidth>(~0u, value, f);
    result = detail::shuffle_up(~0u, own, 1, kWidth);
    all = Broadcast(own, kWidth - 1);
  }
  __forceinline__ void InclusiveSum(T value, T& result) { InclusiveScan(value, result, Sum()); }
  __forceinline__ void InclusiveSum(T value, T& result, T& all) {
    InclusiveScan(value, result, Sum(), all);
  }
  __forceinline__ void ExclusiveSum(T value, T& result) {
    ExclusiveScan(value, result, T(), Sum());
  }
  __forceinline__ void ExclusiveSum(T value, T& result, T& all) {
    ExclusiveScan(value, result, T(), Sum(), all);
  }
  __forceinline__ T Broadcast(T value, unsigned lane) {
    return detail::shuffle(value, [lane](auto word) {
      return __shfl_sync(~0u, word, static_cast<int>(lane), kWidth);
    });
  }
};

/// The result is that of the first lane of the segment.
template <class T, int kWidth = 32>
class WarpReduce {
 public:
  struct TempStorage {};
  explicit WarpReduce(TempStorage&) {}
  template <class F>
  __forceinline__ T Reduce(T value, F f) {
    for (int by = kWidth / 2; by > 0; by /= 2) {
      value = f(value, detail::shuffle(value, [by](auto word) {
                  return __shfl_xor_sync(~0u, word, by, kWidth);
                }));
    }
    return value;
  }
  __forceinline__ T Sum(T value) { return Reduce(value, cub::Sum()); }
};

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_WARP_REDUCTIONS
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

/// The result is that of thread 0.
template <class T, int kX, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int kY = 1,
          int kZ = 1>
class BlockReduce {
  static constexpr int kThreads = kX * kY * kZ;

 public:
  struct TempStorage {
    T of_warp[(kThreads + 31) / 32];
  };
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}
  template <class F>
  __forceinline__ T Reduce(T value, F f, int valid = kThreads) {
    const int rank = detail::thread_rank(), lane = rank % 32, first = rank - lane;
    for (int by = 16; by > 0; by /= 2) {
      const T other = detail::shuffle(value, [by](auto word) {
        return __shfl_down_sync(detail::lanes<kThreads>(), word, static_cast<unsigned>(by));
      });
      if (lane + by < 32 && first + lane + by < valid) value = f(value, other);
    }
    if (lane == 0) storage_.of_warp[rank / 32] = value;
    __syncthreads();
    if (rank == 0) {
      for (int warp = 1; warp * 32 < valid; ++warp) value = f(value, storage_.of_warp[warp]);
    }
    return value;
  }
  template <class F, int kItems>
  __forceinline__ T Reduce(T (&values)[kItems], F f) {
    T all = values[0];
    for (int i = 1; i < kItems; ++i) all = f(all, values[i]);
    return Reduce(all, f);
  }
  __forceinline__ T Sum(T value) { return Reduce(value, cub::Sum()); }
  __forceinline__ T Sum(T value, int valid) { return Reduce(value, cub::Sum(), valid); }
  template <int kItems>
  __forceinline__ T Sum(T (&values)[kItems]) {
    return Reduce(values, cub::Sum());
  }

 private:
  TempStorage& storage_;
};

/// Each thread gives a value or an array of them, and its results go to one of the same kind. What
/// may follow is a T, for the sum of all without an initial value, or a functor: warp 0 calls it
/// with that sum, and what it gives to lane 0 comes in front of the block.
template <class T, int kX, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int kY = 1, int kZ = 1>
class BlockScan {
  static constexpr int kThreads = kX * kY * kZ, kWarps = (kThreads + 31) / 32;

 public:
  struct TempStorage {
    T of_warp[kWarps];
    T front;
  };
  explicit BlockScan(TempStorage& storage) : storage_(storage) {}

  template <class In, class Out, class F, class... More>
  __forceinline__ void InclusiveScan(const In& in, Out& out, F f, More&&... more) {
    scan<true>(in, out, f, nullptr, more...);
  }
  template <class In, class Out, class F, class... More>
  __forceinline__ void ExclusiveScan(const In& in, Out& out, T first, F f, More&&... more) {
    scan<false>(in, out, f, &first, more...);
  }
  /// Thread 0 gets no value.
  template <class In, class Out, class F, class... More>
  requires std::is_invocable_v<F, T, T> __forceinline__ void ExclusiveScan(const In& in, Out& out,
                                                                           F f, More&&... more) {
    scan<false>(in, out, f, nullptr, more...);
  }
  template <class In, class Out, class... More>
  __forceinline__ void InclusiveSum(const In& in, Out& out, More&&... more) {
    scan<true>(in, out, Sum(), nullptr, more...);
  }
  template <class In, class Out, class... More>
  __forceinline__ void ExclusiveSum(const In& in, Out& out, More&&... more) {
    const T zero = T();
    scan<false>(in, out, Sum(), &zero, more...);
  }

 private:
  template <bool kInclusive, class In, class Out, class F, class... More>
  __forceinline__ void scan(const In& in, Out& out, F f, const T* first, More&... more) {
    constexpr int kItems = detail::kItemsOf<Out>;
    T values[kItems];
    for (int i = 0; i < kItems; ++i) values[i] = detail::item(in, i);
    T sum = values[0];
    for (int i = 1; i < kItems; ++i) sum = f(sum, values[i]);
    const int rank = detail::thread_rank(), warp = rank / 32;
    const T own = detail::scan<32>(detail::lanes<kThreads>(), sum, f);
    T before = detail::shuffle_up(detail::lanes<kThreads>(), own, 1, 32);
    if (rank % 32 == 31 || rank == kThreads - 1) storage_.of_warp[warp] = own;
    __syncthreads();
    T all = storage_.of_warp[0];
    for (int i = 1; i < kWarps; ++i) {
      if (i == warp) before = rank % 32 == 0 ? all : f(all, before);
      all = f(all, storage_.of_warp[i]);
    }
    if (first) before = rank == 0 ? *first : f(*first, before);
    bool is_first = rank == 0 && !first;
    (finish(before, is_first, all, f, more), ...);
    for (int i = 0; i < kItems; ++i) {
      const T next = is_first && i == 0 ? values[0] : f(before, values[i]);
      detail::item(out, i) = kInclusive ? next : before;
      before = next;
    }
  }
  template <class F, class More>
  __forceinline__ void finish(T& before, bool& is_first, const T& all, F f, More& more) {
    if constexpr (std::is_invocable_v<More&, T>) {
      if (detail::thread_rank() < 32) {
        const T front = more(all);
        if (detail::thread_rank() == 0) storage_.front = front;
      }
      __syncthreads();
      before = is_first ? storage_.front : f(storage_.front, before);
      is_first = false;
    } else {
      more = all;
    }
  }

  TempStorage& storage_;
};

// ---- device-wide: the first call, without storage, asks how much there must be ----

namespace detail {
template <class F>
cudaError_t run(void* storage, size_t& bytes, cookbook::simt::program::Place place, const F& call) {
  if (storage == nullptr) {
    bytes = 1;
    return cudaSuccess;
  }
  thrust::detail::Here::last = place;
  call();
  return cudaSuccess;
}
}  // namespace detail

namespace detail {
inline cudaError_t debug(cudaError_t error, const char* file, int line) {
  if (error)
    fprintf(stderr, "CUDA error %d [%s:%d]: %s\n", error, file, line, cudaGetErrorString(error));
  return error;
}
}  // namespace detail

struct DeviceReduce {
  template <class It, class Out>
  static cudaError_t Sum(void* storage, size_t& bytes, It in, Out out, int n,
                         cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place,
                       [&] { thrust::fill(out, out + 1, thrust::reduce(in, in + n)); });
  }
  template <class It, class Out, class F, class T>
  static cudaError_t Reduce(void* storage, size_t& bytes, It in, Out out, int n, F f, T first,
                            cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place,
                       [&] { thrust::fill(out, out + 1, thrust::reduce(in, in + n, first, f)); });
  }
  template <class It, class Out>
  static cudaError_t Max(void* storage, size_t& bytes, It in, Out out, int n,
                         cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place, [&] {
      using T = thrust::detail::Value<It>;
      const T least = std::numeric_limits<T>::lowest();
      thrust::fill(out, out + 1, thrust::reduce(in, in + n, least, cub::Max()));
    });
  }
  template <class It, class Out>
  static cudaError_t Min(void* storage, size_t& bytes, It in, Out out, int n,
                         cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place, [&] {
      using T = thrust::detail::Value<It>;
      const T most = std::numeric_limits<T>::max();
      thrust::fill(out, out + 1, thrust::reduce(in, in + n, most, cub::Min()));
    });
  }
};

struct DeviceScan {
  template <class It, class Out>
  static cudaError_t ExclusiveSum(void* storage, size_t& bytes, It in, Out out, int n,
                                  cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place,
                       [&] { thrust::exclusive_scan(in, in + n, out); });
  }
  template <class It, class Out>
  static cudaError_t InclusiveSum(void* storage, size_t& bytes, It in, Out out, int n,
                                  cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place,
                       [&] { thrust::inclusive_scan(in, in + n, out); });
  }
  template <class It, class Out, class F, class T>
  static cudaError_t ExclusiveScan(void* storage, size_t& bytes, It in, Out out, F f, T first,
                                   int n, cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place,
                       [&] { thrust::exclusive_scan(in, in + n, out, first, f); });
  }
  template <class It, class Out, class F>
  static cudaError_t InclusiveScan(void* storage, size_t& bytes, It in, Out out, F f, int n,
                                   cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place,
                       [&] { thrust::inclusive_scan(in, in + n, out, f); });
  }
};

/// Whole keys are compared, whichever bits are named.
struct DeviceRadixSort {
  template <class Key>
  static cudaError_t SortKeys(void* storage, size_t& bytes, const Key* in, Key* out, int n, int = 0,
                              int = 8 * sizeof(Key), cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place, [&] {
      thrust::copy(in, in + n, out);
      thrust::stable_sort(out, out + n);
    });
  }
  template <class Key>
  static cudaError_t SortKeysDescending(void* storage, size_t& bytes, const Key* in, Key* out,
                                        int n, int = 0, int = 8 * sizeof(Key),
                                        cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place, [&] {
      thrust::copy(in, in + n, out);
      thrust::stable_sort(out, out + n, std::greater<>());
    });
  }
  template <class Key, class Value>
  static cudaError_t SortPairs(void* storage, size_t& bytes, const Key* in, Key* out,
                               const Value* values, Value* sorted, int n, int = 0,
                               int = 8 * sizeof(Key), cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place, [&] {
      thrust::copy(in, in + n, out);
      thrust::copy(values, values + n, sorted);
      thrust::stable_sort_by_key(out, out + n, sorted);
    });
  }
  template <class Key, class Value>
  static cudaError_t SortPairsDescending(void* storage, size_t& bytes, const Key* in, Key* out,
                                         const Value* values, Value* sorted, int n, int = 0,
                                         int = 8 * sizeof(Key), cudaStream_t = nullptr,
                                         COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place, [&] {
      thrust::copy(in, in + n, out);
      thrust::copy(values, values + n, sorted);
      thrust::stable_sort_by_key(out, out + n, sorted, std::greater<>());
    });
  }
};

template <class T, class = ptrdiff_t>
using CountingInputIterator = thrust::counting_iterator<T>;
template <class T, class = ptrdiff_t>
using ConstantInputIterator = thrust::constant_iterator<T>;
template <class, class F, class It>
using TransformInputIterator = thrust::transform_iterator<F, It>;

/// Of each run of equal values the value and how many there are.
struct DeviceRunLengthEncode {
  template <class It, class Out, class Lengths, class Count>
  static cudaError_t Encode(void* storage, size_t& bytes, It in, Out out, Lengths lengths,
                            Count count, int n, cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place, [&] {
      const thrust::constant_iterator<int> one(1);
      const auto end = thrust::reduce_by_key(in, in + n, one, out, lengths);
      thrust::fill(count, count + 1, static_cast<int>(end.first - out));
    });
  }
};

struct DeviceSelect {
  template <class It, class Flags, class Out, class Count>
  static cudaError_t Flagged(void* storage, size_t& bytes, It in, Flags flags, Out out, Count count,
                             int n, cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place, [&] {
      const auto end = thrust::copy_if(in, in + n, flags, out, [](bool flag) { return flag; });
      thrust::fill(count, count + 1, static_cast<int>(end - out));
    });
  }
  template <class It, class Out, class Count>
  static cudaError_t Unique(void* storage, size_t& bytes, It in, Out out, Count count, int n,
                            cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place, [&] {
      const auto end = thrust::unique_copy(in, in + n, out);
      thrust::fill(count, count + 1, static_cast<int>(end - out));
    });
  }
  template <class It, class Out, class Count, class F>
  static cudaError_t If(void* storage, size_t& bytes, It in, Out out, Count count, int n, F f,
                        cudaStream_t = nullptr, COOKBOOK_PLACE) {
    return detail::run(storage, bytes, cookbook_place, [&] {
      const auto end = thrust::copy_if(in, in + n, out, f);
      thrust::fill(count, count + 1, static_cast<int>(end - out));
    });
  }
};

/// Keeps nothing: what it frees, the device frees.
struct CachingDeviceAllocator {
  explicit CachingDeviceAllocator(bool = false, bool = false) {}
  explicit CachingDeviceAllocator(unsigned, unsigned = 1, unsigned = ~0u, size_t = ~size_t(0),
                                  bool = false, bool = false) {}
  cudaError_t DeviceAllocate(COOKBOOK_POINTER pointer, size_t bytes, cudaStream_t = nullptr,
                             COOKBOOK_PLACE) {
    return cudaMalloc(pointer, bytes, cookbook_place);
  }
  cudaError_t DeviceFree(void* pointer, COOKBOOK_PLACE) {
    return cudaFree(pointer, cookbook_place);
  }
  cudaError_t FreeAllCached() { return cudaSuccess; }
};

}  // namespace cub

/// CUB's macros: the error, which CubDebug prints and CubDebugExit ends the program with.
#define CubDebug(error) ::cub::detail::debug(error, __FILE__, __LINE__)
#define CubDebugExit(error) \
  if (CubDebug(error)) exit(1)
