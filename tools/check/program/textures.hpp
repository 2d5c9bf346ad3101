// SPDX-License-Identifier: MIT
// Arrays, texture and surface objects: the part of cuda_runtime.h that kernels call, too. A kernel
// loads the texels itself, so the tracer sees them; where they are and what is made of them the
// runtime says.
#pragma once

#include "tools/check/program/program.hpp"

enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned,
  cudaChannelFormatKindUnsigned,
  cudaChannelFormatKindFloat,
  cudaChannelFormatKindNone
};
struct cudaChannelFormatDesc {
  int x, y, z, w;  // bits
  cudaChannelFormatKind f;
};
enum cudaTextureAddressMode {
  cudaAddressModeWrap,
  cudaAddressModeClamp,
  cudaAddressModeMirror,
  cudaAddressModeBorder
};
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };
enum cudaResourceType {
  cudaResourceTypeArray,
  cudaResourceTypeMipmappedArray,
  cudaResourceTypeLinear,
  cudaResourceTypePitch2D
};
struct cudaArray;
typedef cudaArray* cudaArray_t;
typedef const cudaArray* cudaArray_const_t;
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
struct cudaResourceDesc {
  cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
  unsigned flags;
};
struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization, seamlessCubemap;
};
struct cudaResourceViewDesc;

#define cudaArrayDefault 0x00
#define cudaArrayLayered 0x01
#define cudaArraySurfaceLoadStore 0x02
#define cudaArrayTextureGather 0x08

inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

namespace cookbook::simt::program {

/// The channels of a texel of type T.
template <class T>
struct Channels {
  using Type = T;
};
template <class T>
requires requires(T value) { value.x; } &&(!std::is_arithmetic_v<T>)struct Channels<T> {
  using Type = decltype(T::x);
};
template <class T>
using Channel = typename Channels<T>::Type;
template <class T>
inline constexpr int kChannels = sizeof(T) / sizeof(Channel<T>);

/// The texels that a fetch asks for, up to 8, and how much each counts. Null: the border.
struct Texels {
  const void* at[8];
  float weight[8];
  int count;
  int bytes;  // of a texel
};
/// `dimensions`: of the coordinates; `layer`: -1 if there are no layers.
void find_texels(cudaTextureObject_t texture, int dimensions, float x, float y, float z, int layer,
                 Texels* texels);
/// tex1Dfetch()
void find_texel(cudaTextureObject_t texture, int x, Texels* texels);
/// What the texels, as they were loaded, give in channels of this size.
void combine_texels(cudaTextureObject_t texture, const Texels& texels,
                    const unsigned char (*loaded)[16], void* to, int channels, int channel_bytes,
                    bool is_float);
/// Where an access of a surface goes; null: nowhere.
void* find_in_surface(cudaSurfaceObject_t surface, int dimensions, int x_bytes, int y, int z,
                      size_t bytes, cudaSurfaceBoundaryMode mode);

__forceinline__ void load_texel(const void* from, int bytes, unsigned char* to) {
  const auto load = [&](auto type) {
    const decltype(type) value = *static_cast<const decltype(type)*>(from);
    __builtin_memcpy(to, &value, sizeof(value));
  };
  if (bytes == 1) load(uint8_t());
  if (bytes == 2) load(uint16_t());
  if (bytes == 4) load(uint32_t());
  if (bytes == 8) load(uint64_t());
  if (bytes == 16) load(uint4());
}

template <class T>
__forceinline__ T fetch(cudaTextureObject_t texture, const Texels& texels) {
  unsigned char loaded[8][16];
  for (int i = 0; i < texels.count; ++i) {
    if (texels.at[i]) load_texel(texels.at[i], texels.bytes, loaded[i]);
  }
  T result;
  combine_texels(texture, texels, loaded, &result, kChannels<T>, sizeof(Channel<T>),
                 std::is_same_v<Channel<T>, float>);
  return result;
}
template <class T>
__forceinline__ T fetch(cudaTextureObject_t texture, int dimensions, float x, float y, float z,
                        int layer) {
  Texels texels;
  find_texels(texture, dimensions, x, y, z, layer, &texels);
  return fetch<T>(texture, texels);
}
template <class T>
__forceinline__ T read_surface(cudaSurfaceObject_t surface, int dimensions, int x, int y, int z,
                               cudaSurfaceBoundaryMode mode) {
  const void* const at = find_in_surface(surface, dimensions, x, y, z, sizeof(T), mode);
  return at ? *static_cast<const T*>(at) : T{};
}
template <class T>
__forceinline__ void write_surface(T value, cudaSurfaceObject_t surface, int dimensions, int x,
                                   int y, int z, cudaSurfaceBoundaryMode mode) {
  void* const at = find_in_surface(surface, dimensions, x, y, z, sizeof(T), mode);
  if (at) *static_cast<T*>(at) = value;
}

}  // namespace cookbook::simt::program

template <class T>
inline cudaChannelFormatDesc cudaCreateChannelDesc() {
  using C = cookbook::simt::program::Channel<T>;
  constexpr int kBits = 8 * sizeof(C), kCount = cookbook::simt::program::kChannels<T>;
  const auto kind = std::is_integral_v<C> ? std::is_signed_v<C> ? cudaChannelFormatKindSigned
                                                                : cudaChannelFormatKindUnsigned
                                          : cudaChannelFormatKindFloat;
  return {kBits, kCount > 1 ? kBits : 0, kCount > 2 ? kBits : 0, kCount > 3 ? kBits : 0, kind};
}

// Each in two forms: with the result, and with a pointer to it.
#define COOKBOOK_FETCH(NAME, PARAMETERS, ARGUMENTS, RESULT)       \
  template <class T>                                              \
  __forceinline__ T NAME PARAMETERS {                             \
    return RESULT;                                                \
  }                                                               \
  template <class T>                                              \
  __forceinline__ void NAME(T* to, COOKBOOK_WITHOUT PARAMETERS) { \
    *to = NAME<T> ARGUMENTS;                                      \
  }
#define COOKBOOK_WITHOUT(...) __VA_ARGS__
#define COOKBOOK_TEXTURE(NAME, DIMENSIONS, X, Y, Z, LAYER, ARGUMENTS, ...) \
  COOKBOOK_FETCH(NAME, (cudaTextureObject_t t, __VA_ARGS__), ARGUMENTS,    \
                 (cookbook::simt::program::fetch<T>(t, DIMENSIONS, X, Y, Z, LAYER)))
COOKBOOK_TEXTURE(tex1D, 1, x, 0, 0, -1, (t, x), float x)
COOKBOOK_TEXTURE(tex2D, 2, x, y, 0, -1, (t, x, y), float x, float y)
COOKBOOK_TEXTURE(tex3D, 3, x, y, z, -1, (t, x, y, z), float x, float y, float z)
COOKBOOK_TEXTURE(tex1DLayered, 1, x, 0, 0, layer, (t, x, layer), float x, int layer)
COOKBOOK_TEXTURE(tex2DLayered, 2, x, y, 0, layer, (t, x, y, layer), float x, float y, int layer)
template <class T>
__forceinline__ T tex1Dfetch(cudaTextureObject_t texture, int x) {
  cookbook::simt::program::Texels texels;
  cookbook::simt::program::find_texel(texture, x, &texels);
  return cookbook::simt::program::fetch<T>(texture, texels);
}
template <class T>
__forceinline__ void tex1Dfetch(T* to, cudaTextureObject_t texture, int x) {
  *to = tex1Dfetch<T>(texture, x);
}

#define COOKBOOK_MODE cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap
#define COOKBOOK_SURFACE(NAME, DIMENSIONS, X, Y, Z, ARGUMENTS, ...)                              \
  COOKBOOK_FETCH(NAME##read, (cudaSurfaceObject_t t, __VA_ARGS__, COOKBOOK_MODE), ARGUMENTS,     \
                 (cookbook::simt::program::read_surface<T>(t, DIMENSIONS, X, Y, Z, mode)))       \
  template <class T>                                                                             \
  __forceinline__ void NAME##write(T value, cudaSurfaceObject_t t, __VA_ARGS__, COOKBOOK_MODE) { \
    cookbook::simt::program::write_surface(value, t, DIMENSIONS, X, Y, Z, mode);                 \
  }
COOKBOOK_SURFACE(surf1D, 1, x, 0, 0, (t, x, mode), int x)
COOKBOOK_SURFACE(surf2D, 2, x, y, 0, (t, x, y, mode), int x, int y)
COOKBOOK_SURFACE(surf3D, 3, x, y, z, (t, x, y, z, mode), int x, int y, int z)
COOKBOOK_SURFACE(surf2DLayered, 3, x, y, layer, (t, x, y, layer, mode), int x, int y, int layer)
#undef COOKBOOK_SURFACE
#undef COOKBOOK_MODE
#undef COOKBOOK_TEXTURE
#undef COOKBOOK_WITHOUT
#undef COOKBOOK_FETCH
