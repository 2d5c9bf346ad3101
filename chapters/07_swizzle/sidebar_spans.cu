// SPDX-License-Identifier: MIT
// Sidebar: where the swizzles of TMA and wgmma put each 16-byte chunk, as swizzle_address says. It
// needs no GPU. Usage: chapter-7-spans, or chapter-7-spans --json FILE: the data of a picture
// (docs/pictures.md).
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "common/device/swizzle.cuh"
#include "common/harness/run/arguments.hpp"
#include "common/harness/run/picture_data.hpp"

namespace cookbook::gemm {
namespace {

constexpr int kChunks = 64, kPerLine = 8;  // eight lines of 128 bytes

struct Span {
  std::uint32_t bytes;
  std::vector<std::uint32_t> places;  // of chunk i: the place that it goes to
};

template <Swizzle kSwizzle>
Span span() {
  Span found{swizzle_span_bytes(kSwizzle), {}};
  for (std::uint32_t i = 0; i < kChunks; ++i) {
    found.places.push_back(swizzle_address<kSwizzle>(16 * i) / 16);
  }
  return found;
}

void print(const Span& span) {
  std::printf("span of %u bytes: chunk of its line that is at place\n", span.bytes);
  std::vector<std::uint32_t> chunk_at(kChunks);
  for (std::uint32_t i = 0; i < kChunks; ++i) chunk_at[span.places[i]] = i;
  for (int i = 0; i < kChunks; ++i) {
    std::printf("%3u%s", chunk_at[i] % kPerLine, i % kPerLine == kPerLine - 1 ? "\n" : "");
  }
}

}  // namespace
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  using namespace cookbook;
  const std::vector<gemm::Span> spans = {gemm::span<Swizzle::none>(), gemm::span<Swizzle::b32>(),
                                         gemm::span<Swizzle::b64>(), gemm::span<Swizzle::b128>()};
  const auto file = json_argument(argc, argv);
  if (!file) {
    take_no_arguments(argc, argv);
    for (const gemm::Span& span : spans) print(span);
    return 0;
  }
  std::vector<PictureData> data;
  for (const gemm::Span& span : spans) {
    const std::vector<double> places(span.places.begin(), span.places.end());
    data.push_back(PictureData().set("bytes", span.bytes).set("places", places));
  }
  PictureData("swizzle", 7).set("spans", data).write(*file);
}
