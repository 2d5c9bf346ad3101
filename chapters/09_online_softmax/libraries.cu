// SPDX-License-Identifier: MIT
// The library call for the same task: cuDNN's softmax, with its accurate algorithm (maximum
// subtracted), over each row. cuDNN is loaded when the chapter runs, so no build needs it. If it is
// missing, the level says so.
#include "chapters/09_online_softmax/problem.hpp"

#if __has_include(<cudnn.h>)
#include <limits>
#include <memory>
#include <type_traits>

#include "common/backend/cudnn.hpp"

namespace cookbook {
namespace {

/// The function that the softmax needs.
struct SoftmaxFunctions : Cudnn {
  decltype(&cudnnSoftmaxForward) softmax = find("cudnnSoftmaxForward");

  static const SoftmaxFunctions& get() {
    static const SoftmaxFunctions cudnn;
    return cudnn;
  }
};

/// rows x cols x 1 x 1 with a pitch between rows.
std::unique_ptr<TensorDescriptor> rows_of(cudnnDataType_t type, const softmax::Shape& shape,
                                          std::int64_t pitch) {
  return std::make_unique<TensorDescriptor>(
      SoftmaxFunctions::get(), type,
      std::array{static_cast<int>(shape.rows), static_cast<int>(shape.cols), 1, 1},
      std::array{static_cast<int>(pitch), 1, 1, 1});
}

template <class T>
struct CudnnSoftmax : softmax::Level<T> {
  static constexpr LevelText text{
      .name = "cuDNN",
      .changed = "cudnnSoftmaxForward, ACCURATE, each row is one instance",
      .expect = "the library's softmax",
  };

  static Support supports(const softmax::Problem<T>& p, const DeviceInfo&) {
    if (!SoftmaxFunctions::get().missing.empty())
      return Support::no(SoftmaxFunctions::get().missing);
    const std::int64_t limit = std::numeric_limits<int>::max();
    if (p.shape.rows > limit || p.shape.in_pitch > limit || p.shape.out_pitch > limit) {
      return Support::no("cudnnSoftmaxForward takes 32-bit extents");
    }
    if (p.shape.elements() == 0) return Support::no("nothing to do");
    return Support::yes();
  }

  struct Plan {
    softmax::Buffers<T> buffers;
    std::unique_ptr<TensorDescriptor> in, out;
  };

  static Plan prepare(const softmax::Problem<T>& problem, const softmax::Buffers<T>& buffers) {
    const cudnnDataType_t type = std::is_same_v<T, float> ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16;
    const softmax::Shape& s = problem.shape;
    return {buffers, rows_of(type, s, s.in_pitch), rows_of(type, s, s.out_pitch)};
  }

  static void run(const Plan& plan, Stream stream) {
    const SoftmaxFunctions& cudnn = SoftmaxFunctions::get();
    const float one = 1, zero = 0;
    require(cudnn.set_stream(cudnn.handle, stream.handle), "cudnnSetStream");
    require(
        cudnn.softmax(cudnn.handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE, &one,
                      plan.in->get(), plan.buffers.in, &zero, plan.out->get(), plan.buffers.out),
        "cudnnSoftmaxForward");
  }
};

}  // namespace

Libraries chapter_9_libraries() {
  return {{"softmax", make_level<CudnnSoftmax<float>>()},
          {"softmax_bf16", make_level<CudnnSoftmax<bf16>>()}};
}

}  // namespace cookbook

#else

namespace cookbook {

/// Built without cuDNN's headers: no library level.
Libraries chapter_9_libraries() { return {}; }

}  // namespace cookbook

#endif
