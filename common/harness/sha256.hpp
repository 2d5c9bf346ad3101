// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4), for stamping results with the source they came from.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace cookbook {

class Sha256 {
 public:
  void update(std::string_view bytes);
  /// The digest as 64 hexadecimal digits; the object must not be updated afterwards.
  std::string hex();

 private:
  void compress(const unsigned char* chunk);
  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string pending_;
  std::uint64_t bytes_ = 0;
};

}  // namespace cookbook
