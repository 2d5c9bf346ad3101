// SPDX-License-Identifier: MIT
// The generic calls of cuSPARSE for CSR, CSC and COO, computed on the CPU in device memory
// (tools/check/program/cusparse.cpp).
#pragma once

#include "cuda_fp16.h"
#include "cuda_runtime.h"
#include "library_types.h"

// By this name programs ask whether the header was included.
#define CUSPARSEAPI

enum cusparseStatus_t {
  CUSPARSE_STATUS_SUCCESS,
  CUSPARSE_STATUS_NOT_INITIALIZED,
  CUSPARSE_STATUS_ALLOC_FAILED,
  CUSPARSE_STATUS_INVALID_VALUE,
  CUSPARSE_STATUS_ARCH_MISMATCH,
  CUSPARSE_STATUS_MAPPING_ERROR,
  CUSPARSE_STATUS_EXECUTION_FAILED,
  CUSPARSE_STATUS_INTERNAL_ERROR,
  CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED,
  CUSPARSE_STATUS_ZERO_PIVOT,
  CUSPARSE_STATUS_NOT_SUPPORTED,
  CUSPARSE_STATUS_INSUFFICIENT_RESOURCES
};
enum cusparsePointerMode_t { CUSPARSE_POINTER_MODE_HOST, CUSPARSE_POINTER_MODE_DEVICE };
enum cusparseAction_t { CUSPARSE_ACTION_SYMBOLIC, CUSPARSE_ACTION_NUMERIC };
enum cusparseFillMode_t { CUSPARSE_FILL_MODE_LOWER, CUSPARSE_FILL_MODE_UPPER };
enum cusparseDiagType_t { CUSPARSE_DIAG_TYPE_NON_UNIT, CUSPARSE_DIAG_TYPE_UNIT };
enum cusparseIndexBase_t { CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_INDEX_BASE_ONE };
enum cusparseOperation_t {
  CUSPARSE_OPERATION_NON_TRANSPOSE,
  CUSPARSE_OPERATION_TRANSPOSE,
  CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE
};
enum cusparseOrder_t { CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW = 2 };
enum cusparseIndexType_t { CUSPARSE_INDEX_32I = 2, CUSPARSE_INDEX_64I = 3 };
enum cusparseSpMatAttribute_t { CUSPARSE_SPMAT_FILL_MODE, CUSPARSE_SPMAT_DIAG_TYPE };
enum cusparseSpMVAlg_t {
  CUSPARSE_SPMV_ALG_DEFAULT,
  CUSPARSE_SPMV_COO_ALG1,
  CUSPARSE_SPMV_CSR_ALG1,
  CUSPARSE_SPMV_CSR_ALG2,
  CUSPARSE_SPMV_COO_ALG2
};
enum cusparseSpMMAlg_t {
  CUSPARSE_SPMM_ALG_DEFAULT = 0,
  CUSPARSE_SPMM_COO_ALG1 = 1,
  CUSPARSE_SPMM_COO_ALG2 = 2,
  CUSPARSE_SPMM_COO_ALG3 = 3,
  CUSPARSE_SPMM_CSR_ALG1 = 4,
  CUSPARSE_SPMM_COO_ALG4 = 5,
  CUSPARSE_SPMM_CSR_ALG2 = 6,
  CUSPARSE_SPMM_CSR_ALG3 = 12
};
enum cusparseSpGEMMAlg_t {
  CUSPARSE_SPGEMM_DEFAULT,
  CUSPARSE_SPGEMM_CSR_ALG_DETERMINITIC,
  CUSPARSE_SPGEMM_CSR_ALG_NONDETERMINITIC,
  CUSPARSE_SPGEMM_ALG1
};
enum cusparseSDDMMAlg_t { CUSPARSE_SDDMM_ALG_DEFAULT };
enum cusparseSpSVAlg_t { CUSPARSE_SPSV_ALG_DEFAULT };
enum cusparseSpSMAlg_t { CUSPARSE_SPSM_ALG_DEFAULT };
enum cusparseSparseToDenseAlg_t { CUSPARSE_SPARSETODENSE_ALG_DEFAULT };
enum cusparseDenseToSparseAlg_t { CUSPARSE_DENSETOSPARSE_ALG_DEFAULT };
enum cusparseCsr2CscAlg_t { CUSPARSE_CSR2CSC_ALG_DEFAULT = 1, CUSPARSE_CSR2CSC_ALG1 = 1 };

struct cusparseContext;
struct cusparseSpMatDescr;
struct cusparseDnMatDescr;
struct cusparseDnVecDescr;
struct cusparseSpVecDescr;
struct cusparseSpGEMMDescr;
typedef cusparseContext* cusparseHandle_t;
typedef cusparseSpMatDescr* cusparseSpMatDescr_t;
typedef cusparseDnMatDescr* cusparseDnMatDescr_t;
typedef cusparseDnVecDescr* cusparseDnVecDescr_t;
typedef cusparseSpVecDescr* cusparseSpVecDescr_t;
typedef cusparseSpGEMMDescr* cusparseSpGEMMDescr_t;
typedef const cusparseSpMatDescr* cusparseConstSpMatDescr_t;
typedef const cusparseDnMatDescr* cusparseConstDnMatDescr_t;
typedef const cusparseDnVecDescr* cusparseConstDnVecDescr_t;
typedef const cusparseSpVecDescr* cusparseConstSpVecDescr_t;
typedef struct cusparseSpSVDescr* cusparseSpSVDescr_t;  // null: an analysis keeps nothing
typedef struct cusparseSpSMDescr* cusparseSpSMDescr_t;

cusparseStatus_t cusparseCreate(cusparseHandle_t* handle);
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle);
cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream);
cusparseStatus_t cusparseGetStream(cusparseHandle_t handle, cudaStream_t* stream);
/// Scalars are found wherever they are.
inline cusparseStatus_t cusparseSetPointerMode(cusparseHandle_t, cusparsePointerMode_t) {
  return CUSPARSE_STATUS_SUCCESS;
}
inline cusparseStatus_t cusparseGetVersion(cusparseHandle_t, int* version) {
  *version = 12500;
  return CUSPARSE_STATUS_SUCCESS;
}
const char* cusparseGetErrorName(cusparseStatus_t status);
inline const char* cusparseGetErrorString(cusparseStatus_t status) {
  return cusparseGetErrorName(status);
}

// ---- operands ----

cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns,
                                   int64_t entries, void* offsets, void* indices, void* values,
                                   cusparseIndexType_t of_offsets, cusparseIndexType_t of_indices,
                                   cusparseIndexBase_t base, cudaDataType type);
cusparseStatus_t cusparseCreateCsc(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns,
                                   int64_t entries, void* offsets, void* indices, void* values,
                                   cusparseIndexType_t of_offsets, cusparseIndexType_t of_indices,
                                   cusparseIndexBase_t base, cudaDataType type);
cusparseStatus_t cusparseCreateCoo(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns,
                                   int64_t entries, void* row_indices, void* column_indices,
                                   void* values, cusparseIndexType_t of_indices,
                                   cusparseIndexBase_t base, cudaDataType type);
cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix);
cusparseStatus_t cusparseSpMatGetSize(cusparseConstSpMatDescr_t matrix, int64_t* rows,
                                      int64_t* columns, int64_t* entries);
cusparseStatus_t cusparseCsrSetPointers(cusparseSpMatDescr_t matrix, void* offsets, void* indices,
                                        void* values);
cusparseStatus_t cusparseCooSetPointers(cusparseSpMatDescr_t matrix, void* rows, void* columns,
                                        void* values);
cusparseStatus_t cusparseSpMatSetValues(cusparseSpMatDescr_t matrix, void* values);
cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t matrix,
                                           cusparseSpMatAttribute_t attribute, void* data,
                                           size_t bytes);
cusparseStatus_t cusparseCsrSetStridedBatch(cusparseSpMatDescr_t matrix, int count,
                                            int64_t of_offsets, int64_t of_entries);

cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t* vector, int64_t size, void* values,
                                     cudaDataType type);
cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t vector);
cusparseStatus_t cusparseDnVecSetValues(cusparseDnVecDescr_t vector, void* values);
cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* matrix, int64_t rows, int64_t columns,
                                     int64_t ld, void* values, cudaDataType type,
                                     cusparseOrder_t order);
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix);
cusparseStatus_t cusparseDnMatSetValues(cusparseDnMatDescr_t matrix, void* values);
cusparseStatus_t cusparseDnMatSetStridedBatch(cusparseDnMatDescr_t matrix, int count,
                                              int64_t stride);
cusparseStatus_t cusparseCreateSpVec(cusparseSpVecDescr_t* vector, int64_t size, int64_t entries,
                                     void* indices, void* values, cusparseIndexType_t of_indices,
                                     cusparseIndexBase_t base, cudaDataType type);
cusparseStatus_t cusparseDestroySpVec(cusparseConstSpVecDescr_t vector);

// ---- what is computed; a buffer must have the size that was asked for ----

#define COOKBOOK_SPMV                                                             \
  cusparseHandle_t handle, cusparseOperation_t op_a, const void *alpha,           \
      cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, const void *beta, \
      cusparseDnVecDescr_t y, cudaDataType compute, cusparseSpMVAlg_t algorithm
#define COOKBOOK_SPMM                                                                             \
  cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b, const void *alpha, \
      cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b, const void *beta,                 \
      cusparseDnMatDescr_t c, cudaDataType compute, cusparseSpMMAlg_t algorithm
#define COOKBOOK_SPGEMM                                                                           \
  cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b, const void *alpha, \
      cusparseConstSpMatDescr_t a, cusparseConstSpMatDescr_t b, const void *beta,                 \
      cusparseSpMatDescr_t c, cudaDataType compute, cusparseSpGEMMAlg_t algorithm,                \
      cusparseSpGEMMDescr_t product
#define COOKBOOK_SDDMM                                                                            \
  cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b, const void *alpha, \
      cusparseConstDnMatDescr_t a, cusparseConstDnMatDescr_t b, const void *beta,                 \
      cusparseSpMatDescr_t c, cudaDataType compute, cusparseSDDMMAlg_t algorithm
#define COOKBOOK_SPSV                                                                   \
  cusparseHandle_t handle, cusparseOperation_t op_a, const void *alpha,                 \
      cusparseConstSpMatDescr_t a, cusparseConstDnVecDescr_t x, cusparseDnVecDescr_t y, \
      cudaDataType compute, cusparseSpSVAlg_t algorithm, cusparseSpSVDescr_t analysis
#define COOKBOOK_SPSM                                                                             \
  cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b, const void *alpha, \
      cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b, cusparseDnMatDescr_t c,           \
      cudaDataType compute, cusparseSpSMAlg_t algorithm, cusparseSpSMDescr_t analysis
#define COOKBOOK_TO_DENSE                                                       \
  cusparseHandle_t handle, cusparseConstSpMatDescr_t a, cusparseDnMatDescr_t b, \
      cusparseSparseToDenseAlg_t algorithm
#define COOKBOOK_TO_SPARSE                                                      \
  cusparseHandle_t handle, cusparseConstDnMatDescr_t a, cusparseSpMatDescr_t b, \
      cusparseDenseToSparseAlg_t algorithm

cusparseStatus_t cusparseSpMV_bufferSize(COOKBOOK_SPMV, size_t* bytes);
cusparseStatus_t cusparseSpMV_preprocess(COOKBOOK_SPMV, void* buffer);
cusparseStatus_t cusparseSpMV(COOKBOOK_SPMV, void* buffer, COOKBOOK_PLACE);
cusparseStatus_t cusparseSpMM_bufferSize(COOKBOOK_SPMM, size_t* bytes);
cusparseStatus_t cusparseSpMM_preprocess(COOKBOOK_SPMM, void* buffer);
cusparseStatus_t cusparseSpMM(COOKBOOK_SPMM, void* buffer, COOKBOOK_PLACE);
cusparseStatus_t cusparseSpGEMM_createDescr(cusparseSpGEMMDescr_t* product);
cusparseStatus_t cusparseSpGEMM_destroyDescr(cusparseSpGEMMDescr_t product);
cusparseStatus_t cusparseSpGEMM_workEstimation(COOKBOOK_SPGEMM, size_t* bytes, void* buffer,
                                               COOKBOOK_PLACE);
cusparseStatus_t cusparseSpGEMM_compute(COOKBOOK_SPGEMM, size_t* bytes, void* buffer,
                                        COOKBOOK_PLACE);
cusparseStatus_t cusparseSpGEMM_copy(COOKBOOK_SPGEMM, COOKBOOK_PLACE);
cusparseStatus_t cusparseSDDMM_bufferSize(COOKBOOK_SDDMM, size_t* bytes);
cusparseStatus_t cusparseSDDMM_preprocess(COOKBOOK_SDDMM, void* buffer);
cusparseStatus_t cusparseSDDMM(COOKBOOK_SDDMM, void* buffer, COOKBOOK_PLACE);
cusparseStatus_t cusparseSpSV_createDescr(cusparseSpSVDescr_t* analysis);
cusparseStatus_t cusparseSpSV_destroyDescr(cusparseSpSVDescr_t analysis);
cusparseStatus_t cusparseSpSV_bufferSize(COOKBOOK_SPSV, size_t* bytes);
cusparseStatus_t cusparseSpSV_analysis(COOKBOOK_SPSV, void* buffer, COOKBOOK_PLACE);
cusparseStatus_t cusparseSpSV_solve(COOKBOOK_SPSV, COOKBOOK_PLACE);
cusparseStatus_t cusparseSpSM_createDescr(cusparseSpSMDescr_t* analysis);
cusparseStatus_t cusparseSpSM_destroyDescr(cusparseSpSMDescr_t analysis);
cusparseStatus_t cusparseSpSM_bufferSize(COOKBOOK_SPSM, size_t* bytes);
cusparseStatus_t cusparseSpSM_analysis(COOKBOOK_SPSM, void* buffer, COOKBOOK_PLACE);
cusparseStatus_t cusparseSpSM_solve(COOKBOOK_SPSM, COOKBOOK_PLACE);
cusparseStatus_t cusparseSparseToDense_bufferSize(COOKBOOK_TO_DENSE, size_t* bytes);
cusparseStatus_t cusparseSparseToDense(COOKBOOK_TO_DENSE, void* buffer, COOKBOOK_PLACE);
cusparseStatus_t cusparseDenseToSparse_bufferSize(COOKBOOK_TO_SPARSE, size_t* bytes);
cusparseStatus_t cusparseDenseToSparse_analysis(COOKBOOK_TO_SPARSE, void* buffer, COOKBOOK_PLACE);
cusparseStatus_t cusparseDenseToSparse_convert(COOKBOOK_TO_SPARSE, void* buffer, COOKBOOK_PLACE);
cusparseStatus_t cusparseGather(cusparseHandle_t handle, cusparseConstDnVecDescr_t y,
                                cusparseSpVecDescr_t x, COOKBOOK_PLACE);
cusparseStatus_t cusparseScatter(cusparseHandle_t handle, cusparseConstSpVecDescr_t x,
                                 cusparseDnVecDescr_t y, COOKBOOK_PLACE);
cusparseStatus_t cusparseAxpby(cusparseHandle_t handle, const void* alpha,
                               cusparseConstSpVecDescr_t x, const void* beta,
                               cusparseDnVecDescr_t y, COOKBOOK_PLACE);
