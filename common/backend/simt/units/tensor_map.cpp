// SPDX-License-Identifier: MIT
#include "common/backend/tensor_map.hpp"

#include "common/backend/simt/units/tensor_map_tag.hpp"

namespace cookbook::detail {

TensorMap encode_tensor_map(const TensorMapSpec& spec) {
  TensorMap map{};
  map.tag = simt::kTensorMapTag;
  map.base = reinterpret_cast<uintptr_t>(spec.base);
  map.rank = static_cast<uint8_t>(spec.extents.size());
  map.element_bytes = static_cast<uint8_t>(tensor_type_bytes(spec.dtype));
  map.type = static_cast<uint8_t>(spec.dtype);
  map.swizzle = static_cast<uint8_t>(spec.swizzle);
  for (size_t i = 0; i < 5; ++i) {
    const bool exists = i < spec.extents.size();
    map.extents[i] = exists ? spec.extents[i] : 1;
    map.box[i] = static_cast<uint16_t>(exists ? spec.box[i] : 1);
    if (i < 4) map.strides[i] = i < spec.strides_bytes.size() ? spec.strides_bytes[i] : 0;
  }
  return map;
}

}  // namespace cookbook::detail
