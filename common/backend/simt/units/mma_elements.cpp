// SPDX-License-Identifier: MIT
// mma.sync of the types that the book's kernels do not use: bytes, fp8, and fp16 results. Element
// by element; layouts: PTX ISA, "Matrix Fragments for mma.m16n8k32" and so on.
#include <cstring>
#include <string>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/units/mma.hpp"
#include "common/backend/simt/units/state.hpp"
#include "common/backend/simt/units/tensor_sum.hpp"
#include "common/backend/simt/units/warp_collective.hpp"

namespace cookbook::simt {
namespace {

struct Lane {
  uint32_t* d;
  const uint32_t* a;
  const uint32_t* b;
  bool done;
};
using Lanes = std::array<Lane*, kWarpSize>;

template <class Number>
struct Operands {
  Number a[16][32], b[8][32];  // b[n][k]
};

// `read` makes a number of the low bits of a register; two or four elements are in each.
template <class Number, class Read>
Operands<Number> gather(const Lanes& lanes, int per_register, const Read& read_a,
                        const Read& read_b) {
  Operands<Number> to{};
  const int bits = 32 / per_register, half_k = 4 * per_register;
  for (int lane = 0; lane < 32; ++lane) {
    const Lane& from = *lanes[static_cast<size_t>(lane)];
    const int group = lane / 4, first = lane % 4 * per_register;
    for (int i = 0; i < per_register; ++i) {
      for (int r = 0; r < 4; ++r) {
        to.a[group + r % 2 * 8][first + i + r / 2 * half_k] = read_a(from.a[r] >> (bits * i));
      }
      for (int r = 0; r < 2; ++r) {
        to.b[group][first + i + r * half_k] = read_b(from.b[r] >> (bits * i));
      }
    }
  }
  return to;
}

// Calls visit(lane, i, row, column) for each result; i counts those of the lane.
template <class Visit>
void for_each_result(const Lanes& lanes, const Visit& visit) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      visit(*lanes[static_cast<size_t>(lane)], i, lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
    }
  }
}

template <class Compute>
void collective(uint32_t* d, const uint32_t* a, const uint32_t* b, void* pc,
                const Compute& compute) {
  for (const uint32_t* registers : {static_cast<const uint32_t*>(d), a, b}) {
    require_registers(registers, "mma.sync", pc);
  }
  Lane mine{d, a, b, false};
  warp_collective(mine, "mma.sync", pc, compute);
}

using ReadFloat = float (*)(uint32_t);

ReadFloat reader(Format format) {
  switch (format) {
    case Format::e4m3: return [](uint32_t bits) { return e4m3_bits_to_float(uint8_t(bits)); };
    case Format::e5m2:
      return [](uint32_t bits) { return half_bits_to_float(static_cast<uint16_t>(bits << 8)); };
    case Format::bf16: return [](uint32_t bits) { return bf16_bits_to_float(uint16_t(bits)); };
    case Format::f16: return [](uint32_t bits) { return half_bits_to_float(uint16_t(bits)); };
    default: return [](uint32_t bits) { return tf32_value(bits); };
  }
}

}  // namespace

void mma_m16n8k32_bytes(uint32_t* d, const uint32_t* a, const uint32_t* b, bool a_is_signed,
                        bool b_is_signed) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_capability(80, "mma.sync of bytes", pc);
  collective(d, a, b, pc, [=](const Lanes& lanes) {
    using Read = int32_t (*)(uint32_t);
    const Read with_sign = [](uint32_t bits) -> int32_t { return static_cast<int8_t>(bits); };
    const Read without = [](uint32_t bits) -> int32_t { return static_cast<uint8_t>(bits); };
    const auto of = gather<int32_t>(lanes, 4, a_is_signed ? with_sign : without,
                                    b_is_signed ? with_sign : without);
    for_each_result(lanes, [&](const Lane& lane, int i, int row, int column) {
      for (int k = 0; k < 32; ++k) {
        lane.d[i] += static_cast<uint32_t>(of.a[row][k] * of.b[column][k]);
      }
    });
  });
}

void mma_m16n8_elements(uint32_t* d, const uint32_t* a, const uint32_t* b, Format format_a,
                        Format format_b, bool half_result) {
  void* const pc = COOKBOOK_SIMT_PC;
  const bool is_fp8 = format_a == Format::e4m3 || format_a == Format::e5m2;
  require_capability(is_fp8 ? 89 : 80, "mma.sync of this type", pc);
  collective(d, a, b, pc, [=](const Lanes& lanes) {
    const int per_register = is_fp8 ? 4 : 2;
    const auto of = gather<float>(lanes, per_register, reader(format_a), reader(format_b));
    const SumRule rule = sum_rule(format_a, false, device_info().cc());
    for_each_result(lanes, [&](const Lane& lane, int i, int row, int column) {
      char* const result = reinterpret_cast<char*>(lane.d) + (half_result ? 2 : 4) * i;
      uint32_t bits = 0;
      std::memcpy(&bits, result, half_result ? 2 : 4);
      const float c = half_result ? half_bits_to_float(uint16_t(bits)) : bits_float(bits);
      bits = tensor_sum(rule, format_a, format_b, of.a[row], of.b[column], 1, 8 * per_register, c,
                        half_result);
      std::memcpy(result, &bits, half_result ? 2 : 4);
    });
  });
}

}  // namespace cookbook::simt
