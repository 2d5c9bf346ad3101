// SPDX-License-Identifier: MIT
// The CPU side of device_bytes.hpp: device memory is host memory here.
#include "common/backend/device_bytes.hpp"

#include <algorithm>
#include <cstring>

namespace cookbook {

void fill_elements(void* data, std::size_t count, std::size_t width, std::uint32_t bits) {
  if (width == 1) {
    std::fill_n(static_cast<std::uint8_t*>(data), count, static_cast<std::uint8_t>(bits));
  } else if (width == 2) {
    std::fill_n(static_cast<std::uint16_t*>(data), count, static_cast<std::uint16_t>(bits));
  } else {
    std::fill_n(static_cast<std::uint32_t*>(data), count * (width / 4), bits);
  }
}

std::uint64_t hash_bytes(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const unsigned char*>(data);
  std::uint64_t hash = 0;
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + at, std::min(sizeof word, bytes - at));
    hash += detail::hash_term(word, at);
  }
  return hash;
}

ProfilerRange::ProfilerRange() = default;
ProfilerRange::~ProfilerRange() = default;

}  // namespace cookbook
