// SPDX-License-Identifier: MIT
// cuBLAS for checked programs: plain loops in device memory, with bounds checked before. Sums have
// the precision of the compute type, in an order of their own.
#include "tools/check/program/include/cublas_v2.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tools/check/program/library_elements.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t scalars = CUBLAS_POINTER_MODE_HOST;
};

namespace {

using cookbook::simt::program::bytes_of;
using cookbook::simt::program::element;
using cookbook::simt::program::is_in_device_memory;
using cookbook::simt::program::LibraryCall;
using cookbook::simt::program::Place;
using cookbook::simt::program::set_element;

class Call : public LibraryCall {
 public:
  Call(const char* function, cublasHandle_t handle, Place place)
      : LibraryCall(function, handle->stream, place), scalars_(handle->scalars) {}
  bool scalar_is_right(const void* at) {
    return scalar_is_on(at, scalars_ == CUBLAS_POINTER_MODE_DEVICE);
  }

 private:
  cublasPointerMode_t scalars_;
};

struct Matrix {
  const void* data;
  cudaDataType type;
  int ld;
  long long stride;  // from one of a batch to the next
  cublasOperation_t op;

  size_t bytes(int rows, int columns) const {  // as it is stored
    return columns == 0 || rows == 0
               ? 0
               : bytes_of(type) * (size_t(ld) * size_t(columns - 1) + size_t(rows));
  }
  const void* of(int i) const {
    return static_cast<const char*>(data) + stride * i * static_cast<long long>(bytes_of(type));
  }
};

struct Gemm {
  const char* function;
  int m, n, k;
  Matrix a, b, c;
  int count;
};

/// What lies between the columns is not read.
bool readable(LibraryCall& call, const Matrix& x, const void* at, int rows, int columns) {
  const size_t bytes = bytes_of(x.type);
  return call.reads_rows(at, bytes * size_t(std::max(rows, 0)), size_t(std::max(columns, 0)),
                         bytes * size_t(x.ld));
}

/// A scalar on the host or in device memory. It is used wherever it is.
template <class Number>
Number scalar(const void* at, cudaDataType type, Call& call) {
  call.scalar_is_right(at);
  return cookbook::simt::program::scalar<Number>(at, type, call);
}

template <class Number>
void multiply(const Gemm& g, int index, Number alpha, Number beta) {
  const auto m = size_t(g.m), n = size_t(g.n), k = size_t(g.k);
  // The operands as op(A), by columns, and op(B), by rows.
  std::vector<Number> a(m * k), b(k * n), sums(m);
  for (size_t i = 0; i < m; ++i) {
    for (size_t d = 0; d < k; ++d) {
      a[d * m + i] =
          element<Number>(g.a.of(index), g.a.type,
                          g.a.op == CUBLAS_OP_N ? d * size_t(g.a.ld) + i : i * size_t(g.a.ld) + d);
    }
  }
  for (size_t j = 0; j < n; ++j) {
    for (size_t d = 0; d < k; ++d) {
      b[d * n + j] =
          element<Number>(g.b.of(index), g.b.type,
                          g.b.op == CUBLAS_OP_N ? j * size_t(g.b.ld) + d : d * size_t(g.b.ld) + j);
    }
  }
  void* const c = const_cast<void*>(g.c.of(index));
  for (size_t j = 0; j < n; ++j) {
    sums.assign(m, Number(0));
    for (size_t d = 0; d < k; ++d) {
      const Number factor = b[d * n + j];
      for (size_t i = 0; i < m; ++i) sums[i] += a[d * m + i] * factor;
    }
    for (size_t i = 0; i < m; ++i) {
      const size_t at = j * size_t(g.c.ld) + i;
      // With beta 0, C is not read: it may hold NaN.
      const Number before = beta == Number(0) ? Number(0) : beta * element<Number>(c, g.c.type, at);
      set_element(c, g.c.type, at, alpha * sums[i] + before);
    }
  }
}

cublasStatus_t run(cublasHandle_t handle, const Gemm& g, const void* alpha, const void* beta,
                   cudaDataType scalars, Place place) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const auto rows_of = [](const Matrix& x, int rows, int columns) {
    return x.op == CUBLAS_OP_N ? rows : columns;
  };
  const int rows_a = rows_of(g.a, g.m, g.k), rows_b = rows_of(g.b, g.k, g.n);
  if (g.m < 0 || g.n < 0 || g.k < 0 || g.a.ld < std::max(1, rows_a) ||
      g.b.ld < std::max(1, rows_b) || g.c.ld < std::max(1, g.m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  Call call(g.function, handle, place);
  const double of_c = scalar<double>(beta, scalars, call);
  for (int i = 0; i < g.count; ++i) {
    void* const c = const_cast<void*>(g.c.of(i));
    const size_t bytes_c = g.c.bytes(g.m, g.n);
    if (!readable(call, g.a, g.a.of(i), rows_a, g.m + g.k - rows_a) ||
        !readable(call, g.b, g.b.of(i), rows_b, g.k + g.n - rows_b) ||
        (of_c != 0 && !readable(call, g.c, c, g.m, g.n)) || !call.writes(c, bytes_c)) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    if (scalars == CUDA_R_32I) {
      multiply<int32_t>(g, i, scalar<int32_t>(alpha, scalars, call), static_cast<int32_t>(of_c));
    } else if (g.c.type == CUDA_R_64F) {
      multiply<double>(g, i, scalar<double>(alpha, scalars, call), of_c);
    } else {
      multiply<float>(g, i, scalar<float>(alpha, scalars, call), static_cast<float>(of_c));
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

cudaDataType scalar_type(cublasComputeType_t compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F: return CUDA_R_16F;
    case CUBLAS_COMPUTE_64F: return CUDA_R_64F;
    case CUBLAS_COMPUTE_32I: return CUDA_R_32I;
    default: return CUDA_R_32F;
  }
}

// ---- vectors ----

template <class T>
inline constexpr cudaDataType kType = std::is_same_v<T, double>   ? CUDA_R_64F
                                      : std::is_same_v<T, __half> ? CUDA_R_16F
                                                                  : CUDA_R_32F;

template <class T>
struct Vector {
  T* data;
  int n, increment;
  size_t bytes() const {
    return n <= 0 ? 0 : sizeof(T) * (size_t(n - 1) * size_t(std::abs(increment)) + 1);
  }
  T& operator[](int i) const {
    return data[(increment < 0 ? i - n + 1 : i) * static_cast<long long>(increment)];
  }
};

/// `compute` with the call, if all is there.
template <class Reads, class Writes, class Compute>
cublasStatus_t run(cublasHandle_t handle, const char* function, Place place, const Reads& reads,
                   const Writes& writes, const Compute& compute) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  Call call(function, handle, place);
  for (const auto& x : reads) {
    if (!call.reads_rows(x.data, sizeof(*x.data), size_t(std::max(x.n, 0)),
                         sizeof(*x.data) * size_t(std::abs(x.increment)))) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
  }
  for (const auto& y : writes) {
    if (!call.writes(y.data, y.bytes())) return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  compute(call);
  return CUBLAS_STATUS_SUCCESS;
}

/// Where a result goes: it may be on the host.
template <class T, class R>
void give(T* result, R value, Call& call) {
  call.scalar_is_right(result);
  if (!is_in_device_memory(result) || call.writes(result, sizeof(T)))
    *result = static_cast<T>(value);
}

template <class T>
using Vectors = std::vector<Vector<T>>;

/// An array of pointers in device memory; empty if it is not there.
template <class T>
std::vector<const void*> pointers(cublasHandle_t handle, const char* function, T* const* from,
                                  int count, Place place) {
  Call call(function, handle, place);
  if (!call.reads(from, size_t(count) * sizeof(T*))) return {};
  return std::vector<const void*>(from, from + count);
}

/// C = alpha op(A) + beta op(B), which may be C.
template <class T>
cublasStatus_t add(cublasHandle_t handle, const char* function, int m, int n, const T* alpha,
                   const Matrix& a, const T* beta, const Matrix& b, T* c, int ldc, Place place) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  Call call(function, handle, place);
  const T of_a = scalar<T>(alpha, kType<T>, call), of_b = scalar<T>(beta, kType<T>, call);
  // With a factor of 0 an operand is not read.
  const auto there = [&](const Matrix& x, T factor) {
    const bool as_it_is = x.op == CUBLAS_OP_N;
    return factor == T(0) || readable(call, x, x.data, as_it_is ? m : n, as_it_is ? n : m);
  };
  if (!there(a, of_a) || !there(b, of_b) ||
      !call.writes(c, Matrix{c, kType<T>, ldc, 0, CUBLAS_OP_N}.bytes(m, n))) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  std::vector<T> sums(size_t(m) * size_t(n));
  const auto add_one = [&](const Matrix& x, T factor) {
    if (factor == T(0)) return;
    for (size_t j = 0; j < size_t(n); ++j) {
      for (size_t i = 0; i < size_t(m); ++i) {
        sums[j * size_t(m) + i] +=
            factor * element<T>(x.data, x.type,
                                x.op == CUBLAS_OP_N ? j * size_t(x.ld) + i : i * size_t(x.ld) + j);
      }
    }
  };
  add_one(a, of_a);
  add_one(b, of_b);
  for (size_t j = 0; j < size_t(n); ++j) {
    std::copy_n(&sums[j * size_t(m)], m, c + j * size_t(ldc));
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    default: return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
}

#define COOKBOOK_BLAS(X, x, T)                                                                     \
  cublasStatus_t cublas##X##axpy(cublasHandle_t handle, int n, const T* alpha, const T* x_,        \
                                 int step_x, T* y, int step_y, Place place) {                      \
    const Vector<const T> from{x_, n, step_x}, old{y, n, step_y};                                  \
    const Vector<T> to{y, n, step_y};                                                              \
    return run(handle, "cublas" #X "axpy", place, Vectors<const T>{from, old}, Vectors<T>{to},     \
               [&](Call& call) {                                                                   \
                 const T factor = scalar<T>(alpha, kType<T>, call);                                \
                 for (int i = 0; i < n; ++i) to[i] += factor * from[i];                            \
               });                                                                                 \
  }                                                                                                \
  cublasStatus_t cublas##X##scal(cublasHandle_t handle, int n, const T* alpha, T* x_, int step,    \
                                 Place place) {                                                    \
    const Vector<T> to{x_, n, step};                                                               \
    return run(handle, "cublas" #X "scal", place, Vectors<const T>{{x_, n, step}}, Vectors<T>{to}, \
               [&](Call& call) {                                                                   \
                 const T factor = scalar<T>(alpha, kType<T>, call);                                \
                 for (int i = 0; i < n; ++i) to[i] *= factor;                                      \
               });                                                                                 \
  }                                                                                                \
  cublasStatus_t cublas##X##copy(cublasHandle_t handle, int n, const T* x_, int step_x, T* y,      \
                                 int step_y, Place place) {                                        \
    const Vector<const T> from{x_, n, step_x};                                                     \
    const Vector<T> to{y, n, step_y};                                                              \
    return run(handle, "cublas" #X "copy", place, Vectors<const T>{from}, Vectors<T>{to},          \
               [&](Call&) {                                                                        \
                 for (int i = 0; i < n; ++i) to[i] = from[i];                                      \
               });                                                                                 \
  }                                                                                                \
  cublasStatus_t cublas##X##dot(cublasHandle_t handle, int n, const T* x_, int step_x, const T* y, \
                                int step_y, T* result, Place place) {                              \
    const Vector<const T> a{x_, n, step_x}, b{y, n, step_y};                                       \
    return run(handle, "cublas" #X "dot", place, Vectors<const T>{a, b}, Vectors<T>{},             \
               [&](Call& call) {                                                                   \
                 double sum = 0;                                                                   \
                 for (int i = 0; i < n; ++i) sum += double(a[i]) * double(b[i]);                   \
                 give(result, sum, call);                                                          \
               });                                                                                 \
  }                                                                                                \
  cublasStatus_t cublas##X##nrm2(cublasHandle_t handle, int n, const T* x_, int step, T* result,   \
                                 Place place) {                                                    \
    const Vector<const T> a{x_, n, step};                                                          \
    return run(handle, "cublas" #X "nrm2", place, Vectors<const T>{a}, Vectors<T>{},               \
               [&](Call& call) {                                                                   \
                 double sum = 0;                                                                   \
                 for (int i = 0; i < n; ++i) sum += double(a[i]) * double(a[i]);                   \
                 give(result, std::sqrt(sum), call);                                               \
               });                                                                                 \
  }                                                                                                \
  cublasStatus_t cublas##X##asum(cublasHandle_t handle, int n, const T* x_, int step, T* result,   \
                                 Place place) {                                                    \
    const Vector<const T> a{x_, n, step};                                                          \
    return run(handle, "cublas" #X "asum", place, Vectors<const T>{a}, Vectors<T>{},               \
               [&](Call& call) {                                                                   \
                 double sum = 0;                                                                   \
                 for (int i = 0; i < n; ++i) sum += std::fabs(double(a[i]));                       \
                 give(result, sum, call);                                                          \
               });                                                                                 \
  }                                                                                                \
  cublasStatus_t cublasI##x##amax(cublasHandle_t handle, int n, const T* x_, int step,             \
                                  int* result, Place place) {                                      \
    const Vector<const T> a{x_, n, step};                                                          \
    return run(handle, "cublasI" #x "amax", place, Vectors<const T>{a}, Vectors<T>{},              \
               [&](Call& call) {                                                                   \
                 int best = 0;                                                                     \
                 for (int i = 1; i < n; ++i) {                                                     \
                   if (std::fabs(a[i]) > std::fabs(a[best])) best = i;                             \
                 }                                                                                 \
                 give(result, n > 0 ? best + 1 : 0, call); /* from 1, as in Fortran */             \
               });                                                                                 \
  }                                                                                                \
  cublasStatus_t cublas##X##gemv(cublasHandle_t handle, cublasOperation_t op, int m, int n,        \
                                 const T* alpha, const T* a, int lda, const T* x_, int step_x,     \
                                 const T* beta, T* y, int step_y, Place place) {                   \
    if (step_x < 1 || step_y < 1) return CUBLAS_STATUS_NOT_SUPPORTED;                              \
    const int rows = op == CUBLAS_OP_N ? m : n, depth = op == CUBLAS_OP_N ? n : m;                 \
    /* y^T = x^T op(A)^T, with vectors as matrices of one row. */                                  \
    return run(handle,                                                                             \
               {"cublas" #X "gemv",                                                                \
                1,                                                                                 \
                rows,                                                                              \
                depth,                                                                             \
                {x_, kType<T>, step_x, 0, CUBLAS_OP_N},                                            \
                {a, kType<T>, lda, 0, op == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N},              \
                {y, kType<T>, step_y, 0, CUBLAS_OP_N},                                             \
                1},                                                                                \
               alpha, beta, kType<T>, place);                                                      \
  }
COOKBOOK_BLAS(S, s, float)
COOKBOOK_BLAS(D, d, double)
#undef COOKBOOK_BLAS

#define COOKBOOK_BLAS(X, T)                                                                       \
  cublasStatus_t cublas##X##gemm(cublasHandle_t handle, cublasOperation_t op_a,                   \
                                 cublasOperation_t op_b, int m, int n, int k, const T* alpha,     \
                                 const T* a, int lda, const T* b, int ldb, const T* beta, T* c,   \
                                 int ldc, Place place) {                                          \
    return run(handle,                                                                            \
               {"cublas" #X "gemm",                                                               \
                m,                                                                                \
                n,                                                                                \
                k,                                                                                \
                {a, kType<T>, lda, 0, op_a},                                                      \
                {b, kType<T>, ldb, 0, op_b},                                                      \
                {c, kType<T>, ldc, 0, CUBLAS_OP_N},                                               \
                1},                                                                               \
               alpha, beta, kType<T>, place);                                                     \
  }                                                                                               \
  cublasStatus_t cublas##X##gemmStridedBatched(                                                   \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, \
      const T* alpha, const T* a, int lda, long long stride_a, const T* b, int ldb,               \
      long long stride_b, const T* beta, T* c, int ldc, long long stride_c, int count,            \
      Place place) {                                                                              \
    return run(handle,                                                                            \
               {"cublas" #X "gemmStridedBatched",                                                 \
                m,                                                                                \
                n,                                                                                \
                k,                                                                                \
                {a, kType<T>, lda, stride_a, op_a},                                               \
                {b, kType<T>, ldb, stride_b, op_b},                                               \
                {c, kType<T>, ldc, stride_c, CUBLAS_OP_N},                                        \
                count},                                                                           \
               alpha, beta, kType<T>, place);                                                     \
  }                                                                                               \
  cublasStatus_t cublas##X##gemmBatched(                                                          \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, \
      const T* alpha, const T* const a[], int lda, const T* const b[], int ldb, const T* beta,    \
      T* const c[], int ldc, int count, Place place) {                                            \
    if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;                                  \
    const char* const function = "cublas" #X "gemmBatched";                                       \
    const auto of_a = pointers(handle, function, a, count, place);                                \
    const auto of_b = pointers(handle, function, b, count, place);                                \
    const auto of_c = pointers(handle, function, c, count, place);                                \
    if (of_a.empty() || of_b.empty() || of_c.empty()) return CUBLAS_STATUS_EXECUTION_FAILED;      \
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;                                                \
    for (size_t i = 0; i < size_t(count) && status == CUBLAS_STATUS_SUCCESS; ++i) {               \
      status = run(handle,                                                                        \
                   {function,                                                                     \
                    m,                                                                            \
                    n,                                                                            \
                    k,                                                                            \
                    {of_a[i], kType<T>, lda, 0, op_a},                                            \
                    {of_b[i], kType<T>, ldb, 0, op_b},                                            \
                    {of_c[i], kType<T>, ldc, 0, CUBLAS_OP_N},                                     \
                    1},                                                                           \
                   alpha, beta, kType<T>, place);                                                 \
    }                                                                                             \
    return status;                                                                                \
  }
COOKBOOK_BLAS(S, float)
COOKBOOK_BLAS(D, double)
COOKBOOK_BLAS(H, __half)
#undef COOKBOOK_BLAS

#define COOKBOOK_BLAS(X, T)                                                                        \
  cublasStatus_t cublas##X##geam(cublasHandle_t handle, cublasOperation_t op_a,                    \
                                 cublasOperation_t op_b, int m, int n, const T* alpha, const T* a, \
                                 int lda, const T* beta, const T* b, int ldb, T* c, int ldc,       \
                                 Place place) {                                                    \
    return add(handle, "cublas" #X "geam", m, n, alpha, Matrix{a, kType<T>, lda, 0, op_a}, beta,   \
               Matrix{b, kType<T>, ldb, 0, op_b}, c, ldc, place);                                  \
  }                                                                                                \
  cublasStatus_t cublas##X##ger(cublasHandle_t handle, int m, int n, const T* alpha, const T* x_,  \
                                int step_x, const T* y, int step_y, T* a, int lda, Place place) {  \
    const Vector<const T> rows{x_, m, step_x}, columns{y, n, step_y};                              \
    const Vector<T> all{a, m <= 0 || n <= 0 ? 0 : lda * (n - 1) + m, 1};                           \
    const Vector<const T> old{a, all.n, 1};                                                        \
    return run(handle, "cublas" #X "ger", place, Vectors<const T>{rows, columns, old},             \
               Vectors<T>{all}, [&](Call& call) {                                                  \
                 const T factor = scalar<T>(alpha, kType<T>, call);                                \
                 for (int j = 0; j < n; ++j) {                                                     \
                   for (int i = 0; i < m; ++i) all[j * lda + i] += factor * rows[i] * columns[j];  \
                 }                                                                                 \
               });                                                                                 \
  }                                                                                                \
  cublasStatus_t cublas##X##swap(cublasHandle_t handle, int n, T* x_, int step_x, T* y,            \
                                 int step_y, Place place) {                                        \
    const Vector<T> a{x_, n, step_x}, b{y, n, step_y};                                             \
    const Vector<const T> old_a{x_, n, step_x}, old_b{y, n, step_y};                               \
    return run(handle, "cublas" #X "swap", place, Vectors<const T>{old_a, old_b},                  \
               Vectors<T>{a, b}, [&](Call&) {                                                      \
                 for (int i = 0; i < n; ++i) std::swap(a[i], b[i]);                                \
               });                                                                                 \
  }
COOKBOOK_BLAS(S, float)
COOKBOOK_BLAS(D, double)
#undef COOKBOOK_BLAS

cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->scalars = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void* x, cudaDataType type_x,
                           int step_x, const void* y, cudaDataType type_y, int step_y, void* result,
                           cudaDataType type_result, cudaDataType, Place place) {
  if (step_x < 1 || step_y < 1) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  // As matrices of one row.
  const Matrix a{x, type_x, step_x, 0, CUBLAS_OP_N}, b{y, type_y, step_y, 0, CUBLAS_OP_N};
  Call call("cublasDotEx", handle, place);
  call.scalar_is_right(result);
  if (!readable(call, a, x, 1, n) || !readable(call, b, y, 1, n) ||
      (is_in_device_memory(result) && !call.writes(result, bytes_of(type_result)))) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  double sum = 0;
  for (size_t i = 0; i < size_t(n); ++i) {
    sum += element<double>(x, type_x, i * size_t(step_x)) *
           element<double>(y, type_y, i * size_t(step_y));
  }
  set_element(result, type_result, 0, sum);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType type_a, int lda, const void* b, cudaDataType type_b,
                            int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t, Place place) {
  return run(handle,
             {"cublasGemmEx",
              m,
              n,
              k,
              {a, type_a, lda, 0, op_a},
              {b, type_b, ldb, 0, op_b},
              {c, type_c, ldc, 0, CUBLAS_OP_N},
              1},
             alpha, beta, scalar_type(compute), place);
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
    const void* alpha, const void* a, cudaDataType type_a, int lda, long long stride_a,
    const void* b, cudaDataType type_b, int ldb, long long stride_b, const void* beta, void* c,
    cudaDataType type_c, int ldc, long long stride_c, int count, cublasComputeType_t compute,
    cublasGemmAlgo_t, Place place) {
  return run(handle,
             {"cublasGemmStridedBatchedEx",
              m,
              n,
              k,
              {a, type_a, lda, stride_a, op_a},
              {b, type_b, ldb, stride_b, op_b},
              {c, type_c, ldc, stride_c, CUBLAS_OP_N},
              count},
             alpha, beta, scalar_type(compute), place);
}
