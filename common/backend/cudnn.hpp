// SPDX-License-Identifier: MIT
/// @file
/// What the library calls of cuDNN 9 share. Needs its header, so a file that includes this one asks
/// `__has_include(<cudnn.h>)` before.
#pragma once

#include <cudnn.h>

#include <array>
#include <string>

#include "common/backend/backend.hpp"
#include "common/backend/loaded_library.hpp"

namespace cookbook {

/// A handle and what every call needs. Each library call derives from it with its own functions.
struct Cudnn : LoadedLibrary {
  decltype(&cudnnCreate) create = find("cudnnCreate");
  decltype(&cudnnSetStream) set_stream = find("cudnnSetStream");
  decltype(&cudnnCreateTensorDescriptor) create_tensor = find("cudnnCreateTensorDescriptor");
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor = find("cudnnDestroyTensorDescriptor");
  decltype(&cudnnSetTensor4dDescriptorEx) set_tensor = find("cudnnSetTensor4dDescriptorEx");
  cudnnHandle_t handle = nullptr;

  Cudnn() : LoadedLibrary("cuDNN", "libcudnn.so.9", "cuDNN 9 is not installed here") {
    if (missing.empty() && create(&handle) != CUDNN_STATUS_SUCCESS) missing = "cudnnCreate failed";
  }
};

/// Throws LaunchError if `what` has failed.
inline void require(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) throw LaunchError(std::string(what) + " failed");
}

/// A tensor of four dimensions, outermost first; strides are in elements.
class TensorDescriptor {
 public:
  TensorDescriptor(const Cudnn& cudnn, cudnnDataType_t type, const std::array<int, 4>& extents,
                   const std::array<int, 4>& strides)
      : cudnn_(cudnn) {
    require(cudnn.create_tensor(&tensor_), "cudnnCreateTensorDescriptor");
    require(cudnn.set_tensor(tensor_, type, extents[0], extents[1], extents[2], extents[3],
                             strides[0], strides[1], strides[2], strides[3]),
            "cudnnSetTensor4dDescriptorEx");
  }
  ~TensorDescriptor() { cudnn_.destroy_tensor(tensor_); }
  TensorDescriptor(const TensorDescriptor&) = delete;
  TensorDescriptor& operator=(const TensorDescriptor&) = delete;
  cudnnTensorDescriptor_t get() const { return tensor_; }

 private:
  const Cudnn& cudnn_;
  cudnnTensorDescriptor_t tensor_ = nullptr;
};

}  // namespace cookbook
