// SPDX-License-Identifier: MIT
// Fibers: a context switch that saves the callee-saved registers only, and the stacks.
#pragma once

#include <cstddef>
#include <vector>

namespace cookbook::simt {

inline constexpr size_t kStackBytes = 256 << 10;  // virtual; only touched pages cost memory

// Stacks have this many bytes, rounded up to whole pages; at least kStackBytes. Holds for the next
// group of a worker.
void set_stack_bytes(size_t bytes);
size_t stack_bytes();

// Saves the stack pointer of the running context in *save and continues at `load`.
extern "C" void cookbook_simt_switch(void** save, void* load);
// The same; quicker if the context at `load` goes on in the kernel (see fiber.cpp).
extern "C" void cookbook_simt_switch_parked(void** save, void* load);

// Prepares a context that calls `entry` on the stack that ends at `stack_top`. `entry` never
// returns.
void* make_context(char* stack_top, void (*entry)());

// Stacks of one worker's fibers: virtual memory of which only touched pages cost anything, with an
// inaccessible page below each. Grows on demand, never moves.
class StackPool {
 public:
  StackPool() = default;
  StackPool(const StackPool&) = delete;
  ~StackPool();

  void reserve(size_t count);
  // Declares the frames of a fiber that will not be resumed dead, for AddressSanitizer: an exited
  // or abandoned fiber never returns from them.
  void forget_frames(size_t i) const;
  // One past the end of stack `i`.
  char* top(size_t i) const;
  bool contains(const void* pointer) const;
  // True if `pointer` is in the inaccessible page below a stack: an overflow.
  bool in_guard(const void* pointer) const;

 private:
  // From one stack to the next: a stack and its guard page.
  size_t pitch_ = 0;
  size_t chunk_bytes() const;
  void release();
  std::vector<char*> chunks_;
};

}  // namespace cookbook::simt
