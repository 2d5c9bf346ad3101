// SPDX-License-Identifier: MIT
// The library calls for the same task: cuSPARSE. It is opened when it is needed, because not every
// toolkit brings it.
#include <stdexcept>

#include "common/backend/loaded_library.hpp"
#include "problem.hpp"
#if __has_include(<cusparse.h>)
#include <cusparse.h>
#endif

namespace cookbook {

namespace {

#if __has_include(<cusparse.h>)

/// What is used of cuSPARSE.
struct CuSparse : LoadedLibrary {
  decltype(&::cusparseCreate) create = find("cusparseCreate");
  decltype(&::cusparseSetStream) set_stream = find("cusparseSetStream");
  decltype(&::cusparseCreateConstCsr) csr = find("cusparseCreateConstCsr");
  decltype(&::cusparseCreateConstDnVec) input = find("cusparseCreateConstDnVec");
  decltype(&::cusparseCreateDnVec) output = find("cusparseCreateDnVec");
  decltype(&::cusparseSpMV_bufferSize) buffer_size = find("cusparseSpMV_bufferSize");
  decltype(&::cusparseSpMV_preprocess) preprocess = find("cusparseSpMV_preprocess");
  decltype(&::cusparseSpMV) spmv = find("cusparseSpMV");

  CuSparse() : LoadedLibrary("cuSPARSE", "libcusparse.so.12", "not installed") {}
  bool is_there() const { return missing.empty(); }
  static const CuSparse& get() {
    static const CuSparse all;
    return all;
  }
};

void check(cusparseStatus_t status) {
  if (status != CUSPARSE_STATUS_SUCCESS) {
    throw LaunchError("cuSPARSE status " + std::to_string(static_cast<int>(status)));
  }
}

/// Descriptors live as long as the process: a plan is made once per row.
template <cusparseSpMVAlg_t kAlgorithm>
struct CuSparseCsr : spmv::Level {
  struct Plan {
    cusparseHandle_t handle = nullptr;
    cusparseConstSpMatDescr_t matrix = nullptr;
    cusparseConstDnVecDescr_t x = nullptr;
    cusparseDnVecDescr_t y = nullptr;
    DeviceMemory workspace{};
  };

  static Support supports(const spmv::Problem& p, const DeviceInfo&) {
    if (!CuSparse::get().is_there()) {
      return Support::no("libcusparse.so.12 is not installed, or too old");
    }
    return p.nonzeros > 0 ? Support::yes() : Support::no("takes at least one nonzero");
  }

  static Plan prepare(const spmv::Problem& p, const spmv::Buffers& at) {
    const CuSparse& api = CuSparse::get();
    if (!api.is_there()) throw std::invalid_argument("libcusparse.so.12 is not installed");
    Plan plan;
    check(api.create(&plan.handle));
    check(api.csr(&plan.matrix, p.rows, p.cols, p.nonzeros, at.offsets, at.columns, at.values,
                  CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
    check(api.input(&plan.x, p.cols, at.x, CUDA_R_32F));
    check(api.output(&plan.y, p.rows, at.y, CUDA_R_32F));
    const float one = 1, zero = 0;
    std::size_t bytes = 0;
    check(api.buffer_size(plan.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, plan.matrix, plan.x,
                          &zero, plan.y, CUDA_R_32F, kAlgorithm, &bytes));
    plan.workspace = DeviceMemory(std::max<std::size_t>(bytes, 1), "workspace");
    check(api.preprocess(plan.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, plan.matrix, plan.x,
                         &zero, plan.y, CUDA_R_32F, kAlgorithm, plan.workspace.data()));
    return plan;
  }

  static void run(const Plan& plan, Stream stream) {
    const CuSparse& api = CuSparse::get();
    const float one = 1, zero = 0;
    check(api.set_stream(plan.handle, stream.handle));
    check(api.spmv(plan.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, plan.matrix, plan.x, &zero,
                   plan.y, CUDA_R_32F, kAlgorithm, plan.workspace.data()));
  }
};

struct Algorithm1 : CuSparseCsr<CUSPARSE_SPMV_CSR_ALG1> {
  static constexpr LevelText text{
      .name = "cuSPARSE",
      .changed = "cusparseSpMV, CSR_ALG1, after its preprocessing",
      .expect = "the library's default",
  };
};

struct Algorithm2 : CuSparseCsr<CUSPARSE_SPMV_CSR_ALG2> {
  static constexpr LevelText text{
      .name = "cuSPARSE, ALG2",
      .changed = "cusparseSpMV, CSR_ALG2, after its preprocessing",
      .expect = "slower than the default: the same result in every run",
  };
};

#else

/// Without the library's header: a row that says so.
struct Algorithm1 : spmv::Level {
  static constexpr LevelText text{.name = "cuSPARSE", .changed = "cusparseSpMV", .expect = ""};
  static Support supports(const spmv::Problem&, const DeviceInfo&) {
    return Support::no("this program was compiled without cusparse.h");
  }
  static void run(const Plan&, Stream) {}
};
using Algorithm2 = Algorithm1;

#endif

}  // namespace

Libraries capstone_libraries() {
  return {{"spmv", make_level<Algorithm1>()}, {"spmv", make_level<Algorithm2>()}};
}

}  // namespace cookbook
