// SPDX-License-Identifier: MIT
// The CUDA runtime API over the SIMT backend, for programs that ./run check compiles. Every call is
// synchronous. The last parameters of a call, which no program passes, say where it is.
#pragma once

// C++20 has a lerp(), and <math.h> another one without std::. nvcc's C++17 has none, and programs
// have their own. Where the library has been included before, it is too late.
#ifndef _GLIBCXX_CMATH
#define lerp cookbook_lerp
#endif
#include <math.h>

#include <cmath>
#undef lerp

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// std::min() and the like without <algorithm>: half of the time in which g++ compiles a small
// program is that of headers.
#include <bits/stl_algobase.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#define COOKBOOK_FEW_HEADERS
#include "tools/check/program/program.hpp"
#include "tools/check/program/ptx.hpp"
#include "tools/check/program/tables.hpp"
#include "tools/check/program/textures.hpp"
#include "vector_functions.h"

#define CUDART_VERSION 12080
#define CUDA_VERSION 12080
#define CUDART_CB

// ---- errors ----

#define COOKBOOK_ENUMERATOR(NAME, NUMBER, ...) NAME = NUMBER,
typedef enum cudaError { COOKBOOK_ERRORS(COOKBOOK_ENUMERATOR) } cudaError_t;

// ---- kinds and flags ----

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};

struct CUevent_st;
typedef CUevent_st* cudaEvent_t;

#define cudaHostAllocDefault 0x00
#define cudaHostAllocPortable 0x01
#define cudaHostAllocMapped 0x02
#define cudaHostAllocWriteCombined 0x04
#define cudaHostRegisterDefault 0x00
#define cudaHostRegisterPortable 0x01
#define cudaHostRegisterMapped 0x02
#define cudaHostRegisterIoMemory 0x04
#define cudaHostRegisterReadOnly 0x08
#define cudaMemAttachGlobal 0x01
#define cudaMemAttachHost 0x02
#define cudaMemAttachSingle 0x04
#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)
#define cudaStreamTailLaunch ((cudaStream_t)0x3)
#define cudaStreamFireAndForget ((cudaStream_t)0x4)
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaEventInterprocess 0x04
#define cudaEventRecordDefault 0x00
#define cudaEventWaitDefault 0x00
#define cudaDeviceScheduleAuto 0x00
#define cudaDeviceScheduleSpin 0x01
#define cudaDeviceScheduleYield 0x02
#define cudaDeviceScheduleBlockingSync 0x04
#define cudaDeviceBlockingSync 0x04
#define cudaDeviceLmemResizeToMax 0x10
#define cudaDeviceMapHost 0x08
#define cudaCpuDeviceId ((int)-1)
#define cudaInvalidDeviceId ((int)-2)
#define cudaOccupancyDefault 0x00
#define cudaOccupancyDisableCachingOverride 0x01

enum cudaFuncCache {
  cudaFuncCachePreferNone,
  cudaFuncCachePreferShared,
  cudaFuncCachePreferL1,
  cudaFuncCachePreferEqual
};
enum cudaSharedMemConfig {
  cudaSharedMemBankSizeDefault,
  cudaSharedMemBankSizeFourByte,
  cudaSharedMemBankSizeEightByte
};
enum cudaSharedCarveout {
  cudaSharedmemCarveoutDefault = -1,
  cudaSharedmemCarveoutMaxShared = 100,
  cudaSharedmemCarveoutMaxL1 = 0
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 13
};
enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly,
  cudaMemAdviseSetPreferredLocation,
  cudaMemAdviseUnsetPreferredLocation,
  cudaMemAdviseSetAccessedBy,
  cudaMemAdviseUnsetAccessedBy
};
enum cudaLimit {
  cudaLimitStackSize,
  cudaLimitPrintfFifoSize,
  cudaLimitMallocHeapSize,
  cudaLimitDevRuntimeSyncDepth,
  cudaLimitDevRuntimePendingLaunchCount,
  cudaLimitMaxL2FetchGranularity,
  cudaLimitPersistingL2CacheSize
};
enum cudaMemoryType {
  cudaMemoryTypeUnregistered,
  cudaMemoryTypeHost,
  cudaMemoryTypeDevice,
  cudaMemoryTypeManaged
};
enum cudaComputeMode {
  cudaComputeModeDefault,
  cudaComputeModeExclusive,
  cudaComputeModeProhibited,
  cudaComputeModeExclusiveProcess
};
enum cudaDeviceAttr { COOKBOOK_DEVICE_ATTRIBUTES(COOKBOOK_ENUMERATOR) };
#undef COOKBOOK_ENUMERATOR

typedef struct CUuuid_st {
  char bytes[16];
} cudaUUID_t;

/// Facts of the model device (docs/simt.md). Clocks and widths are 0: the model has no time.
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment;
  int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory,
      computeMode, concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver,
      asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize,
      persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported,
      globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID,
      singleToDoublePrecisionPerfRatio, pageableMemoryAccess, concurrentManagedAccess,
      computePreemptionSupported, canUseHostPointerForRegisteredMem, cooperativeLaunch,
      cooperativeMultiDeviceLaunch;
  size_t sharedMemPerBlockOptin;
  int directManagedMemAccessFromHost, maxBlocksPerMultiProcessor;
  size_t reservedSharedMemPerBlock;
  int maxTexture1D, maxTexture2D[2], maxTexture3D[3], maxTexture1DLayered[2],
      maxTexture2DLayered[3];
  size_t surfaceAlignment, texturePitchAlignment;
  // 0 for what the model has not.
  cudaUUID_t uuid;
  char luid[8];
  unsigned luidDeviceNodeMask;
  int maxTexture1DLinear, maxTexture1DMipmap, maxTexture2DMipmap[2], maxTexture2DLinear[3],
      maxTexture2DGather[2], maxTexture3DAlt[3], maxTextureCubemap, maxTextureCubemapLayered[2],
      maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2],
      maxSurface2DLayered[3], maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
  int hostNativeAtomicSupported, pageableMemoryAccessUsesHostPageTables, accessPolicyMaxWindowSize,
      hostRegisterSupported, hostRegisterReadOnlySupported, sparseCudaArraySupported,
      timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported,
      deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers;
};

struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA,
      maxDynamicSharedSizeBytes, preferredShmemCarveout;
};

struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
};

enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePriority = 8,
  cudaLaunchAttributePreferredClusterDimension = 11  // a wish, which a GPU need not follow
};
union cudaLaunchAttributeValue {
  int cooperative;
  struct {
    unsigned x, y, z;
  } clusterDim, preferredClusterDim;
  int programmaticStreamSerializationAllowed;
  int priority;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

struct cudaExtent {
  size_t width, height, depth;
};
struct cudaPos {
  size_t x, y, z;
};
struct cudaPitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
};
struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
};
inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
  return {width, height, depth};
}
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
inline cudaPitchedPtr make_cudaPitchedPtr(void* pointer, size_t pitch, size_t width,
                                          size_t height) {
  return {pointer, pitch, width, height};
}

struct CUmemPoolHandle_st;
typedef CUmemPoolHandle_st* cudaMemPool_t;
enum cudaMemPoolAttr {
  cudaMemPoolReuseFollowEventDependencies = 1,
  cudaMemPoolReuseAllowOpportunistic,
  cudaMemPoolReuseAllowInternalDependencies,
  cudaMemPoolAttrReleaseThreshold,
  cudaMemPoolAttrReservedMemCurrent,
  cudaMemPoolAttrReservedMemHigh,
  cudaMemPoolAttrUsedMemCurrent,
  cudaMemPoolAttrUsedMemHigh
};

// Wishes about L2, which make no difference to the model.
enum cudaAccessProperty {
  cudaAccessPropertyNormal = 0,
  cudaAccessPropertyStreaming = 1,
  cudaAccessPropertyPersisting = 2
};
struct cudaAccessPolicyWindow {
  void* base_ptr;
  size_t num_bytes;
  float hitRatio;
  cudaAccessProperty hitProp, missProp;
};
union cudaStreamAttrValue {
  cudaAccessPolicyWindow accessPolicyWindow;
  int syncPolicy, priority;
};
enum cudaStreamAttrID {
  cudaStreamAttributeAccessPolicyWindow = 1,
  cudaStreamAttributeSynchronizationPolicy = 3,
  cudaStreamAttributePriority = 8
};

typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void* data);
typedef void (*cudaHostFn_t)(void* data);

#define COOKBOOK_PLACE ::cookbook::simt::program::Place cookbook_place = {}
// A `void**`, as which a program passes a pointer to a pointer of any type.
#define COOKBOOK_POINTER ::cookbook::simt::program::AnyPointer
// A note names the lines that ignore such a result.
#define COOKBOOK_RESULT [[nodiscard]] cudaError_t

// ---- memory ----

COOKBOOK_RESULT cudaMalloc(COOKBOOK_POINTER pointer, size_t bytes, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMallocManaged(COOKBOOK_POINTER pointer, size_t bytes,
                                  unsigned flags = cudaMemAttachGlobal, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMallocHost(COOKBOOK_POINTER pointer, size_t bytes, unsigned flags = 0,
                               COOKBOOK_PLACE);
COOKBOOK_RESULT cudaHostAlloc(COOKBOOK_POINTER pointer, size_t bytes, unsigned flags,
                              COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMallocAsync(COOKBOOK_POINTER pointer, size_t bytes, cudaStream_t stream,
                                COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMallocPitch(COOKBOOK_POINTER pointer, size_t* pitch, size_t width,
                                size_t height, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaFree(void* pointer, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaFreeHost(void* pointer, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaFreeAsync(void* pointer, cudaStream_t stream, COOKBOOK_PLACE);

COOKBOOK_RESULT cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                           COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                cudaStream_t stream = nullptr, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                             size_t width, size_t height, cudaMemcpyKind kind, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                  size_t width, size_t height, cudaMemcpyKind kind,
                                  cudaStream_t stream = nullptr, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                               size_t bytes, COOKBOOK_PLACE);
inline cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                       size_t bytes, cudaStream_t = nullptr, COOKBOOK_PLACE) {
  return cudaMemcpyPeer(to, to_device, from, from_device, bytes, cookbook_place);
}
COOKBOOK_RESULT cudaMemcpy3D(const cudaMemcpy3DParms* parameters, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters,
                                  cudaStream_t stream = nullptr, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemset(void* to, int value, size_t bytes, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream = nullptr,
                                COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height,
                             COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                                  cudaStream_t stream = nullptr, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent,
                                  cudaStream_t stream = nullptr, COOKBOOK_PLACE);

// ---- arrays, textures and surfaces ----

COOKBOOK_RESULT cudaMallocArray(COOKBOOK_POINTER array, const cudaChannelFormatDesc* format,
                                size_t width, size_t height = 0, unsigned flags = 0,
                                COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMalloc3DArray(COOKBOOK_POINTER array, const cudaChannelFormatDesc* format,
                                  cudaExtent extent, unsigned flags = 0, COOKBOOK_PLACE);
cudaError_t cudaFreeArray(cudaArray_t array, COOKBOOK_PLACE);
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array);
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array);
COOKBOOK_RESULT cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from,
                                  size_t bytes, cudaMemcpyKind kind, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y,
                                    size_t bytes, cudaMemcpyKind kind, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from,
                                    size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                    COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from,
                                         size_t pitch, size_t width, size_t height,
                                         cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                                         COOKBOOK_PLACE);
COOKBOOK_RESULT cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x,
                                      size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                      COOKBOOK_PLACE);
COOKBOOK_RESULT cudaCreateTextureObject(cudaTextureObject_t* texture,
                                        const cudaResourceDesc* resource,
                                        const cudaTextureDesc* how,
                                        const cudaResourceViewDesc* view, COOKBOOK_PLACE);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture);
COOKBOOK_RESULT cudaCreateSurfaceObject(cudaSurfaceObject_t* surface,
                                        const cudaResourceDesc* resource, COOKBOOK_PLACE);
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface);

namespace cookbook::simt::program {
/// `async`: the stream of an asynchronous copy.
cudaError_t copy_symbol(void* symbol, size_t symbol_bytes, const void* from, void* to, size_t bytes,
                        size_t offset, cudaMemcpyKind kind, Place place,
                        const cudaStream_t* async = nullptr);
cudaError_t symbol_address(void** pointer, const void* symbol, size_t symbol_bytes, Place place);
}  // namespace cookbook::simt::program

template <class T>
COOKBOOK_RESULT cudaMemcpyToSymbol(const T& symbol, const void* from, size_t bytes,
                                   size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                                   COOKBOOK_PLACE) {
  return cookbook::simt::program::copy_symbol(
      const_cast<void*>(static_cast<const volatile void*>(&symbol)), sizeof(T), from, nullptr,
      bytes, offset, kind, cookbook_place);
}
template <class T>
COOKBOOK_RESULT cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t bytes,
                                        size_t offset, cudaMemcpyKind kind,
                                        cudaStream_t stream = nullptr, COOKBOOK_PLACE) {
  return cookbook::simt::program::copy_symbol(
      const_cast<void*>(static_cast<const volatile void*>(&symbol)), sizeof(T), from, nullptr,
      bytes, offset, kind, cookbook_place, &stream);
}
template <class T>
COOKBOOK_RESULT cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                     cudaMemcpyKind kind = cudaMemcpyDeviceToHost, COOKBOOK_PLACE) {
  return cookbook::simt::program::copy_symbol(
      const_cast<void*>(static_cast<const volatile void*>(&symbol)), sizeof(T), nullptr, to, bytes,
      offset, kind, cookbook_place);
}
template <class T>
COOKBOOK_RESULT cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t bytes, size_t offset,
                                          cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                                          COOKBOOK_PLACE) {
  return cookbook::simt::program::copy_symbol(
      const_cast<void*>(static_cast<const volatile void*>(&symbol)), sizeof(T), nullptr, to, bytes,
      offset, kind, cookbook_place, &stream);
}
template <class T>
COOKBOOK_RESULT cudaGetSymbolAddress(void** pointer, const T& symbol, COOKBOOK_PLACE) {
  return cookbook::simt::program::symbol_address(pointer, &symbol, sizeof(T), cookbook_place);
}
template <class T>
cudaError_t cudaGetSymbolSize(size_t* bytes, const T&) {
  *bytes = sizeof(T);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
COOKBOOK_RESULT cudaHostRegister(void* pointer, size_t bytes, unsigned flags, COOKBOOK_PLACE);
cudaError_t cudaHostUnregister(void* pointer, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaHostGetDevicePointer(COOKBOOK_POINTER device, void* host, unsigned flags,
                                         COOKBOOK_PLACE);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);
// One pool, which keeps nothing.
inline cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
inline cudaError_t cudaMallocFromPoolAsync(COOKBOOK_POINTER pointer, size_t bytes, cudaMemPool_t,
                                           cudaStream_t stream, COOKBOOK_PLACE) {
  return cudaMallocAsync(pointer, bytes, stream, cookbook_place);
}
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) {
  return cudaSuccess;
}
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
enum cudaMemLocationType {
  cudaMemLocationTypeInvalid,
  cudaMemLocationTypeDevice,
  cudaMemLocationTypeHost,
  cudaMemLocationTypeHostNuma,
  cudaMemLocationTypeHostNumaCurrent
};
struct cudaMemLocation {
  cudaMemLocationType type;
  int id;
};
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned,
                                        cudaStream_t = nullptr) {
  return cudaSuccess;
}
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return cudaSuccess;
}
inline cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, size_t = 0, unsigned = 0) {
  return cudaSuccess;
}

// ---- errors and the device ----

cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);

COOKBOOK_RESULT cudaDeviceSynchronize(COOKBOOK_PLACE);
cudaError_t cudaDeviceReset(COOKBOOK_PLACE);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device, COOKBOOK_PLACE);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device, COOKBOOK_PLACE);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device,
                                   COOKBOOK_PLACE);
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit);
inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
inline cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t bytes);
inline cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
/// CUTLASS changes tensor maps by hand for drivers up to 13.1.
inline cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13020;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
enum cudaDeviceP2PAttr {
  cudaDevP2PAttrPerformanceRank = 1,
  cudaDevP2PAttrAccessSupported = 2,
  cudaDevP2PAttrNativeAtomicSupported = 3,
  cudaDevP2PAttrCudaArrayAccessSupported = 4
};
inline cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  *value = 0;
  return cudaErrorInvalidDevice;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags, COOKBOOK_PLACE);
cudaError_t cudaDeviceDisablePeerAccess(int peer, COOKBOOK_PLACE);
inline cudaError_t cudaInitDevice(int device, unsigned, unsigned, COOKBOOK_PLACE) {
  return cudaSetDevice(device, cookbook_place);
}
inline cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaSetValidDevices(int*, int) { return cudaSuccess; }
inline cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = cudaDeviceScheduleAuto | cudaDeviceMapHost;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  *config = cudaFuncCachePreferNone;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  *config = cudaSharedMemBankSizeFourByte;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int) {
  std::snprintf(text, static_cast<size_t>(bytes), "0000:00:00.0");
  return cudaSuccess;
}
inline cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1,
  cudaDriverEntryPointVersionNotSufficent = 2
};
#define cudaEnableDefault 0x00
/// Knows cuTensorMapEncodeTiled alone.
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* result = nullptr);
inline cudaError_t cudaGetDriverEntryPointByVersion(
    const char* symbol, void** function, unsigned, unsigned long long flags,
    cudaDriverEntryPointQueryResult* result = nullptr) {
  return cudaGetDriverEntryPoint(symbol, function, flags, result);
}
inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }

// ---- streams and events ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags, COOKBOOK_PLACE);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0,
                                COOKBOOK_PLACE);
cudaError_t cudaStreamDestroy(cudaStream_t stream, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaStreamSynchronize(cudaStream_t stream, COOKBOOK_PLACE);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t* event, COOKBOOK_PLACE);
cudaError_t cudaEventDestroy(cudaEvent_t event, COOKBOOK_PLACE);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr, COOKBOOK_PLACE);
cudaError_t cudaEventSynchronize(cudaEvent_t event, COOKBOOK_PLACE);
cudaError_t cudaEventQuery(cudaEvent_t event);
/// Time on the CPU that simulates: no GPU's.
COOKBOOK_RESULT cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end,
                                     COOKBOOK_PLACE);
inline cudaError_t cudaStreamCreate(cudaStream_t* stream, COOKBOOK_PLACE) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault, cookbook_place);
}
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int,
                                                COOKBOOK_PLACE) {
  return cudaStreamCreateWithFlags(stream, flags, cookbook_place);
}
inline cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID,
                                          const cudaStreamAttrValue*) {
  return cudaSuccess;
}
inline cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) {
  *priority = 0;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned,
                                            COOKBOOK_PLACE) {
  return cudaEventRecord(event, stream, cookbook_place);
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned, COOKBOOK_PLACE) {
  return cudaEventCreate(event, cookbook_place);
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned, COOKBOOK_PLACE) {
  return cudaEventCreate(event, cookbook_place);
}
inline cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                         void* data, unsigned) {
  callback(stream, cudaPeekAtLastError(), data);
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data);

// ---- graphs ----

struct CUgraph_st;
struct CUgraphExec_st;
struct CUgraphNode_st;
typedef CUgraph_st* cudaGraph_t;
typedef CUgraphExec_st* cudaGraphExec_t;
typedef CUgraphNode_st* cudaGraphNode_t;
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone,
  cudaStreamCaptureStatusActive,
  cudaStreamCaptureStatusInvalidated
};
enum cudaGraphNodeType {
  cudaGraphNodeTypeKernel,
  cudaGraphNodeTypeMemcpy,
  cudaGraphNodeTypeMemset,
  cudaGraphNodeTypeHost,
  cudaGraphNodeTypeGraph,
  cudaGraphNodeTypeEmpty
};
enum cudaGraphExecUpdateResult {
  cudaGraphExecUpdateSuccess,
  cudaGraphExecUpdateError,
  cudaGraphExecUpdateErrorTopologyChanged
};
struct cudaGraphExecUpdateResultInfo {
  cudaGraphExecUpdateResult result;
  cudaGraphNode_t errorNode, errorFromNode;
};
struct cudaGraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};
#define cudaGraphInstantiateFlagAutoFreeOnLaunch 1
#define cudaGraphInstantiateFlagUpload 2
#define cudaGraphInstantiateFlagUseNodePriority 8

namespace cookbook::simt::program {
/// A kernel that keeps its type, in a `void*`.
struct AnyKernel {
  void (*kernel)() = nullptr;
  void (*launch)(void (*kernel)(), Place, const LaunchSizes&, void** arguments) = nullptr;
  AnyKernel() = default;
  AnyKernel(std::nullptr_t) {}
  template <class... P>
  AnyKernel(void (*kernel_)(P...))
      : kernel(reinterpret_cast<void (*)()>(kernel_)), launch(&launch_as<P...>) {}
  template <class... P>
  static void launch_as(void (*kernel)(), Place place, const LaunchSizes& sizes, void** arguments);
};
/// cudaMemset2DAsync() of elements of 1, 2 or 4 bytes.
cudaError_t set_elements(void* to, size_t pitch, unsigned value, size_t element, size_t width,
                         size_t height, cudaStream_t stream, Place place);
}  // namespace cookbook::simt::program

struct cudaKernelNodeParams {
  cookbook::simt::program::AnyKernel func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
};
struct cudaMemsetParams {
  void* dst;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height;
};
struct cudaHostNodeParams {
  cudaHostFn_t fn;
  void* userData;
};

COOKBOOK_RESULT cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode,
                                       COOKBOOK_PLACE);
COOKBOOK_RESULT cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph, COOKBOOK_PLACE);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph = nullptr);
/// One mode for all threads of the host.
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph, COOKBOOK_PLACE);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec, COOKBOOK_PLACE);
cudaError_t cudaGraphClone(cudaGraph_t* to, cudaGraph_t from);
COOKBOOK_RESULT cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                     unsigned long long flags = 0, COOKBOOK_PLACE);
/// As of CUDA 10 and 11.
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphNode_t*,
                                        char*, size_t, COOKBOOK_PLACE) {
  return cudaGraphInstantiate(exec, graph, 0, cookbook_place);
}
inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                 unsigned long long flags = 0, COOKBOOK_PLACE) {
  return cudaGraphInstantiate(exec, graph, flags, cookbook_place);
}
inline cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
COOKBOOK_RESULT cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream, COOKBOOK_PLACE);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info, COOKBOOK_PLACE);
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                       cudaGraphNode_t* node, cudaGraphExecUpdateResult* result,
                                       COOKBOOK_PLACE) {
  cudaGraphExecUpdateResultInfo info;
  const cudaError_t error = cudaGraphExecUpdate(exec, graph, &info, cookbook_place);
  if (node) *node = nullptr;
  *result = info.result;
  return error;
}
COOKBOOK_RESULT cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* after, size_t count,
                                       const cudaKernelNodeParams* params, COOKBOOK_PLACE);
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params,
                                         COOKBOOK_PLACE);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* after, size_t count,
                                       const cudaMemcpy3DParms* params, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                         const cudaGraphNode_t* after, size_t count, void* to,
                                         const void* from, size_t bytes, cudaMemcpyKind kind,
                                         COOKBOOK_PLACE);
COOKBOOK_RESULT cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* after, size_t count,
                                       const cudaMemsetParams* params, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* after, size_t count,
                                     const cudaHostNodeParams* params, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                      const cudaGraphNode_t* after, size_t count, COOKBOOK_PLACE);
COOKBOOK_RESULT cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* after, size_t count,
                                           cudaGraph_t child, COOKBOOK_PLACE);
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, size_t count);
/// As of CUDA 13.
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                            size_t count) {
  return cudaGraphAddDependencies(graph, from, to, count);
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type);
inline cudaError_t cudaGraphDebugDotPrint(cudaGraph_t, const char*, unsigned) {
  return cudaSuccess;
}

// ---- functions ----

namespace cookbook::simt::program {
cudaError_t allow_shared_bytes(const void* kernel, int bytes, Place place);
cudaError_t function_attributes(cudaFuncAttributes* attributes, const void* kernel);
int resident_blocks(int threads, size_t shared_bytes);
/// Returns what cudaPeekAtLastError() says about the launch alone.
cudaError_t launch_result(Place place);

template <class... P, size_t... I>
COOKBOOK_SIMT_UNTRACED void launch_array(Place place, const LaunchSizes& sizes,
                                         void (*kernel)(P...), void** arguments,
                                         std::index_sequence<I...>) {
  const auto body = [kernel](const auto&... values)
      __attribute__((no_sanitize("thread"), no_sanitize_coverage)) {
    kernel(values...);
  };
  launch_at(place.file, place.line, body)
      .with(sizes)(*static_cast<std::remove_reference_t<P>*>(arguments[I])...);
}
template <class... P>
void AnyKernel::launch_as(void (*kernel)(), Place place, const LaunchSizes& sizes,
                          void** arguments) {
  launch_array(place, sizes, reinterpret_cast<void (*)(P...)>(kernel), arguments,
               std::index_sequence_for<P...>());
}
}  // namespace cookbook::simt::program

template <class... P>
COOKBOOK_RESULT cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                                 size_t shared_bytes = 0, cudaStream_t stream = nullptr,
                                 COOKBOOK_PLACE) {
  cookbook::simt::program::launch_array(cookbook_place, {grid, block, shared_bytes, stream}, kernel,
                                        arguments, std::index_sequence_for<P...>());
  return cookbook::simt::program::launch_result(cookbook_place);
}
template <class... P>
COOKBOOK_RESULT cudaLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid, dim3 block,
                                            void** arguments, size_t shared_bytes = 0,
                                            cudaStream_t stream = nullptr, COOKBOOK_PLACE) {
  cookbook::simt::program::launch_array(cookbook_place, {grid, block, shared_bytes, stream, true},
                                        kernel, arguments, std::index_sequence_for<P...>());
  return cookbook::simt::program::launch_result(cookbook_place);
}
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                               A&&... arguments) {
  cookbook::simt::program::LaunchSizes sizes{config->gridDim, config->blockDim,
                                             config->dynamicSmemBytes, config->stream};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative) {
      sizes.cooperative = attribute.val.cooperative != 0;
    }
    if (attribute.id == cudaLaunchAttributeClusterDimension) {
      const auto& shape = attribute.val.clusterDim;
      sizes.cluster = {shape.x, shape.y, shape.z};
    }
  }
  const auto body = [kernel](const auto&... values)
      __attribute__((no_sanitize("thread"), no_sanitize_coverage)) {
    kernel(values...);
  };
  cookbook::simt::program::launch_at("", 0, body)
      .with(sizes)(static_cast<P>(std::forward<A>(arguments))...);
  return cookbook::simt::program::launch_result({"", 0});
}

template <class F>
cudaError_t cudaFuncSetAttribute(F* kernel, cudaFuncAttribute attribute, int value,
                                 COOKBOOK_PLACE) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  return cookbook::simt::program::allow_shared_bytes(reinterpret_cast<const void*>(kernel), value,
                                                     cookbook_place);
}
template <class F>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F* kernel) {
  return cookbook::simt::program::function_attributes(attributes,
                                                      reinterpret_cast<const void*>(kernel));
}
template <class F>
cudaError_t cudaFuncSetCacheConfig(F*, cudaFuncCache) {
  return cudaSuccess;
}
template <class F>
cudaError_t cudaFuncSetSharedMemConfig(F*, cudaSharedMemConfig) {
  return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F*, int threads,
                                                          size_t shared_bytes) {
  *blocks = cookbook::simt::program::resident_blocks(threads, shared_bytes);
  return cudaSuccess;
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, F* kernel,
                                                                   int threads, size_t shared_bytes,
                                                                   unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared_bytes);
}
/// The model has no registers that limit a block: the largest block is suggested.
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F*, size_t shared_bytes = 0,
                                               int limit = 0) {
  *block = limit > 0 && limit < 1024 ? limit : 1024;
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, 0);
  *grid = properties.multiProcessorCount *
          cookbook::simt::program::resident_blocks(*block, shared_bytes);
  return error;
}
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, F* kernel,
                                                        size_t shared_bytes = 0, int limit = 0,
                                                        unsigned = 0) {
  return cudaOccupancyMaxPotentialBlockSize(grid, block, kernel, shared_bytes, limit);
}
template <class Size, class F>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, F* kernel,
                                                           Size bytes_of, int limit = 0) {
  return cudaOccupancyMaxPotentialBlockSize(grid, block, kernel, bytes_of(1024), limit);
}

// ---- atomics as built-in functions: their numbers are g++'s ----

#define __NV_ATOMIC_RELAXED 0
#define __NV_ATOMIC_CONSUME 1
#define __NV_ATOMIC_ACQUIRE 2
#define __NV_ATOMIC_RELEASE 3
#define __NV_ATOMIC_ACQ_REL 4
#define __NV_ATOMIC_SEQ_CST 5
#define __NV_THREAD_SCOPE_THREAD 0
#define __NV_THREAD_SCOPE_BLOCK 1
#define __NV_THREAD_SCOPE_CLUSTER 2
#define __NV_THREAD_SCOPE_DEVICE 3
#define __NV_THREAD_SCOPE_SYSTEM 4

namespace cookbook::simt::program {
template <class F>
__forceinline__ auto in_scope(int scope, const F& perform) {
  asm goto("" : : : : step);  // a basic block of its own: the lanes of a warp come together
step:
  if (scope <= __NV_THREAD_SCOPE_BLOCK) set_block_scope(true);
  const auto old = perform();
  if (scope <= __NV_THREAD_SCOPE_BLOCK) set_block_scope(false);
  return old;
}
}  // namespace cookbook::simt::program

template <class T>
__forceinline__ T __nv_atomic_load_n(T* p, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  return cookbook::simt::program::in_scope(scope, [=] { return __atomic_load_n(p, order); });
}
template <class T>
__forceinline__ void __nv_atomic_load(T* p, T* value, int order,
                                      int scope = __NV_THREAD_SCOPE_SYSTEM) {
  *value = __nv_atomic_load_n(p, order, scope);
}
template <class T, class V>
__forceinline__ void __nv_atomic_store_n(T* p, V value, int order,
                                         int scope = __NV_THREAD_SCOPE_SYSTEM) {
  cookbook::simt::program::in_scope(scope, [=] {
    __atomic_store_n(p, static_cast<T>(value), order);
    return 0;
  });
}
template <class T>
__forceinline__ void __nv_atomic_store(T* p, T* value, int order,
                                       int scope = __NV_THREAD_SCOPE_SYSTEM) {
  __nv_atomic_store_n(p, *value, order, scope);
}
template <class T, class V>
__forceinline__ T __nv_atomic_exchange_n(T* p, V value, int order,
                                         int scope = __NV_THREAD_SCOPE_SYSTEM) {
  return cookbook::simt::program::in_scope(
      scope, [=] { return __atomic_exchange_n(p, static_cast<T>(value), order); });
}
template <class T, class V>
__forceinline__ bool __nv_atomic_compare_exchange_n(T* p, T* expected, V value, bool, int order,
                                                    int, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  return cookbook::simt::program::in_scope(scope, [=] {
    return __atomic_compare_exchange_n(p, expected, static_cast<T>(value), false, order,
                                       __ATOMIC_RELAXED);
  });
}
#define COOKBOOK_FETCH(NAME, ...)                                                        \
  template <class T, class V>                                                            \
  __forceinline__ T __nv_atomic_fetch_##NAME(T* p, V v, int order,                       \
                                             int scope = __NV_THREAD_SCOPE_SYSTEM) {     \
    const T value = static_cast<T>(v);                                                   \
    return cookbook::simt::program::in_scope(scope, [=]() -> T { return __VA_ARGS__; }); \
  }
#define COOKBOOK_FETCH_INTEGER(NAME, OTHERWISE)      \
  COOKBOOK_FETCH(NAME, [=] {                         \
    if constexpr (std::is_integral_v<T>) {           \
      return __atomic_fetch_##NAME(p, value, order); \
    } else {                                         \
      return (void)order, OTHERWISE;                 \
    }                                                \
  }())
COOKBOOK_FETCH_INTEGER(add, atomicAdd(p, value))
COOKBOOK_FETCH_INTEGER(sub, atomicAdd(p, -value))
COOKBOOK_FETCH(and, __atomic_fetch_and(p, value, order))
COOKBOOK_FETCH(or, __atomic_fetch_or(p, value, order))
COOKBOOK_FETCH(xor, __atomic_fetch_xor(p, value, order))
COOKBOOK_FETCH(min, ((void)order, atomicMin(p, value)))
COOKBOOK_FETCH(max, ((void)order, atomicMax(p, value)))
#undef COOKBOOK_FETCH_INTEGER
#undef COOKBOOK_FETCH
__forceinline__ void __nv_atomic_thread_fence(int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  if (order == __NV_ATOMIC_RELAXED) return;
  scope <= __NV_THREAD_SCOPE_BLOCK ? __threadfence_block() : __threadfence();
}

// What a program sees of the compiler. After this line nothing of the book is compiled. The words
// of the language are no macros: tools/check/rewrite.py replaces them, in what the preprocessor
// leaves.
#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __align__
#undef __noinline__
#undef __launch_bounds__
#undef __cluster_dims__
#ifndef COOKBOOK_HOST_SOURCE
#define __CUDACC__ 1
#define __NVCC__ 1
#endif
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define __CUDACC_VER_BUILD__ 0
// Headers of programs ask whether these of the toolkit came before them.
#define __DRIVER_TYPES_H__
#define __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_API_H__
