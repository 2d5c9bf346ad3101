// SPDX-License-Identifier: MIT
#include "common/backend/simt/units/wmma.hpp"

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

struct WmmaLane {
  void* d;
  const char* a;
  const char* b;
  const void* c;
  bool done;
};

float input(const char* fragment, int i, Format format) {
  if (format == Format::tf32) {
    uint32_t bits;
    std::memcpy(&bits, fragment + 4 * i, 4);
    return tf32_value(bits);
  }
  uint16_t bits;
  std::memcpy(&bits, fragment + 2 * i, 2);
  return format == Format::bf16 ? bf16_bits_to_float(bits) : half_bits_to_float(bits);
}

void multiply(const std::array<WmmaLane*, kWarpSize>& lanes, WmmaShape shape, Format format,
              bool half_result) {
  const bool narrow = format == Format::tf32;
  float a[32][16];
  float b[16][32];
  for (int lane = 0; lane < 32; ++lane) {
    const WmmaLane& from = *lanes[static_cast<size_t>(lane)];
    for (int i = 0; i < shape.m * shape.k / 32; ++i) {
      const WmmaPosition at = wmma_a_position(lane, i, shape.m, narrow);
      a[at.row][at.column] = input(from.a, i, format);
    }
    for (int i = 0; i < shape.k * shape.n / 32; ++i) {
      const WmmaPosition at = wmma_b_position(lane, i, narrow);
      b[at.row][at.column] = input(from.b, i, format);
    }
  }
  float d[32][32];
  const auto for_each_sum = [&](auto&& visit) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < shape.m * shape.n / 32; ++i) {
        const WmmaPosition at = wmma_c_position(lane, i, shape.m);
        visit(*lanes[static_cast<size_t>(lane)], i, d[at.row][at.column]);
      }
    }
  };
  const SumRule rule = sum_rule(format, false, device_info().cc());
  if (half_result) {
    for_each_sum([](const WmmaLane& of, int i, float& element) {
      element = input(static_cast<const char*>(of.c), i, Format::f16);
    });
    for (int row = 0; row < shape.m; ++row) {
      for (int column = 0; column < shape.n; ++column) {
        float& element = d[row][column];
        element = half_bits_to_float(static_cast<uint16_t>(
            tensor_sum(rule, format, format, a[row], b[0] + column, 32, shape.k, element, true)));
      }
    }
    for_each_sum([](const WmmaLane& of, int i, float& element) {
      static_cast<__half*>(of.d)[i] = __half(element);
    });
    return;
  }
  for_each_sum([](const WmmaLane& of, int i, float& element) {
    element = static_cast<const float*>(of.c)[i];
  });
  static thread_local TensorSums sums;
  sums.set_b(rule, format, format, b[0], 32, shape.n, shape.k);
  for (int row = 0; row < shape.m; ++row) sums.add(a[row], d[row]);
  for_each_sum(
      [](const WmmaLane& of, int i, float& element) { static_cast<float*>(of.d)[i] = element; });
}

}  // namespace

void wmma_check_access(const void* pointer, unsigned leading_bytes, const char* what) {
  void* const pc = COOKBOOK_SIMT_PC;
  if (reinterpret_cast<uintptr_t>(pointer) % 32 != 0) {
    fail_at(pc, "{}: the address is not aligned to 32 bytes", what);
  }
  if (leading_bytes % 16 != 0) {
    fail_at(pc, "{}: the leading dimension is not a multiple of 16 bytes", what);
  }
  if (current_thread->warp->lanes != 0xffffffffu) {
    fail_at(pc, "{} needs all 32 lanes of the warp", what);
  }
}

void wmma_multiply(void* d, const void* a, const void* b, const void* c, WmmaShape shape,
                   Format format, bool half_result) {
  void* const pc = COOKBOOK_SIMT_PC;
  require_capability(format == Format::f16 ? 70 : 80, "wmma::mma_sync of this type", pc);
  for (const void* fragment : {static_cast<const void*>(d), a, b, c}) {
    require_registers(fragment, "wmma::mma_sync", pc);
  }
  WmmaLane mine{d, static_cast<const char*>(a), static_cast<const char*>(b), c, false};
  warp_collective(mine, "wmma::mma_sync", pc, [=](const std::array<WmmaLane*, kWarpSize>& lanes) {
    multiply(lanes, shape, format, half_result);
  });
}

}  // namespace cookbook::simt

float nvcuda::wmma::__float_to_tf32(float value) {
  return cookbook::simt::bits_float(cookbook::to_tf32(value));
}
