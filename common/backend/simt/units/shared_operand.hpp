// SPDX-License-Identifier: MIT
// An operand of wgmma or tcgen05 in shared memory, as its descriptor says (PTX ISA, "Strides" and
// "Canonical layouts"): chunks of 16 bytes.
#pragma once

#include <cstdint>

#include "common/backend/simt/runtime/memory.hpp"
#include "common/device/swizzle.cuh"

namespace cookbook::simt {

class SharedOperand {
 public:
  /// `chunk_elements`: elements in 16 bytes of shared memory. `base_offset`: the 128-byte row, of
  /// eight, in which the pattern of the swizzle begins. `wide_atoms`: a swizzle of 128 bytes moves
  /// 32 bytes as one, and MN-major operands have four k per group, not eight.
  SharedOperand(uint64_t descriptor, Swizzle swizzle, bool is_mn_major, uint32_t chunk_elements,
                uint32_t base_offset = 0, bool wide_atoms = false)
      : start_(static_cast<uint32_t>(descriptor & 0x3fff) << 4),
        leading_(static_cast<uint32_t>(descriptor >> 16 & 0x3fff) << 4),
        stride_(static_cast<uint32_t>(descriptor >> 32 & 0x3fff) << 4),
        span_(swizzle_span_bytes(swizzle)),
        pattern_(base_offset << 7),
        shift_(wide_atoms ? 2 : 3),
        mask_(wide_atoms ? span_ - 32 : span_ - 16),
        swizzle_(swizzle),
        is_mn_major_(is_mn_major),
        chunk_elements_(chunk_elements) {}

  /// Shared address of the chunk with element (mn, k); one of the two is a multiple of the chunk's
  /// elements.
  uint32_t chunk_address(uint32_t mn, uint32_t k) const {
    const uint32_t address = start_ + chunk_offset(mn, k);
    return address ^ (((address - pattern_) >> shift_) & mask_);
  }

  /// A shared address that no chunk of rows < `rows`, k < `depth` reaches.
  uint32_t end_address(uint32_t rows, uint32_t depth) const {
    const uint32_t last_k = is_mn_major_ ? depth - 1 : depth - chunk_elements_;
    const uint32_t last_mn = is_mn_major_ ? rows - chunk_elements_ : rows - 1;
    return ((start_ + chunk_offset(last_mn, last_k)) | (span_ - 16)) + 16;
  }

  /// Calls visit(mn, k, address) for each chunk with first_row <= mn < end_row, k < depth.
  template <class Visit>
  void for_each_chunk(uint32_t first_row, uint32_t end_row, uint32_t depth,
                      const Visit& visit) const {
    const uint32_t row_step = is_mn_major_ ? chunk_elements_ : 1;
    const uint32_t k_step = is_mn_major_ ? 1 : chunk_elements_;
    for (uint32_t mn = first_row; mn < end_row; mn += row_step) {
      for (uint32_t k = 0; k < depth; k += k_step) visit(mn, k, chunk_address(mn, k));
    }
  }

  bool is_mn_major() const { return is_mn_major_; }
  uint32_t chunk_elements() const { return chunk_elements_; }

 private:
  // Offset, before swizzling.
  uint32_t chunk_offset(uint32_t mn, uint32_t k) const {
    if (!is_mn_major_) {
      const uint32_t chunk = k / chunk_elements_;
      if (swizzle_ == Swizzle::none) return mn / 8 * stride_ + mn % 8 * 16 + chunk * leading_;
      return mn / 8 * stride_ + mn % 8 * span_ + chunk * 16;
    }
    if (swizzle_ == Swizzle::none) {
      return mn / chunk_elements_ * stride_ + k / 8 * leading_ + k % 8 * 16;
    }
    const uint32_t columns = span_ / 16 * chunk_elements_;
    const uint32_t in_group = k & ((1u << shift_) - 1);
    return mn / columns * leading_ + (k >> shift_) * stride_ + in_group * span_ +
           mn % columns / chunk_elements_ * 16;
  }

  uint32_t start_, leading_, stride_, span_;
  // Of the swizzle: where a pattern begins, how far bits of the row move and to which. A group of
  // k has 2^shift_.
  uint32_t pattern_, shift_, mask_;
  Swizzle swizzle_;
  bool is_mn_major_;
  uint32_t chunk_elements_;
};

/// The shared address of `block` is an offset from here.
inline const char* shared_base(const Block& block) { return block.shared - kDynamicSharedAddress; }

}  // namespace cookbook::simt
