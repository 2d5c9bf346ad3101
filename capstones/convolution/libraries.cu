// SPDX-License-Identifier: MIT
// The library call for the same task: cuDNN's forward convolution of one image with one channel, by
// the algorithm that it finds to be fastest. cuDNN is loaded when the capstone runs, so no build
// needs it. If it is missing, the level says so.
#include "problem.hpp"

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#include <dlfcn.h>

#include <limits>
#include <memory>
#include <string>
#include <type_traits>

namespace cookbook {
namespace {

/// The functions of libcudnn.so.9 that the convolution needs; `missing` says why they are
/// unavailable.
struct Cudnn {
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnCreateTensorDescriptor) create_tensor = nullptr;
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor = nullptr;
  decltype(&cudnnSetTensor4dDescriptorEx) set_tensor = nullptr;
  decltype(&cudnnCreateFilterDescriptor) create_filter = nullptr;
  decltype(&cudnnDestroyFilterDescriptor) destroy_filter = nullptr;
  decltype(&cudnnSetFilter4dDescriptor) set_filter = nullptr;
  decltype(&cudnnCreateConvolutionDescriptor) create_convolution = nullptr;
  decltype(&cudnnDestroyConvolutionDescriptor) destroy_convolution = nullptr;
  decltype(&cudnnSetConvolution2dDescriptor) set_convolution = nullptr;
  decltype(&cudnnSetConvolutionMathType) set_math = nullptr;
  decltype(&cudnnFindConvolutionForwardAlgorithm) find_algorithm = nullptr;
  decltype(&cudnnConvolutionForward) forward = nullptr;
  cudnnHandle_t handle = nullptr;
  std::string missing;

  static const Cudnn& get() {
    static const Cudnn cudnn = load();
    return cudnn;
  }

 private:
  static Cudnn load() {
    Cudnn cudnn;
    void* library = dlopen("libcudnn.so.9", RTLD_NOW);
    if (!library) {
      cudnn.missing = "cuDNN 9 is not installed here";
      return cudnn;
    }
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (!function) cudnn.missing = std::string("this cuDNN has no ") + name;
    };
    find(cudnn.create, "cudnnCreate");
    find(cudnn.set_stream, "cudnnSetStream");
    find(cudnn.create_tensor, "cudnnCreateTensorDescriptor");
    find(cudnn.destroy_tensor, "cudnnDestroyTensorDescriptor");
    find(cudnn.set_tensor, "cudnnSetTensor4dDescriptorEx");
    find(cudnn.create_filter, "cudnnCreateFilterDescriptor");
    find(cudnn.destroy_filter, "cudnnDestroyFilterDescriptor");
    find(cudnn.set_filter, "cudnnSetFilter4dDescriptor");
    find(cudnn.create_convolution, "cudnnCreateConvolutionDescriptor");
    find(cudnn.destroy_convolution, "cudnnDestroyConvolutionDescriptor");
    find(cudnn.set_convolution, "cudnnSetConvolution2dDescriptor");
    find(cudnn.set_math, "cudnnSetConvolutionMathType");
    find(cudnn.find_algorithm, "cudnnFindConvolutionForwardAlgorithm");
    find(cudnn.forward, "cudnnConvolutionForward");
    if (cudnn.missing.empty() && cudnn.create(&cudnn.handle) != CUDNN_STATUS_SUCCESS) {
      cudnn.missing = "cudnnCreate failed";
    }
    return cudnn;
  }
};

void require(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) throw LaunchError(std::string(what) + " failed");
}

/// A 1 x 1 x rows x cols tensor with a pitch between rows.
class ImageDescriptor {
 public:
  ImageDescriptor(const convolution::Shape& s, std::int64_t pitch) {
    require(Cudnn::get().create_tensor(&tensor_), "cudnnCreateTensorDescriptor");
    const int image = static_cast<int>(s.rows * pitch);
    require(Cudnn::get().set_tensor(tensor_, CUDNN_DATA_FLOAT, 1, 1, s.rows, s.cols, image, image,
                                    static_cast<int>(pitch), 1),
            "cudnnSetTensor4dDescriptorEx");
  }
  ~ImageDescriptor() { Cudnn::get().destroy_tensor(tensor_); }
  ImageDescriptor(const ImageDescriptor&) = delete;
  ImageDescriptor& operator=(const ImageDescriptor&) = delete;
  cudnnTensorDescriptor_t get() const { return tensor_; }

 private:
  cudnnTensorDescriptor_t tensor_ = nullptr;
};

/// The 5 x 5 filter, and how it is applied: zeros outside, fp32 without TF32.
class FilterDescriptor {
 public:
  FilterDescriptor() {
    using convolution::kRadius, convolution::kSide;
    const Cudnn& cudnn = Cudnn::get();
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
    Cudnn::get().destroy_filter(filter_);
    Cudnn::get().destroy_convolution(convolution_);
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
    if (!Cudnn::get().missing.empty()) return Support::no(Cudnn::get().missing);
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
    std::unique_ptr<ImageDescriptor> in, out;
    std::unique_ptr<FilterDescriptor> filter;
    cudnnConvolutionFwdAlgo_t algorithm;
    DeviceMemory workspace{};
  };

  static Plan prepare(const convolution::Problem& problem, const convolution::Buffers& buffers) {
    const Cudnn& cudnn = Cudnn::get();
    const convolution::Shape& s = problem.shape;
    auto in = std::make_unique<ImageDescriptor>(s, s.in_pitch);
    auto out = std::make_unique<ImageDescriptor>(s, s.out_pitch);
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
    const Cudnn& cudnn = Cudnn::get();
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
