// SPDX-License-Identifier: MIT
// The library call for the same task: cuDNN's softmax, with its accurate algorithm (maximum
// subtracted), over each row. cuDNN is loaded when the chapter runs, so no build needs it. If it is
// missing, the level says so.
#include "chapters/09_online_softmax/problem.hpp"

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#include <dlfcn.h>

#include <limits>
#include <memory>
#include <string>
#include <type_traits>

namespace cookbook {
namespace {

/// The functions of libcudnn.so.9 that the softmax needs; `missing` says why they are unavailable.
struct Cudnn {
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnCreateTensorDescriptor) create_tensor = nullptr;
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor = nullptr;
  decltype(&cudnnSetTensor4dDescriptorEx) set_tensor = nullptr;
  decltype(&cudnnSoftmaxForward) softmax = nullptr;
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
    find(cudnn.softmax, "cudnnSoftmaxForward");
    if (cudnn.missing.empty() && cudnn.create(&cudnn.handle) != CUDNN_STATUS_SUCCESS) {
      cudnn.missing = "cudnnCreate failed";
    }
    return cudnn;
  }
};

void require(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) throw LaunchError(std::string(what) + " failed");
}

/// rows x cols x 1 x 1 with a pitch between rows.
class RowsDescriptor {
 public:
  RowsDescriptor(cudnnDataType_t type, const softmax::Shape& shape, std::int64_t pitch) {
    require(Cudnn::get().create_tensor(&tensor_), "cudnnCreateTensorDescriptor");
    require(Cudnn::get().set_tensor(tensor_, type, static_cast<int>(shape.rows),
                                    static_cast<int>(shape.cols), 1, 1, static_cast<int>(pitch), 1,
                                    1, 1),
            "cudnnSetTensor4dDescriptorEx");
  }
  ~RowsDescriptor() { Cudnn::get().destroy_tensor(tensor_); }
  RowsDescriptor(const RowsDescriptor&) = delete;
  RowsDescriptor& operator=(const RowsDescriptor&) = delete;
  cudnnTensorDescriptor_t get() const { return tensor_; }

 private:
  cudnnTensorDescriptor_t tensor_ = nullptr;
};

template <class T>
struct CudnnSoftmax : softmax::Level<T> {
  static constexpr LevelText text{
      .name = "cuDNN",
      .changed = "cudnnSoftmaxForward, ACCURATE, each row is one instance",
      .expect = "the library's softmax",
  };

  static Support supports(const softmax::Problem<T>& p, const DeviceInfo&) {
    if (!Cudnn::get().missing.empty()) return Support::no(Cudnn::get().missing);
    const std::int64_t limit = std::numeric_limits<int>::max();
    if (p.shape.rows > limit || p.shape.in_pitch > limit || p.shape.out_pitch > limit) {
      return Support::no("cudnnSoftmaxForward takes 32-bit extents");
    }
    if (p.shape.elements() == 0) return Support::no("nothing to do");
    return Support::yes();
  }

  struct Plan {
    softmax::Buffers<T> buffers;
    std::unique_ptr<RowsDescriptor> in, out;
  };

  static Plan prepare(const softmax::Problem<T>& problem, const softmax::Buffers<T>& buffers) {
    const cudnnDataType_t type = std::is_same_v<T, float> ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16;
    const softmax::Shape& s = problem.shape;
    return {buffers, std::make_unique<RowsDescriptor>(type, s, s.in_pitch),
            std::make_unique<RowsDescriptor>(type, s, s.out_pitch)};
  }

  static void run(const Plan& plan, Stream stream) {
    const Cudnn& cudnn = Cudnn::get();
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
