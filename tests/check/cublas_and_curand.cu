// SPDX-License-Identifier: MIT
// cuBLAS: products against loops, a norm, a leading dimension that is too large. cuRAND: known
// answers of Philox4x32-10, means in a kernel and by the host, a buffer that is too small. cuFFT: a
// frequency, real numbers there and back in place, a buffer that is too small.
// exit: 1
// prints: cublas 0, curand 0, cufft 0
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cufft.h>
#include <curand_kernel.h>

#include <cmath>
#include <cstdio>
#include <vector>

__global__ void draw(unsigned* first, float* sums) {
  curandStatePhilox4_32_10_t exact;
  curand_init(0, 0, 0, &exact);
  if (threadIdx.x == 0) {
    for (int i = 0; i < 3; ++i) first[i] = curand(&exact);
    curand_init(0, 0, 1, &exact);
    skipahead(2, &exact);
    first[3] = curand(&exact);
  }
  curandState state;
  curand_init(1234, threadIdx.x, 0, &state);
  float uniform = 0, normal = 0, squares = 0;
  for (int i = 0; i < 64; ++i) {
    const float u = curand_uniform(&state), x = curand_normal(&state);
    uniform += u, normal += x, squares += x * x;
  }
  atomicAdd(&sums[0], uniform);
  atomicAdd(&sums[1], normal);
  atomicAdd(&sums[2], squares);
}

int of_cublas() {
  constexpr int kM = 5, kN = 3, kK = 4;
  std::vector<float> a(kM * kK), b(kK * kN), c(kM * kN, 1.0f);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2;
  std::vector<__nv_bfloat16> narrow(a.begin(), a.end());
  float *d_a, *d_b, *d_c;
  __nv_bfloat16* d_narrow;
  if (cudaMalloc(&d_a, 80) || cudaMalloc(&d_b, 48) || cudaMalloc(&d_c, 60)) return 2;
  if (cudaMalloc(&d_narrow, 40)) return 2;
  if (cudaMemcpy(d_a, a.data(), 80, cudaMemcpyHostToDevice)) return 2;
  if (cudaMemcpy(d_b, b.data(), 48, cudaMemcpyHostToDevice)) return 2;
  if (cudaMemcpy(d_c, c.data(), 60, cudaMemcpyHostToDevice)) return 2;
  if (cudaMemcpy(d_narrow, narrow.data(), 40, cudaMemcpyHostToDevice)) return 2;
  cublasHandle_t handle;
  cublasCreate(&handle);
  const float alpha = 2, beta = 3;
  // C = 2 A B^T + 3 C, with B stored as N x K.
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, kM, kN, kK, &alpha, d_a, kM, d_b, kN, &beta, d_c,
              kM);
  std::vector<float> got(kM * kN);
  if (cudaMemcpy(got.data(), d_c, 60, cudaMemcpyDeviceToHost)) return 2;
  int wrong = 0;
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) sum += a[kM * k + i] * b[kN * k + j];
      wrong += got[kM * j + i] != 2 * sum + 3;
    }
  }
  // A^T A of bf16, into fp32.
  const float one = 1, zero = 0;
  cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 3, 3, kM, &one, d_narrow, CUDA_R_16BF, kM,
               d_narrow, CUDA_R_16BF, kM, &zero, d_c, CUDA_R_32F, 3, CUBLAS_COMPUTE_32F,
               CUBLAS_GEMM_DEFAULT);
  if (cudaMemcpy(got.data(), d_c, 36, cudaMemcpyDeviceToHost)) return 2;
  for (int i = 0; i < 9; ++i) {
    float sum = 0;
    for (int k = 0; k < kM; ++k) sum += a[kM * (i % 3) + k] * a[kM * (i / 3) + k];
    wrong += got[i] != sum;
  }
  // Two products by pointers, of which the second one is A^T A again.
  const float* factors[] = {d_b, d_a};
  float *results[] = {d_c, d_c + 9}, **d_pointers;
  if (cudaMalloc(&d_pointers, sizeof factors + sizeof results)) return 2;
  cublasSetVectorAsync(2, sizeof(float*), factors, 1, d_pointers, 1, nullptr);
  cublasSetVector(1, sizeof(float*), results + 1, 1, d_pointers + 3, 1);
  cublasSetVector(1, sizeof(float*), results, 1, d_pointers + 2, 1);
  cublasSgemmBatched(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 5, &one, d_pointers, 5, d_pointers, 5,
                     &zero, d_pointers + 2, 2, 2);
  float pair[4], transposed[4];
  if (cudaMemcpy(pair, d_c + 9, 16, cudaMemcpyDeviceToHost)) return 2;
  for (int i = 0; i < 4; ++i) wrong += pair[i] != got[3 * (i / 2) + i % 2];
  // x y^T with x = (1, 2) and y = (3, 4), its transpose minus itself, and x y.
  const float vectors[] = {1, 2, 3, 4, 0, 0, 0, 0}, minus = -1;
  if (cudaMemcpy(d_b, vectors, 32, cudaMemcpyHostToDevice)) return 2;
  cublasSger(handle, 2, 2, &one, d_b, 1, d_b + 2, 1, d_b + 4, 2);
  cublasSgeam(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, &one, d_b + 4, 2, &minus, d_b + 4, 2, d_b + 8,
              2);
  cublasGetMatrix(2, 2, 4, d_b + 8, 2, transposed, 2);
  wrong += transposed[0] != 0 || transposed[1] != 4 - 6 || transposed[2] != 6 - 4;
  float product;
  cublasDotEx(handle, 2, d_b, CUDA_R_32F, 1, d_b + 2, CUDA_R_32F, 1, &product, CUDA_R_32F,
              CUDA_R_32F);
  wrong += product != 11;
  const float sides[] = {3, 4};
  float norm;
  if (cudaMemcpy(d_b, sides, 8, cudaMemcpyHostToDevice)) return 2;
  cublasSnrm2(handle, 2, d_b, 1, &norm);
  cublasSgemm(  // finds: out-of-bounds
      handle, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &one, d_a, kM, d_b, 8, &zero, d_c, kM);
  wrong += norm != 5;
  cublasDestroy(handle);
  if (cudaFree(d_pointers)) return 2;
  return wrong || cudaFree(d_a) || cudaFree(d_b) || cudaFree(d_c) || cudaFree(d_narrow);
}

int of_curand() {
  unsigned* first;
  float *sums, *x, host[1000];
  if (cudaMallocManaged(&first, 16) || cudaMallocManaged(&sums, 12)) return 2;
  if (cudaMalloc(&x, 4000)) return 2;
  for (int i = 0; i < 3; ++i) sums[i] = 0;
  draw<<<1, 128>>>(first, sums);
  if (cudaDeviceSynchronize()) return 2;
  int wrong = fabsf(sums[0] / 8192 - 0.5f) > 0.02f;
  wrong += fabsf(sums[1] / 8192) > 0.05f;
  wrong += fabsf(sums[2] / 8192 - 1) > 0.08f;
  curandGenerator_t generator;
  curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
  curandSetPseudoRandomGeneratorSeed(generator, 7);
  curandGenerateNormal(generator, x, 1000, 3.0f, 0.5f);
  if (cudaMemcpy(host, x, 4000, cudaMemcpyDeviceToHost)) return 2;
  float mean = 0;
  for (const float value : host) mean += value / 1000;
  wrong += fabsf(mean - 3) > 0.1f;
  auto* counts = reinterpret_cast<unsigned*>(x);
  unsigned* const host_counts = reinterpret_cast<unsigned*>(host);
  for (const double wanted : {4.0, 200.0}) {
    curandGeneratePoisson(generator, counts, 1000, wanted);
    if (cudaMemcpy(host_counts, counts, 4000, cudaMemcpyDeviceToHost)) return 2;
    double sum = 0;
    for (int i = 0; i < 1000; ++i) sum += host_counts[i];
    wrong += fabs(sum / 1000 / wanted - 1) > 0.06;
  }
  curandGenerateUniform(generator, x, 1001);  // finds: out-of-bounds
  // For a counter and a key of zeros, from the authors of the algorithm.
  const unsigned known[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (int i = 0; i < 4; ++i) wrong += first[i] != known[i];
  curandDestroyGenerator(generator);
  return wrong || cudaFree(first) || cudaFree(sums) || cudaFree(x);
}

int of_cufft() {
  const int n = 30, rows = 3, columns = 10, padded = columns + 2;
  cufftHandle wave, there, back;
  if (cufftPlan1d(&wave, n, CUFFT_C2C, 2)) return 1;
  if (cufftPlan2d(&there, rows, columns, CUFFT_R2C)) return 1;
  if (cufftPlan2d(&back, rows, columns, CUFFT_C2R)) return 1;
  float2 host[2 * n], *x, *less;
  if (cudaMalloc(&x, sizeof(host)) || cudaMalloc(&less, sizeof(host) - 8)) return 1;
  for (int i = 0; i < 2 * n; ++i) {
    const double angle = 2 * M_PI * 7 * i / n;  // frequency 7, in the second half frequency 0
    host[i] = i < n ? make_float2(cos(angle), sin(angle)) : make_float2(1, 0);
  }
  if (cudaMemcpy(x, host, sizeof(host), cudaMemcpyHostToDevice)) return 1;
  if (cufftExecC2C(wave, x, x, CUFFT_FORWARD)) return 1;
  if (cudaMemcpy(host, x, sizeof(host), cudaMemcpyDeviceToHost)) return 1;
  int wrong = 0;
  for (int i = 0; i < 2 * n; ++i) {
    const float expected = i == 7 || i == n ? n : 0;
    wrong += fabsf(host[i].x - expected) > 1e-4f || fabsf(host[i].y) > 1e-4f;
  }
  float image[rows * padded];
  for (int i = 0; i < rows * padded; ++i) image[i] = i * 37 % 64;
  if (cudaMemcpy(x, image, sizeof(image), cudaMemcpyHostToDevice)) return 1;
  if (cufftExecR2C(there, (float*)x, x) || cufftExecC2R(back, x, (float*)x)) return 1;
  if (cudaMemcpy(host, x, sizeof(image), cudaMemcpyDeviceToHost)) return 1;
  for (int i = 0; i < rows * padded; ++i) {
    const float found = ((float*)host)[i] / (rows * columns);
    wrong += i % padded < columns && fabsf(found - image[i]) > 1e-4f;
  }
  if (cudaMemset(x, 0, sizeof(host))) return 1;
  wrong += cufftExecC2C(wave, x, less, CUFFT_FORWARD) != CUFFT_EXEC_FAILED;  // finds: out-of-bounds
  cufftDestroy(there);
  return wrong + (cufftExecR2C(there, (float*)x, x) != CUFFT_INVALID_PLAN) + cudaFree(x) +
         cudaFree(less);
}

int main() { printf("cublas %d, curand %d, cufft %d\n", of_cublas(), of_curand(), of_cufft()); }
