// SPDX-License-Identifier: MIT
#include "common/harness/sha256.hpp"

#include <fmt/format.h>

#include <cmath>

namespace cookbook {
namespace {

// The constants are the first 32 bits of the fractional parts of the cube roots of the first 64
// primes, so they are computed rather than listed.
std::array<std::uint32_t, 64> round_constants() {
  std::array<std::uint32_t, 64> constants{};
  int count = 0;
  for (int candidate = 2; count < 64; ++candidate) {
    bool prime = true;
    for (int d = 2; d * d <= candidate; ++d) prime = prime && candidate % d != 0;
    if (!prime) continue;
    const long double root = std::cbrt(static_cast<long double>(candidate));
    constants[count++] = static_cast<std::uint32_t>((root - std::floor(root)) * 4294967296.0L);
  }
  return constants;
}

}  // namespace

void Sha256::compress(const unsigned char* chunk) {
  static const auto k = round_constants();
  std::array<std::uint32_t, 64> w{};
  for (int i = 0; i < 16; ++i) {
    w[i] = std::uint32_t{chunk[4 * i]} << 24 | std::uint32_t{chunk[4 * i + 1]} << 16 |
           std::uint32_t{chunk[4 * i + 2]} << 8 | std::uint32_t{chunk[4 * i + 3]};
  }
  for (int i = 16; i < 64; ++i) {
    const auto s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const auto s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    const auto s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const auto t1 = h + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i];
    const auto s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const auto t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> next = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state_[i] += next[i];
}

void Sha256::update(std::string_view bytes) {
  bytes_ += bytes.size();
  pending_.append(bytes);
  std::size_t used = 0;
  for (; used + 64 <= pending_.size(); used += 64) {
    compress(reinterpret_cast<const unsigned char*>(pending_.data() + used));
  }
  pending_.erase(0, used);
}

std::string Sha256::hex() {
  const std::uint64_t bits = bytes_ * 8;
  pending_.push_back('\x80');
  while (pending_.size() % 64 != 56) pending_.push_back('\0');
  for (int shift = 56; shift >= 0; shift -= 8) pending_.push_back(static_cast<char>(bits >> shift));
  for (std::size_t at = 0; at < pending_.size(); at += 64) {
    compress(reinterpret_cast<const unsigned char*>(pending_.data() + at));
  }
  std::string text;
  for (std::uint32_t word : state_) text += fmt::format("{:08x}", word);
  return text;
}

}  // namespace cookbook
