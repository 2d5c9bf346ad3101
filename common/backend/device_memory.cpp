// SPDX-License-Identifier: MIT
// The parts of DeviceMemory that both backends use.
#include <fmt/format.h>

#include <cstdint>

#include "common/backend/backend.hpp"
#include "common/backend/device_bytes.hpp"

namespace cookbook {

void DeviceMemory::check_range(size_t bytes, size_t offset) const {
  if (offset > bytes_ || bytes > bytes_ - offset) {
    throw std::out_of_range(fmt::format("copy of {} bytes at offset {} of buffer {}, which has {}",
                                        bytes, offset, name_, bytes_));
  }
}

// Every 16-bit element is a NaN, and so is every 32-bit one: so a value read from a band makes the
// result a NaN. Sign and mantissa depend on the buffer and on the place, so a band copied onto
// another one, or onto itself a few bytes further, is found, too.
std::vector<unsigned char> DeviceMemory::guard_pattern(const unsigned char* begin,
                                                       const unsigned char* end) const {
  uint64_t seed = 0;
  for (const char c : name_) seed = mix_bits(seed ^ static_cast<unsigned char>(c));
  std::vector<unsigned char> pattern(static_cast<size_t>(end - begin));
  for (size_t i = 0; i < pattern.size(); ++i) {
    const ptrdiff_t at = begin - data_ + static_cast<ptrdiff_t>(i);
    // Eight 16-bit elements share a hash: eight bits each.
    const uint64_t bits = mix_bits(seed ^ static_cast<uint64_t>(at >> 4)) >> ((at & 14) * 4);
    pattern[i] = at & 1 ? 0x7f | (bits & 0x80) : 0x80 | (bits & 0x7f) | 1;
  }
  return pattern;
}

}  // namespace cookbook
