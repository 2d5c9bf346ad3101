// SPDX-License-Identifier: MIT
// The problems of levels 7 and 8: C = A B^T of numbers of 8 or 4 bits with a scale per 32 or 16 k.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/cuda.cuh"
#include "common/device/fp8.cuh"
#include "common/harness/contract/level.hpp"

namespace cookbook::microscaling {

/// MXFP8 (OCP Microscaling Formats 1.0): e4m3, and per 32 k a power of two (UE8M0).
struct Mxfp8 {
  static constexpr const char* kName = "MXFP8";
  static constexpr int kBits = 8, kScaleK = 32;
  static constexpr DType kDtype = DType::e4m3;

  /// Element `i` of a row of bytes.
  static double element(const std::uint8_t* row, std::int64_t i) {
    fp8_e4m3 value;
    value.__x = row[i];
    return static_cast<double>(static_cast<float>(value));
  }
  static double scale(std::uint8_t bits) { return std::ldexp(1.0, bits - 127); }
  /// A scale from any number: 2^-8 to 2^7.
  static std::uint8_t draw_scale(std::uint64_t any) {
    return static_cast<std::uint8_t>(119 + any % 16);
  }
};

/// NVFP4: e2m1, two to a byte, the first in the lower half; per 16 k an e4m3 that is not negative
/// (UE4M3).
struct Nvfp4 {
  static constexpr const char* kName = "NVFP4";
  static constexpr int kBits = 4, kScaleK = 16;
  static constexpr DType kDtype = DType::i8;

  static double element(const std::uint8_t* row, std::int64_t i) {
    static constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const int bits = row[i / 2] >> i % 2 * 4 & 15;
    return bits < 8 ? kMagnitudes[bits] : -kMagnitudes[bits - 8];
  }
  static double scale(std::uint8_t bits) { return Mxfp8::element(&bits, 0); }
  /// 2^-6 to 448.
  static std::uint8_t draw_scale(std::uint64_t any) {
    return static_cast<std::uint8_t>(8 + any % 119);
  }
};

/// Rows and scales of an atom: what one tcgen05.cp brings to tensor memory.
inline constexpr int kAtomRows = 128, kAtomScales = 4, kAtomBytes = kAtomRows * kAtomScales;

/// Bytes from the beginning of the scales to an atom: `atom` of `atoms_k` of its rows.
__host__ __device__ constexpr std::int64_t atom_offset(int row_of_atoms, int atoms_k, int atom) {
  return (std::int64_t{row_of_atoms} * atoms_k + atom) * kAtomBytes;
}
// As far rows do for A, B and C; scales have no pitch.
static_assert(atom_offset(1 << 16, 1 << 16, 1) == (std::int64_t{1} << 41) + kAtomBytes,
              "does not fit in 32 bits");

/// C (m x n, bf16) from A (m x k) and B (n x k), both with k contiguous:
///
///     C[i][j] = sum over k of  A[i][k] scale_a[i][k / kScaleK] * B[j][k] scale_b[j][k / kScaleK]
///
/// The scales are in atoms of 128 rows and 4 blocks of k, 512 bytes each: that of row r and block s
/// is byte r % 32 * 16 + r / 32 * 4 + s. Atoms of the same rows follow each other. Partial atoms
/// are padded; their padding is finite. Pitches count bytes.
template <class F>
struct Problem {
  using Format = F;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  // ldc: elements

  /// size: M, N, K.
  static Problem make(const Size& size, const Variant& variant) {
    constexpr std::int64_t kLargest = (std::int64_t{1} << 31) - 1024;  // indices stay in int
    if (size.size() != 3) throw BadSize("a GEMM takes three extents: MxNxK");
    for (const std::int64_t extent : size) {
      if (extent < 0 || extent > kLargest) throw BadSize("M, N and K must lie in 0 .. 2^31 - 1024");
    }
    Problem p;
    p.m = size[0], p.n = size[1], p.k = size[2];
    if (p.k * F::kBits % 8 != 0) throw BadSize("rows of NVFP4 are whole bytes: K must be even");
    p.lda = p.row_bytes() + variant.of("a").extra_pitch;
    p.ldb = p.row_bytes() + variant.of("b").extra_pitch;
    p.ldc = p.n + variant.of("c").extra_pitch;
    return p;
  }

  std::int64_t row_bytes() const { return k * F::kBits / 8; }
  /// Atoms that the scales of one row of A or B lie in.
  std::int64_t atoms_k() const {
    constexpr std::int64_t kAtomK = F::kScaleK * kAtomScales;
    return (k + kAtomK - 1) / kAtomK;
  }
  std::int64_t scale_bytes(std::int64_t rows) const {
    return (rows + kAtomRows - 1) / kAtomRows * atoms_k() * kAtomBytes;
  }

  std::vector<TensorSpec> tensors() const {
    const auto scales = [](HostTensor& tensor, std::uint64_t seed) {
      auto* bytes = tensor.data<std::uint8_t>();
      for (std::int64_t i = 0; i < tensor.spec.cols; ++i) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = F::draw_scale(seed >> 33);
      }
    };
    const auto of = [&](const char* name, std::int64_t rows) {
      const std::int64_t bytes = scale_bytes(rows);
      return TensorSpec{name, DType::i8, 1, bytes, bytes, Role::input, scales};
    };
    return {{"a", F::kDtype, m, row_bytes(), lda, Role::input},
            {"b", F::kDtype, n, row_bytes(), ldb, Role::input},
            of("scale_a", m),
            of("scale_b", n),
            {"c", DType::bf16, m, n, ldc, Role::output}};
  }
  double bytes() const {
    return static_cast<double>((m + n) * row_bytes() + scale_bytes(m) + scale_bytes(n) + 2 * m * n);
  }
  double flops() const { return 2.0 * static_cast<double>(m * n * k); }
  static constexpr bool kExactOnIntegers = false;  // fills the scales itself

  /// The bound: per instruction, 32 or 64 k, the terms and the sum so far are aligned to the
  /// largest of them; at least 24 bits are kept (docs/simt.md). So each term may lose all of itself
  /// or one unit of the last bit kept; the sum and the result lose a unit each. Then bf16 rounds.
  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
                     double* value, double* bound) const;
};

struct Buffers {
  const std::uint8_t* a;
  const std::uint8_t* b;
  const std::uint8_t* scale_a;
  const std::uint8_t* scale_b;
  bf16* c;
  static Buffers bind(const DevicePointers& at) {
    return {at.get<std::uint8_t>("a"), at.get<std::uint8_t>("b"), at.get<std::uint8_t>("scale_a"),
            at.get<std::uint8_t>("scale_b"), at.get<bf16>("c")};
  }
};

}  // namespace cookbook::microscaling
