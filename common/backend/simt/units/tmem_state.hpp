// SPDX-License-Identifier: MIT
// The tensor memory of one block.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "common/backend/simt/units/state.hpp"
#include "common/backend/simt/units/tmem.hpp"

namespace cookbook::simt {

// One tcgen05.alloc, until all lanes of its warp have passed it.
struct TmemRequest {
  uint32_t columns = 0, address = 0;
  bool granted = false;
  void* pc = nullptr;
};

struct TensorMemory {
  struct Allocation {
    uint32_t first, columns;
    void* pc;
  };
  // A tcgen05.ld or .st that its warp has not waited for.
  struct Operation {
    Actor actor;
    std::shared_ptr<bool> done;  // of a store: it may be over before
    std::function<void()> store;
  };
  struct PerWarp {
    std::vector<Operation> loads, stores;
    char load_object = 0, store_object = 0;
  };

  std::vector<uint32_t> words;  // [lane][column]
  std::vector<Allocation> allocations;
  std::deque<std::shared_ptr<TmemRequest>> requests;  // not granted yet
  std::vector<Thread*> waiting;
  std::vector<PerWarp> warps;
  const Warp* allocator = nullptr;
  uint32_t least = kTmemColumns;  // columns of the smallest allocation so far
  int cta_group = 0;              // of the first instruction; 0: none yet
  bool relinquished = false;

  uint32_t& word(uint32_t lane, uint32_t column) { return words[lane * kTmemColumns + column]; }
  bool is_allocated(uint32_t first, uint32_t columns) const;
};

// The block's, made on first use.
TensorMemory& tensor_memory(Block& block);
// The two blocks of the current one's pair, even rank first; for cta_group 1 the block itself.
// Fails, as `what` at `pc`, where there is no pair or the block mixes cta_group 1 and 2.
std::array<Block*, 2> blocks_of(int cta_group, const char* what, void* pc);
// Fails if one of them has exited.
void require_alive(const std::array<Block*, 2>& blocks, const char* what, void* pc);
// Fails unless the columns are allocated in `block`.
void require_allocated(Block& block, uint32_t first, uint32_t columns, const char* what, void* pc);
// Fails if a block has not freed its tensor memory; every thread has exited.
void tmem_group_end(Group& group);

}  // namespace cookbook::simt
