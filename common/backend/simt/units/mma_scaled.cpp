// SPDX-License-Identifier: MIT
// mma.sync with block scales. Layouts: PTX ISA, "Matrix Fragments for mma.m16n8k32", "... k64" and
// "Block Scaling for mma.sync".
#include "common/backend/simt/units/mma_scaled.hpp"

#include <string>

#include "common/backend/backend.hpp"
#include "common/backend/simt/units/scaled_elements.hpp"
#include "common/backend/simt/units/state.hpp"
#include "common/backend/simt/units/warp_collective.hpp"

namespace cookbook::simt {
namespace {

constexpr const char* kWhat = "mma.sync with block scales";

struct ScaledLane {
  float* d;
  const uint32_t* a;
  const uint32_t* b;
  uint32_t scales_a, scales_b;
  bool done;
};
using ScaledLanes = std::array<ScaledLane*, kWarpSize>;

constexpr int kRows = 16, kColumns = 8, kDepth = 64;

// Element `i` of a register, which has eight of 4 bits or four in a byte each.
float value_of(const uint32_t& word, int i, Format format, bool packed) {
  const char* bytes = reinterpret_cast<const char*>(&word);
  const auto at = static_cast<uint32_t>(i);
  return packed ? element_value(bytes, at, format) : element_in_byte(bytes, at, format);
}

BlockScale scale_in(uint32_t scales, uint32_t byte, const ScaledMma& kind) {
  return scale_of(static_cast<uint8_t>(scales >> (8 * byte)), kind.ue8m0);
}

void multiply(const ScaledLanes& lanes, const ScaledMma& kind, const ScaleOperand& from_a,
              const ScaleOperand& from_b) {
  const bool fp4 = kind.scale_vector > 1;
  const int per_register = fp4 ? 8 : 4, half_k = 4 * per_register;
  float a[kRows][kDepth], b[kDepth][kColumns];
  int exponents_b[kDepth][kColumns];
  for (int lane = 0; lane < 32; ++lane) {
    const ScaledLane& from = *lanes[static_cast<size_t>(lane)];
    const int group = lane / 4, first = lane % 4 * per_register;
    for (int i = 0; i < per_register; ++i) {
      for (int r = 0; r < 4; ++r) {
        a[group + r % 2 * 8][first + i + r / 2 * half_k] =
            value_of(from.a[r], i, kind.format_a, fp4);
      }
      for (int r = 0; r < 2; ++r) {
        const float value = value_of(from.b[r], i, kind.format_b, fp4);
        b[first + i + r * half_k][group] = value;
        exponents_b[first + i + r * half_k][group] = tensor_exponent(kind.format_b, value);
      }
    }
  }
  const auto vectors = static_cast<uint32_t>(kind.scale_vector);
  std::array<BlockScale, 4 * kColumns> scales_b{};
  for (uint32_t n = 0; n < kColumns; ++n) {
    for (uint32_t v = 0; v < vectors; ++v) {
      scales_b[n * vectors + v] =
          scale_in(lanes[4 * n + from_b.thread]->scales_b, from_b.byte + v, kind);
    }
  }
  const int depth = 2 * half_k;
  const ScaledSums sums{.format_a = kind.format_a,
                        .fp4 = fp4,
                        .columns = kColumns,
                        .depth = depth,
                        .per_scale = depth / kind.scale_vector,
                        .b = b[0],
                        .exponents_b = exponents_b[0],
                        .stride = kColumns,
                        .scales_b = scales_b.data()};
  for (uint32_t row = 0; row < kRows; ++row) {
    std::array<BlockScale, 4> scales_a{};
    for (uint32_t v = 0; v < vectors; ++v) {
      const ScaledLane& from = *lanes[row % 8 * 4 + 2 * from_a.thread + row / 8];
      scales_a[v] = scale_in(from.scales_a, from_a.byte + v, kind);
    }
    float d[kColumns];
    const auto place = [&](uint32_t n) -> float& {
      return lanes[row % 8 * 4 + n / 2]->d[row / 8 * 2 + n % 2];
    };
    for (uint32_t n = 0; n < kColumns; ++n) d[n] = place(n);
    sums.add(a[row], scales_a.data(), d);
    for (uint32_t n = 0; n < kColumns; ++n) place(n) = d[n];
  }
}

// PTX ISA: byte-id is 0 to 3 for 1X, 0 or 2 for 2X, 0 for 4X; thread-id is 0 or 1 for A, 0 to 3 for
// B.
void require_operand(const ScaleOperand& of, char name, uint32_t threads, int vectors, void* pc) {
  const auto bytes = static_cast<uint32_t>(vectors);
  if (of.byte + bytes > 4 || of.byte % bytes != 0) {
    fail_at(pc, "{}: scale_vec::{}X of {} cannot begin at byte {}", kWhat, vectors, name, of.byte);
  }
  if (of.thread >= threads) {
    fail_at(pc, "{}: thread-id of {} is {}, and must be below {}", kWhat, name, of.thread, threads);
  }
}

}  // namespace

void mma_m16n8_scaled(float* d, const uint32_t* a, const uint32_t* b, const ScaledMma& kind,
                      const ScaleOperand& scale_a, const ScaleOperand& scale_b) {
  void* const pc = COOKBOOK_SIMT_PC;
  if (device_info().cc() / 10 != 12) {
    fail_at(pc, "{} needs sm_120a; this is the {}", kWhat, device_info().name);
  }
  require_operand(scale_a, 'A', 2, kind.scale_vector, pc);
  require_operand(scale_b, 'B', 4, kind.scale_vector, pc);
  for (const void* registers :
       {static_cast<const void*>(d), static_cast<const void*>(a), static_cast<const void*>(b)}) {
    require_registers(registers, "mma.sync", pc);
  }
  ScaledLane mine{d, a, b, scale_a.scales, scale_b.scales, false};
  warp_collective(mine, "mma.sync", pc,
                  [=](const ScaledLanes& lanes) { multiply(lanes, kind, scale_a, scale_b); });
}

}  // namespace cookbook::simt
