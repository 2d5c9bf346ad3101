// SPDX-License-Identifier: MIT
// The kernels of lookback.hpp.
#include "tests/planted/lookback.hpp"

#include "common/device/cuda.cuh"
#include "common/device/sync.cuh"

namespace cookbook::planted {
namespace {

constexpr int kAggregate = 1, kPrefix = 2;

struct State {
  int* ticket;
  int* flags;       // (tiles), 0, kAggregate or kPrefix
  int* aggregates;  // (tiles)
  int* prefixes;    // (tiles), inclusive
};

template <Protocol kProtocol, LookbackBug kBug>
__device__ void set_flag(int* flag, int value) {
  if (kProtocol == Protocol::released) {
    if (kBug == LookbackBug::missing_fence) {
      atomicExch(flag, value);  // [relaxed flag]
    } else {
      store_release(flag, value);
    }
  } else {
    if (kBug != LookbackBug::missing_fence) __threadfence();
    if (kProtocol == Protocol::atomics) {
      atomicExch(flag, value);
    } else {
      *static_cast<volatile int*>(flag) = value;
    }
  }
}

template <Protocol kProtocol>
__device__ int read_flag(int* flag) {
  if (kProtocol == Protocol::released) return load_acquire(flag);
  const int value =
      kProtocol == Protocol::atomics ? atomicAdd(flag, 0) : *static_cast<volatile int*>(flag);
  __threadfence();
  return value;
}

template <Protocol kProtocol, LookbackBug kBug>
__device__ void publish(int* at, int* flag, int value, int status) {
  if (kBug == LookbackBug::flag_first) {
    set_flag<kProtocol, kBug>(flag, status);
    *at = value;  // [late value]
  } else {
    *at = value;  // [value]
    set_flag<kProtocol, kBug>(flag, status);
  }
}

template <Protocol kProtocol, LookbackBug kBug, bool kPauses>
__global__ void lookback(const int* in, int* out, State state) {
  __shared__ int sums[kLookbackTile];
  __shared__ int tile, before;
  const int c = static_cast<int>(threadIdx.x);
  if (c == 0) {
    tile =
        kBug == LookbackBug::no_ticket ? static_cast<int>(blockIdx.x) : atomicAdd(state.ticket, 1);
  }
  __syncthreads();
  const int i = tile * kLookbackTile + c;
  sums[c] = in[i];
  __syncthreads();
  for (int step = 1; step < kLookbackTile; step *= 2) {
    const int other = c >= step ? sums[c - step] : 0;
    __syncthreads();
    sums[c] += other;
    __syncthreads();
  }
  if (c == 0) {
    const int aggregate = sums[kLookbackTile - 1];
    if (tile > 0) {
      publish<kProtocol, kBug>(&state.aggregates[tile], &state.flags[tile], aggregate, kAggregate);
    }
    int sum = 0;
    for (int t = tile - 1; t >= 0; --t) {
      int status = 0;
      while ((status = read_flag<kProtocol>(&state.flags[t])) == 0 ||
             (kBug == LookbackBug::never_published && status != kPrefix)) {
        if (kPauses) spin_pause();  // [spin]
      }
      sum += status == kPrefix ? state.prefixes[t] : state.aggregates[t];  // [look back]
      if (status == kPrefix) break;
    }
    before = sum;
    if (kBug != LookbackBug::never_published || tile != 1) {
      publish<kProtocol, kBug>(&state.prefixes[tile], &state.flags[tile], sum + aggregate, kPrefix);
    }
  }
  __syncthreads();
  out[i] = before + sums[c];
}

template <Protocol kProtocol, LookbackBug kBug, bool kPauses>
void start(const int* in, int* out, int* state, int n) {
  const int tiles = n / kLookbackTile;
  const State parts{state, state + 1, state + 1 + tiles, state + 1 + 2 * tiles};
  launch(lookback<kProtocol, kBug, kPauses>,
         {dim3(static_cast<unsigned>(tiles)), dim3(static_cast<unsigned>(kLookbackTile))}, {}, in,
         out, parts);
}

template <Protocol kProtocol>
void start(LookbackBug bug, bool pauses, const int* in, int* out, int* state, int n) {
  using enum LookbackBug;
  switch (bug) {
    case none:
      return pauses ? start<kProtocol, none, true>(in, out, state, n)
                    : start<kProtocol, none, false>(in, out, state, n);
    case no_ticket: return start<kProtocol, no_ticket, true>(in, out, state, n);
    case missing_fence: return start<kProtocol, missing_fence, true>(in, out, state, n);
    case flag_first: return start<kProtocol, flag_first, true>(in, out, state, n);
    case never_published:
      return pauses ? start<kProtocol, never_published, true>(in, out, state, n)
                    : start<kProtocol, never_published, false>(in, out, state, n);
  }
}

}  // namespace

void lookback_scan(Protocol protocol, LookbackBug bug, bool pauses, const int* in, int* out,
                   int* state, int n) {
  switch (protocol) {
    case Protocol::released: return start<Protocol::released>(bug, pauses, in, out, state, n);
    case Protocol::atomics: return start<Protocol::atomics>(bug, pauses, in, out, state, n);
    case Protocol::volatiles: return start<Protocol::volatiles>(bug, pauses, in, out, state, n);
  }
}

}  // namespace cookbook::planted
