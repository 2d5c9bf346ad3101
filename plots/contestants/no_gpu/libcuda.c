// SPDX-License-Identifier: MIT
// A libcuda.so.1 without a GPU: cuda.tile compiles for its sm_90 and "launches", and nothing runs.
// For prepare_cutile.sh. Every entry point is looked up through cuGetProcAddress, and one that is
// not listed does nothing and returns success.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { success = 0 };
static char context, stream, library, kernel;  // handles only need distinct addresses

static int nothing(void) { return success; }
static int driver_version(int* version) { return *version = 13000, success; }
static int count_devices(int* count) { return *count = 1, success; }
static int first_device(int* device) { return *device = 0, success; }
static int get_device(int* device, int index) { return (void)index, *device = 0, success; }
static int current_context(void** out) { return *out = &context, success; }
static int retain_context(void** out, int device) { return (void)device, *out = &context, success; }
static int context_of_stream(void* of, void** out) { return (void)of, *out = &context, success; }
static int get_id(void* of, uint64_t* id) { return (void)of, *id = 1, success; }
static int make_stream(void** out) { return *out = &stream, success; }
static int load_library(void** out) { return *out = &library, success; }
static int get_kernel(void** out) { return *out = &kernel, success; }
static int not_capturing(void* of, int* status) { return (void)of, *status = 0, success; }
static int kernel_attribute(int* value) { return *value = 0, success; }
static int elapsed(float* ms) { return *ms = 1, success; }
static int allocate(void** out, size_t bytes) { return *out = calloc(1, bytes), success; }
static int error_text(int error, const char** text) {
  return (void)error, *text = "no GPU here", success;
}

static int device_attribute(int* value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case 75: *value = 9; break;    // compute capability, major
    case 76: *value = 0; break;    // and minor
    case 16: *value = 132; break;  // SMs
    default: *value = 1;
  }
  return success;
}

static int pointer_attribute(void* out, int attribute, uint64_t pointer) {
  switch (attribute) {
    case 1: *(void**)out = &context; break;    // the context that it belongs to
    case 2: *(int*)out = 2; break;             // memory type: device
    case 3: *(uint64_t*)out = pointer; break;  // its device address
    default: *(int*)out = 0;
  }
  return success;
}

#define ENTRY(name, function) \
  { #name, (void*)(function) }
static const struct {
  const char* name;
  void* function;
} entries[] = {
    ENTRY(cuDriverGetVersion, driver_version),
    ENTRY(cuGetErrorString, error_text),
    ENTRY(cuDeviceGetCount, count_devices),
    ENTRY(cuDeviceGet, get_device),
    ENTRY(cuDeviceGetAttribute, device_attribute),
    ENTRY(cuDevicePrimaryCtxRetain, retain_context),
    ENTRY(cuCtxGetCurrent, current_context),
    ENTRY(cuCtxPopCurrent, current_context),
    ENTRY(cuCtxGetDevice, first_device),
    ENTRY(cuCtxGetId, get_id),
    ENTRY(cuStreamGetId, get_id),
    ENTRY(cuStreamGetCtx, context_of_stream),
    ENTRY(cuStreamCreate, make_stream),
    ENTRY(cuStreamIsCapturing, not_capturing),
    ENTRY(cuEventCreate, make_stream),
    ENTRY(cuEventElapsedTime, elapsed),
    ENTRY(cuPointerGetAttribute, pointer_attribute),
    ENTRY(cuMemAlloc, allocate),
    ENTRY(cuMemAllocHost, allocate),
    ENTRY(cuLibraryLoadData, load_library),
    ENTRY(cuLibraryGetKernel, get_kernel),
    ENTRY(cuKernelGetFunction, get_kernel),
    ENTRY(cuKernelGetAttribute, kernel_attribute),
};

int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags,
                        int* status) {
  (void)version, (void)flags;
  *function = (void*)nothing;
  for (size_t i = 0; i < sizeof entries / sizeof *entries; ++i) {
    if (!strcmp(name, entries[i].name)) *function = entries[i].function;
  }
  if (status) *status = 0;
  return success;
}
