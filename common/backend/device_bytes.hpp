// SPDX-License-Identifier: MIT
/// @file
/// What the harness does to whole buffers in device memory: a GPU poisons or hashes a gigabyte in a
/// millisecond, but takes hundreds to copy it to the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cookbook {

/// Sets `count` elements of `width` bytes (1, 2, 4 or 8) from `data` on, in device memory, to the
/// lower `width` bytes of `bits`, or to `bits` twice where they have 8; after all launches so far.
void fill_elements(void* data, std::size_t count, std::size_t width, std::uint32_t bits);

/// A hash of `bytes` bytes of device memory, after all launches so far: equal contents at one
/// address give equal hashes. Not to be called by several threads at once. Throws
/// std::runtime_error if a kernel failed.
std::uint64_t hash_bytes(const void* data, std::size_t bytes);

/// Kernels launched during its lifetime are profiled: `ncu --profile-from-start off` measures a
/// level's kernels and none of the harness's. Ranges do not nest. Does nothing on the SIMT backend.
class ProfilerRange {
 public:
  ProfilerRange();
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

/// Every bit of `x` affects about half of the bits of the result (the finaliser of splitmix64).
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

namespace detail {

/// What the word at `index` adds to a hash. A hash is a sum, so that the order in which threads add
/// does not matter; so each term must be fully mixed, or terms could cancel.
constexpr std::uint64_t hash_term(std::uint64_t word, std::size_t index) {
  return mix_bits(word ^ (static_cast<std::uint64_t>(index) * 0x9e3779b97f4a7c15ull));
}

}  // namespace detail

}  // namespace cookbook
