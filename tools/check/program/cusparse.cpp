// SPDX-License-Identifier: MIT
// cuSPARSE for checked programs: plain loops with sums in double precision. What is read and
// written is checked before, and so are offsets and indices.
#include "tools/check/program/include/cusparse.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/check/program/library_elements.hpp"

// The parameters are cuSPARSE's. Some say how to compute, which does not matter here.
#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace {

using cookbook::simt::program::bytes_of;
using cookbook::simt::program::element;
using cookbook::simt::program::LibraryCall;
using cookbook::simt::program::Place;
using cookbook::simt::program::scalar;
using cookbook::simt::program::set_element;

constexpr size_t kBuffer = 16;  // bytes of each external buffer

enum class Format { kRows, kColumns, kPairs };  // CSR, CSC, COO

size_t size(int64_t n) { return static_cast<size_t>(std::max<int64_t>(n, 0)); }

struct Indices {
  void* data = nullptr;
  cusparseIndexType_t type = CUSPARSE_INDEX_32I;

  size_t bytes() const { return type == CUSPARSE_INDEX_64I ? 8 : 4; }
  Indices from(int64_t i) const {
    return {static_cast<char*>(data) + i * static_cast<int64_t>(bytes()), type};
  }
  int64_t operator[](size_t i) const {
    return type == CUSPARSE_INDEX_64I ? static_cast<int64_t*>(data)[i]
                                      : static_cast<int32_t*>(data)[i];
  }
  void set(size_t i, int64_t value) const {
    if (type == CUSPARSE_INDEX_64I) {
      static_cast<int64_t*>(data)[i] = value;
    } else {
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
    }
  }
};

}  // namespace

struct cusparseContext {
  cudaStream_t stream = nullptr;
};
struct cusparseSpMatDescr {
  Format format;
  int64_t rows, columns, entries;
  Indices first, second;  // offsets or row indices, and indices
  void* values;
  int64_t base;
  cudaDataType type;
  cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
  cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
  int count = 1;
  int64_t stride_first = 0, stride = 0;

  cusparseSpMatDescr of(int batch) const {
    cusparseSpMatDescr one = *this;
    if (count == 1) return one;
    one.first = first.from(batch * stride_first);
    one.second = second.from(batch * stride);
    one.values = static_cast<char*>(values) + batch * stride * int64_t(bytes_of(type));
    return one;
  }
};
struct cusparseDnMatDescr {
  int64_t rows, columns, ld;
  void* values;
  cudaDataType type;
  cusparseOrder_t order;
  int count = 1;
  int64_t stride = 0;
};
struct cusparseDnVecDescr {
  int64_t size;
  void* values;
  cudaDataType type;

  cusparseDnMatDescr column() const { return {size, 1, size, values, type, CUSPARSE_ORDER_COL}; }
};
struct cusparseSpVecDescr {
  int64_t size, entries;
  Indices indices;
  void* values;
  int64_t base;
  cudaDataType type;
};

namespace {

struct Entry {
  int64_t row, column;
  double value;
};
using Entries = std::vector<Entry>;

}  // namespace

struct cusparseSpGEMMDescr {
  Entries entries;
};

namespace {

/// A dense operand, as op(X).
struct Dense {
  const cusparseDnMatDescr* of;
  bool is_transposed = false;
  int batch = 0;

  int64_t rows() const { return is_transposed ? of->columns : of->rows; }
  int64_t columns() const { return is_transposed ? of->rows : of->columns; }
  char* data() const {
    return static_cast<char*>(of->values) +
           (of->count == 1 ? 0 : batch * of->stride * int64_t(bytes_of(of->type)));
  }
  size_t at(int64_t i, int64_t j) const {
    return static_cast<size_t>((of->order == CUSPARSE_ORDER_COL) == is_transposed ? i * of->ld + j
                                                                                  : j * of->ld + i);
  }
  double get(int64_t i, int64_t j) const { return element<double>(data(), of->type, at(i, j)); }
  void set(int64_t i, int64_t j, double value) const {
    set_element(data(), of->type, at(i, j), value);
  }
  bool is_readable(LibraryCall& call) const {
    const bool by_columns = of->order == CUSPARSE_ORDER_COL;
    const size_t bytes = bytes_of(of->type);
    return call.reads_rows(data(), bytes * size(by_columns ? of->rows : of->columns),
                           size(by_columns ? of->columns : of->rows), bytes * size(of->ld));
  }
  bool is_writable(LibraryCall& call) const {
    if (rows() < 1 || columns() < 1) return true;
    return call.writes(data(), bytes_of(of->type) * (at(rows() - 1, columns() - 1) + 1));
  }
};

bool is_transposed(cusparseOperation_t op) { return op != CUSPARSE_OPERATION_NON_TRANSPOSE; }

bool is_inside(LibraryCall& call, int64_t index, int64_t n, const char* what) {
  return (index >= 0 && index < n) ||
         call.out_of_bounds("finds " + std::string(what) + " " + std::to_string(index) + " where " +
                            std::to_string(n) + " is the number of them");
}

/// Of an operand that can be read, in the order in which they are stored; nothing otherwise.
std::optional<Entries> entries(LibraryCall& call, const cusparseSpMatDescr& a,
                               bool transpose = false, bool has_values = true) {
  const size_t n = size(a.entries);
  const bool by_rows = a.format != Format::kColumns;
  const size_t outer = size(by_rows ? a.rows : a.columns);
  const size_t firsts = a.format == Format::kPairs ? n : outer + 1;
  if (!call.reads(a.first.data, firsts * a.first.bytes()) ||
      !call.reads(a.second.data, n * a.second.bytes()) ||
      (has_values && !call.reads(a.values, n * bytes_of(a.type)))) {
    return {};
  }
  Entries all;
  const auto add = [&](int64_t first, size_t i) {
    const int64_t second = a.second[i] - a.base;
    const int64_t row = by_rows ? first : second, column = by_rows ? second : first;
    if (!is_inside(call, row, a.rows, "row") || !is_inside(call, column, a.columns, "column")) {
      return false;
    }
    const double value = has_values ? element<double>(a.values, a.type, i) : 0;
    all.push_back(transpose ? Entry{column, row, value} : Entry{row, column, value});
    return true;
  };
  if (a.format == Format::kPairs) {
    for (size_t i = 0; i < n; ++i) {
      if (!add(a.first[i] - a.base, i)) return {};
    }
    return all;
  }
  for (size_t at = 0; at < outer; ++at) {
    const int64_t begin = a.first[at] - a.base, end = a.first[at + 1] - a.base;
    if (!is_inside(call, begin, a.entries + 1, "offset") ||
        !is_inside(call, end, a.entries + 1, "offset")) {
      return {};
    }
    for (int64_t i = begin; i < end; ++i) {
      if (!add(static_cast<int64_t>(at), static_cast<size_t>(i))) return {};
    }
  }
  return all;
}

/// The offsets of `all`, which are in order, if they have a place; then, the rest.
bool put_offsets(LibraryCall& call, const cusparseSpMatDescr& a, const Entries& all) {
  if (a.format == Format::kPairs) return true;
  const size_t outer = size(a.format == Format::kRows ? a.rows : a.columns);
  if (!call.writes(a.first.data, (outer + 1) * a.first.bytes())) return false;
  std::vector<int64_t> ends(outer + 1);
  for (const Entry& one : all) {
    ++ends[static_cast<size_t>(a.format == Format::kRows ? one.row : one.column) + 1];
  }
  for (size_t i = 0; i <= outer; ++i) {
    if (i > 0) ends[i] += ends[i - 1];
    a.first.set(i, ends[i] + a.base);
  }
  return true;
}
bool put_entries(LibraryCall& call, const cusparseSpMatDescr& a, const Entries& all) {
  const bool is_pairs = a.format == Format::kPairs;
  if ((is_pairs && !call.writes(a.first.data, all.size() * a.first.bytes())) ||
      !call.writes(a.second.data, all.size() * a.second.bytes()) ||
      !call.writes(a.values, all.size() * bytes_of(a.type))) {
    return false;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_pairs) a.first.set(i, all[i].row + a.base);
    a.second.set(i, (a.format == Format::kColumns ? all[i].row : all[i].column) + a.base);
    set_element(a.values, a.type, i, all[i].value);
  }
  return true;
}

/// What every call has in front.
struct Call : LibraryCall {
  Call(const char* function, cusparseHandle_t handle, Place place)
      : LibraryCall(function, handle->stream, place) {}
  bool has_buffer(void* buffer) { return buffer == nullptr || writes(buffer, kBuffer); }
};

cusparseStatus_t buffer_size(size_t* bytes) {
  *bytes = kBuffer;
  return CUSPARSE_STATUS_SUCCESS;
}

/// C = alpha op(A) op(B) + beta C
cusparseStatus_t multiply(const char* function, cusparseHandle_t handle, cusparseOperation_t op_a,
                          cusparseOperation_t op_b, const void* alpha, const cusparseSpMatDescr* a,
                          const cusparseDnMatDescr* b, const void* beta, cusparseDnMatDescr* c,
                          cudaDataType compute, void* buffer, Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  Call call(function, handle, place);
  const double of_product = scalar<double>(alpha, compute, call);
  const double of_c = scalar<double>(beta, compute, call);
  if (!call.has_buffer(buffer)) return CUSPARSE_STATUS_EXECUTION_FAILED;
  for (int batch = 0; batch < c->count; ++batch) {
    const Dense from{b, is_transposed(op_b), batch}, to{c, false, batch};
    const bool flipped = is_transposed(op_a);
    if ((flipped ? a->columns : a->rows) != to.rows() || from.columns() != to.columns() ||
        (flipped ? a->rows : a->columns) != from.rows()) {
      return CUSPARSE_STATUS_INVALID_VALUE;
    }
    const auto all = entries(call, a->of(batch), flipped);
    if (!all || !from.is_readable(call) || (of_c != 0 && !to.is_readable(call)) ||
        !to.is_writable(call)) {
      return CUSPARSE_STATUS_EXECUTION_FAILED;
    }
    std::vector<double> sums(size(to.rows()));
    for (int64_t j = 0; j < to.columns(); ++j) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (const Entry& one : *all) {
        sums[static_cast<size_t>(one.row)] += one.value * from.get(one.column, j);
      }
      for (int64_t i = 0; i < to.rows(); ++i) {
        const double before = of_c == 0 ? 0 : of_c * to.get(i, j);  // which may be NaN
        to.set(i, j, of_product * sums[static_cast<size_t>(i)] + before);
      }
    }
  }
  return CUSPARSE_STATUS_SUCCESS;
}

/// op(A) C = alpha op(B) with the named triangle of A
cusparseStatus_t solve(const char* function, cusparseHandle_t handle, cusparseOperation_t op_a,
                       cusparseOperation_t op_b, const void* alpha, const cusparseSpMatDescr* a,
                       const cusparseDnMatDescr* b, cusparseDnMatDescr* c, cudaDataType compute,
                       Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  const Dense from{b, is_transposed(op_b)}, to{c};
  if (a->rows != a->columns || from.rows() != a->rows || to.rows() != a->rows ||
      from.columns() != to.columns()) {
    return CUSPARSE_STATUS_INVALID_VALUE;
  }
  Call call(function, handle, place);
  const double factor = scalar<double>(alpha, compute, call);
  const auto all = entries(call, *a, is_transposed(op_a));
  if (!all || !from.is_readable(call) || !to.is_writable(call)) {
    return CUSPARSE_STATUS_EXECUTION_FAILED;
  }
  const bool is_lower = (a->fill == CUSPARSE_FILL_MODE_LOWER) != is_transposed(op_a);
  const bool is_unit = a->diagonal == CUSPARSE_DIAG_TYPE_UNIT;
  std::vector<Entries> rows(size(a->rows));
  for (const Entry& one : *all) rows[static_cast<size_t>(one.row)].push_back(one);
  std::vector<double> x(rows.size());
  for (int64_t j = 0; j < to.columns(); ++j) {
    for (size_t step = 0; step < rows.size(); ++step) {
      const size_t i = is_lower ? step : rows.size() - 1 - step;
      double sum = factor * from.get(static_cast<int64_t>(i), j), pivot = is_unit ? 1 : 0;
      for (const Entry& one : rows[i]) {
        if (one.column == one.row) {
          pivot = is_unit ? 1 : pivot + one.value;
        } else if ((one.column < one.row) == is_lower) {
          sum -= one.value * x[static_cast<size_t>(one.column)];
        }
      }
      x[i] = sum / pivot;
    }
    for (size_t i = 0; i < x.size(); ++i) to.set(static_cast<int64_t>(i), j, x[i]);
  }
  return CUSPARSE_STATUS_SUCCESS;
}

/// With a sparse vector, `compute(i, place in the dense one)` for each of its entries.
template <class F>
cusparseStatus_t with_vector(Call& call, const cusparseSpVecDescr& x, int64_t n, const F& compute) {
  if (!call.reads(x.indices.data, size(x.entries) * x.indices.bytes())) {
    return CUSPARSE_STATUS_EXECUTION_FAILED;
  }
  for (size_t i = 0; i < size(x.entries); ++i) {
    const int64_t at = x.indices[i] - x.base;
    if (!is_inside(call, at, n, "index")) return CUSPARSE_STATUS_EXECUTION_FAILED;
    compute(i, static_cast<size_t>(at));
  }
  return CUSPARSE_STATUS_SUCCESS;
}

template <class T>
cusparseStatus_t destroy(const T* operand) {
  delete operand;
  return CUSPARSE_STATUS_SUCCESS;
}

}  // namespace

cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) {
  *handle = new cusparseContext;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) { return destroy(handle); }
cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseGetStream(cusparseHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUSPARSE_STATUS_SUCCESS;
}
const char* cusparseGetErrorName(cusparseStatus_t status) {
  switch (status) {
    case CUSPARSE_STATUS_SUCCESS: return "CUSPARSE_STATUS_SUCCESS";
    case CUSPARSE_STATUS_NOT_INITIALIZED: return "CUSPARSE_STATUS_NOT_INITIALIZED";
    case CUSPARSE_STATUS_INVALID_VALUE: return "CUSPARSE_STATUS_INVALID_VALUE";
    case CUSPARSE_STATUS_EXECUTION_FAILED: return "CUSPARSE_STATUS_EXECUTION_FAILED";
    default: return "CUSPARSE_STATUS_NOT_SUPPORTED";
  }
}

// ---- operands ----

cusparseStatus_t cusparseCreateCsr(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns,
                                   int64_t entries, void* offsets, void* indices, void* values,
                                   cusparseIndexType_t of_offsets, cusparseIndexType_t of_indices,
                                   cusparseIndexBase_t base, cudaDataType type) {
  *matrix =
      new cusparseSpMatDescr{Format::kRows,         rows,   columns, entries, {offsets, of_offsets},
                             {indices, of_indices}, values, base,    type};
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateCsc(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns,
                                   int64_t entries, void* offsets, void* indices, void* values,
                                   cusparseIndexType_t of_offsets, cusparseIndexType_t of_indices,
                                   cusparseIndexBase_t base, cudaDataType type) {
  cusparseCreateCsr(matrix, rows, columns, entries, offsets, indices, values, of_offsets,
                    of_indices, base, type);
  (*matrix)->format = Format::kColumns;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateCoo(cusparseSpMatDescr_t* matrix, int64_t rows, int64_t columns,
                                   int64_t entries, void* row_indices, void* column_indices,
                                   void* values, cusparseIndexType_t of_indices,
                                   cusparseIndexBase_t base, cudaDataType type) {
  cusparseCreateCsr(matrix, rows, columns, entries, row_indices, column_indices, values, of_indices,
                    of_indices, base, type);
  (*matrix)->format = Format::kPairs;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) { return destroy(matrix); }
cusparseStatus_t cusparseSpMatGetSize(cusparseConstSpMatDescr_t matrix, int64_t* rows,
                                      int64_t* columns, int64_t* entries) {
  *rows = matrix->rows, *columns = matrix->columns, *entries = matrix->entries;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCsrSetPointers(cusparseSpMatDescr_t matrix, void* offsets, void* indices,
                                        void* values) {
  matrix->first.data = offsets, matrix->second.data = indices, matrix->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCooSetPointers(cusparseSpMatDescr_t matrix, void* rows, void* columns,
                                        void* values) {
  return cusparseCsrSetPointers(matrix, rows, columns, values);
}
cusparseStatus_t cusparseSpMatSetValues(cusparseSpMatDescr_t matrix, void* values) {
  matrix->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t matrix,
                                           cusparseSpMatAttribute_t attribute, void* data,
                                           size_t bytes) {
  if (bytes != sizeof(int)) return CUSPARSE_STATUS_INVALID_VALUE;
  if (attribute == CUSPARSE_SPMAT_FILL_MODE) {
    matrix->fill = *static_cast<cusparseFillMode_t*>(data);
  } else {
    matrix->diagonal = *static_cast<cusparseDiagType_t*>(data);
  }
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCsrSetStridedBatch(cusparseSpMatDescr_t matrix, int count,
                                            int64_t of_offsets, int64_t of_entries) {
  matrix->count = count, matrix->stride_first = of_offsets, matrix->stride = of_entries;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateDnVec(cusparseDnVecDescr_t* vector, int64_t size, void* values,
                                     cudaDataType type) {
  *vector = new cusparseDnVecDescr{size, values, type};
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroyDnVec(cusparseConstDnVecDescr_t vector) { return destroy(vector); }
cusparseStatus_t cusparseDnVecSetValues(cusparseDnVecDescr_t vector, void* values) {
  vector->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* matrix, int64_t rows, int64_t columns,
                                     int64_t ld, void* values, cudaDataType type,
                                     cusparseOrder_t order) {
  if (ld < (order == CUSPARSE_ORDER_COL ? rows : columns)) return CUSPARSE_STATUS_INVALID_VALUE;
  *matrix = new cusparseDnMatDescr{rows, columns, ld, values, type, order};
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix) { return destroy(matrix); }
cusparseStatus_t cusparseDnMatSetValues(cusparseDnMatDescr_t matrix, void* values) {
  matrix->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDnMatSetStridedBatch(cusparseDnMatDescr_t matrix, int count,
                                              int64_t stride) {
  matrix->count = count, matrix->stride = stride;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateSpVec(cusparseSpVecDescr_t* vector, int64_t size, int64_t entries,
                                     void* indices, void* values, cusparseIndexType_t of_indices,
                                     cusparseIndexBase_t base, cudaDataType type) {
  *vector = new cusparseSpVecDescr{size, entries, {indices, of_indices}, values, base, type};
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroySpVec(cusparseConstSpVecDescr_t vector) { return destroy(vector); }

// ---- what is computed ----

cusparseStatus_t cusparseSpMV_bufferSize(COOKBOOK_SPMV, size_t* bytes) {
  return buffer_size(bytes);
}
cusparseStatus_t cusparseSpMV_preprocess(COOKBOOK_SPMV, void* buffer) {
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMV(COOKBOOK_SPMV, void* buffer, Place place) {
  const cusparseDnMatDescr from = x->column();
  cusparseDnMatDescr to = y->column();
  return multiply("cusparseSpMV", handle, op_a, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha, a, &from,
                  beta, &to, compute, buffer, place);
}
cusparseStatus_t cusparseSpMM_bufferSize(COOKBOOK_SPMM, size_t* bytes) {
  return buffer_size(bytes);
}
cusparseStatus_t cusparseSpMM_preprocess(COOKBOOK_SPMM, void* buffer) {
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMM(COOKBOOK_SPMM, void* buffer, Place place) {
  return multiply("cusparseSpMM", handle, op_a, op_b, alpha, a, b, beta, c, compute, buffer, place);
}

cusparseStatus_t cusparseSpGEMM_createDescr(cusparseSpGEMMDescr_t* product) {
  *product = new cusparseSpGEMMDescr;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpGEMM_destroyDescr(cusparseSpGEMMDescr_t product) {
  return destroy(product);
}
cusparseStatus_t cusparseSpGEMM_workEstimation(COOKBOOK_SPGEMM, size_t* bytes, void* buffer,
                                               Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (!buffer) return buffer_size(bytes);
  Call call("cusparseSpGEMM_workEstimation", handle, place);
  return call.has_buffer(buffer) ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_EXECUTION_FAILED;
}
cusparseStatus_t cusparseSpGEMM_compute(COOKBOOK_SPGEMM, size_t* bytes, void* buffer, Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (!buffer) return buffer_size(bytes);
  if (is_transposed(op_a) || is_transposed(op_b)) return CUSPARSE_STATUS_NOT_SUPPORTED;
  if (a->columns != b->rows || a->rows != c->rows || b->columns != c->columns) {
    return CUSPARSE_STATUS_INVALID_VALUE;
  }
  Call call("cusparseSpGEMM_compute", handle, place);
  const double factor = scalar<double>(alpha, compute, call);
  const auto left = entries(call, *a), right = entries(call, *b);
  if (!left || !right || !call.has_buffer(buffer)) return CUSPARSE_STATUS_EXECUTION_FAILED;
  std::vector<Entries> rows(size(b->rows));
  for (const Entry& one : *right) rows[static_cast<size_t>(one.row)].push_back(one);
  std::vector<std::map<int64_t, double>> sums(size(a->rows));
  for (const Entry& one : *left) {
    for (const Entry& other : rows[static_cast<size_t>(one.column)]) {
      sums[static_cast<size_t>(one.row)][other.column] += factor * one.value * other.value;
    }
  }
  product->entries.clear();
  for (size_t i = 0; i < sums.size(); ++i) {
    for (const auto& [column, sum] : sums[i]) {
      product->entries.push_back({static_cast<int64_t>(i), column, sum});
    }
  }
  c->entries = static_cast<int64_t>(product->entries.size());
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpGEMM_copy(COOKBOOK_SPGEMM, Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  Call call("cusparseSpGEMM_copy", handle, place);
  const double of_c = scalar<double>(beta, compute, call);
  Entries all = product->entries;
  if (of_c != 0 && !call.reads(c->values, all.size() * bytes_of(c->type))) {
    return CUSPARSE_STATUS_EXECUTION_FAILED;
  }
  for (size_t i = 0; of_c != 0 && i < all.size(); ++i) {
    all[i].value += of_c * element<double>(c->values, c->type, i);
  }
  return put_offsets(call, *c, all) && put_entries(call, *c, all)
             ? CUSPARSE_STATUS_SUCCESS
             : CUSPARSE_STATUS_EXECUTION_FAILED;
}

cusparseStatus_t cusparseSDDMM_bufferSize(COOKBOOK_SDDMM, size_t* bytes) {
  return buffer_size(bytes);
}
cusparseStatus_t cusparseSDDMM_preprocess(COOKBOOK_SDDMM, void* buffer) {
  return CUSPARSE_STATUS_SUCCESS;
}
/// C = alpha op(A) op(B) + beta C, where C has entries
cusparseStatus_t cusparseSDDMM(COOKBOOK_SDDMM, void* buffer, Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  Call call("cusparseSDDMM", handle, place);
  const double factor = scalar<double>(alpha, compute, call);
  const double of_c = scalar<double>(beta, compute, call);
  if (!call.has_buffer(buffer)) return CUSPARSE_STATUS_EXECUTION_FAILED;
  for (int batch = 0; batch < c->count; ++batch) {
    const Dense left{a, is_transposed(op_a), batch}, right{b, is_transposed(op_b), batch};
    if (left.columns() != right.rows() || left.rows() != c->rows || right.columns() != c->columns) {
      return CUSPARSE_STATUS_INVALID_VALUE;
    }
    const cusparseSpMatDescr to = c->of(batch);
    const auto all = entries(call, to, false, of_c != 0);
    if (!all || !left.is_readable(call) || !right.is_readable(call) ||
        !call.writes(to.values, all->size() * bytes_of(to.type))) {
      return CUSPARSE_STATUS_EXECUTION_FAILED;
    }
    for (size_t i = 0; i < all->size(); ++i) {
      const Entry& one = (*all)[i];
      double sum = 0;
      for (int64_t k = 0; k < left.columns(); ++k) {
        sum += left.get(one.row, k) * right.get(k, one.column);
      }
      set_element(to.values, to.type, i, factor * sum + of_c * one.value);
    }
  }
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpSV_createDescr(cusparseSpSVDescr_t* analysis) {
  *analysis = nullptr;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpSV_destroyDescr(cusparseSpSVDescr_t) { return CUSPARSE_STATUS_SUCCESS; }
cusparseStatus_t cusparseSpSV_bufferSize(COOKBOOK_SPSV, size_t* bytes) {
  return buffer_size(bytes);
}
cusparseStatus_t cusparseSpSV_analysis(COOKBOOK_SPSV, void* buffer, Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  Call call("cusparseSpSV_analysis", handle, place);
  return call.has_buffer(buffer) ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_EXECUTION_FAILED;
}
cusparseStatus_t cusparseSpSV_solve(COOKBOOK_SPSV, Place place) {
  const cusparseDnMatDescr from = x->column();
  cusparseDnMatDescr to = y->column();
  return solve("cusparseSpSV_solve", handle, op_a, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha, a,
               &from, &to, compute, place);
}
cusparseStatus_t cusparseSpSM_createDescr(cusparseSpSMDescr_t* analysis) {
  *analysis = nullptr;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpSM_destroyDescr(cusparseSpSMDescr_t) { return CUSPARSE_STATUS_SUCCESS; }
cusparseStatus_t cusparseSpSM_bufferSize(COOKBOOK_SPSM, size_t* bytes) {
  return buffer_size(bytes);
}
cusparseStatus_t cusparseSpSM_analysis(COOKBOOK_SPSM, void* buffer, Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  Call call("cusparseSpSM_analysis", handle, place);
  return call.has_buffer(buffer) ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_EXECUTION_FAILED;
}
cusparseStatus_t cusparseSpSM_solve(COOKBOOK_SPSM, Place place) {
  return solve("cusparseSpSM_solve", handle, op_a, op_b, alpha, a, b, c, compute, place);
}

cusparseStatus_t cusparseSparseToDense_bufferSize(COOKBOOK_TO_DENSE, size_t* bytes) {
  return buffer_size(bytes);
}
cusparseStatus_t cusparseSparseToDense(COOKBOOK_TO_DENSE, void* buffer, Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (a->rows != b->rows || a->columns != b->columns) return CUSPARSE_STATUS_INVALID_VALUE;
  Call call("cusparseSparseToDense", handle, place);
  const auto all = entries(call, *a);
  const Dense to{b};
  if (!all || !call.has_buffer(buffer) || !to.is_writable(call)) {
    return CUSPARSE_STATUS_EXECUTION_FAILED;
  }
  for (int64_t i = 0; i < b->rows; ++i) {
    for (int64_t j = 0; j < b->columns; ++j) to.set(i, j, 0);
  }
  for (const Entry& one : *all) to.set(one.row, one.column, one.value);
  return CUSPARSE_STATUS_SUCCESS;
}

namespace {

/// Of a dense matrix what is not 0, in the order of the sparse one.
std::optional<Entries> to_sparse(Call& call, const cusparseDnMatDescr* a,
                                 const cusparseSpMatDescr* b, void* buffer) {
  const Dense from{a};
  if (!from.is_readable(call) || !call.has_buffer(buffer)) return {};
  Entries all;
  const bool by_rows = b->format != Format::kColumns;
  for (int64_t i = 0; i < (by_rows ? a->rows : a->columns); ++i) {
    for (int64_t j = 0; j < (by_rows ? a->columns : a->rows); ++j) {
      const int64_t row = by_rows ? i : j, column = by_rows ? j : i;
      const double value = from.get(row, column);
      if (value != 0) all.push_back({row, column, value});
    }
  }
  return all;
}

}  // namespace

cusparseStatus_t cusparseDenseToSparse_bufferSize(COOKBOOK_TO_SPARSE, size_t* bytes) {
  return buffer_size(bytes);
}
cusparseStatus_t cusparseDenseToSparse_analysis(COOKBOOK_TO_SPARSE, void* buffer, Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  if (a->rows != b->rows || a->columns != b->columns) return CUSPARSE_STATUS_INVALID_VALUE;
  Call call("cusparseDenseToSparse_analysis", handle, place);
  const auto all = to_sparse(call, a, b, buffer);
  if (!all || !put_offsets(call, *b, *all)) return CUSPARSE_STATUS_EXECUTION_FAILED;
  b->entries = static_cast<int64_t>(all->size());
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDenseToSparse_convert(COOKBOOK_TO_SPARSE, void* buffer, Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  Call call("cusparseDenseToSparse_convert", handle, place);
  const auto all = to_sparse(call, a, b, buffer);
  return all && put_offsets(call, *b, *all) && put_entries(call, *b, *all)
             ? CUSPARSE_STATUS_SUCCESS
             : CUSPARSE_STATUS_EXECUTION_FAILED;
}

cusparseStatus_t cusparseGather(cusparseHandle_t handle, cusparseConstDnVecDescr_t y,
                                cusparseSpVecDescr_t x, Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  Call call("cusparseGather", handle, place);
  if (!call.reads(y->values, size(y->size) * bytes_of(y->type)) ||
      !call.writes(x->values, size(x->entries) * bytes_of(x->type))) {
    return CUSPARSE_STATUS_EXECUTION_FAILED;
  }
  return with_vector(call, *x, y->size, [&](size_t i, size_t at) {
    set_element(x->values, x->type, i, element<double>(y->values, y->type, at));
  });
}
cusparseStatus_t cusparseScatter(cusparseHandle_t handle, cusparseConstSpVecDescr_t x,
                                 cusparseDnVecDescr_t y, Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  Call call("cusparseScatter", handle, place);
  if (!call.reads(x->values, size(x->entries) * bytes_of(x->type))) {
    return CUSPARSE_STATUS_EXECUTION_FAILED;
  }
  const size_t bytes = bytes_of(y->type);
  return with_vector(call, *x, y->size, [&](size_t i, size_t at) {
    if (call.writes(static_cast<char*>(y->values) + at * bytes, bytes)) {
      set_element(y->values, y->type, at, element<double>(x->values, x->type, i));
    }
  });
}
/// y = alpha x + beta y
cusparseStatus_t cusparseAxpby(cusparseHandle_t handle, const void* alpha,
                               cusparseConstSpVecDescr_t x, const void* beta,
                               cusparseDnVecDescr_t y, Place place) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  Call call("cusparseAxpby", handle, place);
  const double of_x = scalar<double>(alpha, y->type, call),
               of_y = scalar<double>(beta, y->type, call);
  const size_t bytes = size(y->size) * bytes_of(y->type);
  if (!call.reads(x->values, size(x->entries) * bytes_of(x->type)) ||
      !call.reads(y->values, bytes) || !call.writes(y->values, bytes)) {
    return CUSPARSE_STATUS_EXECUTION_FAILED;
  }
  for (size_t i = 0; i < size(y->size); ++i) {
    set_element(y->values, y->type, i, of_y * element<double>(y->values, y->type, i));
  }
  return with_vector(call, *x, y->size, [&](size_t i, size_t at) {
    set_element(
        y->values, y->type, at,
        element<double>(y->values, y->type, at) + of_x * element<double>(x->values, x->type, i));
  });
}
