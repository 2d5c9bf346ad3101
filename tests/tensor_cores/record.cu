// SPDX-License-Identifier: MIT
// Asks this GPU's tensor cores the cases of cases.hpp and compares what they return with the rules
// of the SIMT backend (common/backend/simt/units/tensor_sum.hpp).
//   tensor-cores [FILE]     FILE receives the results of the first case of each kind
// Exit 1 where a result differs.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "common/device/arch.cuh"
#include "common/device/wgmma.cuh"
#include "tests/tensor_cores/cases.hpp"

namespace cookbook::tensor_cores {
namespace {

constexpr int kMaxK = 32;

struct DeviceCase {
  uint32_t a[16 * kMaxK], b[kMaxK * 8], c[128];
};

__device__ uint32_t pack(const uint32_t* from, int stride, int width) {
  uint32_t packed = 0;
  for (int i = 0; i < 32 / width; ++i) packed |= from[i * stride] << (width * i);
  return packed;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define COOKBOOK_ASM_SM89(...) asm volatile(__VA_ARGS__)
#else
#define COOKBOOK_ASM_SM89(...) __trap()
#endif

// d += a * b; of A all four registers, or with half the k two. fp16 results are in two registers.
#define F32_MMA(asm_of, shape, types)                                           \
  asm_of("mma.sync.aligned." shape ".row.col.f32." types                        \
         ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
         : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                       \
         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define F32_MMA_HALF_K(shape, types)                                           \
  COOKBOOK_ASM_SM80("mma.sync.aligned." shape ".row.col.f32." types            \
                    ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \
                    : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])           \
                    : "r"(a[0]), "r"(a[1]), "r"(b[0]))
#define F16_MMA(asm_of, shape, types)                           \
  asm_of("mma.sync.aligned." shape ".row.col.f16." types        \
         ".f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};" \
         : "+r"(d[0]), "+r"(d[1])                               \
         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define F16_MMA_HALF_K(shape, types)                                \
  COOKBOOK_ASM_SM80("mma.sync.aligned." shape ".row.col.f16." types \
                    ".f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"      \
                    : "+r"(d[0]), "+r"(d[1])                        \
                    : "r"(a[0]), "r"(a[1]), "r"(b[0]))

template <int kForm>
__device__ void mma(uint32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (kForm == 0) F32_MMA_HALF_K("m16n8k8", "f16.f16");
  if constexpr (kForm == 1) F32_MMA(COOKBOOK_ASM_SM80, "m16n8k16", "f16.f16");
  if constexpr (kForm == 2) F16_MMA_HALF_K("m16n8k8", "f16.f16");
  if constexpr (kForm == 3) F16_MMA(COOKBOOK_ASM_SM80, "m16n8k16", "f16.f16");
  if constexpr (kForm == 4) F32_MMA_HALF_K("m16n8k8", "bf16.bf16");
  if constexpr (kForm == 5) F32_MMA(COOKBOOK_ASM_SM80, "m16n8k16", "bf16.bf16");
  if constexpr (kForm == 6) F32_MMA_HALF_K("m16n8k4", "tf32.tf32");
  if constexpr (kForm == 7) F32_MMA(COOKBOOK_ASM_SM80, "m16n8k8", "tf32.tf32");
  if constexpr (kForm == 8) F32_MMA(COOKBOOK_ASM_SM89, "m16n8k32", "e4m3.e4m3");
  if constexpr (kForm == 9) F32_MMA(COOKBOOK_ASM_SM89, "m16n8k32", "e5m2.e5m2");
  if constexpr (kForm == 10) F32_MMA(COOKBOOK_ASM_SM89, "m16n8k32", "e4m3.e5m2");
  if constexpr (kForm == 11) F16_MMA(COOKBOOK_ASM_SM89, "m16n8k32", "e4m3.e4m3");
  if constexpr (kForm == 12) F16_MMA(COOKBOOK_ASM_SM89, "m16n8k32", "e5m2.e5m2");
}

template <int kForm>
__device__ void wgmma(uint32_t (&d)[4], uint64_t a, uint64_t b) {
#define F32_WGMMA(shape, types, majors)                                  \
  COOKBOOK_ASM_SM90A("wgmma.mma_async.sync.aligned." shape ".f32." types \
                     " {%0, %1, %2, %3}, %4, %5, 1, 1, 1" majors ";"     \
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])    \
                     : "l"(a), "l"(b))
#define F16_WGMMA(shape, types, majors)                                  \
  COOKBOOK_ASM_SM90A("wgmma.mma_async.sync.aligned." shape ".f16." types \
                     " {%0, %1}, %2, %3, 1, 1, 1" majors ";"             \
                     : "+r"(d[0]), "+r"(d[1])                            \
                     : "l"(a), "l"(b))
  if constexpr (kForm == 13) F32_WGMMA("m64n8k16", "f16.f16", ", 0, 0");
  if constexpr (kForm == 14) F16_WGMMA("m64n8k16", "f16.f16", ", 0, 0");
  if constexpr (kForm == 15) F32_WGMMA("m64n8k16", "bf16.bf16", ", 0, 0");
  if constexpr (kForm == 16) F32_WGMMA("m64n8k8", "tf32.tf32", "");
  if constexpr (kForm == 17) F32_WGMMA("m64n8k32", "e4m3.e4m3", "");
  if constexpr (kForm == 18) F32_WGMMA("m64n8k32", "e5m2.e5m2", "");
  if constexpr (kForm == 19) F32_WGMMA("m64n8k32", "e4m3.e5m2", "");
  if constexpr (kForm == 20) F16_WGMMA("m64n8k32", "e4m3.e4m3", "");
  if constexpr (kForm == 21) F16_WGMMA("m64n8k32", "e5m2.e5m2", "");
}

// One block per case; 128 threads, of which mma.sync needs the first 32.
template <int kForm>
__global__ void ask(const DeviceCase* cases, uint32_t* results, int width) {
  constexpr Form kAsked = kForms[kForm];
  const DeviceCase& asked = cases[blockIdx.x];
  uint32_t* const result = results + 128 * blockIdx.x;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int per = 32 / width;
  constexpr int k = kAsked.k;
  __shared__ alignas(1024) uint32_t smem_a[64 * 8],
      smem_b[8 * 8];  // k elements are 32 bytes, or 16
  uint32_t d[4] = {};
  const auto c = [&](int i) { return asked.c[(g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1)]; };
  if (threadIdx.x < 32) {
    if (kAsked.half_result) {
      for (int i = 0; i < 2; ++i) d[i] = c(2 * i) | c(2 * i + 1) << 16;
    } else {
      for (int i = 0; i < 4; ++i) d[i] = c(i);
    }
  }
  if constexpr (!kAsked.wgmma) {
    if (threadIdx.x >= 32) return;
    uint32_t a[4] = {}, b[2] = {};
    for (int r = 0; r < 4; ++r) {
      const int column = t * per + 4 * per * (r >> 1);
      if (column < k) a[r] = pack(&asked.a[(g + 8 * (r & 1)) * k + column], 1, width);
    }
    for (int r = 0; r < 2; ++r) {
      const int row = t * per + 4 * per * r;
      if (row < k) b[r] = pack(&asked.b[row * 8 + g], 8, width);
    }
    mma<kForm>(d, a, b);
  } else {
    // Without swizzle: eight rows of 16 bytes make a core matrix, the two along k 128 bytes apart,
    // groups of eight rows 256.
    for (int word = threadIdx.x; word < 64 * 8; word += blockDim.x) {
      const int row = word / 8, part = word % 8;  // the part of a row of 32 bytes
      const int at = row / 8 * 64 + part / 4 * 32 + row % 8 * 4 + part % 4;
      smem_a[at] = row < 16 ? pack(&asked.a[row * k + part * per], 1, width) : 0;
      if (row < 8) smem_b[at] = pack(&asked.b[part * per * 8 + row], 8, width);
    }
    COOKBOOK_ASM_SM90("fence.proxy.async;" ::: "memory");
    __syncthreads();
    const uint64_t desc_a = wgmma_descriptor<Swizzle::none>(smem_a, 128, 256);
    const uint64_t desc_b = wgmma_descriptor<Swizzle::none>(smem_b, 128, 256);
    wgmma_fence();
    wgmma<kForm>(d, desc_a, desc_b);
    wgmma_commit();
    wgmma_wait<0>();
    if (threadIdx.x >= 32) return;
  }
  for (int i = 0; i < 4; ++i) {
    const int at = (g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1);
    result[at] = kAsked.half_result ? d[i >> 1] >> (16 * (i & 1)) & 0xffffu : d[i];
  }
}

void must(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(1);
}

template <int kForm>
std::vector<uint32_t> answers(const std::vector<Case>& asked) {
  constexpr Form kAsked = kForms[kForm];
  const Layout layout = layout_of(kAsked.a);
  const int width = 1 + layout.exponent_bits + layout.mantissa_bits + layout.unused_low_bits;
  std::vector<DeviceCase> cases(asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    std::copy(asked[i].a.begin(), asked[i].a.end(), cases[i].a);
    std::copy(asked[i].b.begin(), asked[i].b.end(), cases[i].b);
    std::copy(asked[i].c.begin(), asked[i].c.end(), cases[i].c);
  }
  DeviceCase* device_cases;
  uint32_t* device_results;
  std::vector<uint32_t> results(cases.size() * 128);
  const size_t case_bytes = cases.size() * sizeof(DeviceCase), result_bytes = results.size() * 4;
  must(cudaMalloc(&device_cases, case_bytes));
  must(cudaMalloc(&device_results, result_bytes));
  must(cudaMemcpy(device_cases, cases.data(), case_bytes, cudaMemcpyDefault));
  ask<kForm><<<static_cast<unsigned>(cases.size()), 128>>>(device_cases, device_results, width);
  must(cudaGetLastError());
  must(cudaMemcpy(results.data(), device_results, result_bytes, cudaMemcpyDefault));
  must(cudaFree(device_cases));
  must(cudaFree(device_results));
  return results;
}

using Ask = std::vector<uint32_t> (*)(const std::vector<Case>&);
template <int... kIndex>
constexpr auto all_forms(std::integer_sequence<int, kIndex...>) {
  return std::array<Ask, sizeof...(kIndex)>{answers<kIndex>...};
}
constexpr int kFormCount = static_cast<int>(std::size(kForms));
constexpr auto kAsk = all_forms(std::make_integer_sequence<int, kFormCount>{});

// Whether a GPU has an instruction: those of Hopper's warpgroups are its own.
bool has(const Form& form, int cc) {
  if (form.wgmma) return cc == 90;
  return cc >= (form.k == 32 ? 89 : 80);
}

// One line a case: "FORM[,FORM...] KIND RESULT...", where all these forms return the same.
void write(std::FILE* file, const std::map<std::string, std::string>& forms_by_results) {
  for (const auto& [results, forms] : forms_by_results) {
    std::fprintf(file, "%s %s\n", forms.c_str(), results.c_str());
  }
}

int run(const char* name, int count) {
  cudaDeviceProp device{};
  must(cudaGetDeviceProperties(&device, 0));
  const int cc = 10 * device.major + device.minor;
  std::FILE* const file = name != nullptr ? std::fopen(name, "w") : nullptr;
  if (name != nullptr && file == nullptr) {
    std::fprintf(stderr, "tensor-cores: cannot write %s\n", name);
    return 2;
  }
  if (file != nullptr) {
    std::fprintf(file, "# What the tensor cores of an %s returned; CUDA %d.%d.\n", device.name,
                 CUDART_VERSION / 1000, CUDART_VERSION / 10 % 100);
  }
  long asked_count = 0, wrong_count = 0;
  for (int kind = 0; kind < kKindCount; ++kind) {
    std::map<std::string, std::string> forms_by_results;
    for (size_t f = 0; f < std::size(kForms); ++f) {
      const Form& form = kForms[f];
      if (!has(form, cc)) continue;
      std::vector<Case> cases;
      for (int i = 0; i < count; ++i) cases.push_back(draw(form, static_cast<Kind>(kind), i));
      const std::vector<uint32_t> results = kAsk[f](cases);
      long wrong = 0;
      for (size_t i = 0; i < cases.size(); ++i) {
        const auto expected = modelled(form, cases[i], cc);
        for (size_t j = 0; j < 128; ++j) wrong += results[i * 128 + j] != expected[j];
      }
      if (wrong > 0) {
        std::printf("%s, %s: %ld of %d results differ from the rule\n", form.name.data(),
                    kKinds[kind].data(), wrong, count * 128);
      }
      asked_count += count * 128, wrong_count += wrong;
      std::string line(kKinds[kind]);
      char text[16];
      for (int j = 0; j < 128; ++j) {
        std::snprintf(text, sizeof text, " %x", results[static_cast<size_t>(j)]);
        line += text;
      }
      std::string& forms = forms_by_results[line];
      forms += (forms.empty() ? "" : ",") + std::string(form.name);
    }
    if (file != nullptr) write(file, forms_by_results);
  }
  if (file != nullptr) std::fclose(file);
  std::printf("%s: %ld results of tensor cores, %ld differ from the rules of cc %d.%d\n",
              device.name, asked_count, wrong_count, device.major, device.minor);
  return wrong_count == 0 ? 0 : 1;
}

}  // namespace
}  // namespace cookbook::tensor_cores

int main(int argc, char** argv) {
  return cookbook::tensor_cores::run(argc > 1 ? argv[1] : nullptr, 64);
}
