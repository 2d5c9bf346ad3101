// SPDX-License-Identifier: MIT
#include "tools/check/program/ptx.hpp"

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/memory.hpp"

namespace cookbook::simt::ptx {

uint32_t sm_count() { return static_cast<uint32_t>(device_info().sm_count); }

Remote find_remote(uint64_t* pointer) {
  const Block& self = *current_thread->block;
  const Block* owner = find_shared_block(pointer);
  if (owner == nullptr || owner == &self) return {pointer, self.rank, false};
  const auto offset = reinterpret_cast<char*>(pointer) - owner->shared;
  return {reinterpret_cast<uint64_t*>(self.shared + offset), owner->rank, true};
}

void refuse_accumulators() {
  fail("wgmma: the accumulators of inline PTX are not one array in the order of the operands",
       __builtin_return_address(0));
}

void refuse_scale() {
  fail("wgmma: a scale of A or B other than 1 is not modelled", __builtin_return_address(0));
}

}  // namespace cookbook::simt::ptx
