// SPDX-License-Identifier: MIT
// mma.sync with block scales of an RTX 50, by inline PTX, and mistakes with its scales: the host
// computes the same from the rows.
// device: rtx5090
// exit: 0
// prints: 0 of 15 wrong, 10 of 10 mistakes seen
#include <cmath>
#include <cstdint>
#include <cstdio>

enum Kind { mxfp8, mixed, mxfp4, nvfp4 };
enum Bug { none, other_lane_of_a, other_lane_of_b, other_byte, transposed };

struct Data {
  uint32_t a[16][8], b[8][8];          // rows of 32 bytes, k contiguous
  uint32_t scales_a[16], scales_b[8];  // of a row
  float d[16][8];
};

#define MULTIPLY(NAME)                                                                            \
  asm volatile("mma.sync.aligned." NAME                                                           \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {%11, "   \
               "%12}, {%13}, {%14, %15};"                                                         \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                   \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(scales_a), \
                 "n"(kByte), "n"(kPair), "r"(scales_b), "n"(kByte), "n"(kLane))

/// kPair, kLane: the lanes whose scales are read.
template <Kind kKind, int kByte, int kPair, int kLane, Bug kBug>
__global__ void multiply(Data* data) {
  const unsigned g = threadIdx.x / 4, t = threadIdx.x % 4;
  const uint32_t(&rows)[16][8] = data->a, (&columns)[8][8] = data->b;
  const uint32_t a[4] = {rows[g][t], rows[g + 8][t],           // finds: uncoalesced
                         rows[g][t + 4], rows[g + 8][t + 4]};  // finds: uncoalesced
  const uint32_t b[2] = {columns[g][t], columns[g][t + 4]};    // finds: uncoalesced
  // NaN in all lanes that must not be read.
  uint32_t scales_a = ~0u, scales_b = ~0u;
  const unsigned pair = kBug == other_lane_of_a ? 1 - kPair : kPair;
  const unsigned lane = kBug == other_lane_of_b ? kLane ^ 1 : kLane;
  const unsigned row = kBug == transposed ? 2 * g + t % 2 : g + 8 * (t % 2);
  if (t / 2 == pair) scales_a = data->scales_a[row];
  if (t == lane) scales_b = data->scales_b[g];
  if (kBug == other_byte) scales_a = scales_a << 8 | scales_a >> 24;
  float d[4] = {1, 1, 1, 1};
  if (kKind == mxfp8) {
    MULTIPLY("kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0");
  } else if (kKind == mixed) {
    MULTIPLY("m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e5m2.e2m1.f32.ue8m0");
  } else if (kKind == mxfp4) {
    MULTIPLY("kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0");
  } else {
    MULTIPLY("kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3");
  }
  for (int i = 0; i < 4; ++i) {
    data->d[g + i / 2 * 8][2 * t + i % 2] = d[i];  // finds: uncoalesced
  }
}

double number(unsigned bits, int exponent_bits, int mantissa_bits) {
  const int field = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double value = std::ldexp(fraction + (field > 0 ? 1 << mantissa_bits : 0),
                                  (field > 0 ? field : 1) - bias - mantissa_bits);
  return bits >> (exponent_bits + mantissa_bits) & 1 ? -value : value;
}

double element(Kind kind, bool is_a, const uint32_t* row, int k) {
  if (kind == mxfp4 || kind == nvfp4) return number(row[k / 8] >> k % 8 * 4 & 15, 2, 1);
  const unsigned byte = row[k / 4] >> k % 4 * 8 & 255;
  if (kind == mxfp8) return number(byte, 4, 3);
  return is_a ? number(byte, 5, 2) : number(byte >> 2 & 15, 2, 1);
}

double scale(Kind kind, uint32_t scales, int byte, int k) {
  const int at = byte + (kind == mxfp4 ? k / 32 : kind == nvfp4 ? k / 16 : 0);
  const unsigned bits = scales >> 8 * at & 255;
  return kind == nvfp4 ? number(bits, 4, 3) : std::ldexp(1, int(bits) - 127);
}

template <Kind kKind, int kByte, int kPair, int kLane, Bug kBug = none>
int wrong(Data* data) {
  multiply<kKind, kByte, kPair, kLane, kBug><<<1, 32>>>(data);
  if (cudaDeviceSynchronize()) return -1;
  int count = 0;
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      double sum = 1, size = 1;
      for (int k = 0; k < (kKind < mxfp4 ? 32 : 64); ++k) {
        const double term =
            element(kKind, true, data->a[m], k) * scale(kKind, data->scales_a[m], kByte, k) *
            element(kKind, false, data->b[n], k) * scale(kKind, data->scales_b[n], kByte, k);
        sum += term, size += std::fabs(term);
      }
      count += !(std::fabs(data->d[m][n] - sum) <= size * 1e-5);
    }
  }
  return count;
}

/// Rows of any bits that are numbers, scales from 1/4 to 4.
template <class Row>
void fill(Row& row, uint32_t& scales, Kind kind, unsigned seed) {
  const auto any = [&] { return (seed = seed * 1664525 + 1013904223) >> 8; };
  for (uint32_t& word : row) {
    word = any() << 8 ^ any();
    if (kind == mxfp8) word &= 0xbfbfbfbf;  // no NaN
    if (kind == mixed) word &= 0xbbbbbbbb;  // nor infinities
  }
  scales = 0;
  for (int i = 0; i < 4; ++i) {
    scales |= (kind == nvfp4 ? 0x28 + any() % 32 : 125 + any() % 5) << 8 * i;
  }
}

void fill(Data* data, Kind kind) {
  for (int m = 0; m < 16; ++m) fill(data->a[m], data->scales_a[m], kind, 7 * m + 1);
  for (int n = 0; n < 8; ++n) fill(data->b[n], data->scales_b[n], kind, 11 * n + 5);
}

int main() {
  Data* data;
  if (cudaMallocManaged(&data, sizeof(Data))) return 1;
  int bad = 0, seen = 0;
  fill(data, mxfp8);
  bad += (wrong<mxfp8, 0, 0, 0>(data) != 0) + (wrong<mxfp8, 1, 1, 1>(data) != 0);
  bad += (wrong<mxfp8, 2, 0, 2>(data) != 0) + (wrong<mxfp8, 3, 1, 3>(data) != 0);
  seen += wrong<mxfp8, 2, 0, 2, other_lane_of_a>(data) > 0;
  seen += wrong<mxfp8, 2, 0, 2, other_lane_of_b>(data) > 0;
  seen += wrong<mxfp8, 2, 0, 2, other_byte>(data) > 0;
  seen += wrong<mxfp8, 2, 0, 2, transposed>(data) > 0;
  fill(data, mixed);
  bad += (wrong<mixed, 0, 0, 0>(data) != 0) + (wrong<mixed, 3, 1, 3>(data) != 0);
  fill(data, mxfp4);
  bad += (wrong<mxfp4, 0, 0, 1>(data) != 0) + (wrong<mxfp4, 2, 1, 2>(data) != 0);
  bad += (wrong<mxfp4, 0, 1, 3>(data) != 0) + (wrong<mxfp4, 2, 0, 0>(data) != 0);
  seen += wrong<mxfp4, 2, 1, 2, other_byte>(data) > 0;
  seen += wrong<mxfp4, 2, 1, 2, transposed>(data) > 0;
  fill(data, nvfp4);
  bad += (wrong<nvfp4, 0, 0, 0>(data) != 0) + (wrong<nvfp4, 0, 0, 1>(data) != 0);
  bad += (wrong<nvfp4, 0, 1, 2>(data) != 0) + (wrong<nvfp4, 0, 1, 3>(data) != 0);
  bad += wrong<nvfp4, 0, 1, 0>(data) != 0;
  seen += wrong<nvfp4, 0, 0, 1, other_lane_of_a>(data) > 0;
  seen += wrong<nvfp4, 0, 0, 1, other_lane_of_b>(data) > 0;
  seen += wrong<nvfp4, 0, 0, 1, other_byte>(data) > 0;
  seen += wrong<nvfp4, 0, 0, 1, transposed>(data) > 0;
  printf("%d of 15 wrong, %d of 10 mistakes seen\n", bad, seen);
  return cudaFree(data) || bad != 0;
}
