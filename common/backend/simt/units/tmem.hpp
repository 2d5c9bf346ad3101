// SPDX-License-Identifier: MIT
// Tensor memory of sm_100 on the SIMT backend (PTX ISA, "Tensor Memory", "tcgen05.alloc, dealloc,
// relinquish_alloc_permit", "tcgen05.ld", "tcgen05.st", "tcgen05.wait"). An address is
// lane << 16 | column: 128 lanes of 512 columns of 32 bits. All of these are called by all 32 lanes
// of a warp with the same arguments, registers aside.
#pragma once

#include <cstdint>

namespace cookbook::simt {

inline constexpr uint32_t kTmemLanes = 128, kTmemColumns = 512;

/// What the 32 lanes of a warp access per register. With w = warp % 4, a warp reaches lanes 32w to
/// 32w + 31 of tensor memory; the address names the first lane.
enum class TmemShape : uint8_t {
  s32x32b,    ///< `repeat` registers: thread t, register i: lane t, column i
  s16x64b,    ///< `repeat` registers: lane t / 4 + 8 (t % 2), column t / 2 % 2 + 2 i
  s16x128b,   ///< 2 repeat: lane t / 4 + 8 (i % 2), column t % 4 + 4 (i / 2)
  s16x256b,   ///< 4 repeat: lane t / 4 + 8 (i / 2 % 2), column 2 (t % 4) + i % 2 + 8 (i / 4)
  s16x32bx2,  ///< `repeat` registers: lane t % 16, column i, of t >= 16 `offset` columns on
};

/// Allocates `columns` (32, 64, 128, 256, 512) and writes the address to `smem` in the own block's
/// shared memory, as an ordinary store: a barrier comes before other warps read it. Waits while too
/// few are free. cta_group 2: one warp of each block of the pair; the address is the same in both.
void tmem_alloc(uint32_t* smem, uint32_t columns, int cta_group);
/// The block allocates no more.
void tmem_relinquish(int cta_group);
/// Frees an allocation, all of it, by the warp that allocated or another one.
void tmem_dealloc(uint32_t address, uint32_t columns, int cta_group);

/// Loads to `registers`, an array of local variables, which may be used after tmem_wait_load().
/// `pack`: two columns' low halves to a register (.pack::16b).
/// `offset`: of s16x32bx2 only.
void tmem_load(uint32_t* registers, uint32_t address, TmemShape shape, int repeat,
               bool pack = false, uint32_t offset = 0);
/// The same to variables that are no array.
void tmem_load_to(uint32_t* const* registers, uint32_t address, TmemShape shape, int repeat,
                  bool pack = false, uint32_t offset = 0);
/// Stores from `registers`, whose values are taken at once. `unpack`: .unpack::16b.
void tmem_store(uint32_t address, const uint32_t* registers, TmemShape shape, int repeat,
                bool unpack = false, uint32_t offset = 0);
void tmem_wait_load();
void tmem_wait_store();

}  // namespace cookbook::simt
