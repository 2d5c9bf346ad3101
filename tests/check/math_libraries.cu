// SPDX-License-Identifier: MIT
// cuBLAS: products against loops, a norm, a leading dimension that is too large. cuRAND: known
// answers of Philox4x32-10, means in a kernel and by the host, a buffer that is too small. cuFFT:
// against sums, there and back, a result that is too small. cuSPARSE: products, formats, a
// triangle, a column that does not exist, a buffer that is too small.
// exit: 1
// prints: cublas 0, curand 0, cufft 0, cusparse 0
#include <cublas_v2.h>
#include <cufft.h>
#include <cusparse.h>
#include <cuda_bf16.h>
#include <curand.h>
#include <curand_kernel.h>

#include <cmath>
#include <complex>
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
  // A result goes where the pointer mode says.
  cublasSnrm2(handle, 2, d_b, 1, d_c);  // finds: out-of-bounds
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
  cublasSnrm2(handle, 2, d_b, 1, d_c);
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST);
  // Nothing reads what nobody writes between the columns.
  float* apart;
  if (cudaMalloc(&apart, 96)) return 2;
  if (cudaMemcpy2D(apart, 40, sides, 8, 8, 1, cudaMemcpyHostToDevice)) return 2;
  if (cudaMemcpy2D(apart + 10, 40, sides, 8, 8, 1, cudaMemcpyHostToDevice)) return 2;
  cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 2, &one, apart, 10, apart, 10, &zero, d_c, 2);
  cublasSdot(handle, 2, apart, 11, apart, 11, &product);
  wrong += product != 25 || cudaFree(apart);
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
  constexpr int kX = 6, kY = 10;
  std::vector<double> x(kX * kY);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i * 7 % 11) - 4;
  double* real;
  cufftDoubleComplex *wave, host[kX * (kY / 2 + 1)];
  if (cudaMalloc(&real, x.size() * 8) || cudaMalloc(&wave, sizeof host)) return 2;
  if (cudaMemcpy(real, x.data(), x.size() * 8, cudaMemcpyHostToDevice)) return 2;
  cufftHandle there, back;
  cufftPlan2d(&there, kX, kY, CUFFT_D2Z);
  cufftPlan2d(&back, kX, kY, CUFFT_Z2D);
  int wrong = cufftExecD2Z(there, real, wave);
  if (cudaMemcpy(host, wave, sizeof host, cudaMemcpyDeviceToHost)) return 2;
  for (int u = 0; u < kX; ++u) {
    for (int v = 0; v <= kY / 2; ++v) {
      std::complex<double> sum = 0;
      for (int i = 0; i < kX * kY; ++i) {
        sum += x[i] *
               std::polar(1.0, -2 * M_PI * (double(u * (i / kY)) / kX + double(v * (i % kY)) / kY));
      }
      const cufftDoubleComplex got = host[u * (kY / 2 + 1) + v];
      wrong += std::abs(sum - std::complex<double>(got.x, got.y)) > 1e-9;
    }
  }
  std::vector<double> again(x.size());
  wrong += cufftExecZ2D(back, wave, real);
  if (cudaMemcpy(again.data(), real, x.size() * 8, cudaMemcpyDeviceToHost)) return 2;
  for (size_t i = 0; i < x.size(); ++i) wrong += std::fabs(again[i] - kX * kY * x[i]) > 1e-9;
  // Two interleaved transforms, in place: element i of the second is -i times that of the first.
  int n = 7;
  cufftHandle many, padded;
  cufftPlanMany(&many, 1, &n, &n, 2, 1, &n, 2, 1, CUFFT_C2C, 2);
  std::vector<cufftComplex> pairs(14);
  for (int i = 0; i < 7; ++i) pairs[2 * i] = {float(i), 1}, pairs[2 * i + 1] = {1, float(-i)};
  auto* const narrow = reinterpret_cast<cufftComplex*>(real);
  if (cudaMemcpy(narrow, pairs.data(), 112, cudaMemcpyHostToDevice)) return 2;
  wrong += cufftExecC2C(many, narrow, narrow, CUFFT_FORWARD);
  if (cudaMemcpy(pairs.data(), narrow, 112, cudaMemcpyDeviceToHost)) return 2;
  for (int i = 0; i < 7; ++i) {
    wrong += fabsf(pairs[2 * i].x + pairs[2 * i + 1].y) > 1e-5f;
    wrong += fabsf(pairs[2 * i].y - pairs[2 * i + 1].x) > 1e-5f;
  }
  // In place, each row of 5 numbers has the room of 3 complex ones.
  const float rows[] = {1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 10, 0};
  if (cudaMemcpy(real, rows, sizeof rows, cudaMemcpyHostToDevice)) return 2;
  cufftPlan1d(&padded, 5, CUFFT_R2C, 2);
  wrong += cufftExecR2C(padded, reinterpret_cast<float*>(real), narrow);
  if (cudaMemcpy(pairs.data(), narrow, 48, cudaMemcpyDeviceToHost)) return 2;
  wrong += fabsf(pairs[0].x - 15) > 1e-5f || fabsf(pairs[3].x - 40) > 1e-5f;
  if (cudaFree(wave) || cudaMalloc(&wave, sizeof host - 16)) return 2;
  cufftExecD2Z(there, real, wave);  // finds: out-of-bounds
  for (const cufftHandle plan : {there, back, many, padded}) wrong += cufftDestroy(plan);
  return wrong || cudaFree(real) || cudaFree(wave);
}

int of_cusparse() {
  // A = (1 0 2; 0 3 0), and what is made of it below.
  const int offsets[] = {0, 2, 3}, columns[] = {0, 2, 1};
  const float values[] = {1, 2, 3}, x[] = {1, 10, 100}, one = 1, two = 2;
  int *d_offsets, *d_columns, *p_offsets, *p_columns;
  float *d_values, *d_x, *d_y, *dense, *p_values, got[6], *buffer;
  if (cudaMalloc(&d_offsets, 12) || cudaMalloc(&d_columns, 12) || cudaMalloc(&d_values, 12))
    return 2;
  if (cudaMalloc(&d_x, 12) || cudaMalloc(&d_y, 8) || cudaMalloc(&dense, 24)) return 2;
  if (cudaMalloc(&p_offsets, 12) || cudaMalloc(&p_columns, 12) || cudaMalloc(&p_values, 12))
    return 2;
  if (cudaMemcpy(d_offsets, offsets, 12, cudaMemcpyHostToDevice)) return 2;
  if (cudaMemcpy(d_columns, columns, 12, cudaMemcpyHostToDevice)) return 2;
  if (cudaMemcpy(d_values, values, 12, cudaMemcpyHostToDevice)) return 2;
  if (cudaMemcpy(d_x, x, 12, cudaMemcpyHostToDevice)) return 2;
  if (cudaMemcpy(d_y, x, 8, cudaMemcpyHostToDevice)) return 2;
  cusparseHandle_t handle;
  cusparseSpMatDescr_t a, b, p;
  cusparseDnVecDescr_t of_x, of_y;
  cusparseDnMatDescr_t of_dense;
  const auto n = CUSPARSE_OPERATION_NON_TRANSPOSE, t = CUSPARSE_OPERATION_TRANSPOSE;
  const auto i32 = CUSPARSE_INDEX_32I;
  const auto zero_based = CUSPARSE_INDEX_BASE_ZERO;
  cusparseCreate(&handle);
  cusparseCreateCsr(&a, 2, 3, 3, d_offsets, d_columns, d_values, i32, i32, zero_based, CUDA_R_32F);
  cusparseCreateDnVec(&of_x, 3, d_x, CUDA_R_32F);
  cusparseCreateDnVec(&of_y, 2, d_y, CUDA_R_32F);
  size_t bytes;
  cusparseSpMV_bufferSize(handle, n, &two, a, of_x, &one, of_y, CUDA_R_32F,
                          CUSPARSE_SPMV_ALG_DEFAULT, &bytes);
  if (cudaMalloc(&buffer, bytes)) return 2;
  int wrong = cusparseSpMV(handle, n, &two, a, of_x, &one, of_y, CUDA_R_32F,
                           CUSPARSE_SPMV_ALG_DEFAULT, buffer);
  if (cudaMemcpy(got, d_y, 8, cudaMemcpyDeviceToHost)) return 2;
  wrong += got[0] != 2 * 201 + 1 || got[1] != 2 * 30 + 10;
  // As a dense matrix by rows and back, by columns.
  cusparseCreateDnMat(&of_dense, 2, 3, 3, dense, CUDA_R_32F, CUSPARSE_ORDER_ROW);
  wrong += cusparseSparseToDense(handle, a, of_dense, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, buffer);
  if (cudaMemcpy(got, dense, 24, cudaMemcpyDeviceToHost)) return 2;
  const float wanted[] = {1, 0, 2, 0, 3, 0};
  for (int i = 0; i < 6; ++i) wrong += got[i] != wanted[i];
  cusparseDestroyDnMat(of_dense);
  // Its transpose: what is by rows there is by columns here.
  cusparseCreateDnMat(&of_dense, 3, 2, 3, dense, CUDA_R_32F, CUSPARSE_ORDER_COL);
  int64_t rows, width, entries, *b_offsets;
  if (cudaMalloc(&b_offsets, 32)) return 2;
  cusparseCreateCsr(&b, 3, 2, 0, b_offsets, nullptr, nullptr, CUSPARSE_INDEX_64I, i32, zero_based,
                    CUDA_R_32F);
  const auto to_sparse = CUSPARSE_DENSETOSPARSE_ALG_DEFAULT;
  wrong += cusparseDenseToSparse_analysis(handle, of_dense, b, to_sparse, buffer);
  cusparseSpMatGetSize(b, &rows, &width, &entries);
  wrong += entries != 3;
  int* b_columns;
  float* b_values;
  if (cudaMalloc(&b_columns, 4 * entries) || cudaMalloc(&b_values, 4 * entries)) return 2;
  cusparseCsrSetPointers(b, b_offsets, b_columns, b_values);
  wrong += cusparseDenseToSparse_convert(handle, of_dense, b, to_sparse, buffer);
  // A A^T = (5 0; 0 9), of which the first product has one entry per row.
  cusparseSpGEMMDescr_t product;
  cusparseSpGEMM_createDescr(&product);
  cusparseCreateCsr(&p, 2, 2, 0, p_offsets, nullptr, nullptr, i32, i32, zero_based, CUDA_R_32F);
  const float zero = 0;
  const auto gemm = CUSPARSE_SPGEMM_DEFAULT;
  wrong += cusparseSpGEMM_workEstimation(handle, n, n, &one, a, b, &zero, p, CUDA_R_32F, gemm,
                                         product, &bytes, buffer);
  wrong += cusparseSpGEMM_compute(handle, n, n, &one, a, b, &zero, p, CUDA_R_32F, gemm, product,
                                  &bytes, buffer);
  cusparseSpMatGetSize(p, &rows, &width, &entries);
  wrong += entries != 2;
  cusparseCsrSetPointers(p, p_offsets, p_columns, p_values);
  wrong += cusparseSpGEMM_copy(handle, n, n, &one, a, b, &zero, p, CUDA_R_32F, gemm, product);
  if (cudaMemcpy(got, p_values, 8, cudaMemcpyDeviceToHost)) return 2;
  wrong += got[0] != 5 || got[1] != 9;
  // Its triangle: y = P^-1 y.
  cusparseSpSVDescr_t analysis;
  cusparseSpSV_createDescr(&analysis);
  cusparseDnVecDescr_t of_y2;
  cusparseCreateDnVec(&of_y2, 2, d_x, CUDA_R_32F);
  wrong += cusparseSpSV_solve(handle, n, &one, p, of_y, of_y2, CUDA_R_32F,
                              CUSPARSE_SPSV_ALG_DEFAULT, analysis);
  if (cudaMemcpy(got, d_x, 8, cudaMemcpyDeviceToHost)) return 2;
  wrong += fabsf(got[0] - 403.0f / 5) > 1e-4f || fabsf(got[1] - 70.0f / 9) > 1e-4f;
  // Sizes that do not fit are an error; a column that does not exist is a mistake.
  wrong += cusparseSpMV(handle, t, &one, a, of_x, &one, of_y, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT,
                        buffer) != CUSPARSE_STATUS_INVALID_VALUE;
  cusparseSpMV(handle, n, &one, a, of_x, &one, of_y, CUDA_R_32F,  // finds: out-of-bounds
               CUSPARSE_SPMV_ALG_DEFAULT, d_y);
  const int last = 3;
  if (cudaMemcpy(d_columns + 1, &last, 4, cudaMemcpyHostToDevice)) return 2;
  cusparseSpMV(handle, n, &one, a, of_x, &one, of_y, CUDA_R_32F,  // finds: out-of-bounds
               CUSPARSE_SPMV_ALG_DEFAULT, buffer);
  cusparseDestroyDnMat(of_dense);
  for (const auto vector : {of_x, of_y, of_y2}) cusparseDestroyDnVec(vector);
  for (const auto matrix : {a, b, p}) cusparseDestroySpMat(matrix);
  cusparseSpGEMM_destroyDescr(product);
  cusparseDestroy(handle);
  for (void* at : {(void*)d_offsets, (void*)d_columns, (void*)d_values, (void*)d_x, (void*)d_y,
                   (void*)dense, (void*)buffer, (void*)b_offsets, (void*)b_columns, (void*)b_values,
                   (void*)p_offsets, (void*)p_columns, (void*)p_values}) {
    wrong += cudaFree(at);
  }
  return wrong;
}

int main() {
  printf("cublas %d, curand %d, ", of_cublas(), of_curand());
  printf("cufft %d, cusparse %d\n", of_cufft(), of_cusparse());
}
