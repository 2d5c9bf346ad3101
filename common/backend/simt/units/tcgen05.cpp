// SPDX-License-Identifier: MIT
// What a thread issues to the tensor core is a queue: each operation is executed after those before
// it, at once (early), when no thread can run (late), or at any time between (random).
#include "common/backend/simt/units/tcgen05.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/convergence.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/fail.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/sync_tracer.hpp"
#include "common/backend/simt/runtime/timeline.hpp"
#include "common/backend/simt/units/async_tracer.hpp"
#include "common/backend/simt/units/mbarrier_tracer.hpp"
#include "common/backend/simt/units/scaled_elements.hpp"
#include "common/backend/simt/units/shared_operand.hpp"
#include "common/backend/simt/units/tensor_sum.hpp"
#include "common/backend/simt/units/tensor_tracer.hpp"
#include "common/backend/simt/units/tmem_state.hpp"

namespace cookbook::simt {
namespace {

constexpr const char* kMma = "tcgen05.mma";

// ---- descriptors ----

const char* name_of(MmaKind kind) {
  switch (kind) {
    case MmaKind::f16: return "f16";
    case MmaKind::tf32: return "tf32";
    case MmaKind::f8f6f4: return "f8f6f4";
    case MmaKind::i8: return "i8";
    case MmaKind::mxf8f6f4: return "mxf8f6f4";
    case MmaKind::mxf4: return "mxf4";
    case MmaKind::mxf4nvf4: break;
  }
  return "mxf4nvf4";
}

bool is_scaled(MmaKind kind) { return kind >= MmaKind::mxf8f6f4; }
bool is_fp4(MmaKind kind) { return kind >= MmaKind::mxf4; }
// Elements in 16 bytes of shared memory; the depth of an instruction is two such chunks.
uint32_t chunk_elements(MmaKind kind) {
  return kind == MmaKind::f16 ? 8 : kind == MmaKind::tf32 ? 4 : is_fp4(kind) ? 32 : 16;
}

enum class ResultType { f16, f32, s32 };

// An instruction, decoded.
struct Product {
  MmaKind kind{};
  int cta_group = 1;
  uint32_t m = 0, n = 0, depth = 0;
  Format format_a{}, format_b{};
  bool a_is_signed = false, b_is_signed = false, saturates = false;  // of kind::i8
  bool negate_a = false, negate_b = false, a_is_mn_major = false, b_is_mn_major = false;
  ResultType result = ResultType::f32;
  bool accumulate = false;
  int scale_input_d = 0;
  std::array<uint32_t, 8> disabled{};
  uint32_t d_lane = 0, d_column = 0;
  bool a_in_tensor_memory = false;
  uint32_t a_column = 0;
  uint64_t desc_a = 0, desc_b = 0;
  // Block scaling.
  int scale_vector = 0;
  bool scale_is_ue8m0 = false;
  uint32_t scale_a = 0, scale_b = 0;  // columns
  uint32_t scale_a_byte = 0, scale_b_byte = 0;
  std::array<Block*, 2> blocks{};
  void* pc = nullptr;
};

uint32_t bits_of(uint64_t word, int first, int count) {
  return static_cast<uint32_t>(word >> first & ((uint64_t{1} << count) - 1));
}

// PTX ISA, "Instruction descriptor".
Format format_of(uint32_t code, MmaKind kind, char operand, void* pc) {
  if (kind == MmaKind::f16 && code <= 1) return code == 0 ? Format::f16 : Format::bf16;
  if (kind == MmaKind::tf32 && code == 2) return Format::tf32;
  if (is_fp4(kind) && code == 1) return Format::e2m1;
  if (kind == MmaKind::f8f6f4 || kind == MmaKind::mxf8f6f4) {
    switch (code) {
      case 0: return Format::e4m3;
      case 1: return Format::e5m2;
      case 3: return Format::e2m3;
      case 4: return Format::e3m2;
      case 5: return Format::e2m1;
      default: break;
    }
  }
  fail_at(pc, "{}: instruction descriptor: kind::{} has no type {} for {}", kMma, name_of(kind),
          code, operand);
}

// Of kind::i8.
bool is_signed(uint32_t code, char operand, void* pc) {
  if (code > 1) {
    fail_at(pc, "{}: instruction descriptor: kind::i8 has no type {} for {}", kMma, code, operand);
  }
  return code == 1;
}

void require_zero(uint32_t word, int first, int count, void* pc) {
  if (bits_of(word, first, count) == 0) return;
  fail_at(pc, "{}: instruction descriptor {:#x}: bits {} to {} must be 0", kMma, word, first,
          first + count - 1);
}

void decode_instruction(Product& product, uint32_t word, void* pc) {
  const MmaKind kind = product.kind;
  if (bits_of(word, 2, 1) != 0) fail_at(pc, "{}: sparse operands are not modelled", kMma);
  require_zero(word, 0, 2, pc);
  if (kind == MmaKind::i8) {
    product.saturates = bits_of(word, 3, 1) != 0;
    product.a_is_signed = is_signed(bits_of(word, 7, 3), 'A', pc);
    product.b_is_signed = is_signed(bits_of(word, 10, 3), 'B', pc);
    require_zero(word, 13, 2, pc);
  } else {
    require_zero(word, 3, 1, pc);
    product.format_a = format_of(bits_of(word, 7, 3), kind, 'A', pc);
    product.format_b = format_of(bits_of(word, 10, is_fp4(kind) ? 2 : 3), kind, 'B', pc);
  }
  product.negate_a = bits_of(word, 13, 1) != 0;
  product.negate_b = bits_of(word, 14, 1) != 0;
  product.a_is_mn_major = bits_of(word, 15, 1) != 0;
  product.b_is_mn_major = bits_of(word, 16, 1) != 0;
  product.n = bits_of(word, 17, 6) << 3;
  if (is_scaled(kind)) {
    require_zero(word, 6, 1, pc);
    if (is_fp4(kind)) require_zero(word, 12, 1, pc);
    require_zero(word, 24, 3, pc);
    product.scale_b_byte = bits_of(word, 4, 2);
    product.scale_is_ue8m0 = bits_of(word, 23, 1) != 0;
    product.m = bits_of(word, 27, 2) << 7;
    product.scale_a_byte = bits_of(word, 29, 2);
    if (bits_of(word, 31, 1) != 0) fail_at(pc, "{}: a depth of 96 needs sm_103a", kMma);
    return;
  }
  require_zero(word, 6, 1, pc);
  require_zero(word, 23, 1, pc);
  require_zero(word, 29, 1, pc);
  require_zero(word, 30, 2, pc);  // the shift of .ws
  product.m = bits_of(word, 24, 5) << 4;
  const uint32_t type = bits_of(word, 4, 2);
  product.result = type == 0 ? ResultType::f16 : type == 1 ? ResultType::f32 : ResultType::s32;
  const bool exists = kind == MmaKind::i8 ? type == 2
                      : type == 0         ? kind == MmaKind::f16 || kind == MmaKind::f8f6f4
                                          : type == 1;
  if (!exists) {
    fail_at(pc, "{}: instruction descriptor: kind::{} has no type {} for D", kMma, name_of(kind),
            type);
  }
}

void require_shape(const Product& p, void* pc) {
  const bool pair = p.cta_group == 2;
  const bool m_exists =
      pair ? p.m == 256 || p.m == 128 : p.m == 128 || (p.m == 64 && !is_scaled(p.kind));
  const bool is_i8 = p.kind == MmaKind::i8;
  const uint32_t step = pair ? (is_i8 ? 32 : 16) : is_i8 && p.n > 32 ? 16 : 8;
  const bool wide_b = p.b_is_mn_major && chunk_elements(p.kind) == 16;  // transposed bytes
  const uint32_t n_step = wide_b ? (pair ? 32 : 16) : step;
  if (m_exists && p.n >= n_step && p.n <= 256 && p.n % n_step == 0) return;
  fail_at(pc, "{}: kind::{} with cta_group {} has no shape M = {}, N = {}", kMma, name_of(p.kind),
          p.cta_group, p.m, p.n);
}

// PTX ISA, "Shared memory descriptor". `elements`: in 16 bytes.
SharedOperand operand_of(uint64_t word, bool is_mn_major, uint32_t elements, const char* which,
                         void* pc) {
  const auto refuse = [&](const char* why) {
    fail_at(pc, "tcgen05: descriptor {:#x} of {}: {}", word, which, why);
  };
  if (bits_of(word, 46, 3) != 1) refuse("bits 46 to 48 must be 0b001");
  if (bits_of(word, 14, 2) != 0 || bits_of(word, 30, 2) != 0 || bits_of(word, 53, 8) != 0) {
    refuse("bits 14, 15, 30, 31 and 53 to 60 must be 0");
  }
  if (bits_of(word, 52, 1) != 0) refuse("an absolute leading dimension (bit 52) needs sm_103a");
  const uint32_t base_offset = bits_of(word, 49, 3), layout = bits_of(word, 61, 3);
  if (layout == 0 && base_offset != 0) refuse("bits 49 to 51 must be 0 without a swizzle");
  // PTX ISA, "Valid combinations of type-size, major-ness and swizzling".
  const bool wide_atoms = layout == 1;
  if (wide_atoms != (is_mn_major && elements == 4)) {
    refuse(wide_atoms ? "a swizzle of 32-byte atoms is for transposed tf32 only"
                      : "transposed tf32 needs the 128-byte swizzle of 32-byte atoms");
  }
  switch (layout) {
    case 0: return {word, Swizzle::none, is_mn_major, elements};
    case 1:
    case 2: return {word, Swizzle::b128, is_mn_major, elements, base_offset, wide_atoms};
    case 4: return {word, Swizzle::b64, is_mn_major, elements, base_offset};
    case 6: return {word, Swizzle::b32, is_mn_major, elements, base_offset};
    default: refuse("bits 61 to 63 name no layout");
  }
  __builtin_unreachable();
}

SharedOperand operand_a(const Product& p) {
  return operand_of(p.desc_a, p.a_is_mn_major, chunk_elements(p.kind), "A", p.pc);
}
SharedOperand operand_b(const Product& p) {
  return operand_of(p.desc_b, p.b_is_mn_major, chunk_elements(p.kind), "B", p.pc);
}

uint32_t group_size(const Product& p) { return static_cast<uint32_t>(p.cta_group); }
// Rows of A, and of B as N x K, in each block's shared memory.
uint32_t rows_a(const Product& p) { return p.m / group_size(p); }
uint32_t rows_b(const Product& p) { return p.n / group_size(p); }

// ---- where results are (PTX ISA, "Data path layout organization") ----

struct Place {
  uint32_t block, lane;
};
// The row of D, or of A in tensor memory; `right`: D's columns N/2 and above, or the A that they
// are computed with.
Place place_of(const Product& p, uint32_t row, bool right) {
  const uint32_t in_block = row % rows_a(p), block = row / rows_a(p);
  if (p.cta_group == 1 && p.m == 64) {
    return {0, in_block / 16 * 32 + in_block % 16 + p.d_lane};
  }
  if (p.cta_group == 2 && p.m == 128) return {block, in_block + (right ? 64 : 0)};
  return {block, in_block};
}
bool is_halved(const Product& p) { return p.cta_group == 2 && p.m == 128; }
// Whether a row of A is in tensor memory twice.
bool has_two_copies_of_a(const Product& p) { return p.a_in_tensor_memory && is_halved(p); }
uint32_t columns_of_d(const Product& p) { return is_halved(p) ? p.n / 2 : p.n; }
// D's lanes in groups of eight.
uint32_t groups_of_d(const Product& p) {
  if (p.cta_group == 1 && p.m == 64) return 0x3333u << p.d_lane / 8;
  return 0xffff;
}
constexpr uint32_t kColumnsOfA = 8;  // in tensor memory: 32 bytes of k

// Columns that hold the scales of `rows` rows of A or of B.
uint32_t scale_columns(uint32_t rows) { return (rows + 31) / 32; }

// ---- execution ----

struct Scratch {
  float a[256][64];  // (m, k); where there are two copies, the other one begins at row M
  float b[64][256];  // (k, n)
  float d[256];
  int exponents_b[64][256];
  TensorSums sums;
};

// Element `i` from `chunk` on, of A or of B.
float value_of(const Product& p, bool of_b, const char* chunk, uint32_t i) {
  if (p.kind == MmaKind::i8) {
    const bool with_sign = of_b ? p.b_is_signed : p.a_is_signed;
    return with_sign ? static_cast<float>(static_cast<int8_t>(chunk[i]))
                     : static_cast<float>(static_cast<uint8_t>(chunk[i]));
  }
  const float value = element_value(chunk, i, of_b ? p.format_b : p.format_a);
  return (of_b ? p.negate_b : p.negate_a) ? -value : value;
}

void load_operands(const Product& p, Scratch& s) {
  const uint32_t elements = chunk_elements(p.kind);
  for (uint32_t half = 0; half < group_size(p); ++half) {
    Block& block = *p.blocks[half];
    const char* base = shared_base(block);
    operand_b(p).for_each_chunk(
        0, rows_b(p), p.depth, [&](uint32_t n, uint32_t k, uint32_t address) {
          for (uint32_t i = 0; i < elements; ++i) {
            const uint32_t row = half * rows_b(p) + (p.b_is_mn_major ? n + i : n);
            s.b[p.b_is_mn_major ? k : k + i][row] = value_of(p, true, base + address, i);
          }
        });
    if (p.a_in_tensor_memory) continue;
    operand_a(p).for_each_chunk(
        0, rows_a(p), p.depth, [&](uint32_t m, uint32_t k, uint32_t address) {
          for (uint32_t i = 0; i < elements; ++i) {
            const uint32_t row = half * rows_a(p) + (p.a_is_mn_major ? m + i : m);
            s.a[row][p.a_is_mn_major ? k : k + i] = value_of(p, false, base + address, i);
          }
        });
  }
  if (!p.a_in_tensor_memory) return;
  const bool in_bytes = elements == 16 && narrow_bits(p.format_a) < 8;
  for (uint32_t i = 0; i < (has_two_copies_of_a(p) ? 2 : 1) * p.m; ++i) {
    const Place place = place_of(p, i % p.m, i >= p.m);
    TensorMemory& memory = tensor_memory(*p.blocks[place.block]);
    char words[32];
    std::memcpy(words, &memory.word(place.lane, p.a_column), 32);
    for (uint32_t k = 0; k < p.depth; ++k) {
      if (in_bytes) {
        const float value = element_in_byte(words, k, p.format_a);
        s.a[i][k] = p.negate_a ? -value : value;
      } else {
        s.a[i][k] = value_of(p, false, words + k / elements * 16, k % elements);
      }
    }
  }
}

// The scale of row `row` of A or B, for its `block`-th group of k: 32 rows to a column.
uint8_t scale_byte(TensorMemory& memory, uint32_t column, uint32_t first_byte, uint32_t row,
                   uint32_t block) {
  const uint32_t word = memory.word(row % 32, column + row / 32);
  return static_cast<uint8_t>(word >> (8 * (first_byte + block)));
}

float half_word(uint32_t word) { return half_bits_to_float(static_cast<uint16_t>(word)); }

// D of kind::i8: one addition per instruction, which saturates or wraps around.
uint32_t integer_sum(const Product& p, uint32_t d, float sum) {
  const int64_t total =
      (p.accumulate ? int64_t{static_cast<int32_t>(d)} : 0) + static_cast<int64_t>(sum);
  if (!p.saturates) return static_cast<uint32_t>(total);
  return static_cast<uint32_t>(std::clamp<int64_t>(total, INT32_MIN, INT32_MAX));
}

void execute(const Product& p) {
  static thread_local Scratch scratch;
  Scratch& s = scratch;
  load_operands(p, s);
  const auto depth = static_cast<int>(p.depth);
  const bool half = p.result == ResultType::f16;
  const bool integers = p.result == ResultType::s32;
  const bool fast = !half && !integers && !is_scaled(p.kind);
  if (fast) {
    s.sums.set_b(tcgen05_rule(depth), p.format_a, p.format_b, s.b[0], 256, static_cast<int>(p.n),
                 depth);
  }
  std::vector<BlockScale> scales_b;
  const auto vectors = static_cast<uint32_t>(p.scale_vector);
  if (is_scaled(p.kind)) {
    for (uint32_t k = 0; k < p.depth; ++k) {
      for (uint32_t n = 0; n < p.n; ++n) {
        s.exponents_b[k][n] = tensor_exponent(p.format_b, s.b[k][n]);
      }
    }
    // Every block of a pair has the scales of all rows of B.
    for (uint32_t n = 0; n < p.n; ++n) {
      for (uint32_t v = 0; v < vectors; ++v) {
        scales_b.push_back(
            scale_of(scale_byte(tensor_memory(*p.blocks[0]), p.scale_b, p.scale_b_byte, n, v),
                     p.scale_is_ue8m0));
      }
    }
  }
  const ScaledSums scaled{.format_a = p.format_a,
                          .fp4 = is_fp4(p.kind),
                          .columns = static_cast<int>(p.n),
                          .depth = depth,
                          .per_scale = is_scaled(p.kind) ? depth / p.scale_vector : depth,
                          .b = s.b[0],
                          .exponents_b = s.exponents_b[0],
                          .stride = 256,
                          .scales_b = scales_b.data()};
  const float factor = bits_float(static_cast<uint32_t>(127 - p.scale_input_d) << 23);
  const uint32_t columns = columns_of_d(p);
  const bool two_copies = has_two_copies_of_a(p);
  for (uint32_t i = 0; i < (two_copies ? 2 : 1) * p.m; ++i) {
    const uint32_t row = i % p.m;
    const float* a = s.a[i];
    // D's row, in two parts where the shape halves it.
    std::array<uint32_t*, 2> words{};
    std::array<bool, 2> disabled{};
    for (uint32_t part = 0; part < p.n / columns; ++part) {
      const Place place = place_of(p, row, part == 1);
      words[part] = &tensor_memory(*p.blocks[place.block]).word(place.lane, p.d_column);
      disabled[part] =
          (p.disabled[place.block * 4 + place.lane / 32] >> (place.lane % 32) & 1) != 0;
      if (two_copies && part != i / p.m) disabled[part] = true;
    }
    const auto word_of = [&](uint32_t n) -> uint32_t& {
      return n < columns ? words[0][n] : words[1][n - columns];
    };
    for (uint32_t n = 0; n < p.n; ++n) {
      s.d[n] = !p.accumulate || integers ? 0.0f
               : half                    ? half_word(word_of(n)) * factor
                                         : bits_float(word_of(n)) * factor;
    }
    for (uint32_t k = 0; integers && k < p.depth; ++k) {  // exact in fp32: 32 times 16 bits
      for (uint32_t n = 0; n < p.n; ++n) s.d[n] += a[k] * s.b[k][n];
    }
    if (fast) s.sums.add(a, s.d);
    if (is_scaled(p.kind)) {
      std::array<BlockScale, 4> scales_a{};
      for (uint32_t v = 0; v < vectors; ++v) {
        TensorMemory& memory = tensor_memory(*p.blocks[row / rows_a(p)]);
        const uint32_t in_block = row % rows_a(p);
        scales_a[v] =
            scale_of(scale_byte(memory, p.scale_a, p.scale_a_byte, in_block, v), p.scale_is_ue8m0);
      }
      scaled.add(a, scales_a.data(), s.d);
    }
    for (uint32_t n = 0; n < p.n; ++n) {
      if (disabled[n < columns ? 0 : 1]) continue;
      if (integers) {
        word_of(n) = integer_sum(p, word_of(n), s.d[n]);
      } else if (half) {
        const uint32_t bits = tensor_sum(tcgen05_rule(depth), p.format_a, p.format_b, a, s.b[0] + n,
                                         256, depth, s.d[n], true);
        word_of(n) = (word_of(n) & 0xffff0000u) | bits;
      } else {
        word_of(n) = float_bits(s.d[n]);
      }
    }
  }
}

// ---- issue ----

Tcgen05State& thread_queue() {
  std::unique_ptr<Tcgen05State>& state = thread_units(*current_thread).tcgen05;
  if (state == nullptr) state = std::make_unique<Tcgen05State>();
  return *state;
}

void enqueue(Tcgen05State& state, std::function<void()> operation) {
  state.queue.push_back(std::move(operation));
  defer([&state] {
    const std::function<void()> next = std::move(state.queue.front());
    state.queue.pop_front();
    next();
  });
}

void require_shared(const SharedOperand& operand, uint32_t rows, uint32_t depth, const char* which,
                    const Block& block, void* pc) {
  const uint64_t end = operand.end_address(rows, depth);
  if (end <= kDynamicSharedAddress + block.shared_bytes) return;
  fail_at(pc, "tcgen05: {} runs past the block's {} bytes of dynamic shared memory, to offset {}",
          which, block.shared_bytes, end - kDynamicSharedAddress);
}

// Bytes of a chunk that are no padding.
uint32_t used_bytes(const Product& p, Format format) {
  return chunk_elements(p.kind) == 16 && p.kind != MmaKind::i8 ? 2 * narrow_bits(format) : 16;
}

// Ranges of shared memory that an operation reads, as few as possible.
void record_shared(const SharedOperand& operand, uint32_t rows, uint32_t depth, uint32_t used,
                   const Block& block, void* pc, Actor actor) {
  const char* base = shared_base(block);
  uint32_t begin = 0, end = 0;
  const auto flush = [&] {
    if (end > begin) async_tracer->async_bulk(base + begin, end - begin, BulkUse::read, pc, actor);
  };
  operand.for_each_chunk(0, rows, depth, [&](uint32_t, uint32_t, uint32_t address) {
    if (address == end) {
      end += used;
    } else if (address + used == begin) {
      begin = address;
    } else {
      flush();
      begin = address;
      end = address + used;
    }
  });
  flush();
}

// What the tracer learns about an mma: what it is ordered after, what it reads and writes.
void record(const Product& p, Tcgen05State& state, void* pc) {
  const Actor actor = async_tracer->async_begin();
  // mma -> mma of one thread are ordered for the same accumulator and shape, cp -> mma always.
  char& chain = state.chains[{p.d_column << 8 | p.d_lane, p.m, p.n, group_size(p)}];
  sync_tracer->acquire(&chain, actor);
  sync_tracer->acquire(&state.copies, actor);
  for (uint32_t half = 0; half < group_size(p); ++half) {
    const Block& block = *p.blocks[half];
    record_shared(operand_b(p), rows_b(p), p.depth, used_bytes(p, p.format_b), block, pc, actor);
    if (!p.a_in_tensor_memory) {
      record_shared(operand_a(p), rows_a(p), p.depth, used_bytes(p, p.format_a), block, pc, actor);
    }
    const uint32_t groups = groups_of_d(p);
    if (p.a_in_tensor_memory) {
      tensor_tracer->tensor_read({&block, p.a_column, kColumnsOfA, groups}, true, pc, actor);
    }
    if (is_scaled(p.kind)) {
      tensor_tracer->tensor_read({&block, p.scale_a, scale_columns(rows_a(p)), 0xf}, true, pc,
                                 actor);
      tensor_tracer->tensor_read({&block, p.scale_b, scale_columns(p.n), 0xf}, true, pc, actor);
    }
    const TensorRange d{&block, p.d_column, columns_of_d(p), groups};
    if (p.accumulate) tensor_tracer->tensor_read(d, true, pc, actor);
    tensor_tracer->tensor_write(d, false, pc, actor);
  }
  sync_tracer->release(&chain, actor);
  sync_tracer->release(&state.products, actor);
  sync_tracer->release(&state.all, actor);
}

// `scales`: both addresses, or null.
void issue(uint32_t d, uint64_t a, bool a_in_tensor_memory, uint64_t b, uint32_t instruction,
           const uint32_t* scales, bool accumulate, const MmaOptions& options, void* pc) {
  Product p;
  p.kind = options.kind;
  p.cta_group = options.cta_group;
  p.pc = pc;
  p.blocks = blocks_of(options.cta_group, kMma, pc);
  require_alive(p.blocks, kMma, pc);
  if (p.kind == MmaKind::i8 && device_info().cc() != 100) {
    fail_at(pc, "{}: kind::i8 needs sm_100a", kMma);
  }
  if (is_scaled(p.kind) != (scales != nullptr)) {
    fail_at(pc, "{}: kind::{} takes {}scales", kMma, name_of(p.kind),
            scales != nullptr ? "no " : "");
  }
  decode_instruction(p, instruction, pc);
  p.depth = 2 * chunk_elements(p.kind);
  require_shape(p, pc);
  const auto has_transpose = [&p](Format format) {
    return p.kind == MmaKind::i8 || (!is_fp4(p.kind) && narrow_bits(format) == 8);
  };
  if ((p.a_is_mn_major && !has_transpose(p.format_a)) ||
      (p.b_is_mn_major && !has_transpose(p.format_b))) {
    fail_at(pc, "{}: kind::{} with these types has no transposed operands", kMma, name_of(p.kind));
  }
  p.accumulate = accumulate;
  if (options.scale_input_d >= 0) {
    if (p.kind != MmaKind::f16 && p.kind != MmaKind::tf32) {
      fail_at(pc, "{}: kind::{} has no scale-input-d", kMma, name_of(p.kind));
    }
    if (options.scale_input_d > 15) fail_at(pc, "{}: scale-input-d is 0 to 15", kMma);
    p.scale_input_d = options.scale_input_d;
  }
  if (options.disabled_lanes != nullptr) {
    std::copy_n(options.disabled_lanes, 4 * options.cta_group, p.disabled.begin());
  }
  p.d_lane = d >> 16 & 127;
  p.d_column = d & 0xffff;
  const bool lane_exists = p.d_lane == 0 || (p.d_lane == 16 && p.m == 64 && p.cta_group == 1);
  if (!lane_exists) {
    fail_at(pc, "{}: D begins at lane {}: M = {} begins at lane 0{}", kMma, p.d_lane, p.m,
            p.m == 64 ? " or 16" : "");
  }
  p.a_in_tensor_memory = a_in_tensor_memory;
  p.desc_b = b;
  if (a_in_tensor_memory) {
    p.a_column = static_cast<uint32_t>(a & 0xffff);
    if (p.a_is_mn_major) fail_at(pc, "{}: A in tensor memory has no transposed form", kMma);
    if ((a >> 16 & 127) != p.d_lane) {
      fail_at(pc, "{}: A in tensor memory begins at lane {}, D at {}", kMma, a >> 16 & 127,
              p.d_lane);
    }
  } else {
    p.desc_a = a;
  }
  if (scales != nullptr) {
    p.scale_a = scales[0] & 0xffff;
    p.scale_b = scales[1] & 0xffff;
    p.scale_vector = options.scale_vector;
    const bool exists = p.kind == MmaKind::mxf8f6f4 ? p.scale_vector == 1
                        : p.kind == MmaKind::mxf4   ? p.scale_vector == 2
                                                    : p.scale_vector == 2 || p.scale_vector == 4;
    if (!exists) {
      fail_at(pc, "{}: kind::{} has no scale_vec::{}X", kMma, name_of(p.kind), p.scale_vector);
    }
    const auto last = static_cast<uint32_t>(4 - p.scale_vector);
    const auto step = static_cast<uint32_t>(p.scale_vector);
    for (const uint32_t byte : {p.scale_a_byte, p.scale_b_byte}) {
      if (byte > last || byte % step != 0) {
        fail_at(pc, "{}: scale_vec::{}X cannot begin at byte {}", kMma, p.scale_vector, byte);
      }
    }
    if (!p.scale_is_ue8m0 && p.kind != MmaKind::mxf4nvf4) {
      fail_at(pc, "{}: scales of kind::{} are UE8M0", kMma, name_of(p.kind));
    }
    if (p.scale_is_ue8m0 && p.scale_vector == 4) {
      fail_at(pc, "{}: scales of scale_vec::4X are UE4M3", kMma);
    }
  }
  for (uint32_t half = 0; half < group_size(p); ++half) {
    Block& block = *p.blocks[half];
    require_shared(operand_b(p), rows_b(p), p.depth, "B", block, pc);
    if (!a_in_tensor_memory) require_shared(operand_a(p), rows_a(p), p.depth, "A", block, pc);
    require_allocated(block, p.d_column, columns_of_d(p), kMma, pc);
    if (a_in_tensor_memory) require_allocated(block, p.a_column, kColumnsOfA, kMma, pc);
    if (scales != nullptr) {
      require_allocated(block, p.scale_a, scale_columns(rows_a(p)), kMma, pc);
      require_allocated(block, p.scale_b, scale_columns(p.n), kMma, pc);
    }
  }
  mark(timeline::Kind::tensor_mma, timeline::Edge::moment, p.d_column, columns_of_d(p));
  lane_acted(pc);
  Tcgen05State& state = thread_queue();
  if (async_tracer != nullptr) record(p, state, pc);
  enqueue(state, [p] { execute(p); });
}

// ---- commit ----

void commit(const std::vector<uint64_t*>& bars, int cta_group, void* pc) {
  constexpr const char* kWhat = "tcgen05.commit";
  blocks_of(cta_group, kWhat, pc);
  Group& group = *current_thread->block->group;
  Tcgen05State& state = thread_queue();
  lane_acted(pc);
  Actor actor = 0;
  if (async_tracer != nullptr) {
    actor = async_tracer->async_begin();
    sync_tracer->acquire(&state.all, actor);
    // Who sees a later commit of the thread knows that this one has arrived: assumed, as
    // learn-cuda's matmul_v6 relies on when its second block ends.
    sync_tracer->release(&state.all, actor);
  }
  for (uint64_t* bar : bars) {
    find_mbarrier(group, bar, kWhat, pc);
    if (mbarrier_tracer != nullptr) mbarrier_tracer->mbarrier_use(bar, actor, false, pc);
  }
  const Block& from = *current_thread->block;
  enqueue(state, [bars, actor, pc, &from, &group] {
    for (uint64_t* bar : bars) {
      Mbarrier& barrier = find_mbarrier(group, bar, kWhat, pc);
      if (sync_tracer != nullptr) mbarrier_release(barrier, actor, from, Signal::bulk_copy);
      mbarrier_complete_arrival(barrier, 1, pc);
    }
  });
}

// ---- cp ----

struct CopyShape {
  uint32_t rows, bytes;  // in shared memory
};
CopyShape shape_of(TmemCopy copy) {
  switch (copy) {
    case TmemCopy::c128x256b: return {128, 32};
    case TmemCopy::c4x256b: return {4, 32};
    case TmemCopy::c128x128b: return {128, 16};
    case TmemCopy::c64x128b_02_13:
    case TmemCopy::c64x128b_01_23: return {64, 16};
    case TmemCopy::c32x128b: break;
  }
  return {32, 16};
}

// Lanes that row `row` goes to.
std::vector<uint32_t> lanes_of(TmemCopy copy, uint32_t row) {
  switch (copy) {
    case TmemCopy::c64x128b_02_13: return {row / 32 * 32 + row % 32, row / 32 * 32 + row % 32 + 64};
    case TmemCopy::c64x128b_01_23: return {row / 32 * 64 + row % 32, row / 32 * 64 + row % 32 + 32};
    case TmemCopy::c32x128b: return {row, row + 32, row + 64, row + 96};
    default: return {row};
  }
}

uint32_t groups_of(TmemCopy copy) { return copy == TmemCopy::c4x256b ? 1 : 0xffff; }

}  // namespace

void tcgen05_mma(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, bool accumulate,
                 const MmaOptions& options) {
  issue(d, a, false, b, instruction, nullptr, accumulate, options, COOKBOOK_SIMT_PC);
}

void tcgen05_mma_tmem(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction, bool accumulate,
                      const MmaOptions& options) {
  issue(d, a, true, b, instruction, nullptr, accumulate, options, COOKBOOK_SIMT_PC);
}

void tcgen05_mma_scaled(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction, uint32_t scale_a,
                        uint32_t scale_b, bool accumulate, const MmaOptions& options) {
  const uint32_t scales[] = {scale_a, scale_b};
  issue(d, a, false, b, instruction, scales, accumulate, options, COOKBOOK_SIMT_PC);
}

void tcgen05_mma_scaled_tmem(uint32_t d, uint32_t a, uint64_t b, uint32_t instruction,
                             uint32_t scale_a, uint32_t scale_b, bool accumulate,
                             const MmaOptions& options) {
  const uint32_t scales[] = {scale_a, scale_b};
  issue(d, a, true, b, instruction, scales, accumulate, options, COOKBOOK_SIMT_PC);
}

void tcgen05_commit(uint64_t* bar, int cta_group) { commit({bar}, cta_group, COOKBOOK_SIMT_PC); }

void tcgen05_commit_multicast(uint64_t* bar, uint16_t mask, int cta_group) {
  void* const pc = COOKBOOK_SIMT_PC;
  if (mask == 0) fail_at(pc, "tcgen05.commit: the mask names no block");
  std::vector<uint64_t*> bars;
  for (uint32_t rank = 0; rank < 16; ++rank) {
    if ((mask >> rank & 1) == 0) continue;
    bars.push_back(static_cast<uint64_t*>(map_to_rank(bar, rank, "tcgen05.commit", pc)));
  }
  commit(bars, cta_group, pc);
}

void tcgen05_cp(uint32_t address, uint64_t source, TmemCopy shape, int cta_group,
                TmemExpand expand) {
  void* const pc = COOKBOOK_SIMT_PC;
  constexpr const char* kWhat = "tcgen05.cp";
  const std::array<Block*, 2> blocks = blocks_of(cta_group, kWhat, pc);
  require_alive(blocks, kWhat, pc);
  const CopyShape size = shape_of(shape);
  const uint32_t bits = expand == TmemExpand::b4x16_p64   ? 4
                        : expand == TmemExpand::b6x16_p32 ? 6
                                                          : 8;  // per element
  const SharedOperand operand = operand_of(source, false, 16, "the source", pc);
  const uint32_t column = address & 0xffff, lane = address >> 16 & 127;
  if (lane != 0) fail_at(pc, "{}: begins at lane {}: only lane 0 is modelled", kWhat, lane);
  for (int half = 0; half < cta_group; ++half) {
    require_shared(operand, size.rows, size.bytes, "the source", *blocks[half], pc);
    require_allocated(*blocks[half], column, size.bytes / 4, kWhat, pc);
  }
  lane_acted(pc);
  Tcgen05State& state = thread_queue();
  if (async_tracer != nullptr) {
    const Actor actor = async_tracer->async_begin();
    sync_tracer->acquire(&state.products, actor);  // mma -> cp, of newer PTX
    sync_tracer->acquire(&state.copies, actor);
    for (int half = 0; half < cta_group; ++half) {
      record_shared(operand, size.rows, size.bytes, 2 * bits, *blocks[half], pc, actor);
      tensor_tracer->tensor_write({blocks[half], column, size.bytes / 4, groups_of(shape)}, false,
                                  pc, actor);
    }
    sync_tracer->release(&state.copies, actor);
    sync_tracer->release(&state.all, actor);
  }
  enqueue(state, [=] {
    for (int half = 0; half < cta_group; ++half) {
      TensorMemory& memory = tensor_memory(*blocks[half]);
      operand.for_each_chunk(0, size.rows, size.bytes,
                             [&](uint32_t row, uint32_t at, uint32_t from) {
                               char chunk[16];
                               std::memcpy(chunk, shared_base(*blocks[half]) + from, 16);
                               if (bits < 8)
                                 expand_elements(shared_base(*blocks[half]) + from, bits, chunk);
                               for (const uint32_t to : lanes_of(shape, row)) {
                                 std::memcpy(&memory.word(to, column + at / 4), chunk, 16);
                               }
                             });
    }
  });
}

}  // namespace cookbook::simt
