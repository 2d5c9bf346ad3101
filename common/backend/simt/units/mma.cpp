// SPDX-License-Identifier: MIT
// Warp-level matrix instructions. Layouts: PTX ISA, "Matrix Fragments for mma.m16n8k16" and so on.
#include "common/backend/simt/units/mma.hpp"

#include <cstring>
#include <string>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/access_tracer.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/units/state.hpp"
#include "common/backend/simt/units/tensor_sum.hpp"
#include "common/backend/simt/units/warp_collective.hpp"

namespace cookbook {
namespace simt {
namespace {

struct MatrixLane {
  uint32_t* registers;
  char* row;
  bool done;
};

// Calls visit(in a register, in memory) for each element of the 16-bit matrices: its two places.
template <class Visit>
void for_each_element(const std::array<MatrixLane*, kWarpSize>& lanes, int matrices,
                      bool transposed, const Visit& visit) {
  for (uint32_t matrix = 0; matrix < static_cast<uint32_t>(matrices); ++matrix) {
    for (uint32_t row = 0; row < 8; ++row) {
      char* const elements = lanes[matrix * 8 + row]->row;
      for (uint32_t column = 0; column < 8; ++column) {
        const uint32_t i = transposed ? column : row, j = transposed ? row : column;
        auto* halves = reinterpret_cast<char*>(&lanes[i * 4 + j / 2]->registers[matrix]);
        visit(halves + 2 * (j % 2), elements + 2 * column);
      }
    }
  }
}

void require_rows(const void* smem_row, int matrices, bool is_write, const char* operation,
                  void* pc) {
  if (current_thread->lane >= 8u * static_cast<unsigned>(matrices)) return;
  if (reinterpret_cast<uintptr_t>(smem_row) % 16 != 0) {
    fail_at(pc, "{}: the row's address is not aligned to 16 bytes", operation);
  }
  require_own_shared(smem_row, operation, pc);
  if (access_tracer != nullptr) access_tracer->unit_access(smem_row, 16, is_write, pc);
}

struct MmaLane {
  float* d;
  const uint32_t* a;
  const uint32_t* b;
  bool done;
};

using Bits = uint32_t __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(16)));

// Operand `i` of each of four registers, the lowest first, as floats: what numbers.hpp does to one.
template <Format format>
Floats unpack(Bits registers, int i) {
  if constexpr (format == Format::tf32) return reinterpret_cast<Floats>(registers & 0xffffe000u);
  const Bits half = i == 0 ? registers & 0xffffu : registers >> 16;
  if constexpr (format == Format::bf16) return reinterpret_cast<Floats>(half << 16);
  const Bits magnitude = (half & 0x7fffu) << 13;
  const Bits value = reinterpret_cast<Bits>(reinterpret_cast<Floats>(magnitude) * 0x1p112f);
  const Bits not_finite = reinterpret_cast<Bits>(magnitude >= 0x0f800000u) & 0x7f800000u;
  return reinterpret_cast<Floats>(value | not_finite | (half & 0x8000u) << 16);
}

template <Format format>
void multiply(const std::array<MmaLane*, kWarpSize>& lanes) {
  float a[16][16];
  float b[16][8];
  constexpr int per_register = format == Format::tf32 ? 1 : 2;
  constexpr int half_k = 4 * per_register;
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane / 4;
    const int first = lane % 4 * per_register;
    const MmaLane& from = *lanes[static_cast<size_t>(lane)];
    const Bits of_a{from.a[0], from.a[1], from.a[2], from.a[3]};
    const Bits of_b{from.b[0], from.b[1]};
    for (int i = 0; i < per_register; ++i) {
      const Floats rows = unpack<format>(of_a, i), columns = unpack<format>(of_b, i);
      float* const upper = &a[group][first + i];
      float* const lower = &a[group + 8][first + i];
      upper[0] = rows[0], upper[half_k] = rows[2];
      lower[0] = rows[1], lower[half_k] = rows[3];
      b[first + i][group] = columns[0], b[first + half_k + i][group] = columns[1];
    }
  }
  // Four lanes hold two columns each of a row, in two of their four registers.
  float d[16][8];
  const auto for_each_sum = [&](auto&& visit) {
    for (int lane = 0; lane < 32; ++lane) {
      float* sums = lanes[static_cast<size_t>(lane)]->d;
      float* const upper = &d[lane / 4][lane % 4 * 2];
      float* const lower = &d[lane / 4 + 8][lane % 4 * 2];
      visit(sums[0], upper[0]), visit(sums[1], upper[1]);
      visit(sums[2], lower[0]), visit(sums[3], lower[1]);
    }
  };
  for_each_sum([](float& sum, float& element) { element = sum; });
  static thread_local TensorSums sums;
  sums.set_b(sum_rule(format, false, device_info().cc()), format, format, b[0], 8, 8, 2 * half_k);
  for (int row = 0; row < 16; ++row) sums.add(a[row], d[row]);
  for_each_sum([](float& sum, float& element) { sum = element; });
}

}  // namespace

void ldmatrix(uint32_t* r, int matrices, const void* smem_row, bool transposed) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_rows(smem_row, matrices, false, "ldmatrix", pc);
  require_registers(r, "ldmatrix", pc);
  MatrixLane mine{r, static_cast<char*>(const_cast<void*>(smem_row)), false};
  warp_collective(mine, "ldmatrix", pc, [=](const auto& lanes) {
    for_each_element(lanes, matrices, transposed, [](char* in_register, const char* in_memory) {
      std::memcpy(in_register, in_memory, 2);
    });
  });
}

void stmatrix(const uint32_t* r, int matrices, void* smem_row, bool transposed) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_capability(90, "stmatrix", pc);
  require_rows(smem_row, matrices, true, "stmatrix", pc);
  require_registers(r, "stmatrix", pc);
  MatrixLane mine{const_cast<uint32_t*>(r), static_cast<char*>(smem_row), false};
  warp_collective(mine, "stmatrix", pc, [=](const auto& lanes) {
    for_each_element(lanes, matrices, transposed, [](const char* in_register, char* in_memory) {
      std::memcpy(in_memory, in_register, 2);
    });
  });
}

void mma_m16n8(float* d, const uint32_t* a, const uint32_t* b, Format format) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_capability(80, "mma.sync of this type and shape", pc);
  for (const void* registers :
       {static_cast<const void*>(d), static_cast<const void*>(a), static_cast<const void*>(b)}) {
    require_registers(registers, "mma.sync", pc);
  }
  MmaLane mine{d, a, b, false};
  warp_collective(mine, "mma.sync", pc, [=](const auto& lanes) {
    switch (format) {
      case Format::tf32: return multiply<Format::tf32>(lanes);
      case Format::bf16: return multiply<Format::bf16>(lanes);
      case Format::f16: return multiply<Format::f16>(lanes);
      default: break;  // wgmma only
    }
  });
}

}  // namespace simt

uint32_t to_tf32(float value) {
  simt::require_capability(80, "to_tf32", COOKBOOK_SIMT_PC);
  const uint32_t bits = simt::float_bits(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value != value ? 0x7fffffffu : bits;
  return (bits + 0x1000u) & 0xffffe000u;  // to nearest, ties away from zero
}

}  // namespace cookbook
