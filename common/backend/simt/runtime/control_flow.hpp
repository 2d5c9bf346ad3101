// SPDX-License-Identifier: MIT
// The order of a function's basic blocks in which diverged lanes meet again (docs/simt.md).
#pragma once

#include <cstdint>

namespace cookbook::simt {

/// The rank of the code at `pc`, a return address. Every block ranks behind the blocks from which
/// it is reached, and the head of a loop behind the rest of the loop but before what follows. So if
/// lanes of the lowest rank go first, each block runs once per iteration, with all lanes that take
/// it. Ranks compare within a function; `pc` itself where the machine code cannot be read.
uintptr_t reconvergence_rank(uintptr_t pc);

// Of two basic blocks that a thread entered one after the other, by what their hooks return to: the
// branch between them, as a return address.
void* branch_between(void* from, void* to);

// Whether the function returns after the call that returns to `pc`, and does so little before that
// compilers make a loop of such a recursion.
bool returns_after(void* pc);

}  // namespace cookbook::simt
