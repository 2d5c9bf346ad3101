// SPDX-License-Identifier: MIT
// Errors and attributes of devices, a line each: cuda_runtime.h makes enumerations of them,
// runtime.cpp what is said of each.
#pragma once

// An error, its number, and what cudaGetErrorString() says.
#define COOKBOOK_ERRORS(ERROR)                                                                  \
  ERROR(cudaSuccess, 0, "no error")                                                             \
  ERROR(cudaErrorInvalidValue, 1, "invalid argument")                                           \
  ERROR(cudaErrorMemoryAllocation, 2, "out of memory")                                          \
  ERROR(cudaErrorInitializationError, 3, "initialization error")                                \
  ERROR(cudaErrorCudartUnloading, 4, "driver shutting down")                                    \
  ERROR(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                     \
  ERROR(cudaErrorInvalidPitchValue, 12, "invalid pitch argument")                               \
  ERROR(cudaErrorInvalidSymbol, 13, "invalid device symbol")                                    \
  ERROR(cudaErrorInvalidHostPointer, 16, "invalid host pointer")                                \
  ERROR(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                            \
  ERROR(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")               \
  ERROR(cudaErrorInvalidFilterSetting, 26, "linear filtering not supported for non-float type") \
  ERROR(cudaErrorInvalidNormSetting, 27,                                                        \
        "read as normalized float not supported for 32-bit non float type")                     \
  ERROR(cudaErrorInsufficientDriver, 35,                                                        \
        "CUDA driver version is insufficient for CUDA runtime version")                         \
  ERROR(cudaErrorDevicesUnavailable, 46, "CUDA-capable device(s) is/are busy or unavailable")   \
  ERROR(cudaErrorMissingConfiguration, 52, "__global__ function call is not configured")        \
  ERROR(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                          \
  ERROR(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                           \
  ERROR(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                  \
  ERROR(cudaErrorNoKernelImageForDevice, 209,                                                   \
        "no kernel image is available for execution on the device")                             \
  ERROR(cudaErrorECCUncorrectable, 214, "uncorrectable ECC error encountered")                  \
  ERROR(cudaErrorUnsupportedLimit, 215, "limit is not supported on this architecture")          \
  ERROR(cudaErrorPeerAccessUnsupported, 217,                                                    \
        "peer access is not supported between these two devices")                               \
  ERROR(cudaErrorInvalidPtx, 218, "a PTX JIT compilation failed")                               \
  ERROR(cudaErrorOperatingSystem, 304, "OS call failed or operation not supported on this OS")  \
  ERROR(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                         \
  ERROR(cudaErrorIllegalState, 401, "the operation cannot be performed in the present state")   \
  ERROR(cudaErrorSymbolNotFound, 500, "named symbol not found")                                 \
  ERROR(cudaErrorNotReady, 600, "device not ready")                                             \
  ERROR(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")               \
  ERROR(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")          \
  ERROR(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")                 \
  ERROR(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")               \
  ERROR(cudaErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")                 \
  ERROR(cudaErrorAssert, 710, "device-side assert triggered")                                   \
  ERROR(cudaErrorHostMemoryAlreadyRegistered, 712,                                              \
        "part or all of the requested memory range is already mapped")                          \
  ERROR(cudaErrorHostMemoryNotRegistered, 713,                                                  \
        "pointer does not correspond to a registered memory region")                            \
  ERROR(cudaErrorHardwareStackError, 714, "hardware stack error")                               \
  ERROR(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered")             \
  ERROR(cudaErrorMisalignedAddress, 716, "misaligned address")                                  \
  ERROR(cudaErrorInvalidAddressSpace, 717,                                                      \
        "operation not supported on global/shared address space")                               \
  ERROR(cudaErrorInvalidPc, 718, "invalid program counter")                                     \
  ERROR(cudaErrorLaunchFailure, 719, "unspecified launch failure")                              \
  ERROR(cudaErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")       \
  ERROR(cudaErrorNotPermitted, 800, "operation not permitted")                                  \
  ERROR(cudaErrorNotSupported, 801, "operation not supported")                                  \
  ERROR(cudaErrorStreamCaptureUnsupported, 900,                                                 \
        "operation not permitted when stream is capturing")                                     \
  ERROR(cudaErrorStreamCaptureInvalidated, 901,                                                 \
        "operation failed due to a previous error during capture")                              \
  ERROR(cudaErrorStreamCaptureMerge, 902,                                                       \
        "operation would result in a merge of separate capture sequences")                      \
  ERROR(cudaErrorStreamCaptureUnmatched, 903,                                                   \
        "capture was not ended in the same stream as it began")                                 \
  ERROR(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")              \
  ERROR(cudaErrorStreamCaptureIsolation, 905,                                                   \
        "dependency created on uncaptured work in another stream")                              \
  ERROR(cudaErrorStreamCaptureImplicit, 906,                                                    \
        "operation would make the legacy stream depend on a capturing blocking stream")         \
  ERROR(cudaErrorCapturedEvent, 907,                                                            \
        "operation not permitted on an event last recorded in a capturing stream")              \
  ERROR(cudaErrorGraphExecUpdateFailure, 910,                                                   \
        "the graph update was not performed because it included changes which violated "        \
        "constraints specific to instantiated graph update")                                    \
  ERROR(cudaErrorUnknown, 999, "unknown error")

// An attribute, its number, and its value for a device with the properties `p`: 1 or 0 where the
// model has, or has not, such a thing.
#define COOKBOOK_DEVICE_ATTRIBUTES(ATTRIBUTE)                                              \
  ATTRIBUTE(cudaDevAttrMaxThreadsPerBlock, 1, p.maxThreadsPerBlock)                        \
  ATTRIBUTE(cudaDevAttrMaxBlockDimX, 2, p.maxThreadsDim[0])                                \
  ATTRIBUTE(cudaDevAttrMaxBlockDimY, 3, p.maxThreadsDim[1])                                \
  ATTRIBUTE(cudaDevAttrMaxBlockDimZ, 4, p.maxThreadsDim[2])                                \
  ATTRIBUTE(cudaDevAttrMaxGridDimX, 5, p.maxGridSize[0])                                   \
  ATTRIBUTE(cudaDevAttrMaxGridDimY, 6, p.maxGridSize[1])                                   \
  ATTRIBUTE(cudaDevAttrMaxGridDimZ, 7, p.maxGridSize[2])                                   \
  ATTRIBUTE(cudaDevAttrMaxSharedMemoryPerBlock, 8, p.sharedMemPerBlock)                    \
  ATTRIBUTE(cudaDevAttrTotalConstantMemory, 9, p.totalConstMem)                            \
  ATTRIBUTE(cudaDevAttrWarpSize, 10, p.warpSize)                                           \
  ATTRIBUTE(cudaDevAttrMaxRegistersPerBlock, 12, p.regsPerBlock)                           \
  ATTRIBUTE(cudaDevAttrClockRate, 13, 0)                                                   \
  ATTRIBUTE(cudaDevAttrMultiProcessorCount, 16, p.multiProcessorCount)                     \
  ATTRIBUTE(cudaDevAttrIntegrated, 18, 0)                                                  \
  ATTRIBUTE(cudaDevAttrCanMapHostMemory, 19, 1)                                            \
  ATTRIBUTE(cudaDevAttrComputeMode, 20, 0)                                                 \
  ATTRIBUTE(cudaDevAttrConcurrentKernels, 31, 1)                                           \
  ATTRIBUTE(cudaDevAttrMemoryClockRate, 36, 0)                                             \
  ATTRIBUTE(cudaDevAttrGlobalMemoryBusWidth, 37, 0)                                        \
  ATTRIBUTE(cudaDevAttrL2CacheSize, 38, p.l2CacheSize)                                     \
  ATTRIBUTE(cudaDevAttrMaxThreadsPerMultiProcessor, 39, p.maxThreadsPerMultiProcessor)     \
  ATTRIBUTE(cudaDevAttrAsyncEngineCount, 40, 1)                                            \
  ATTRIBUTE(cudaDevAttrUnifiedAddressing, 41, 1)                                           \
  ATTRIBUTE(cudaDevAttrComputeCapabilityMajor, 75, p.major)                                \
  ATTRIBUTE(cudaDevAttrComputeCapabilityMinor, 76, p.minor)                                \
  ATTRIBUTE(cudaDevAttrMaxSharedMemoryPerMultiprocessor, 81, p.sharedMemPerMultiprocessor) \
  ATTRIBUTE(cudaDevAttrMaxRegistersPerMultiprocessor, 82, p.regsPerMultiprocessor)         \
  ATTRIBUTE(cudaDevAttrManagedMemory, 83, 1)                                               \
  ATTRIBUTE(cudaDevAttrPageableMemoryAccess, 88, 0)                                        \
  ATTRIBUTE(cudaDevAttrConcurrentManagedAccess, 89, 1)                                     \
  ATTRIBUTE(cudaDevAttrCooperativeLaunch, 95, 1)                                           \
  ATTRIBUTE(cudaDevAttrMaxSharedMemoryPerBlockOptin, 97, p.sharedMemPerBlockOptin)         \
  ATTRIBUTE(cudaDevAttrMaxBlocksPerMultiprocessor, 106, p.maxBlocksPerMultiProcessor)      \
  ATTRIBUTE(cudaDevAttrMaxPitch, 11, p.memPitch)                                           \
  ATTRIBUTE(cudaDevAttrTextureAlignment, 14, p.textureAlignment)                           \
  ATTRIBUTE(cudaDevAttrGpuOverlap, 15, 1)                                                  \
  ATTRIBUTE(cudaDevAttrKernelExecTimeout, 17, 0)                                           \
  ATTRIBUTE(cudaDevAttrSurfaceAlignment, 30, p.surfaceAlignment)                           \
  ATTRIBUTE(cudaDevAttrEccEnabled, 32, 0)                                                  \
  ATTRIBUTE(cudaDevAttrPciBusId, 33, 0)                                                    \
  ATTRIBUTE(cudaDevAttrPciDeviceId, 34, 0)                                                 \
  ATTRIBUTE(cudaDevAttrTccDriver, 35, 0)                                                   \
  ATTRIBUTE(cudaDevAttrPciDomainId, 50, 0)                                                 \
  ATTRIBUTE(cudaDevAttrTexturePitchAlignment, 51, p.texturePitchAlignment)                 \
  ATTRIBUTE(cudaDevAttrStreamPrioritiesSupported, 78, 0)                                   \
  ATTRIBUTE(cudaDevAttrGlobalL1CacheSupported, 79, 1)                                      \
  ATTRIBUTE(cudaDevAttrLocalL1CacheSupported, 80, 1)                                       \
  ATTRIBUTE(cudaDevAttrIsMultiGpuBoard, 84, 0)                                             \
  ATTRIBUTE(cudaDevAttrMultiGpuBoardGroupID, 85, 0)                                        \
  ATTRIBUTE(cudaDevAttrHostNativeAtomicSupported, 86, 0)                                   \
  ATTRIBUTE(cudaDevAttrSingleToDoublePrecisionPerfRatio, 87, 0)                            \
  ATTRIBUTE(cudaDevAttrComputePreemptionSupported, 90, 1)                                  \
  ATTRIBUTE(cudaDevAttrCanUseHostPointerForRegisteredMem, 91, 1)                           \
  ATTRIBUTE(cudaDevAttrHostRegisterSupported, 99, 1)                                       \
  ATTRIBUTE(cudaDevAttrPageableMemoryAccessUsesHostPageTables, 100, 0)                     \
  ATTRIBUTE(cudaDevAttrDirectManagedMemAccessFromHost, 101, 0)                             \
  ATTRIBUTE(cudaDevAttrMaxPersistingL2CacheSize, 108, 0)                                   \
  ATTRIBUTE(cudaDevAttrMaxAccessPolicyWindowSize, 109, 0)                                  \
  ATTRIBUTE(cudaDevAttrReservedSharedMemoryPerBlock, 111, p.reservedSharedMemPerBlock)     \
  ATTRIBUTE(cudaDevAttrClusterLaunch, 120, p.clusterLaunch)                                \
  ATTRIBUTE(cudaDevAttrMemoryPoolsSupported, 115, 1)
