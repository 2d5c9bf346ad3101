// SPDX-License-Identifier: MIT
// Sidebar: what a tensor core adds up. Sums of 32 numbers, each times 1, by two mma.sync of 16: bit
// by bit, and in two orders of k.
//   chapter-5-sums                    three experiments
//   chapter-5-sums NUMBER[*COUNT]...  your numbers, bf16: as given, and the last first
//   chapter-5-sums --json FILE        three experiments as the data of a picture (docs/pictures.md)
// A number is decimal or a power of two, such as 2^-25. Exit status 1 if the sums of your numbers
// are equal in both orders.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/device/cuda.cuh"
#include "common/device/mma.cuh"
#include "common/harness/run/arguments.hpp"
#include "common/harness/run/picture_data.hpp"

namespace cookbook::gemm {
namespace {

constexpr int kSteps = 2, kTerms = 16 * kSteps;

/// sum[0] = the sum of numbers[k], k in [0, kTerms): row 0 of A holds them, B is all ones.
template <class C>
__global__ void add_up(const bf16* numbers, float* sum) {
  const int lane = static_cast<int>(threadIdx.x);
  const std::uint32_t ones[2] = {0x3f803f80u, 0x3f803f80u};
  float d[4] = {};
  for (int step = 0; step < kSteps; ++step) {
    std::uint32_t a[4] = {};
    if (lane < 4) {  // row 0: columns 2 lane, +1 and 2 lane + 8, +9
      const auto* pairs = reinterpret_cast<const std::uint32_t*>(numbers + 16 * step);
      a[0] = pairs[lane];
      a[2] = pairs[lane + 4];
    }
    mma_m16n8k16<bf16>(d, a, ones);
  }
  if (lane == 0) *sum = d[0];
}

float tensor_core_sum(const std::vector<float>& numbers) {
  std::vector<bf16> terms(kTerms, static_cast<bf16>(0.0f));
  for (std::size_t i = 0; i < numbers.size(); ++i) terms[i] = static_cast<bf16>(numbers[i]);
  DeviceMemory device_terms(terms.size() * sizeof(bf16), "numbers"), device_sum(4, "sum");
  device_terms.copy_from_host(terms.data(), device_terms.bytes());
  launch(add_up<void>, {dim3(1), dim3(32)}, {}, device_terms.as<bf16>(), device_sum.as<float>());
  synchronize();
  float sum;
  device_sum.copy_to_host(&sum, 4);
  return sum;
}

/// |value| in binary, `bits` places after the point: 1.0000...
std::string binary(double value, int bits) {
  value = std::fabs(value);
  std::string text = std::to_string(static_cast<int>(value)) + ".";
  for (int i = 0; i < bits; ++i) {
    value = (value - std::floor(value)) * 2;
    text += value >= 1 ? '1' : '0';
  }
  return text;
}

/// As many times 2^-bit as make 2^-23, the last bit that fp32 has beside a 1.
std::vector<float> small_ones(int bit) {
  return std::vector<float>(std::size_t{1} << (bit - 23), std::ldexp(1.0f, -bit));
}

/// 1 and small_ones(bit): what is added up, and what the sum was.
void show_cut(int bit) {
  std::vector<float> numbers = small_ones(bit);
  const int count = static_cast<int>(numbers.size());
  numbers.insert(numbers.begin(), 1.0f);
  const float sum = tensor_core_sum(numbers);
  std::printf("       1         %s\n  %2d x 2^-%d     %s\n     sum         %s   %s\n\n",
              binary(1, 28).c_str(), count, bit, binary(std::ldexp(1.0, -bit), 28).c_str(),
              binary(sum, 28).c_str(), sum > 1 ? "counted" : "cut off");
}

/// Prints both sums; whether they differ.
bool show_orders(const char* title, std::vector<float> numbers) {
  const float given = tensor_core_sum(numbers);
  numbers.resize(kTerms);
  std::reverse(numbers.begin(), numbers.end());
  const float reversed = tensor_core_sum(numbers);
  std::printf("%s\n  as given %.9g, the last first %.9g: %s\n", title, given, reversed,
              given == reversed ? "equal" : "they differ");
  return given != reversed;
}

/// The most places below the largest exponent at which a term still counts.
int kept_bits() {
  int kept = 23;
  for (int bit = 24; bit <= 27; ++bit) {
    std::vector<float> numbers = small_ones(bit);
    numbers.insert(numbers.begin(), 1.0f);
    if (tensor_core_sum(numbers) > 1) kept = bit;
  }
  return kept;
}

/// Numbers that are too small to count beside a 1, and a 1 at place `at`.
std::vector<float> one_at(int at, int kept) {
  std::vector<float> numbers = small_ones(kept + 1);
  numbers.resize(static_cast<std::size_t>(at));
  numbers.push_back(1.0f);
  return numbers;
}

/// How many terms are added at once: the small ones count in a group before that of the 1.
int terms_of_group(int kept) {
  for (int at = static_cast<int>(small_ones(kept + 1).size()); at < 16; ++at) {
    if (tensor_core_sum(one_at(at, kept)) > 1) return at;
  }
  return 16;
}

/// The data of a picture: the last bit that counts, the first that is cut off, two orders, and what
/// tells the size of a group.
void write_json(const std::string& file) {
  const int kept = kept_bits(), terms = terms_of_group(kept);
  std::vector<float> late(kTerms, std::ldexp(1.0f, -27));
  late[0] = 1;
  std::vector<std::vector<float>> added = {small_ones(kept), small_ones(kept + 1), late, late};
  for (int i = 0; i < 2; ++i) added[i].insert(added[i].begin(), 1.0f);
  std::reverse(added[3].begin(), added[3].end());
  added.push_back(one_at(terms - 1, kept));
  if (terms < 16) added.push_back(one_at(terms, kept));
  std::vector<PictureData> sums;
  for (const auto& numbers : added) {
    sums.push_back(PictureData()
                       .set("numbers", std::vector<double>(numbers.begin(), numbers.end()))
                       .set("sum", tensor_core_sum(numbers)));
  }
  PictureData("sums", 5)
      .set("device", device_info().name)
      .set("fraction_bits", kept)
      .set("terms", terms)
      .set("depth", 16)
      .set("sums", sums)
      .write(file);
}

/// Parses NUMBER[*COUNT] and appends it; false if it is none.
bool parse(const std::string& text, std::vector<float>& numbers) {
  const std::size_t star = text.find('*');
  const std::string number = text.substr(0, star);
  const char* const end = number.data() + number.size();
  int count = 1, exponent = 0;
  float value = 0;
  if (star != std::string::npos) {
    const char* const last = text.data() + text.size();
    const auto found = std::from_chars(text.data() + star + 1, last, count);
    if (found.ec != std::errc() || found.ptr != last || count < 1) return false;
  }
  const bool negative = number.starts_with("-2^");
  if (negative || number.starts_with("2^")) {
    const auto found = std::from_chars(number.data() + (negative ? 3 : 2), end, exponent);
    if (found.ec != std::errc() || found.ptr != end || std::abs(exponent) > 126) return false;
    value = std::ldexp(negative ? -1.0f : 1.0f, exponent);
  } else {
    const auto found = std::from_chars(number.data(), end, value);
    if (found.ec != std::errc() || found.ptr != end || !std::isfinite(value)) return false;
  }
  if (count > kTerms || numbers.size() + static_cast<std::size_t>(count) > kTerms) return false;
  numbers.insert(numbers.end(), static_cast<std::size_t>(count), value);
  return true;
}

/// Appends the numbers of the words, or says which is none.
bool parse_all(const std::vector<std::string>& words, std::vector<float>& numbers) {
  for (const std::string& word : words) {
    if (parse(word, numbers)) continue;
    std::fprintf(stderr,
                 "chapter-5-sums: takes up to %d numbers, such as 1 0.5*3 -2^-25*8; got '%s'\n",
                 kTerms, word.c_str());
    return false;
  }
  return true;
}

int experiments() {
  std::printf("What lies below the last bit of the adder is cut off, term by term:\n\n");
  for (int bit = 24; bit <= 27; ++bit) show_cut(bit);
  std::printf("This tensor core keeps %d bits below the largest exponent; an fp32 sum has 23.\n\n",
              kept_bits());
  std::vector<float> late(kTerms, std::ldexp(1.0f, -27));
  late[0] = 1;
  show_orders("1, then 31 times 2^-27:", late);
  return 0;
}

}  // namespace
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  using namespace cookbook;
  try {
    if (device_info().cc() < 80) {
      std::printf("chapter-5-sums: needs sm_80\n");
      return 0;
    }
    if (argc == 1) return gemm::experiments();
    if (const auto file = json_argument(argc, argv)) {
      gemm::write_json(*file);
      return 0;
    }
    std::vector<float> numbers;
    if (!gemm::parse_all({argv + 1, argv + argc}, numbers)) return 2;
    return gemm::show_orders("Your numbers:", numbers) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chapter-5-sums: %s\n", error.what());
    return 1;
  }
}
