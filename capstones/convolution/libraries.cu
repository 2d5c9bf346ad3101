// SPDX-License-Identifier: MIT
// The library call for the same task: cuDNN's forward convolution of one image with one channel, by
// the algorithm that it finds to be fastest. cuDNN is loaded when the capstone runs, so no build
// needs it. If it is missing, the level says so.
#include "problem.hpp"

#if __has_include(<cudnn.h>)
#include <limits>
#include <memory>

#include "common/backend/cudnn.hpp"

namespace cookbook {
namespace {

/// The functions that the convolution needs.
struct Convolution : Cudnn {
  decltype(&cudnnCreateFilterDescriptor) create_filter = find("cudnnCreateFilterDescriptor");
  decltype(&cudnnDestroyFilterDescriptor) destroy_filter = find("cudnnDestroyFilterDescriptor");
  decltype(&cudnnSetFilter4dDescriptor) set_filter = find("cudnnSetFilter4dDescriptor");
  decltype(&cudnnCreateConvolutionDescriptor) create_convolution =
      find("cudnnCreateConvolutionDescriptor");
  decltype(&cudnnDestroyConvolutionDescriptor) destroy_convolution =
      find("cudnnDestroyConvolutionDescriptor");
  decltype(&cudnnSetConvolution2dDescriptor) set_convolution =
      find("cudnnSetConvolution2dDescriptor");
  decltype(&cudnnSetConvolutionMathType) set_math = find("cudnnSetConvolutionMathType");
  decltype(&cudnnFindConvolutionForwardAlgorithm) find_algorithm =
      find("cudnnFindConvolutionForwardAlgorithm");
  decltype(&cudnnConvolutionForward) forward = find("cudnnConvolutionForward");

  static const Convolution& get() {
    static const Convolution cudnn;
    return cudnn;
  }
};

/// A 1 x 1 x rows x cols tensor with a pitch between rows.
std::unique_ptr<TensorDescriptor> image(const convolution::Shape& s, std::int64_t pitch) {
  const int all = static_cast<int>(s.rows * pitch);
  return std::make_unique<TensorDescriptor>(Convolution::get(), CUDNN_DATA_FLOAT,
                                            std::array{1, 1, s.rows, s.cols},
                                            std::array{all, all, static_cast<int>(pitch), 1});
}

/// The 5 x 5 filter, and how it is applied: zeros outside, fp32 without TF32.
class FilterDescriptor {
 public:
  FilterDescriptor() {
    using convolution::kRadius, convolution::kSide;
    const Convolution& cudnn = Convolution::get();
    require(cudnn.create_filter(&filter_), "cudnnCreateFilterDescriptor");
    require(cudnn.set_filter(filter_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, kSide, kSide),
            "cudnnSetFilter4dDescriptor");
    require(cudnn.create_convolution(&convolution_), "cudnnCreateConvolutionDescriptor");
    require(cudnn.set_convolution(convolution_, kRadius, kRadius, 1, 1, 1, 1,
                                  CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
            "cudnnSetConvolution2dDescriptor");
    require(cudnn.set_math(convolution_, CUDNN_FMA_MATH), "cudnnSetConvolutionMathType");
  }
  ~FilterDescriptor() {
    Convolution::get().destroy_filter(filter_);
    Convolution::get().destroy_convolution(convolution_);
  }
  FilterDescriptor(const FilterDescriptor&) = delete;
  FilterDescriptor& operator=(const FilterDescriptor&) = delete;
  cudnnFilterDescriptor_t filter() const { return filter_; }
  cudnnConvolutionDescriptor_t convolution() const { return convolution_; }

 private:
  cudnnFilterDescriptor_t filter_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
};

struct CudnnConvolution : convolution::Level {
  static constexpr LevelText text{
      .name = "cuDNN",
      .changed = "cudnnConvolutionForward, the algorithm that it finds to be fastest",
      .expect = "the library's kernel, made for many channels",
  };

  static Support supports(const convolution::Problem& p, const DeviceInfo&) {
    if (!Convolution::get().missing.empty()) return Support::no(Convolution::get().missing);
    const std::int64_t limit = std::numeric_limits<int>::max();
    const convolution::Shape& s = p.shape;
    if (s.rows * s.in_pitch > limit || s.rows * s.out_pitch > limit) {
      return Support::no("cudnnSetTensor4dDescriptorEx takes 32-bit strides");
    }
    if (s.rows == 0 || s.cols == 0) return Support::no("nothing to do");
    return Support::yes();
  }

  struct Plan {
    convolution::Buffers buffers;
    std::unique_ptr<TensorDescriptor> in, out;
    std::unique_ptr<FilterDescriptor> filter;
    cudnnConvolutionFwdAlgo_t algorithm;
    DeviceMemory workspace{};
  };

  static Plan prepare(const convolution::Problem& problem, const convolution::Buffers& buffers) {
    const Convolution& cudnn = Convolution::get();
    const convolution::Shape& s = problem.shape;
    auto in = image(s, s.in_pitch), out = image(s, s.out_pitch);
    auto filter = std::make_unique<FilterDescriptor>();
    // The fastest first, measured on buffers of its own.
    cudnnConvolutionFwdAlgoPerf_t found[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
    int count = 0;
    require(cudnn.find_algorithm(cudnn.handle, in->get(), filter->filter(), filter->convolution(),
                                 out->get(), CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &count, found),
            "cudnnFindConvolutionForwardAlgorithm");
    constexpr std::size_t kMostWorkspace = std::size_t{8} << 30;
    for (int i = 0; i < count; ++i) {
      if (found[i].status != CUDNN_STATUS_SUCCESS || found[i].memory > kMostWorkspace) continue;
      const std::size_t bytes = found[i].memory > 0 ? found[i].memory : 1;
      return {buffers,           std::move(in), std::move(out),
              std::move(filter), found[i].algo, DeviceMemory(bytes, "workspace")};
    }
    throw std::invalid_argument("cuDNN has no algorithm for this image");
  }

  static void run(const Plan& plan, Stream stream) {
    const Convolution& cudnn = Convolution::get();
    const float one = 1, zero = 0;
    require(cudnn.set_stream(cudnn.handle, stream.handle), "cudnnSetStream");
    require(cudnn.forward(cudnn.handle, &one, plan.in->get(), plan.buffers.in,
                          plan.filter->filter(), plan.buffers.filter, plan.filter->convolution(),
                          plan.algorithm, plan.workspace.data(), plan.workspace.bytes(), &zero,
                          plan.out->get(), plan.buffers.out),
            "cudnnConvolutionForward");
  }
};

}  // namespace

Libraries capstone_libraries() { return {{"convolution", make_level<CudnnConvolution>()}}; }

}  // namespace cookbook

#else

namespace cookbook {

/// Built without cuDNN's headers: no library level.
Libraries capstone_libraries() { return {}; }

}  // namespace cookbook

#endif
