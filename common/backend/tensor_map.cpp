// SPDX-License-Identifier: MIT
#include "common/backend/tensor_map.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "common/backend/observe.hpp"

namespace cookbook {

size_t tensor_type_bytes(TensorType type) {
  switch (type) {
    case TensorType::u8: return 1;
    case TensorType::u16:
    case TensorType::f16:
    case TensorType::bf16: return 2;
    case TensorType::u32:
    case TensorType::s32:
    case TensorType::f32: return 4;
    case TensorType::u64:
    case TensorType::s64:
    case TensorType::f64: return 8;
  }
  throw std::invalid_argument("tensor map: unknown element type");
}

namespace detail {
namespace {

template <class... A>
void require(bool holds, fmt::format_string<A...> rule, A&&... values) {
  if (!holds)
    throw std::invalid_argument("tensor map: " + fmt::format(rule, std::forward<A>(values)...));
}

}  // namespace

void check_tensor_map_spec(const TensorMapSpec& spec) {
  const size_t rank = spec.extents.size();
  const uint64_t element_bytes = tensor_type_bytes(spec.dtype);
  require(rank >= 1 && rank <= 5, "1 to 5 dimensions, got {}", rank);
  require(spec.box.size() == rank, "as many box sizes as extents ({}), got {}", rank,
          spec.box.size());
  require(spec.strides_bytes.size() == rank - 1,
          "one stride for each dimension but the innermost ({}), got {}", rank - 1,
          spec.strides_bytes.size());
  require(spec.base != nullptr, "the base address must not be null");
  const uint64_t base = reinterpret_cast<uintptr_t>(spec.base);
  require(base % 16 == 0,
          "the base address must be a multiple of 16 bytes, got one with remainder {}", base % 16);
  for (size_t i = 0; i < rank; ++i) {
    require(spec.extents[i] >= 1 && spec.extents[i] <= (uint64_t{1} << 32),
            "the extent of dimension {} must be 1 to 2^32 elements, got {}", i, spec.extents[i]);
    require(spec.box[i] >= 1 && spec.box[i] <= 256,
            "the box of dimension {} must be 1 to 256 elements, got {}", i, spec.box[i]);
  }
  for (size_t i = 0; i + 1 < rank; ++i) {
    const uint64_t stride = spec.strides_bytes[i];
    require(stride % 16 == 0, "the stride of dimension {} must be a multiple of 16 bytes, got {}",
            i + 1, stride);
    require(stride < (uint64_t{1} << 40),
            "the stride of dimension {} must be below 2^40 bytes, got {}", i + 1, stride);
  }
  const uint64_t inner_bytes = spec.box[0] * element_bytes;
  require(inner_bytes % 16 == 0, "the innermost box must be a multiple of 16 bytes, got {}",
          inner_bytes);
  const uint64_t span = swizzle_span_bytes(spec.swizzle);
  require(spec.swizzle == Swizzle::none || inner_bytes <= span,
          "the innermost box must fit the swizzle's span of {} bytes, got {}", span, inner_bytes);
}

}  // namespace detail

TensorMap make_tensor_map(const TensorMapSpec& spec) {
  detail::check_tensor_map_spec(spec);
  if (detail::observer().tensor_map) detail::observer().tensor_map(spec);
  return detail::encode_tensor_map(spec);
}

}  // namespace cookbook
