// SPDX-License-Identifier: MIT
/// @file
/// What the harness does to whole buffers where they lie: a gigabyte is poisoned and hashed on the
/// GPU in the time that its copy to the host would only begin in.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cookbook {

/// Sets `count` elements of `width` bytes (2 or 4) from `data` on, in device memory, to the lower
/// `width` bytes of `bits`, after all launches so far.
void fill_elements(void* data, std::size_t count, std::size_t width, std::uint32_t bits);

/// A hash of `bytes` bytes of device memory, after all launches so far: equal contents at one
/// address give equal hashes. Throws std::runtime_error if a kernel failed.
std::uint64_t hash_bytes(const void* data, std::size_t bytes);

/// While one lives, a profiler sees the kernels launched: `ncu --profile-from-start off` measures a
/// level's kernels and none of the harness's. Does nothing on the SIMT backend.
class ProfilerRange {
 public:
  ProfilerRange();
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

namespace detail {

/// What the word at `index` adds to a hash. A sum, so that the order in which threads add does not
/// matter; each term depends on its place (the finaliser of splitmix64, cut short).
template <class Word>
constexpr std::uint64_t hash_term(Word word, std::size_t index) {
  const std::uint64_t mixed = (static_cast<std::uint64_t>(word) + 1) ^
                              (static_cast<std::uint64_t>(index) * 0x9e3779b97f4a7c15ull);
  return (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9ull;
}

}  // namespace detail

}  // namespace cookbook
