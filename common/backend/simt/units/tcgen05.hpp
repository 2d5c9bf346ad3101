// SPDX-License-Identifier: MIT
// The tensor core of sm_100 on the SIMT backend (PTX ISA, "tcgen05.mma", "tcgen05.cp",
// "tcgen05.commit", "tcgen05.fence"). Descriptors are the bits of the PTX ISA ("Shared memory
// descriptor", "Instruction descriptor"): the unit decodes them and fails by name where a reserved
// bit is set or a shape does not exist. Called by one thread each, the fences by any.
//
// cta_group 2: called by one thread of one block of the pair, for both. Addresses of tensor memory
// and offsets in shared memory are the same in both blocks.
#pragma once

#include <cstdint>

#include "common/backend/simt/units/tmem.hpp"

namespace cookbook::simt {

/// The `.kind` of an instruction: f16 has a depth k of 16, tf32 8, f8f6f4, i8 and mxf8f6f4 32, mxf4
/// and mxf4nvf4 64.
enum class MmaKind : uint8_t { f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };

/// What the instruction's name says, and its rare operands.
struct MmaOptions {
  MmaKind kind = MmaKind::f16;
  int cta_group = 1;
  int scale_vector = 0;    ///< Block-scaled kinds: 1, 2, 4 (.scale_vec::1X, 2X, 4X)
  int scale_input_d = -1;  ///< D is multiplied with 2^-scale_input_d first; -1: without the operand
  const uint32_t* disabled_lanes = nullptr;  ///< 4 words (cta_group 2: 8), a bit per lane of D
};

/// D = A B, plus D if `accumulate`. `d`: tensor memory; `a`, `b`: descriptors of shared memory.
void tcgen05_mma(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, bool accumulate,
                 const MmaOptions& options);
/// The same with A in tensor memory at address `a`: row m in lane m, 32 bits of k per column.
void tcgen05_mma_tmem(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction, bool accumulate,
                      const MmaOptions& options);
/// Block-scaled kinds; `scale_a`, `scale_b`: tensor memory. Bits 30 and 31 of both are ignored: the
/// instruction descriptor has the byte within a column.
void tcgen05_mma_scaled(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, uint32_t scale_a,
                        uint32_t scale_b, bool accumulate, const MmaOptions& options);
void tcgen05_mma_scaled_tmem(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction,
                             uint32_t scale_a, uint32_t scale_b, bool accumulate,
                             const MmaOptions& options);

/// The barrier receives one arrival when all earlier mma and cp of this thread, of this cta_group,
/// are complete. `bar`: in the own block's shared memory or, by map_shared(), another block's.
void tcgen05_commit(uint64_t* bar, int cta_group);
/// So does the barrier at `bar`'s offset in each block of the cluster whose bit is set in `mask`.
void tcgen05_commit_multicast(uint64_t* bar, uint16_t mask, int cta_group);

/// Copies from shared memory, by a descriptor as of an operand, to tensor memory.
enum class TmemCopy : uint8_t {
  c128x256b,
  c4x256b,
  c128x128b,
  c64x128b_02_13,  ///< .warpx2::02_13
  c64x128b_01_23,  ///< .warpx2::01_23
  c32x128b,        ///< .warpx4: 16 bytes to each of 32 lanes, the same to all four quarters
};
/// What it expands, to bytes: 16 elements of 4 or 6 bits, padded to 16 bytes.
enum class TmemExpand : uint8_t { none, b4x16_p64, b6x16_p32 };
void tcgen05_cp(uint32_t address, uint64_t source, TmemCopy shape, int cta_group,
                TmemExpand expand = TmemExpand::none);

/// Order tcgen05 instructions with the synchronisation of threads.
void tcgen05_fence_before_thread_sync();
void tcgen05_fence_after_thread_sync();

}  // namespace cookbook::simt
