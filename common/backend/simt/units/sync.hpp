// SPDX-License-Identifier: MIT
// Partial synchronisation on the SIMT backend; what the functions do is documented in
// common/device/sync.cuh.
#pragma once

#include <cstdint>
#include <type_traits>

#include "common/device/cuda.cuh"

namespace cookbook {
namespace simt {

void set_registers(int count);
uint64_t load_acquire(const void* address, int bytes);
void store_release(void* address, uint64_t value, int bytes);

}  // namespace simt

void named_barrier_sync(int id, int threads);
void named_barrier_arrive(int id, int threads);
bool elect_one();
void spin_pause();
void wait_for_previous_launch();
inline void allow_next_launch() {}  // launches run one after the other

template <int kRegisters>
__forceinline__ void register_dealloc() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0, "24..256, step 8");
  simt::set_registers(kRegisters);
}

template <int kRegisters>
__forceinline__ void register_alloc() {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0, "24..256, step 8");
  simt::set_registers(kRegisters);
}

template <class T>
__forceinline__ T load_acquire(const T* address) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "4 or 8 bytes");
  return static_cast<T>(simt::load_acquire(address, sizeof(T)));
}

template <class T>
__forceinline__ void store_release(T* address, T value) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "4 or 8 bytes");
  simt::store_release(address, static_cast<uint64_t>(value), sizeof(T));
}

}  // namespace cookbook
