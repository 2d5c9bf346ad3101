// SPDX-License-Identifier: MIT
//
// The device headers on the SIMT backend: fragment layouts and swizzles against plain references,
// TMA and wgmma against the CPU, and mistakes that must be found, under all three schedules.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "capstones/histogram/lane_copies.cuh"
#include "capstones/scan/tile_scan.cuh"
#include "common/backend/simt/units/numbers.hpp"
#include "common/device/bulk_add.cuh"
#include "common/device/cluster.cuh"
#include "common/device/math.cuh"
#include "common/device/mma.cuh"
#include "common/device/vector.cuh"
#include "common/device/warp.cuh"
#include "common/device/wmma.cuh"
#include "tests/device_units.hpp"
#include "tests/text.hpp"

namespace cookbook {
namespace {

using simt::AsyncSchedule;

// Element (m, n) of A B, given how to read A and B.
template <class A, class B>
void expect_product(const DeviceMemory& d, int m, int n, int k, const A& a, const B& b) {
  const auto got = download<float>(d);
  int wrong = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float want = 0.0f;
      for (int l = 0; l < k; ++l) want += a(i, l) * b(l, j);
      const float value = got[static_cast<size_t>(i * n + j)];
      if (value != want && wrong++ < 3) {
        ADD_FAILURE() << "(" << i << ", " << j << "): got " << value << ", expected " << want;
      }
    }
  }
  EXPECT_EQ(wrong, 0);
}

// Element i of `memory` is `expected(i)`.
template <class Of>
void expect_floats(const DeviceMemory& memory, const Of& expected) {
  const auto got = download<float>(memory);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], expected(static_cast<int>(i))) << "element " << i;
  }
}

// ---- mma.sync and ldmatrix ---------------------------------------------------------------------

// Fragments by the layout tables of the PTX ISA, element by element.
template <class T>
__global__ void mma_by_table(const T* a, const T* b, float* d) {
  constexpr bool kTf32 = std::is_same_v<T, float>;
  constexpr int kPerRegister = kTf32 ? 1 : 2, kDepth = 8 * kPerRegister;
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  const auto pack = [](const T* from, int stride) {  // the elements of one register
    if constexpr (kTf32) {
      return to_tf32(*from);
    } else {
      uint16_t bits[2];
      for (int i = 0; i < 2; ++i) __builtin_memcpy(&bits[i], from + i * stride, 2);
      return static_cast<uint32_t>(bits[0]) | static_cast<uint32_t>(bits[1]) << 16;
    }
  };
  uint32_t fa[4], fb[2];
  for (int r = 0; r < 4; ++r) {
    const int k = kPerRegister * (t + 4 * (r / 2));
    fa[r] = pack(a + (g + 8 * (r % 2)) * kDepth + k, 1);
  }
  for (int r = 0; r < 2; ++r) fb[r] = pack(b + kPerRegister * (t + 4 * r) * 8 + g, 8);
  float fd[4] = {};
  if constexpr (kTf32) {
    mma_m16n8k8_tf32(fd, fa, fb);
  } else {
    mma_m16n8k16<T>(fd, fa, fb);
  }
  for (int i = 0; i < 4; ++i) d[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = fd[i];
}

template <class T>
void check_mma_by_table() {
  constexpr int kDepth = std::is_same_v<T, float> ? 8 : 16;
  const Matrix<T> a(16, kDepth, "a", 1), b(kDepth, 8, "b", 2);
  DeviceMemory d(16 * 8 * 4, "d");
  run_kernel(mma_by_table<T>, {1, 32}, a, b, d);
  expect_product(d, 16, 8, kDepth, a, b);
}

TEST(Mma, Bf16Fragments) { check_mma_by_table<bf16>(); }
TEST(Mma, HalfFragments) { check_mma_by_table<half>(); }
TEST(Mma, Tf32Fragments) { check_mma_by_table<float>(); }

// Row-major A and B staged in shared memory; B is transposed on its way into registers.
__global__ void mma_with_ldmatrix(const bf16* a, const bf16* b, float* d, bf16* copy,
                                  bf16* transpose) {
  bf16* a_tile = dynamic_shared<bf16>();  // (16, 16)
  bf16* b_tile = a_tile + 256;            // (16, 8)
  const int lane = threadIdx.x;
  for (int i = lane; i < 32; i += 32) {
    store_vector(a_tile + 8 * i, load_vector<Pack<bf16, 8>>(a + 8 * i));
  }
  if (lane < 16) store_vector(b_tile + 8 * lane, load_vector<Pack<bf16, 8>>(b + 8 * lane));
  __syncwarp();
  uint32_t fa[4], fb[2];
  ldmatrix_x4(fa, a_tile + (lane % 16) * 16 + 8 * (lane / 16));
  ldmatrix_x2_trans(fb, b_tile + (lane % 16) * 8);
  float fd[4] = {};
  mma_m16n8k16<bf16>(fd, fa, fb);
  const int g = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; ++i) d[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = fd[i];
  __syncwarp();
  bf16* back = a_tile + 512;
  stmatrix_x4(back + (lane % 16) * 16 + 8 * (lane / 16), fa);
  __syncwarp();
  for (int i = lane; i < 256; i += 32) copy[i] = back[i];
  __syncwarp();
  stmatrix_x4_trans(back + (lane / 16 * 8 + lane % 8) * 16 + 8 * (lane / 8 % 2), fa);
  __syncwarp();
  for (int i = lane; i < 256; i += 32) transpose[i] = back[i];
}

TEST(Mma, LdmatrixAndStmatrix) {
  const Matrix<bf16> a(16, 16, "a", 3), b(16, 8, "b", 4);
  DeviceMemory d(16 * 8 * 4, "d"), copy(256 * 2, "copy"), transpose(256 * 2, "transpose");
  run_kernel(mma_with_ldmatrix, {1, 32, 2048}, a, b, d, copy, transpose);
  expect_product(d, 16, 8, 16, a, b);
  const auto want = download<uint16_t>(a.memory), got = download<uint16_t>(transpose);
  EXPECT_EQ(download<uint16_t>(copy), want);
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(got[i], want[i % 16 * 16 + i / 16]);
}

TEST(Mma, ToTf32RoundsToNearestAwayFromZero) {
  EXPECT_EQ(to_tf32(1.0f), 0x3f800000u);
  EXPECT_EQ(to_tf32(1.0f + 0x1p-11f), 0x3f802000u);  // half an ulp, away from zero
  EXPECT_EQ(to_tf32(1.0f + 0x1p-12f), 0x3f800000u);
  EXPECT_EQ(to_tf32(-1.0f - 0x1p-11f), 0xbf802000u);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_tf32(std::numeric_limits<float>::max()), 0x7f800000u);  // rounds to infinity
  EXPECT_EQ(to_tf32(infinity), 0x7f800000u);
  EXPECT_EQ(to_tf32(-infinity), 0xff800000u);
  EXPECT_EQ(to_tf32(std::nanf("")), 0x7fffffffu);
}

// Pure functions: here they are functions of the host, too.
TEST(Math, TheCubicIsAsCloseAsItSays) {
  double worst = 0;
  for (int i = 0; i <= 125 * 64; ++i) {  // from 2^-125 on no result is denormal
    const float x = -static_cast<float>(i) / 64;
    worst = std::max(worst, std::fabs(exp2_polynomial(x) / std::exp2(static_cast<double>(x)) - 1));
  }
  EXPECT_LT(worst, 7.505e-5);  // 2^-13.7
  EXPECT_GT(worst, 0x1p-14);
  // 0.9999280736, with no bit before the point in a denormal result: twice that, less 1.
  EXPECT_NEAR(exp2_polynomial(-126.0f) * 0x1p126, 0.9998561, 1e-7);
  EXPECT_LT(exp2_polynomial(-126.0f + 13 * 0x1p-17f), 0x1p-126f);
  EXPECT_GT(exp2_polynomial(-126.0f + 14 * 0x1p-17f), 0x1p-126f);
  for (const float x : {-126.25f, -127.0f, -1e9f, kMinusInfinity}) {
    EXPECT_EQ(exp2_polynomial(x), exp2_polynomial(-126.0f)) << x;
  }
  EXPECT_NEAR(kLn2 * kLog2E, 1, 1e-7);
  EXPECT_NEAR(kLn2, std::log(2.0), 1e-7);
}

TEST(Math, Ex2FlushesDenormalResults) {
  EXPECT_EQ(ex2_approx_ftz(3.0f), 8.0f);
  EXPECT_EQ(ex2_approx_ftz(-126.0f), 0x1p-126f);
  EXPECT_EQ(ex2_approx_ftz(-126.5f), 0.0f);
  EXPECT_EQ(ex2_approx_ftz(kMinusInfinity), 0.0f);
  EXPECT_TRUE(std::isnan(ex2_approx_ftz(std::nanf(""))));
}

TEST(Math, TheLargestOfThreeAndPairs) {
  for (int i = 0; i < 27; ++i) {
    const int a = i % 3 - 1, b = i / 3 % 3 - 1, c = i / 9 - 1;
    EXPECT_EQ(max3(a, b, c), std::max({a, b, c}));
  }
  EXPECT_EQ(pack_pair<bf16>(1.0f, -2.0f), 0xc0003f80u);
  EXPECT_EQ(pack_pair<half>(1.0f, -2.0f), 0xc0003c00u);
  // Half of the last bit: to even.
  EXPECT_EQ(pack_pair<bf16>(1 + 0x1p-8f, 1 + 3 * 0x1p-8f), 0x3f823f80u);
  EXPECT_EQ(to_float(from_float<bf16>(1.5f)), 1.5f);
  EXPECT_EQ(to_float(from_float<half>(65504.0f)), 65504.0f);
}

TEST(Numbers, E4m3) {
  EXPECT_EQ(simt::e4m3_bits_to_float(0x7e), 448.0f);
  EXPECT_EQ(simt::e4m3_bits_to_float(0x01), 0x1p-9f);
  EXPECT_TRUE(std::isnan(simt::e4m3_bits_to_float(0xff)));
}

// ---- wmma ---------------------------------------------------------------------------------------

template <int kM, int kN, int kK, class T, class LayoutA, class LayoutB>
__global__ void wmma_product(const T* a, const T* b, float* d) {
  using namespace nvcuda::wmma;
  using Input = std::conditional_t<std::is_same_v<T, float>, precision::tf32, T>;
  fragment<matrix_a, kM, kN, kK, Input, LayoutA> fa;
  fragment<matrix_b, kM, kN, kK, Input, LayoutB> fb;
  fragment<accumulator, kM, kN, kK, float> fd;
  fill_fragment(fd, 0.0f);
  load_matrix_sync(fa, a, std::is_same_v<LayoutA, row_major> ? kK : kM);
  load_matrix_sync(fb, b, std::is_same_v<LayoutB, row_major> ? kN : kK);
  mma_sync(fd, fa, fb, fd);
  for (int i = 0; i < fd.num_elements; ++i) fd.x[i] *= 2.0f;
  store_matrix_sync(d, fd, kN, mem_row_major);
}

template <int kM, int kN, int kK, class T, class LayoutA, class LayoutB>
void check_wmma() {
  constexpr bool kRowsA = std::is_same_v<LayoutA, nvcuda::wmma::row_major>;
  constexpr bool kRowsB = std::is_same_v<LayoutB, nvcuda::wmma::row_major>;
  const Matrix<T> a(kRowsA ? kM : kK, kRowsA ? kK : kM, "a", 5);
  const Matrix<T> b(kRowsB ? kK : kN, kRowsB ? kN : kK, "b", 6);
  DeviceMemory d(kM * kN * 4, "d");
  run_kernel(wmma_product<kM, kN, kK, T, LayoutA, LayoutB>, {1, 32}, a, b, d);
  expect_product(
      d, kM, kN, kK, [&](int m, int k) { return 2.0f * (kRowsA ? a(m, k) : a(k, m)); },
      [&](int k, int n) { return kRowsB ? b(k, n) : b(n, k); });
}

TEST(Wmma, ShapesTypesAndLayouts) {
  using nvcuda::wmma::col_major;
  using nvcuda::wmma::row_major;
  check_wmma<16, 16, 16, half, row_major, row_major>();
  check_wmma<16, 16, 16, half, row_major, col_major>();
  check_wmma<16, 16, 16, bf16, col_major, row_major>();
  check_wmma<32, 8, 16, half, row_major, col_major>();
  check_wmma<32, 8, 16, bf16, col_major, row_major>();
  check_wmma<8, 32, 16, half, row_major, row_major>();
  check_wmma<8, 32, 16, bf16, col_major, col_major>();
  check_wmma<16, 16, 8, float, row_major, col_major>();
  check_wmma<16, 16, 8, float, col_major, row_major>();
}

// ---- cp.async

TEST(CpAsync, CopiesAndFillsWithZeros) {
  const Matrix<float> in(1, 126, "in", 1);
  DeviceMemory out(128 * 4, "out");
  for_all_schedules([&] {
    run_kernel(copy_with_cp_async<true>, {1, 32, 512}, in, out, 126);
    expect_floats(out, [&](int i) { return (i + 4) % 128 < 126 ? in(0, (i + 4) % 128) : 0.0f; });
  });
}

TEST(CpAsync, MissingWaitReadsOldData) {
  const Matrix<float> in(1, 128, "in", 1);
  DeviceMemory out(128 * 4, "out");
  run_kernel(copy_with_cp_async<false>, {1, 32, 512}, in, out, 128);
  EXPECT_TRUE(
      std::isnan(download<float>(out)[0]));  // what shared memory is filled with before the kernel
}

// Copies a float per thread to shared memory. An mbarrier says that all of them are there.
__device__ float* copied_onto_barrier(const float* in) {
  auto* bar = dynamic_shared<uint64_t>();
  float* stage = dynamic_shared<float>() + 32;
  if (threadIdx.x == 0) mbarrier_init(bar, blockDim.x);
  __syncthreads();
  cp_async<4>(stage + threadIdx.x, in + threadIdx.x);
  cp_async_mbarrier_arrive_noinc(bar);
  mbarrier_wait(bar, 0);
  return stage;
}

__global__ void cp_async_onto_barrier(const float* in, float* out) {
  const float* stage = copied_onto_barrier(in);
  out[threadIdx.x] = stage[threadIdx.x ^ 33];
}

TEST(CpAsync, ArrivesOnBarrier) {
  const Matrix<float> in(1, 64, "in", 1);
  DeviceMemory out(64 * 4, "out");
  for_all_schedules([&] {
    run_kernel(cp_async_onto_barrier, {1, 64, 512}, in, out);
    expect_floats(out, [&](int i) { return in(0, i ^ 33); });
  });
}

// What the barrier has said to be there may be changed before the thread waits for its own copies.
__global__ void cp_async_changed_before_the_wait(const float* in, float* out) {
  float* stage = copied_onto_barrier(in);
  stage[threadIdx.x] += 1;
  cp_async_commit();
  cp_async_wait<0>();
  out[threadIdx.x] = stage[threadIdx.x];
}

TEST(CpAsync, LandsOnce) {
  const Matrix<float> in(1, 64, "in", 1);
  DeviceMemory out(64 * 4, "out");
  for_all_schedules([&] {
    run_kernel(cp_async_changed_before_the_wait, {1, 64, 512}, in, out);
    expect_floats(out, [&](int i) { return in(0, i) + 1; });
  });
}

__global__ void cp_async_at(const float* in, int from, int to, int valid_bytes) {
  cp_async_zfill<16>(dynamic_shared<float>() + to, in + from, valid_bytes);
  cp_async_commit();
  cp_async_wait<0>();
}

TEST(CpAsync, RefusesMisalignedAddressesAndWrongSizes) {
  const Matrix<float> in(1, 64, "in", 1);
  const auto error = [&](int from, int to, int valid_bytes) {
    return launch_error(cp_async_at, {1, 1, 512}, in, from, to, valid_bytes);
  };
  EXPECT_EQ(error(4, 8, 16), "");
  EXPECT_EQ(error(4, 8, 0), "");
  EXPECT_CONTAINS(error(4, 1, 16), "cp_async: the destination is not aligned to 16 bytes");
  EXPECT_CONTAINS(error(2, 8, 16), "cp_async: the source is not aligned to 16 bytes");
  EXPECT_CONTAINS(error(4, 8, -1), "cp_async_zfill: 0 to 16 valid bytes, got -1");
  EXPECT_CONTAINS(error(4, 8, 17), "cp_async_zfill: 0 to 16 valid bytes, got 17");
}

// ---- tensor maps

TEST(TensorMaps, RefusedSpecsNameTheRule) {
  alignas(16) static char memory[64];
  TensorMapSpec good;
  good.base = memory;
  good.extents = {64, 64};
  good.strides_bytes = {128};
  good.box = {64, 64};
  good.swizzle = Swizzle::b128;
  EXPECT_NO_THROW(make_tensor_map(good));
  const auto refused = [&](const std::function<void(TensorMapSpec&)>& spoil) {
    TensorMapSpec spec = good;
    spoil(spec);
    return error_of<std::invalid_argument>([&] { make_tensor_map(spec); });
  };
  EXPECT_CONTAINS(refused([](auto& s) { s.base = memory + 8; }), "base address");
  EXPECT_CONTAINS(refused([](auto& s) { s.strides_bytes = {130}; }), "multiple of 16 bytes");
  EXPECT_CONTAINS(refused([](auto& s) { s.box = {64, 257}; }), "1 to 256");
  EXPECT_CONTAINS(refused([](auto& s) { s.box = {72, 64}; }), "swizzle's span");
  EXPECT_CONTAINS(refused([](auto& s) { s.box = {4, 64}; }), "innermost box");
  EXPECT_CONTAINS(refused([](auto& s) { s.extents = {0, 64}; }), "extent of dimension 0");
  EXPECT_CONTAINS(refused([](auto& s) { s.strides_bytes = {}; }), "one stride");
}

// ---- TMA

// Initialises a barrier for one arrival, which comes with the expectation of these bytes.
__device__ void expect_on(uint64_t* bar, int bytes) {
  mbarrier_init(bar, 1);
  fence_mbarrier_init();
  mbarrier_arrive_expect_tx(bar, static_cast<uint32_t>(bytes));
}

// One box in, the same box out elsewhere, by TMA alone.
template <int kRank>
__global__ void tma_copy(const __grid_constant__ TensorMap from,
                         const __grid_constant__ TensorMap to, int x, int y, int bytes) {
  char* tile = dynamic_shared<char>();
  auto* bar = reinterpret_cast<uint64_t*>(tile + 16384);
  if (threadIdx.x == 0) {
    expect_on(bar, bytes);
    if (kRank == 2) tma_load_2d(tile, &from, bar, x, y);
    if (kRank == 3) tma_load_3d(tile, &from, bar, x, y, 1);
    mbarrier_wait(bar, 0);
    if (kRank == 2) tma_store_2d(&to, tile, 0, 0);
    if (kRank == 3) tma_store_3d(&to, tile, 0, 0, 0);
    tma_store_commit();
    tma_store_wait<0>();
  }
}

// Four floats of a tensor of 8 x 3 x 4 x 5 x 6 or of its first dimensions. Every coordinate
// differs.
template <int kRank>
__global__ void tma_load_at(const __grid_constant__ TensorMap map, float* out) {
  float* tile = dynamic_shared<float>();
  auto* bar = reinterpret_cast<uint64_t*>(tile + 32);
  expect_on(bar, 16);
  if (kRank == 1) tma_load_1d(tile, &map, bar, 4);
  if (kRank == 2) tma_load_2d(tile, &map, bar, 4, 2);
  if (kRank == 3) tma_load_3d(tile, &map, bar, 4, 2, 1);
  if (kRank == 4) tma_load_4d(tile, &map, bar, 4, 2, 1, 3);
  if (kRank == 5) tma_load_5d(tile, &map, bar, 4, 2, 1, 3, 5);
  mbarrier_wait(bar, 0);
  for (int i = 0; i < 4; ++i) out[i] = tile[i];
}

template <int kRank>
void expect_load_at(int row) {
  const Matrix<float> in(3 * 4 * 5 * 6, 8, "in", 7);
  DeviceMemory out(16, "out");
  const std::vector<uint64_t> extents = {8, 3, 4, 5, 6}, strides = {32, 96, 384, 1920};
  TensorMapSpec spec;
  spec.dtype = tensor_type<float>();
  spec.base = in;
  spec.extents.assign(extents.begin(), extents.begin() + kRank);
  spec.strides_bytes.assign(strides.begin(), strides.begin() + kRank - 1);
  spec.box.assign(kRank, 1);
  spec.box[0] = 4;
  run_kernel(tma_load_at<kRank>, {1, 1, 256}, make_tensor_map(spec), out);
  SCOPED_TRACE("rank " + std::to_string(kRank));
  expect_floats(out, [&](int i) { return in(row, 4 + i); });
}

TEST(Tma, EachCoordinateIsOfItsOwnDimension) {
  expect_load_at<1>(0);
  expect_load_at<2>(2);
  expect_load_at<3>(2 + 3 * 1);
  expect_load_at<4>(2 + 3 * (1 + 4 * 3));
  expect_load_at<5>(2 + 3 * (1 + 4 * (3 + 5 * 5)));
}

// A box of 16 floats to static shared memory, whose address no block of dynamic memory holds.
__global__ void tma_to_static(const __grid_constant__ TensorMap from, float* out) {
  alignas(128) __shared__ float tile[16];
  __shared__ uint64_t bar;
  tma_prefetch_descriptor(&from);
  expect_on(&bar, 64);
  tma_load_2d(tile, &from, &bar, 0, 0);
  mbarrier_wait(&bar, 0);
  for (int i = 0; i < 16; ++i) out[i] = tile[i];
}

TEST(Tma, LoadsToStaticSharedMemory) {
  const Matrix<float> in(4, 4, "in", 4);
  DeviceMemory out(64, "out");
  run_kernel(tma_to_static, {1, 1}, map_2d<float>(in, 4, 4, 4, 4, Swizzle::none), out);
  expect_floats(out, [&](int i) { return in(i / 4, i % 4); });
}

__global__ void prefetch_descriptor(const __grid_constant__ TensorMap map) {
  tma_prefetch_descriptor(&map);
}

TEST(Tma, APrefetchOfNoDescriptorIsNamed) {
  EXPECT_CONTAINS(launch_error(prefetch_descriptor, {1, 1}, TensorMap{}),
                  "tma_prefetch_descriptor: the tensor map was not made by make_tensor_map");
}

// The 64 bits that `createpolicy.fractional.L2::evict_*` of a fraction of 1 returns on a GPU.
TEST(Tma, CachePoliciesAreTheHardwares) {
  EXPECT_EQ(static_cast<std::uint64_t>(CachePolicy::evict_normal), 0x1000000000000000u);
  EXPECT_EQ(static_cast<std::uint64_t>(CachePolicy::evict_first), 0x12f0000000000000u);
  EXPECT_EQ(static_cast<std::uint64_t>(CachePolicy::evict_last), 0x14f0000000000000u);
}

TEST(Tma, EverySwizzleRoundTripsAndFillsWithZeros) {
  for (const Swizzle swizzle : {Swizzle::none, Swizzle::b32, Swizzle::b64, Swizzle::b128}) {
    SCOPED_TRACE(static_cast<int>(swizzle));
    const int columns = static_cast<int>(swizzle_span_bytes(swizzle)) / 4;
    const Matrix<float> in(40, 24, "in", 8);
    DeviceMemory out(static_cast<size_t>(16 * columns * 4), "out");
    const TensorMap from = map_2d<float>(in, 40, 24, 16, columns, swizzle);
    const TensorMap to = map_2d<float>(out.data(), 16, columns, 16, columns, swizzle);
    for_all_schedules([&] {
      for (const int x : {-4, 0, 4, 20}) {
        for (const int y : {-5, 0, 30}) {
          run_kernel(tma_copy<2>, {1, 32, 16384 + 64}, from, to, x, y, 16 * columns * 4);
          SCOPED_TRACE(std::to_string(x) + ", " + std::to_string(y));
          expect_floats(out, [&](int i) {
            const int row = y + i / columns, column = x + i % columns;
            const bool inside = row >= 0 && row < 40 && column >= 0 && column < 24;
            return inside ? in(row, column) : 0.0f;
          });
        }
      }
    });
  }
}

TEST(Tma, StoresLeaveOutWhatIsOutside) {
  const Matrix<float> in(16, 8, "in", 8);
  DeviceMemory out(10 * 4 * 4, "out");
  out.fill(0);
  const TensorMap from = map_2d<float>(in, 16, 8, 16, 8, Swizzle::b32);
  const TensorMap to = map_2d<float>(out.data(), 10, 4, 16, 8, Swizzle::b32);
  run_kernel(tma_copy<2>, {1, 32, 16384 + 64}, from, to, 0, 0, 16 * 8 * 4);
  expect_floats(out, [&](int i) { return in(i / 4, i % 4); });
  EXPECT_TRUE(out.guards_intact());
}

TEST(Tma, ThreeDimensions) {
  const Matrix<float> in(3 * 8, 16, "in", 9);
  DeviceMemory out(2 * 4 * 8 * 4, "out");
  TensorMapSpec spec;
  spec.dtype = TensorType::f32;
  spec.base = in;
  spec.extents = {16, 8, 3};
  spec.strides_bytes = {64, 512};
  spec.box = {8, 4, 2};
  const TensorMap from = make_tensor_map(spec);
  spec.base = out.data();
  spec.extents = {8, 4, 2};
  spec.strides_bytes = {32, 128};
  const TensorMap to = make_tensor_map(spec);
  run_kernel(tma_copy<3>, {1, 32, 16384 + 64}, from, to, 4, 6, 8 * 4 * 2 * 4);
  expect_floats(out, [&](int i) {
    const int x = i % 8, y = i / 8 % 4, z = i / 32;
    return 6 + y < 8 ? in((1 + z) * 8 + 6 + y, 4 + x) : 0.0f;
  });
}

// The hardware's formula, from the book's helper, against where TMA put the elements.
template <Swizzle kSwizzle>
__global__ void read_swizzled_tile(const __grid_constant__ TensorMap map, bf16* out) {
  constexpr int kColumns = static_cast<int>(swizzle_span_bytes(kSwizzle)) / 2;
  char* tile = dynamic_shared<char>();
  auto* bar = reinterpret_cast<uint64_t*>(tile + 8192);
  if (threadIdx.x == 0) {
    expect_on(bar, 16 * kColumns * 2);
    tma_load_2d(tile, &map, bar, 0, 0);
  }
  __syncthreads();
  mbarrier_wait(bar, 0);
  const int lane = threadIdx.x;
  constexpr int kChunks = kColumns == 8 ? 1 : 2;  // of eight columns, per ldmatrix
  for (int k = 0; k < kColumns / 8; k += kChunks) {
    uint32_t r[2 * kChunks];
    const int row = lane % 16, chunk = k + lane / 16 % kChunks;
    const char* from = tile + swizzle_address<kSwizzle>(row * kColumns * 2 + chunk * 16);
    if constexpr (kChunks == 1) {
      ldmatrix_x2(r, from);
    } else {
      ldmatrix_x4(r, from);
    }
    for (int i = 0; i < 4 * kChunks; ++i) {
      bf16 pair[2];
      __builtin_memcpy(static_cast<void*>(pair), &r[i / 2], 4);
      out[(lane / 4 + 8 * (i / 2 % 2)) * kColumns + (k + i / 4) * 8 + 2 * (lane % 4) + i % 2] =
          pair[i % 2];
    }
  }
}

template <Swizzle kSwizzle>
void check_tma_to_ldmatrix() {
  constexpr int kColumns = static_cast<int>(swizzle_span_bytes(kSwizzle)) / 2;
  const Matrix<bf16> in(16, kColumns, "in", 3);
  DeviceMemory out(16 * kColumns * 2, "out");
  const TensorMap map = map_2d<bf16>(in, 16, kColumns, 16, kColumns, kSwizzle);
  run_kernel(read_swizzled_tile<kSwizzle>, {1, 32, 8192 + 64}, map, out);
  EXPECT_EQ(download<uint16_t>(out), download<uint16_t>(in.memory));
}

TEST(Tma, EverySwizzleIsReadByLdmatrix) {
  check_tma_to_ldmatrix<Swizzle::none>();
  check_tma_to_ldmatrix<Swizzle::b32>();
  check_tma_to_ldmatrix<Swizzle::b64>();
  check_tma_to_ldmatrix<Swizzle::b128>();
}

__global__ void add_tiles(const __grid_constant__ TensorMap map) {
  float* tile = dynamic_shared<float>();
  for (int i = threadIdx.x; i < 256; i += 32) tile[i] = static_cast<float>(i % 5 + 1);
  fence_proxy_async();
  __syncwarp();
  if (threadIdx.x == 0) {
    tma_store_add_2d(&map, tile, 0, 0);
    tma_store_commit();
    tma_store_wait_read<0>();
  }
}

TEST(Tma, AddsFromSeveralBlocks) {
  DeviceMemory sum(256 * 4, "sum");
  const TensorMap map = map_2d<float>(sum.data(), 16, 16, 16, 16, Swizzle::none);
  for_all_schedules([&] {
    sum.fill(0);
    run_kernel(add_tiles, {6, 32, 1024}, map);
    expect_floats(sum, [](int i) { return 6.0f * static_cast<float>(i % 5 + 1); });
  });
}

/// The second addition is of other numbers in the same shared memory, once the first has read it.
__global__ void add_in_bulk(float* sums) {
  float* stage = dynamic_shared<float>();
  for (int round = 0; round < 2; ++round) {
    for (int i = threadIdx.x; i < 256; i += 32) stage[i] = static_cast<float>(i % 5 + round);
    fence_proxy_async();
    __syncwarp();
    if (threadIdx.x == 0) {
      bulk_store_add(sums, stage, 256);
      tma_store_commit();
      tma_store_wait_read<0>();
    }
    __syncwarp();
  }
}

TEST(Tma, BulkAdditionsFromSeveralBlocks) {
  DeviceMemory sums(256 * 4, "sums");
  for_all_schedules([&] {
    sums.fill(0);
    run_kernel(add_in_bulk, {6, 32, 1024}, sums);
    expect_floats(sums, [](int i) { return 6.0f * static_cast<float>(2 * (i % 5) + 1); });
  });
}

__global__ void bulk_copy(const float* in, float* out, int bytes) {
  float* stage = dynamic_shared<float>();
  auto* bar = reinterpret_cast<uint64_t*>(stage + 1024);
  if (threadIdx.x != 0) return;
  expect_on(bar, bytes);
  bulk_load(stage, in, static_cast<uint32_t>(bytes), bar);
  while (!mbarrier_try_wait(bar, 0)) {
  }
  bulk_store(out, stage, static_cast<uint32_t>(bytes));
  tma_store_commit();
}

TEST(Tma, BulkCopiesEvenWithoutAFinalWait) {
  const Matrix<float> in(1, 1024, "in", 1);
  DeviceMemory out(4096, "out");
  for_all_schedules([&] {
    out.fill(0);
    run_kernel(bulk_copy, {1, 32, 4096 + 64}, in, out, 4096);
    EXPECT_EQ(download<float>(out), in.values);
  });
}

TEST(Tma, StoreReadsAsLateAsItMay) {
  DeviceMemory out(16, "out");
  for_all_schedules([&] {
    run_kernel(reuse_store_buffer<true>, {1, 32, 64}, out);
    EXPECT_EQ(download<float>(out)[0], 1.0f);
  });
  run_kernel(reuse_store_buffer<false>, {1, 32, 64}, out);
  EXPECT_EQ(download<float>(out)[0], 2.0f);
}

// Each of two blocks loads half of a tile for both.
__global__ void multicast(const __grid_constant__ TensorMap map, float* out) {
  float* tile = dynamic_shared<float>();  // (16, 8)
  auto* bar = reinterpret_cast<uint64_t*>(tile + 128);
  const uint32_t rank = cluster_block_rank();
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
  }
  cluster_sync();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(bar, 512);
    tma_load_2d_multicast(tile + 64 * rank, &map, bar, 0, 8 * rank, 0b11);
  }
  mbarrier_wait(bar, 0);
  for (int i = threadIdx.x; i < 128; i += 32) out[128 * blockIdx.x + i] = tile[i];
  cluster_sync();
}

TEST(Cluster, MulticastReachesBothBlocks) {
  const Matrix<float> in(16, 8, "in", 2);
  DeviceMemory out(4 * 128 * 4, "out");
  const TensorMap map = map_2d<float>(in, 16, 8, 8, 8, Swizzle::none);
  for_all_schedules([&] {
    out.fill(0xff);
    run_kernel(multicast, {4, 32, 1024, 2}, map, out);
    expect_floats(out, [&](int i) { return in.values[static_cast<size_t>(i % 128)]; });
  });
}

__global__ void cluster_exchange(int* out) {
  int* value = dynamic_shared<int>();
  auto* bar = reinterpret_cast<uint64_t*>(value + 2);
  if (threadIdx.x == 0) {
    *value = 100 + static_cast<int>(cluster_block_rank());
    mbarrier_init(bar, cluster_size());
  }
  cluster_sync();
  if (threadIdx.x < cluster_size()) mbarrier_arrive_cluster(bar, threadIdx.x);
  mbarrier_wait_cluster(bar, 0);
  if (threadIdx.x == 0) {
    const uint32_t next = (cluster_block_rank() + 1) % cluster_size();
    out[blockIdx.x] = *map_shared(value, next);
  }
  cluster_arrive();
  cluster_wait();
}

TEST(Cluster, DistributedSharedMemoryAndRemoteArrivals) {
  DeviceMemory out(8 * 4, "out");
  run_kernel(cluster_exchange, {8, 32, 64, 4}, out);
  const auto got = download<int>(out);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(got[i], 100 + (i + 1) % 4);
}

__global__ void visit_exited(int* out) {
  int* value = dynamic_shared<int>();
  if (cluster_block_rank() == 0) return;  // before block 1 runs
  out[0] = *map_shared(value, 0);
}

__global__ void wait_twice() {
  cluster_sync();
  cluster_wait();
}

// The last thread completes the phase with its first arrival.
__global__ void arrive_twice() {
  const bool is_last = cluster_block_rank() == cluster_size() - 1 && threadIdx.x == blockDim.x - 1;
  cluster_arrive();
  if (is_last) cluster_arrive();
  cluster_wait();
}

TEST(Cluster, MisuseIsNamed) {
  DeviceMemory out(4, "out");
  EXPECT_CONTAINS(launch_error(visit_exited, {2, 32, 64, 2}, out),
                  "map_shared: block 0 of the cluster has exited, and its shared memory with it");
  EXPECT_CONTAINS(launch_error(wait_twice, {2, 32, 64, 2}),
                  "barrier.cluster.wait without an arrive");
  EXPECT_CONTAINS(launch_error(arrive_twice, {2, 32, 64, 2}),
                  "second barrier.cluster.arrive without a wait");
}

TEST(Cluster, StAsyncSignalsItsOwnArrival) {
  DeviceMemory out(4 * 4 * 4 * 2, "out");  // 2 clusters of 4 blocks hear 4 values each
  for_all_schedules([&] {
    out.fill(0xff);
    run_kernel(send_to_everybody<Slip::none>, {8, 32, 64, 4}, out);
    const auto got = download<int>(out);
    for (int i = 0; i < 32; ++i) ASSERT_EQ(got[i], 100 + i % 4);
  });
}

// ---- wgmma

template <int kN>
__device__ __forceinline__ void store_accumulators(float* out, const float (&d)[kN / 2]) {
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int i = 0; i < kN / 2; ++i) {
    out[(16 * warp + g + 8 * (i / 2 % 2)) * kN + i / 4 * 8 + 2 * t + i % 2] = d[i];
  }
}

// A GEMM of 64 x kN x 64. Operands by TMA, spans side by side: for Major::k each span of k is a
// tile of all rows; for Major::mn each span of m or n is a tile of 64 rows of k.
template <int kN, class T, Swizzle kSwizzle, Major kMajorA, Major kMajorB>
__global__ void wgmma_product(const __grid_constant__ TensorMap map_a,
                              const __grid_constant__ TensorMap map_b, float* out) {
  constexpr int kSpan = static_cast<int>(swizzle_span_bytes(kSwizzle)) / 2;  // elements
  constexpr int kK = 64;
  char* a_tile = dynamic_shared<char>();
  char* b_tile = a_tile + 64 * kK * 2;
  auto* bar = reinterpret_cast<uint64_t*>(b_tile + kN * kK * 2);
  if (threadIdx.x == 0) {
    expect_on(bar, (64 + kN) * kK * 2);
    const auto load = [&](char* tile, const TensorMap* map, int rows, bool k_major) {
      const int spans = (k_major ? kK : rows) / kSpan;
      for (int s = 0; s < spans; ++s) {
        tma_load_2d(tile + s * (k_major ? rows : kK) * kSpan * 2, map, bar, s * kSpan, 0);
      }
    };
    load(a_tile, &map_a, 64, kMajorA == Major::k);
    load(b_tile, &map_b, kN, kMajorB == Major::k);
  }
  __syncthreads();
  mbarrier_wait(bar, 0);
  const auto describe = [&](const char* tile, int rows, bool k_major, int k) {
    constexpr uint32_t kGroup = 8 * kSpan * 2;  // bytes of eight rows of a span
    if (k_major) {
      // A step of 16 in k stays within a span, or moves on by whole spans.
      const uint32_t tile_bytes = static_cast<uint32_t>(rows) * kSpan * 2;
      const uint64_t first =
          wgmma_descriptor<kSwizzle>(tile + k / kSpan * tile_bytes, tile_bytes, kGroup);
      return wgmma_descriptor_advance(first, static_cast<uint32_t>(k % kSpan) * 2);
    }
    const char* from = tile + k * kSpan * 2;
    const uint32_t next_span = kK * kSpan * 2;
    return kSwizzle == Swizzle::none ? wgmma_descriptor<kSwizzle>(from, kGroup, next_span)
                                     : wgmma_descriptor<kSwizzle>(from, next_span, kGroup);
  };
  float d[kN / 2];
  for (float& x : d) x = 77.0f;
  wgmma_fence_operand(d);
  wgmma_fence();
  for (int k = 0; k < kK; k += 16) {
    wgmma_m64k16<kN, T, kMajorA, kMajorB>(d, describe(a_tile, 64, kMajorA == Major::k, k),
                                          describe(b_tile, kN, kMajorB == Major::k, k), k > 0);
  }
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_fence_operand(d);
  store_accumulators<kN>(out, d);
}

template <int kN, class T, Swizzle kSwizzle, Major kMajorA, Major kMajorB>
void check_wgmma() {
  SCOPED_TRACE("n " + std::to_string(kN) + " swizzle " +
               std::to_string(static_cast<int>(kSwizzle)) + " majors " +
               std::to_string(static_cast<int>(kMajorA)) +
               std::to_string(static_cast<int>(kMajorB)));
  constexpr bool kKa = kMajorA == Major::k, kKb = kMajorB == Major::k;
  constexpr int kSpan = static_cast<int>(swizzle_span_bytes(kSwizzle)) / 2;
  const Matrix<T> a(64, 64, "a", 11);
  const Matrix<T> b(kKb ? kN : 64, kKb ? 64 : kN, "b", 12);
  DeviceMemory d(64 * kN * 4, "d");
  const TensorMap map_a = map_2d<T>(a, 64, 64, 64, kSpan, kSwizzle);
  const TensorMap map_b = map_2d<T>(b, b.rows, b.columns, kKb ? kN : 64, kSpan, kSwizzle);
  const size_t bytes = (64 + kN) * 64 * 2 + 64;
  run_kernel(wgmma_product<kN, T, kSwizzle, kMajorA, kMajorB>, {1, 128, bytes}, map_a, map_b, d);
  expect_product(
      d, 64, kN, 64, [&](int m, int k) { return kKa ? a(m, k) : a(k, m); },
      [&](int k, int n) { return kKb ? b(n, k) : b(k, n); });
}

template <Swizzle kSwizzle>
void check_wgmma_majors() {
  check_wgmma<64, bf16, kSwizzle, Major::k, Major::k>();
  check_wgmma<64, bf16, kSwizzle, Major::k, Major::mn>();
  check_wgmma<64, half, kSwizzle, Major::mn, Major::k>();
  check_wgmma<128, half, kSwizzle, Major::mn, Major::mn>();
}

TEST(Wgmma, EverySwizzleAndMajor) {
  for_all_schedules([] {
    check_wgmma_majors<Swizzle::none>();
    check_wgmma_majors<Swizzle::b32>();
    check_wgmma_majors<Swizzle::b64>();
    check_wgmma_majors<Swizzle::b128>();
  });
}

TEST(Wgmma, EveryWidth) {
  const auto check = []<int... kN>(std::integer_sequence<int, kN...>) {
    (check_wgmma<kN, bf16, Swizzle::b128, Major::k, Major::k>(), ...);
  };
  check(std::integer_sequence<int, 8, 16, 32, 96, 112, 144, 176, 208, 224, 240>());
  check_wgmma<160, half, Swizzle::b128, Major::k, Major::k>();
  check_wgmma<192, bf16, Swizzle::b128, Major::k, Major::mn>();
  check_wgmma<256, bf16, Swizzle::b128, Major::k, Major::mn>();
}

// A from registers, B from shared memory as it is stored (K x N): the second GEMM of attention.
template <class T, Major kMajorB>
__global__ void wgmma_from_registers(const T* a, const T* b, float* out) {
  T* tile = dynamic_shared<T>();  // eight-row groups without swizzle
  for (int i = threadIdx.x; i < 16 * 64; i += 128) {
    const int k = i / 64, n = i % 64;
    // Major::mn: (n chunk, k, n % 8); Major::k: (k chunk, n, k % 8).
    tile[kMajorB == Major::mn ? n / 8 * 128 + k * 8 + n % 8 : k / 8 * 512 + n * 8 + k % 8] = b[i];
  }
  fence_proxy_async();
  __syncthreads();
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  uint32_t fa[4];
  for (int r = 0; r < 4; ++r) {
    T pair[2];
    for (int i = 0; i < 2; ++i) pair[i] = a[(row + 8 * (r % 2)) * 16 + 2 * t + 8 * (r / 2) + i];
    __builtin_memcpy(&fa[r], static_cast<const void*>(pair), 4);
  }
  float d[32] = {};
  const uint64_t desc_b = kMajorB == Major::mn ? wgmma_descriptor<Swizzle::none>(tile, 128, 256)
                                               : wgmma_descriptor<Swizzle::none>(tile, 1024, 128);
  wgmma_fence();
  wgmma_m64k16<64, T, Major::k, kMajorB>(d, fa, desc_b, false);
  wgmma_commit();
  wgmma_wait<0>();
  store_accumulators<64>(out, d);
}

template <class T, Major kMajorB>
void check_wgmma_from_registers() {
  const Matrix<T> a(64, 16, "a", 21), b(16, 64, "b", 22);
  DeviceMemory d(64 * 64 * 4, "d");
  run_kernel(wgmma_from_registers<T, kMajorB>, {1, 128, 4096}, a, b, d);
  expect_product(d, 64, 64, 16, a, b);
}

TEST(Wgmma, RegisterOperand) {
  for_all_schedules([] {
    check_wgmma_from_registers<bf16, Major::k>();
    check_wgmma_from_registers<half, Major::mn>();
  });
}

__global__ void wgmma_fp8(const __grid_constant__ TensorMap map_a,
                          const __grid_constant__ TensorMap map_b, float* out) {
  char* a_tile = dynamic_shared<char>();  // (64, 128) bytes
  char* b_tile = a_tile + 8192;           // (64, 128) bytes
  auto* bar = reinterpret_cast<uint64_t*>(b_tile + 8192);
  if (threadIdx.x == 0) {
    expect_on(bar, 16384);
    tma_load_2d(a_tile, &map_a, bar, 0, 0);
    tma_load_2d(b_tile, &map_b, bar, 0, 0);
  }
  __syncthreads();
  mbarrier_wait(bar, 0);
  float d[32];
  wgmma_fence();
  for (int k = 0; k < 128; k += 32) {
    wgmma_m64k32_e4m3<64>(
        d, wgmma_descriptor_advance(wgmma_descriptor<Swizzle::b128>(a_tile, 16, 1024), k),
        wgmma_descriptor_advance(wgmma_descriptor<Swizzle::b128>(b_tile, 16, 1024), k), k > 0);
  }
  wgmma_commit();
  wgmma_wait<0>();
  store_accumulators<64>(out, d);
}

TEST(Wgmma, E4m3) {
  const Matrix<uint8_t> a(64, 128, "a", 1), b(64, 128, "b", 2);
  DeviceMemory d(64 * 64 * 4, "d");
  const TensorMap map_a = map_2d<uint8_t>(a, 64, 128, 64, 128, Swizzle::b128);
  const TensorMap map_b = map_2d<uint8_t>(b, 64, 128, 64, 128, Swizzle::b128);
  run_kernel(wgmma_fp8, {1, 128, 16384 + 64}, map_a, map_b, d);
  expect_product(d, 64, 64, 128, a, [&](int k, int n) { return b(n, k); });
}

// ---- a warp-specialised GEMM, right and wrong

TEST(Pipeline, TwoStagesUnderAllSchedules) {
  Gemm gemm;
  for_all_schedules([&] {
    gemm.run<Mistake::none>();
    EXPECT_TRUE(gemm.right());
  });
}

TEST(Pipeline, MissingWgmmaWaitIsWrong) {
  Gemm gemm;
  gemm.run<Mistake::no_wgmma_wait>();
  EXPECT_FALSE(gemm.right());
}

TEST(Pipeline, MissingFullWaitIsWrong) {
  Gemm gemm;
  for_all_schedules([&] {
    error_of([&] { gemm.run<Mistake::no_full_wait>(); });
    EXPECT_FALSE(gemm.right());
  });
  // Stages are released before they are filled, so the loader begins its second round during the
  // first.
  const std::string error = error_of([&] { gemm.run<Mistake::no_full_wait>(); });
  EXPECT_CONTAINS(error, "mbarrier at dynamic shared memory + 32768");
  EXPECT_CONTAINS(error, "more arrivals in phase 0 than the 1 it was initialised for");
}

// The multipliers begin a round ahead of the loader, and in the end each side waits for the other:
// the message names both waits.
TEST(Pipeline, WrongParityDeadlocksByName) {
  Gemm gemm;
  for_all_schedules([&] {
    const std::string error = error_of([&] { gemm.run<Mistake::wrong_parity>(); });
    EXPECT_CONTAINS(error, "deadlock in block");
    EXPECT_CONTAINS(error, "1 of 1 arrivals and 0 bytes pending) at " + place_of("full wait"));
    EXPECT_CONTAINS(error, "thread 128 waits in mbarrier at dynamic shared memory + 327");
    EXPECT_CONTAINS(error, "4 of 4 arrivals and 0 bytes pending) at " + place_of("empty wait"));
    EXPECT_FALSE(gemm.right());
  });
}

TEST(Pipeline, StageReleasedEarlyIsWrong) {
  Gemm gemm;
  bool ever_wrong = false;
  for_all_schedules([&] {
    gemm.run<Mistake::released_early>();
    ever_wrong = ever_wrong || !gemm.right();
  });
  EXPECT_TRUE(ever_wrong);
}

TEST(Pipeline, TooManyExpectedBytesDeadlockByName) {
  Gemm gemm;
  const std::string error = error_of([&] { gemm.run<Mistake::too_many_bytes>(); });
  EXPECT_CONTAINS(error, "deadlock");
  EXPECT_CONTAINS(error, "mbarrier at dynamic shared memory + 32768");
  EXPECT_CONTAINS(error, "phase 0: 0 of 1 arrivals and 8192 bytes pending");
}

TEST(Pipeline, TooFewExpectedBytesAreNamed) {
  Gemm gemm;
  const std::string error = error_of([&] { gemm.run<Mistake::too_few_bytes>(); });
  EXPECT_CONTAINS(error, "mbarrier at dynamic shared memory + 327");
  EXPECT_CONTAINS(error, "more bytes");
}

// ---- refusals

__global__ void wait_without_init() { mbarrier_wait(dynamic_shared<uint64_t>(), 0); }

__global__ void arrive_too_often() {
  auto* bar = dynamic_shared<uint64_t>();
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 2);
    mbarrier_expect_tx(bar, 16);
  }
  __syncthreads();
  if (threadIdx.x < 3) mbarrier_arrive(bar);
}

__global__ void expect_too_little(const float* in) {
  auto* bar = dynamic_shared<uint64_t>();
  mbarrier_init(bar, 1);
  mbarrier_arrive_expect_tx(bar, 16);
  bulk_load(dynamic_shared<char>() + 128, in, 32, bar);
  mbarrier_wait(bar, 0);
}

__global__ void overwrite_barrier() {
  auto* bar = dynamic_shared<uint64_t>();
  mbarrier_init(bar, 1);
  *bar = 5;
  mbarrier_arrive(bar);
}

TEST(Mbarrier, MisuseIsNamed) {
  EXPECT_CONTAINS(launch_error(wait_without_init, {1, 1, 64}),
                  "mbarrier_wait: mbarrier at dynamic shared memory + 0 is not initialised");
  EXPECT_CONTAINS(launch_error(arrive_too_often, {1, 32, 64}),
                  "more arrivals in phase 0 than the 2");
  DeviceMemory in(64, "in");
  EXPECT_CONTAINS(launch_error(expect_too_little, {1, 1, 256}, in),
                  "transaction bytes exceed expectation: 16 more bytes landed in phase 0");
  EXPECT_CONTAINS(launch_error(overwrite_barrier, {1, 1, 64}), "was overwritten");
  DeviceMemory out(64, "out");
  EXPECT_CONTAINS(launch_error(send_to_everybody<Slip::no_barrier>, {4, 32, 64, 4}, out),
                  "mbarrier at dynamic shared memory + 0 is not initialised");
  EXPECT_CONTAINS(launch_error(send_to_everybody<Slip::expects_too_little>, {4, 32, 64, 4}, out),
                  "bytes");
  EXPECT_CONTAINS(launch_error(send_to_everybody<Slip::expects_too_much>, {4, 32, 64, 4}, out),
                  "0 of 1 arrivals and 4 bytes pending");
}

__global__ void differing_descriptors() {
  char* tile = dynamic_shared<char>();
  float d[4];
  const uint64_t b = wgmma_descriptor<Swizzle::none>(tile, 128, 256);
  wgmma_fence();
  wgmma_m64k16<8, bf16>(d, wgmma_descriptor<Swizzle::none>(tile + 16 * threadIdx.x, 128, 256), b,
                        false);
  wgmma_commit();
  wgmma_wait<0>();
}

__global__ void one_warp_of_wgmma() { wgmma_fence(); }

__global__ void operand_past_the_end() {
  float d[128];
  const uint64_t a = wgmma_descriptor<Swizzle::b128>(dynamic_shared<char>(), 16, 1024);
  wgmma_fence();
  wgmma_m64k16<256, bf16>(d, a, a, false);
}

// Registers of instruction `which`, or of its operand, in shared memory: nobody would count them.
__global__ void registers_in_memory(int which) {
  auto* const words = dynamic_shared<uint32_t>();
  auto& four = *reinterpret_cast<uint32_t(*)[4]>(words);
  auto& two = *reinterpret_cast<uint32_t(*)[2]>(words);
  auto& floats = *reinterpret_cast<float(*)[4]>(words);
  float d[4] = {};
  uint32_t a[4] = {}, b[2] = {};
  const uint64_t tile = wgmma_descriptor<Swizzle::none>(words, 128, 256);
  if (which == 0) mma_m16n8k16<bf16>(floats, a, b);
  if (which == 1) mma_m16n8k16<bf16>(d, four, b);
  if (which == 2) mma_m16n8k8_tf32(d, a, two);
  if (which == 3) ldmatrix_x4(four, words);
  if (which == 4) stmatrix_x4(words + 256, four);
  wgmma_fence();
  if (which == 5) wgmma_m64k16<8, bf16>(floats, tile, tile, false);
  if (which == 6) wgmma_m64k16<8, bf16>(d, four, tile, false);
  if (which == 7) {
    using namespace nvcuda::wmma;
    auto& fragments = *reinterpret_cast<fragment<accumulator, 16, 16, 16, float>*>(words);
    fragment<matrix_a, 16, 16, 16, half, row_major> left;
    fragment<matrix_b, 16, 16, 16, half, row_major> right;
    fill_fragment(left, 0.0f), fill_fragment(right, 0.0f);
    mma_sync(fragments, left, right, fragments);
  }
}

template <int kFirst>
__global__ void registers_beyond_the_launch() {
  if (threadIdx.x < 128) {
    register_dealloc<kFirst>();
  } else {
    register_alloc<240>();
  }
}

// Warpgroups of the first `stating` threads have `kRegisters` each; the others say nothing.
template <int kRegisters>
__global__ void registers_of_some(int stating) {
  if (static_cast<int>(threadIdx.x) < stating) register_alloc<kRegisters>();
}

// Threads [first, last) of a warpgroup come to setmaxnreg, after one that all come to.
__global__ void registers_of_part(unsigned first, unsigned last) {
  if (threadIdx.x >= 128) return;
  register_dealloc<64>();
  named_barrier_sync(1, 128);
  if (threadIdx.x >= first && threadIdx.x < last) register_dealloc<40>();
}

// Threads [first, last) of the first two warpgroups want 48 registers, the others of them 40.
__global__ void registers_that_differ(unsigned first, unsigned last) {
  if (threadIdx.x >= 256) return;
  if (threadIdx.x >= first && threadIdx.x < last) {
    register_alloc<48>();
  } else {
    register_alloc<40>();
  }
}

enum class Where { own, fixed, other_block, global };

// cp.async to such an address.
__global__ void cp_async_to(Where where, const float* in, float* global) {
  __shared__ float fixed[4];
  float* own = dynamic_shared<float>();
  float* to = where == Where::own           ? own
              : where == Where::fixed       ? fixed
              : where == Where::other_block ? map_shared(own, cluster_block_rank() ^ 1)
                                            : global;
  cp_async<4>(to, in);
  cp_async_commit();
  cp_async_wait<0>();
  cluster_sync();
}

__global__ void shared_of_rank(Where where, uint32_t rank, float* global, float* out) {
  __shared__ float fixed[4];
  *out = *map_shared(where == Where::own     ? dynamic_shared<float>()
                     : where == Where::fixed ? fixed
                                             : global,
                     rank);
  cluster_sync();
}

__global__ void barrier_of(int id, int threads) { named_barrier_sync(id, threads); }

__global__ void misaligned_tma(const __grid_constant__ TensorMap map) {
  char* tile = dynamic_shared<char>();
  auto* bar = reinterpret_cast<uint64_t*>(tile);
  mbarrier_init(bar, 1);
  tma_load_2d(tile + 64, &map, bar, 0, 0);
}

__global__ void tma_between_boundaries(const __grid_constant__ TensorMap map) {
  char* tile = dynamic_shared<char>();
  auto* bar = reinterpret_cast<uint64_t*>(tile + 512);
  mbarrier_init(bar, 1);
  tma_load_2d(tile, &map, bar, -2, 0);
}

// One thread of each block waits for the launch before: `first`, in the middle or not at all.
enum class Waits { first, late, never };

template <Waits kWaits>
__global__ void load_in_dependent_launch(const __grid_constant__ TensorMap map) {
  char* tile = dynamic_shared<char>();
  auto* bar = reinterpret_cast<uint64_t*>(tile + 512);
  if (threadIdx.x == 0) {
    tma_prefetch_descriptor(&map);  // allowed before
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
    allow_next_launch();
    if (kWaits == Waits::first) wait_for_previous_launch();
    if (kWaits != Waits::never) {
      mbarrier_arrive_expect_tx(bar, 64);
      tma_load_2d(tile, &map, bar, 0, 0);
      mbarrier_wait(bar, 0);
    }
    if (kWaits == Waits::late) wait_for_previous_launch();
  }
}

TEST(DependentLaunch, MustWaitBeforeItLoads) {
  DeviceMemory in(1024, "in");
  in.fill(0);
  const TensorMap map = map_2d<float>(in.data(), 16, 16, 4, 4, Swizzle::none);
  LaunchConfig config{3, 64, 1024};
  const auto error = [&](auto* kernel) { return launch_error(kernel, config, map); };
  EXPECT_EQ(error(load_in_dependent_launch<Waits::late>), "");  // not dependent
  EXPECT_EQ(error(load_in_dependent_launch<Waits::never>), "");
  config.dependent = true;
  EXPECT_EQ(error(load_in_dependent_launch<Waits::first>), "");
  EXPECT_CONTAINS(error(load_in_dependent_launch<Waits::late>),
                  "tma_load_2d in a dependent launch before wait_for_previous_launch()");
  EXPECT_CONTAINS(error(load_in_dependent_launch<Waits::never>),
                  "a block of a dependent launch ends without wait_for_previous_launch()");
}

enum class Use {
  right,
  misaligned,
  no_arrivals,
  most_arrivals,
  too_many_arrivals,
  twice,
  again_after_invalidate,
  again_after_another_use,
  third_parity,
  third_parity_tried,
  invalidated_while_waited_for,
};

__global__ void use_barrier(Use use) {
  auto* bar = dynamic_shared<uint64_t>();
  if (threadIdx.x == 0) {
    if (use == Use::misaligned) bar = reinterpret_cast<uint64_t*>(dynamic_shared<char>() + 4);
    mbarrier_init(bar, use == Use::no_arrivals         ? 0
                       : use == Use::most_arrivals     ? 1048575
                       : use == Use::too_many_arrivals ? 1048576
                                                       : 1);
    if (use == Use::again_after_invalidate) mbarrier_invalidate(bar);
    if (use == Use::again_after_another_use) *bar = 3;
    if (use == Use::twice || use == Use::again_after_invalidate ||
        use == Use::again_after_another_use) {
      mbarrier_init(bar, 1);
    }
    if (use == Use::third_parity) mbarrier_wait(bar, 2);
    if (use == Use::third_parity_tried) mbarrier_try_wait(bar, 2);
  }
  __syncthreads();
  if (use != Use::invalidated_while_waited_for) return;
  if (threadIdx.x < 32) mbarrier_wait(bar, 0);
  named_barrier_sync(1, 32);
  if (threadIdx.x == 32) mbarrier_invalidate(bar);
}

TEST(Mbarrier, IsInitialisedOnceAndAsTheHardwareTakesIt) {
  const auto error = [](Use use) { return launch_error(use_barrier, {1, 64, 64}, use); };
  for (const Use use : {Use::right, Use::most_arrivals, Use::again_after_invalidate,
                        Use::again_after_another_use}) {
    EXPECT_EQ(error(use), "") << static_cast<int>(use);
  }
  EXPECT_CONTAINS(error(Use::misaligned), "is not aligned to 8 bytes");
  EXPECT_CONTAINS(error(Use::no_arrivals), "1 to 1048575 arrivals, got 0");
  EXPECT_CONTAINS(error(Use::too_many_arrivals), "1 to 1048575 arrivals, got 1048576");
  EXPECT_CONTAINS(error(Use::twice), "is initialised already: mbarrier_invalidate() it first");
  EXPECT_CONTAINS(error(Use::third_parity), "mbarrier_wait: the parity must be 0 or 1");
  EXPECT_CONTAINS(error(Use::third_parity_tried), "mbarrier_try_wait: the parity must be 0 or 1");
  EXPECT_CONTAINS(error(Use::invalidated_while_waited_for), "a thread waits for it");
}

// ---- elements beyond 2^31, which no test has the memory for ------------------------------------

using ScanTile = scan::TileConfig;

// The tile from element `begin` on, of pointers to element 0 of arrays of n elements.
__global__ void move_tile(const float* in, float* out, std::int64_t begin, std::int64_t n) {
  float values[ScanTile::kPerThread];
  scan::load_tile<ScanTile>(in, begin, n, values);
  scan::store_tile<ScanTile>(out, begin, n, values, 0.5f);
}

TEST(FarElements, AreLoadedAndStoredByAScan) {
  constexpr std::int64_t kBegin = (std::int64_t{3} << 31) - 64, kN = kBegin + ScanTile::kTile - 5;
  std::vector<float> values(ScanTile::kTile);
  const DeviceMemory out = upload(values, "out");
  std::iota(values.begin(), values.end(), 0.0f);
  const DeviceMemory in = upload(values, "in");
  const auto first = [](const DeviceMemory& memory) {  // where element 0 would be
    return reinterpret_cast<float*>(reinterpret_cast<std::intptr_t>(memory.data()) - 4 * kBegin);
  };
  run_kernel(move_tile, {1, ScanTile::kThreads}, first(in), first(out), kBegin, kN);
  const auto got = download<float>(out);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], i + 5 < got.size() ? values[i] + 0.5f : 0.0f) << i;
  }
}

TEST(FarElements, HaveAsManyBlocksAsRun) {
  using Copies = histogram::LaneCopiesConfig;
  const auto fit = static_cast<unsigned>(device_info().sm_count * Copies::kBlocksPerSm);
  EXPECT_EQ(histogram::resident_blocks<Copies>(1), 1u);
  EXPECT_EQ(histogram::resident_blocks<Copies>(Copies::kTile + 1), 2u);
  EXPECT_EQ(histogram::resident_blocks<Copies>(std::int64_t{1} << 32), fit);
  EXPECT_EQ(histogram::resident_blocks<Copies>((std::int64_t{1} << 32) - 1), fit);
}

TEST(Refusals, AreNamed) {
  EXPECT_CONTAINS(launch_error(differing_descriptors, {1, 128, 16384}),
                  "wgmma: this thread's wgmma differs");
  EXPECT_CONTAINS(launch_error(one_warp_of_wgmma, {1, 32, 64}), "not in a complete warpgroup");
  EXPECT_CONTAINS(launch_error(operand_past_the_end, {1, 128, 8192}), "wgmma: operand B runs past");
  const char* const with_registers[] = {"mma.sync", "mma.sync", "mma.sync", "ldmatrix",
                                        "stmatrix", "wgmma",    "wgmma",    "wmma::mma_sync"};
  for (int which = 0; which < 8; ++which) {
    EXPECT_CONTAINS(launch_error(registers_in_memory, {1, 128, 8192}, which),
                    std::string(with_registers[which]) + ": registers are in memory");
  }
  EXPECT_EQ(launch_error(registers_in_memory, {1, 128, 8192}, 8), "");
  // 384 threads are launched with 168 registers each: 24 + 2 x 240 is 3 x 168. 32 + 2 x 240 fits
  // the register file, and hung on an H200.
  EXPECT_EQ(launch_error(registers_beyond_the_launch<24>, {1, 384, 64}), "");
  EXPECT_CONTAINS(launch_error(registers_beyond_the_launch<32>, {1, 384, 64}),
                  "want 65536 registers, and it is launched with at most 64512");
  // 65,536 fit, and more are an error once all have said so.
  EXPECT_EQ(launch_error(registers_of_some<128>, {1, 512}, 512), "");
  EXPECT_CONTAINS(launch_error(registers_of_some<136>, {1, 512}, 512), "want 69632 registers");
  EXPECT_EQ(launch_error(registers_of_some<240>, {1, 512}, 384), "");
  EXPECT_CONTAINS(launch_error(registers_of_some<40>, {1, 96}, 96), "not made of whole warpgroups");
  // All threads of a warpgroup come to it, and want the same.
  const auto part = [](unsigned first, unsigned last) {
    return error_of([=] { run_kernel(registers_of_part, {{2, 1}, {256, 1}}, first, last); });
  };
  const auto differ = [](unsigned first, unsigned last) {
    return error_of([=] { run_kernel(registers_that_differ, {1, 384}, first, last); });
  };
  const auto without = [](int thread) {
    return "thread (" + std::to_string(thread) + ",0,0) of block (0,0,0) ended without the one";
  };
  EXPECT_EQ(part(0, 0), "");
  EXPECT_EQ(part(0, 128), "");
  EXPECT_CONTAINS(part(0, 1),
                  without(1) + " that thread (0,0,0) of its warpgroup");  // a lane alone
  EXPECT_CONTAINS(part(77, 78), without(0) + " that thread (77,0,0) of its warpgroup");
  EXPECT_CONTAINS(part(0, 127), without(127));  // all but one
  EXPECT_CONTAINS(part(1, 128), without(0));
  EXPECT_CONTAINS(part(96, 128), without(0));  // a warp alone
  EXPECT_CONTAINS(part(0, 96), without(96));
  EXPECT_EQ(differ(0, 128), "");  // a warpgroup has its own number
  EXPECT_EQ(differ(128, 256), "");
  EXPECT_CONTAINS(differ(0, 1), "registers, and");  // either may come first
  EXPECT_CONTAINS(differ(32, 64), "setmaxnreg: 48 registers, and 40 for thread (");
  EXPECT_CONTAINS(differ(255, 256), "registers, and");
  DeviceMemory memory(64, "memory");
  auto* const global = memory.as<float>();
  const auto copy = [&](Where where) {
    return launch_error(cp_async_to, {2, 1, 64, 2}, where, global, global + 4);
  };
  EXPECT_EQ(copy(Where::own), "");
  EXPECT_EQ(copy(Where::fixed), "");
  EXPECT_CONTAINS(copy(Where::other_block),
                  "cp_async: the address is in another block's shared memory");
  EXPECT_CONTAINS(copy(Where::global), "cp_async: the address is not in shared memory");
  const auto of_rank = [&](Where where, uint32_t rank, int cluster) {
    return launch_error(shared_of_rank, {2, 1, 64, cluster}, where, rank, global, global + 4);
  };
  EXPECT_EQ(of_rank(Where::own, 1, 2), "");
  EXPECT_EQ(of_rank(Where::own, 0, 1), "");
  EXPECT_EQ(of_rank(Where::fixed, 0, 1), "");
  EXPECT_CONTAINS(of_rank(Where::own, 2, 2), "map_shared: block 2 of a cluster of 2");
  EXPECT_CONTAINS(of_rank(Where::own, 1, 1), "map_shared: block 1 of a cluster of 1");
  EXPECT_CONTAINS(of_rank(Where::fixed, 0, 2), "map_shared: the address is not in dynamic shared");
  EXPECT_CONTAINS(of_rank(Where::global, 0, 1), "map_shared: the address is not in dynamic shared");
  const auto barrier = [](int id, int threads) {
    return launch_error(barrier_of, {1, static_cast<unsigned>(std::clamp(threads, 32, 1024))}, id,
                        threads);
  };
  EXPECT_EQ(barrier(0, 32), "");
  EXPECT_EQ(barrier(15, 1024), "");
  EXPECT_CONTAINS(barrier(-1, 32), "barriers are numbered 0 to 15, got -1");
  EXPECT_CONTAINS(barrier(16, 32), "barriers are numbered 0 to 15, got 16");
  for (const int threads : {-32, 0, 33, 1056}) {
    EXPECT_CONTAINS(barrier(1, threads), "is a multiple of 32, got " + std::to_string(threads));
  }
  DeviceMemory in(1024, "in");
  const TensorMap map = map_2d<float>(in.data(), 16, 16, 4, 4, Swizzle::none);
  EXPECT_CONTAINS(launch_error(misaligned_tma, {1, 1, 1024}, map), "not aligned to 128 bytes");
  EXPECT_CONTAINS(launch_error(tma_between_boundaries, {1, 1, 1024}, map),
                  "innermost coordinate -2 is -8 bytes into the row: must be a multiple of 16");
}

// ---- flags, named barriers, reductions

// The last block begins: without the wait the first would, which runs first here.
__global__ void chain(uint32_t* flags, int* value) {
  const unsigned place = gridDim.x - 1 - blockIdx.x;
  if (threadIdx.x == 0 && place > 0) spin_wait_until_equal(&flags[place - 1], 1u);
  __syncthreads();
  if (threadIdx.x == 0) {
    *value = *value * 3 + static_cast<int>(place);
    store_release(&flags[place], 1u);
  }
}

TEST(Sync, FlagsPassFromBlockToBlock) {
  const DeviceMemory flags = upload(std::vector<int>(8), "flags"),
                     value = upload<int>({0}, "value");
  run_kernel(chain, {.grid = 4, .block = 32, .cooperative = true}, flags, value);
  EXPECT_EQ(download<int>(value)[0], ((0 * 3 + 1) * 3 + 2) * 3 + 3);
}

__global__ void hand_over(int* out) {
  int* value = dynamic_shared<int>();
  if (threadIdx.x < 32) {
    value[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
    named_barrier_arrive(1, 64);
  } else {
    named_barrier_sync(1, 64);
    out[threadIdx.x - 32] = value[threadIdx.x - 32];
  }
}

TEST(Sync, NamedBarrierHandsOver) {
  DeviceMemory out(32 * 4, "out");
  run_kernel(hand_over, {1, 64, 128}, out);
  const auto got = download<int>(out);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(got[i], i + 1);
}

// Barriers count whole warps: the 16 threads of the second count as 32.
TEST(Sync, NamedBarrierCountsAPartialWarpAsAWhole) {
  DeviceMemory out(32 * 4, "out");
  out.fill(0);
  run_kernel(hand_over, {1, 48, 128}, out);
  const auto got = download<int>(out);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(got[i], i < 16 ? i + 1 : 0);
}

__global__ void reduce_block(float* out) {
  float* scratch = dynamic_shared<float>();
  const auto x = static_cast<float>(threadIdx.x);
  const float sum = block_sum<96>(x, scratch);
  const float most = warp_max(x), quad = warp_sum<4>(x);
  out[threadIdx.x] = sum + 10000.0f * most + 0.5f * quad;
  out[96 + threadIdx.x] = warp_max<8>(-x);
  out[192 + threadIdx.x] = block_sum<96>(2 * x, scratch);  // the same scratch once more
}

TEST(Warp, Reductions) {
  DeviceMemory out(3 * 96 * 4, "out");
  run_kernel(reduce_block, {1, 96, 64}, out);
  const auto got = download<float>(out);
  for (int i = 0; i < 96; ++i) {
    const auto quad = static_cast<float>(4 * (i / 4 * 4) + 6);
    const auto most = static_cast<float>(32 * (i / 32) + 31);
    EXPECT_EQ(got[static_cast<size_t>(i)], 4560.0f + 10000.0f * most + 0.5f * quad);
    EXPECT_EQ(got[static_cast<size_t>(96 + i)], static_cast<float>(-8 * (i / 8)));
    EXPECT_EQ(got[static_cast<size_t>(192 + i)], 9120.0f);
  }
}

}  // namespace
}  // namespace cookbook
