// SPDX-License-Identifier: MIT
// Where a fetch of a texture reads, and what it gives (CUDA C++ Programming Guide, "Texture
// Fetching").
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "common/backend/simt/runtime/fail.hpp"
#include "tools/check/program/arrays.hpp"
#include "tools/check/program/runtime.hpp"

namespace cookbook::simt::program {
namespace {

/// What a texture or surface object names.
struct Object {
  char* begin = nullptr;
  size_t pitch = 0, slice = 0;
  int extent[3] = {1, 1, 1};  // in texels; layers come last
  cudaChannelFormatDesc format{};
  cudaTextureDesc how{};
  bool is_gone = false;
};

int texel_bytes(const cudaChannelFormatDesc& format) {
  return (format.x + format.y + format.z + format.w) / 8;
}

Object& object_of(unsigned long long handle, const char* what, void* pc) {
  auto* const object = reinterpret_cast<Object*>(handle);
  if (object == nullptr || object->is_gone) {
    fail(std::string("a ") + what + " object that was " +
             (object == nullptr ? "never created" : "destroyed"),
         pc);
  }
  return *object;
}

/// The texel at `at` of `n`; -1: the border.
int address(int at, int n, cudaTextureAddressMode mode, bool is_normalised) {
  if (at >= 0 && at < n) return at;
  if (mode == cudaAddressModeBorder) return -1;
  if (is_normalised && mode == cudaAddressModeWrap) return (at % n + n) % n;
  if (is_normalised && mode == cudaAddressModeMirror) {
    const int twice = (at % (2 * n) + 2 * n) % (2 * n);
    return twice < n ? twice : 2 * n - 1 - twice;
  }
  return std::clamp(at, 0, n - 1);
}

/// One or two texels of an axis, with what each counts.
struct Axis {
  int at[2] = {0, 0};
  float weight[2] = {1, 0};
  int count = 1;
};
Axis along(const Object& object, int which, float coordinate) {
  const int n = object.extent[which];
  float x = object.how.normalizedCoords ? coordinate * static_cast<float>(n) : coordinate;
  constexpr float kFar = 1 << 24;
  x = x > -kFar ? std::min(x, kFar) : -kFar;  // a NaN, too
  Axis axis;
  if (object.how.filterMode == cudaFilterModeLinear) {
    // 8 bits behind the point, as the hardware keeps them.
    constexpr float kSteps = 256;
    const float below = std::floor(x - 0.5f);
    axis.weight[1] = std::nearbyint((x - 0.5f - below) * kSteps) / kSteps;
    axis.weight[0] = 1 - axis.weight[1];
    axis.at[0] = static_cast<int>(below);
    axis.at[1] = axis.at[0] + 1;
    axis.count = 2;
  } else {
    axis.at[0] = static_cast<int>(std::floor(x));
  }
  for (int& at : axis.at) {
    at = address(at, n, object.how.addressMode[which], object.how.normalizedCoords != 0);
  }
  return axis;
}

const void* texel(const Object& object, int x, int y, int z) {
  if (x < 0 || y < 0 || z < 0) return nullptr;
  return object.begin + z * object.slice + y * object.pitch +
         static_cast<size_t>(x) * texel_bytes(object.format);
}

/// Channel `c` of a loaded texel, as a float.
float as_float(const Object& object, const unsigned char* texel, int c) {
  const int bits = object.format.x, bytes = bits / 8;
  if (c * bytes >= texel_bytes(object.format)) return 0;
  const unsigned char* const at = texel + c * bytes;
  if (object.format.f == cudaChannelFormatKindFloat) {
    float value = 0;
    if (bytes == 4) std::memcpy(&value, at, 4);
    if (bytes == 2) {
      __half half;
      std::memcpy(static_cast<void*>(&half), at, 2);
      value = __half2float(half);
    }
    return value;
  }
  if (object.format.f == cudaChannelFormatKindUnsigned) {
    uint32_t value = 0;
    std::memcpy(&value, at, bytes);
    return static_cast<float>(value) / static_cast<float>((uint64_t{1} << bits) - 1);
  }
  const int32_t value =
      bytes == 1 ? static_cast<int8_t>(*at) : *reinterpret_cast<const int16_t*>(at);
  return std::max(static_cast<float>(value) / static_cast<float>((1 << (bits - 1)) - 1), -1.0f);
}

unsigned long long keep(Object object) {
  return reinterpret_cast<unsigned long long>(new Object(object));  // for ever: a kernel may ask
}

Object of_array(const cudaArray& array) {
  const auto at_least_1 = [](size_t n) { return std::max(static_cast<int>(n), 1); };
  Object object;
  object.begin = array.begin;
  object.pitch = array.pitch();
  object.slice = array.pitch() * std::max<size_t>(array.extent.height, 1);
  object.extent[0] = at_least_1(array.extent.width);
  object.extent[1] = at_least_1(array.extent.height);
  object.extent[2] = at_least_1(array.extent.depth);
  object.format = array.format;
  return object;
}

}  // namespace

void find_texels(cudaTextureObject_t texture, int dimensions, float x, float y, float z, int layer,
                 Texels* texels) {
  const Object& object = object_of(texture, "texture", __builtin_return_address(0));
  Axis axes[3];
  const float at[3] = {x, y, z};
  for (int i = 0; i < dimensions; ++i) axes[i] = along(object, i, at[i]);
  if (layer >= 0) axes[2].at[0] = std::min(layer, object.extent[2] - 1);
  texels->bytes = texel_bytes(object.format);
  texels->count = 0;
  for (int k = 0; k < axes[2].count; ++k) {
    for (int j = 0; j < axes[1].count; ++j) {
      for (int i = 0; i < axes[0].count; ++i) {
        const float weight = axes[0].weight[i] * axes[1].weight[j] * axes[2].weight[k];
        if (weight == 0) continue;
        texels->weight[texels->count] = weight;
        texels->at[texels->count++] = texel(object, axes[0].at[i], axes[1].at[j], axes[2].at[k]);
      }
    }
  }
}

void find_texel(cudaTextureObject_t texture, int x, Texels* texels) {
  const Object& object = object_of(texture, "texture", __builtin_return_address(0));
  const bool is_inside = x >= 0 && x < object.extent[0];
  *texels = {{texel(object, is_inside ? x : -1, 0, 0)}, {1}, 1, texel_bytes(object.format)};
}

void combine_texels(cudaTextureObject_t texture, const Texels& texels,
                    const unsigned char (*loaded)[16], void* to, int channels, int channel_bytes,
                    bool is_float) {
  const Object& object = *reinterpret_cast<const Object*>(texture);
  const int bytes = object.format.x / 8;
  const bool gives_float = object.format.f == cudaChannelFormatKindFloat ||
                           object.how.readMode == cudaReadModeNormalizedFloat;
  for (int c = 0; c < channels; ++c) {
    char* const channel = static_cast<char*>(to) + c * channel_bytes;
    if (is_float && gives_float) {
      float sum = 0;
      for (int i = 0; i < texels.count; ++i) {
        const float value =
            texels.at[i] ? as_float(object, loaded[i], c) : object.how.borderColor[c];
        sum = i == 0 && texels.weight[0] == 1 ? value : sum + texels.weight[i] * value;
      }
      std::memcpy(channel, &sum, 4);
      continue;
    }
    uint64_t value = 0;
    if (texels.at[0] && (c + 1) * bytes <= texels.bytes) {
      std::memcpy(&value, loaded[0] + c * bytes, bytes);
      if (object.format.f == cudaChannelFormatKindSigned) {
        const int unused = 64 - 8 * bytes;
        value = static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
      }
    }
    std::memcpy(channel, &value, channel_bytes);
  }
}

void* find_in_surface(cudaSurfaceObject_t surface, int dimensions, int x_bytes, int y, int z,
                      size_t bytes, cudaSurfaceBoundaryMode mode) {
  void* const pc = __builtin_return_address(0);
  const Object& object = object_of(surface, "surface", pc);
  const int width = object.extent[0] * texel_bytes(object.format);
  const int at[3] = {x_bytes, y, z};
  const int most[3] = {width - static_cast<int>(bytes), object.extent[1] - 1, object.extent[2] - 1};
  int inside[3] = {0, 0, 0};
  for (int i = 0; i < dimensions; ++i) {
    inside[i] = std::clamp(at[i], 0, most[i]);
    if (inside[i] == at[i] || mode == cudaBoundaryModeClamp) continue;
    if (mode == cudaBoundaryModeZero) return nullptr;
    fail_at(pc,
            "out of bounds: an access of a surface at byte {} of row {} of slice {}; it has {} "
            "bytes, {} rows and {} slices",
            x_bytes, y, z, width, object.extent[1], object.extent[2]);
  }
  if (x_bytes % static_cast<int>(bytes) != 0) {
    fail_at(pc, "misaligned: an access of {} bytes of a surface at byte {} of a row", bytes,
            x_bytes);
  }
  return object.begin + inside[2] * object.slice + inside[1] * object.pitch + inside[0];
}

}  // namespace cookbook::simt::program

using namespace cookbook::simt::program;  // NOLINT: the API below is global

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* how, const cudaResourceViewDesc* view,
                                    Place place) {
  const auto refuse = [place](cudaError_t error, const char* why) {
    return fail_call(error, "cudaCreateTextureObject", place, why);
  };
  if (view) return refuse(cudaErrorNotSupported, "views of a resource are not modelled");
  Object object;
  if (resource->resType == cudaResourceTypeArray) {
    if (!resource->res.array.array) return refuse(cudaErrorInvalidValue, "the array is null");
    object = of_array(*resource->res.array.array);
  } else if (resource->resType == cudaResourceTypeLinear) {
    const auto& linear = resource->res.linear;
    object.begin = static_cast<char*>(linear.devPtr);
    object.format = linear.desc;
    const int bytes = texel_bytes(linear.desc);
    object.extent[0] = bytes ? static_cast<int>(linear.sizeInBytes / bytes) : 0;
  } else if (resource->resType == cudaResourceTypePitch2D) {
    const auto& rows = resource->res.pitch2D;
    object.begin = static_cast<char*>(rows.devPtr);
    object.format = rows.desc;
    object.pitch = rows.pitchInBytes;
    object.extent[0] = static_cast<int>(rows.width);
    object.extent[1] = static_cast<int>(rows.height);
  }
  if (!object.begin || texel_bytes(object.format) == 0) {
    return refuse(cudaErrorInvalidValue, "it is given no memory, or no format of its texels");
  }
  if (const int bytes = texel_bytes(object.format); bytes > 16 || (bytes & (bytes - 1)) != 0) {
    return refuse(cudaErrorInvalidChannelDescriptor, "texels have 1, 2 or 4 channels");
  }
  // Pitches are what cudaMallocPitch() gives; addresses of textures have 512 bytes of alignment.
  constexpr size_t kAddress = 512, kPitch = 32;
  if (resource->resType != cudaResourceTypeArray &&
      (reinterpret_cast<uintptr_t>(object.begin) % kAddress != 0 || object.pitch % kPitch != 0)) {
    return refuse(cudaErrorInvalidValue,
                  "the memory must be aligned to 512 bytes, and its pitch to 32");
  }
  object.how = *how;
  const bool is_float = object.format.f == cudaChannelFormatKindFloat;
  if (how->readMode == cudaReadModeNormalizedFloat && (is_float || object.format.x > 16)) {
    return refuse(cudaErrorInvalidNormSetting,
                  "only integers of 8 and 16 bits are read as normalised floats");
  }
  if (how->filterMode == cudaFilterModeLinear && !is_float &&
      how->readMode != cudaReadModeNormalizedFloat) {
    return refuse(cudaErrorInvalidFilterSetting, "only floats are filtered");
  }
  *texture = keep(object);
  return cudaSuccess;
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const cudaResourceDesc* resource,
                                    Place place) {
  if (resource->resType != cudaResourceTypeArray || !resource->res.array.array) {
    return fail_call(cudaErrorInvalidValue, "cudaCreateSurfaceObject", place,
                     "a surface is made of an array");
  }
  *surface = keep(of_array(*resource->res.array.array));
  return cudaSuccess;
}

static cudaError_t destroy(unsigned long long handle) {
  if (handle) reinterpret_cast<Object*>(handle)->is_gone = true;
  return cudaSuccess;
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) { return destroy(texture); }
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface) { return destroy(surface); }
