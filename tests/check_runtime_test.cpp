// SPDX-License-Identifier: MIT
// The CUDA runtime API of ./run check: what its calls do, which ones they refuse, and what the
// report says of them. The programs of tests/check take the whole way, with the compiler.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/backend/simt/runtime/crash.hpp"
#include "common/backend/simt/runtime/devices.hpp"
#include "common/backend/simt/runtime/fiber.hpp"
#include "common/backend/simt/runtime/launch.hpp"
#include "common/backend/simt/runtime/scheduler.hpp"
#include "common/backend/simt/units/tensor_map_tag.hpp"
#include "tools/check/program/include/cooperative_groups.h"
#include "tools/check/program/include/cuda.h"
#include "tools/check/program/include/cuda_runtime.h"
#include "tests/folder.hpp"
#include "tests/text.hpp"

namespace cookbook {
namespace {

using simt::program::DeviceVariable;
using simt::program::Place;

#define EXPECT_OK(call) EXPECT_EQ(call, cudaSuccess)
#define ASSERT_OK(call) ASSERT_EQ(call, cudaSuccess)

// ---- kernels, as tools/check/rewrite.py leaves them ----

#define KERNEL [[gnu::noinline]] void
#define BEGIN_KERNEL \
  if (simt::program::asking && simt::program::answer()) return

KERNEL add_one(int* x, int n) {
  BEGIN_KERNEL;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < static_cast<unsigned>(n)) x[i] += 1;
}
KERNEL store_at(int* x, int index) {
  BEGIN_KERNEL;
  x[index] = 7;
}
KERNEL use_shared(int* x, int last) {
  BEGIN_KERNEL;
  int* shared = simt::program::dynamic_shared<int>();
  shared[last] = 3;
  x[0] = shared[last];
}
constexpr Fault kFaults[] = {Fault::assertion, Fault::out_of_bounds, Fault::misaligned,
                             Fault::kernel_failed};
KERNEL fails(int* x, int reason) {
  BEGIN_KERNEL;
  if (threadIdx.x == 3) simt::fail(kFaults[reason], "planted", __builtin_return_address(0));
  x[threadIdx.x] = 1;
}
// Every block reads what the next one wrote before the grid's barrier, three times.
KERNEL pass_on(int* x) {
  BEGIN_KERNEL;
  const auto grid = cooperative_groups::this_grid();
  const unsigned next = (blockIdx.x + 1) % gridDim.x;
  for (int round = 0; round < 3; ++round) {
    const int value = x[next];
    grid.sync();
    if (threadIdx.x == 0) x[blockIdx.x] = value + 1;
    grid.sync();
  }
}
// Where two __shared__ variables of a cooperative launch lie behind its dynamic shared memory.
KERNEL place_shared(int* x, int bytes) {
  BEGIN_KERNEL;
  char* const dynamic = simt::program::dynamic_shared<char>();
  for (const auto& [name, size] : {std::pair("a", 8), {"b", bytes}, {"a", 8}}) {
    void* const at = simt::program::cooperative_shared(name, static_cast<size_t>(size), 8);
    *x++ = static_cast<int>(static_cast<char*>(at) - dynamic);
  }
}
KERNEL block_of_cluster(int* x) {
  BEGIN_KERNEL;
  const unsigned size = simt::current_thread->block->group->block_count;
  if (threadIdx.x == 0) x[blockIdx.x] = static_cast<int>(size);
}

KERNEL place_in_cluster(int* x) {
  BEGIN_KERNEL;
  const uint3 shape = simt::cluster_shape();
  const unsigned place = blockIdx.x % shape.x + blockIdx.y % shape.y * shape.x;
  if (threadIdx.x != 0) return;
  x[blockIdx.x + blockIdx.y * gridDim.x] =
      place == cluster_block_rank() ? static_cast<int>(place) : -1;
}

void launch_add_one(int* x, int n) {
  simt::program::launch_at("program.cu", 12, [](auto... a) { add_one(a...); }).with(2, 32)(x, n);
}

struct OnDevice {
  explicit OnDevice(const char* name) { simt::set_device(name); }
  ~OnDevice() { simt::set_device(""); }
};

struct {
  int values[4];
  int not_known;
} variables;
auto& variable = variables.values;
const DeviceVariable known(variable, sizeof variable, "variable", DeviceVariable::device);
int constant[4];
const DeviceVariable known_too(constant, sizeof constant, "constant", DeviceVariable::constant);

// ---- a program of its own ----

struct Outcome {
  int status = -1;
  nlohmann::json report;
  std::string errors;

  std::vector<std::string> findings() const {
    std::vector<std::string> texts;
    for (const auto& finding : report["findings"]) {
      texts.push_back(finding["count"].dump() + " " + finding["kind"].get<std::string>() + ": " +
                      finding["message"].get<std::string>());
    }
    return texts;
  }
  std::vector<std::string> failed_calls() const {
    std::vector<std::string> texts;
    for (const auto& call : report["failed_calls"]) {
      texts.push_back(call["function"].get<std::string>() + ": " +
                      call["message"].get<std::string>());
    }
    return texts;
  }
};

// Runs `program` in a child process, which ends with the report of ./run check.
Outcome run_program(const std::function<int()>& program) {
  const Folder folder;
  const std::string report = folder / "report.json", errors = folder / "errors";
  const pid_t child = fork();
  if (child == 0) {
    setenv("COOKBOOK_CHECK_REPORT", report.c_str(), 1);
    if (!std::freopen(errors.c_str(), "w", stderr)) _exit(99);
    std::exit(program());
  }
  Outcome outcome;
  int status = 0;
  if (waitpid(child, &status, 0) == child && WIFEXITED(status)) {
    outcome.status = WEXITSTATUS(status);
  }
  std::stringstream said;
  said << std::ifstream(errors).rdbuf();
  outcome.errors = said.str();
  std::ifstream file(report);
  if (file) outcome.report = nlohmann::json::parse(file);
  return outcome;
}

// A test of the API itself. One worker: a child has no other threads than the one that forks.
class CheckRuntime : public ::testing::Test {
 protected:
  void SetUp() override {
    simt::set_workers(1);
    EXPECT_OK(cudaDeviceReset());
    void* address = nullptr;  // or a copy may not use it
    EXPECT_OK(cudaGetSymbolAddress(&address, variable));
  }
  void TearDown() override { EXPECT_OK(cudaDeviceReset()); }

  static int* allocate(size_t count) {
    int* x = nullptr;
    EXPECT_OK(cudaMalloc(&x, count * sizeof(int)));
    return x;
  }
  static int* upload(const std::vector<int>& values) {
    int* x = allocate(values.size());
    EXPECT_OK(cudaMemcpy(x, values.data(), values.size() * sizeof(int), cudaMemcpyHostToDevice));
    return x;
  }
  static std::vector<int> download(const void* x, size_t count) {
    std::vector<int> values(count, -1);
    EXPECT_OK(cudaMemcpy(values.data(), x, count * sizeof(int), cudaMemcpyDeviceToHost));
    return values;
  }
  static std::vector<int> counting(size_t count) {
    std::vector<int> values(count);
    std::iota(values.begin(), values.end(), 1);
    return values;
  }
};

// ---- memory ----

TEST_F(CheckRuntime, AllocatesAndFreesOnce) {
  int* x = allocate(8);
  ASSERT_NE(x, nullptr);
  EXPECT_OK(cudaFree(x));
  EXPECT_EQ(cudaFree(x), cudaErrorInvalidValue);
  EXPECT_OK(cudaFree(nullptr));
  int on_host = 0;
  EXPECT_EQ(cudaFree(&on_host), cudaErrorInvalidValue);
  int* y = allocate(8);
  EXPECT_EQ(cudaFree(y + 1), cudaErrorInvalidValue);  // not where it begins
  EXPECT_EQ(cudaFreeHost(y), cudaErrorInvalidValue);
  EXPECT_OK(cudaFreeAsync(y, nullptr));

  int* pinned = nullptr;
  EXPECT_OK(cudaMallocHost(&pinned, 64));
  pinned[15] = 1;
  EXPECT_EQ(cudaFree(pinned), cudaErrorInvalidValue);
  EXPECT_OK(cudaFreeHost(pinned));
  EXPECT_OK(cudaHostAlloc(&pinned, 64, cudaHostAllocDefault));
  EXPECT_OK(cudaFreeHost(pinned));

  int* managed = nullptr;
  EXPECT_OK(cudaMallocManaged(&managed, 64));
  managed[15] = 1;
  EXPECT_EQ(cudaFreeHost(managed), cudaErrorInvalidValue);
  EXPECT_OK(cudaFree(managed));
}

TEST_F(CheckRuntime, NothingAndNowhere) {
  int* x = reinterpret_cast<int*>(8);
  EXPECT_OK(cudaMalloc(&x, 0));
  EXPECT_EQ(x, nullptr);
  EXPECT_EQ(cudaMalloc(static_cast<void**>(nullptr), 4), cudaErrorInvalidValue);
  EXPECT_OK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemset(nullptr, 0, 0));
}

TEST_F(CheckRuntime, MemoryIsAsLargeAsTheDevices) {
  const OnDevice device("t4");  // 16 GB
  size_t free_bytes = 0, all = 0;
  EXPECT_OK(cudaMemGetInfo(&free_bytes, &all));
  EXPECT_EQ(all, device_info().memory_bytes);
  EXPECT_EQ(free_bytes, all);
  int* x = allocate(1000);
  EXPECT_OK(cudaMemGetInfo(&free_bytes, &all));
  EXPECT_EQ(free_bytes, all - 4000);
  int* y = nullptr;
  EXPECT_EQ(cudaMalloc(&y, all - 4000 + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&y, ~size_t{0}), cudaErrorMemoryAllocation);
  EXPECT_OK(cudaMalloc(&y, all - 4000));  // sparse
  EXPECT_OK(cudaMemGetInfo(&free_bytes, &all));
  EXPECT_EQ(free_bytes, 0u);
  EXPECT_OK(cudaFree(y));
  EXPECT_OK(cudaFree(x));
}

// Every pair of places and every kind of copy.
TEST_F(CheckRuntime, CopiesGoWhereTheirKindSays) {
  int *managed = nullptr, *pinned = nullptr, *device = allocate(4), *freed = allocate(4);
  ASSERT_OK(cudaMallocManaged(&managed, 16));
  ASSERT_OK(cudaMallocHost(&pinned, 16));
  ASSERT_OK(cudaFree(freed));
  int host[4] = {}, registered[4] = {};
  ASSERT_OK(cudaHostRegister(registered, sizeof registered, 0));
  struct Side {
    const char* name;
    int* pointer;
    bool as_device, as_host, is_device;  // is_device: what cudaMemcpyDefault takes it for
  };
  const Side sides[] = {
      {"device", device, true, false, true},         {"managed", managed, true, true, true},
      {"pinned", pinned, true, true, false},         {"variable", variable, true, true, true},
      {"registered", registered, true, true, false}, {"host", host, false, true, false}};
  for (const Side& to : sides) {
    for (const Side& from : sides) {
      const auto copy = [&](cudaMemcpyKind kind) {
        return cudaMemcpy(to.pointer, from.pointer, 16, kind) == cudaSuccess;
      };
      SCOPED_TRACE(std::string(from.name) + " to " + to.name);
      EXPECT_EQ(copy(cudaMemcpyHostToHost), to.as_host && from.as_host);
      EXPECT_EQ(copy(cudaMemcpyHostToDevice), to.as_device && from.as_host);
      EXPECT_EQ(copy(cudaMemcpyDeviceToHost), to.as_host && from.as_device);
      EXPECT_EQ(copy(cudaMemcpyDeviceToDevice), to.as_device && from.as_device);
      EXPECT_TRUE(copy(cudaMemcpyDefault));
    }
    EXPECT_EQ(cudaMemcpy(freed, to.pointer, 16, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(to.pointer, freed, 16, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(nullptr, to.pointer, 16, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  }
  for (const int kind : {-1, 5}) {
    EXPECT_EQ(cudaMemcpy(host, host, 4, static_cast<cudaMemcpyKind>(kind)),
              cudaErrorInvalidMemcpyDirection);
  }
  EXPECT_OK(cudaHostUnregister(registered));
  EXPECT_OK(cudaFreeHost(pinned));
}

TEST_F(CheckRuntime, CopiesEndWhereTheBufferEnds) {
  int* x = upload(counting(8));
  int host[9] = {};
  EXPECT_OK(cudaMemcpy(host, x + 3, 5 * sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT_EQ(std::vector<int>(host, host + 6), (std::vector<int>{4, 5, 6, 7, 8, 0}));
  EXPECT_EQ(cudaMemcpy(host, x + 3, 5 * sizeof(int) + 1, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, x - 1, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, x + 8, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x, host, 33, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x, host, 33, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_OK(cudaMemcpy(x, host, 32, cudaMemcpyDefault));
  EXPECT_EQ(cudaMemcpyAsync(x, host, 33, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_OK(cudaMemcpyAsync(x, host + 1, 4, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpyPeer(x + 1, 0, x, 0, 4));
  EXPECT_EQ(cudaMemcpyPeer(x, 0, host, 0, 4), cudaErrorInvalidValue);  // of host memory
  EXPECT_EQ(download(x, 3), (std::vector<int>{5, 5, 6}));
  EXPECT_OK(cudaMemcpy(variable, host, sizeof variable, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaMemcpy(variable + 1, host, sizeof variable, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
}

TEST_F(CheckRuntime, CopiesOfRows) {
  const std::vector<int> values = counting(12);
  int* x = upload(values);
  int host[12] = {};
  // Two ints of each of three rows of four; into rows of three.
  EXPECT_OK(cudaMemcpy2D(host, 12, x, 16, 8, 3, cudaMemcpyDeviceToHost));
  EXPECT_EQ(std::vector<int>(host, host + 9), (std::vector<int>{1, 2, 0, 5, 6, 0, 9, 10, 0}));
  EXPECT_OK(cudaMemcpy2DAsync(x, 16, host, 12, 8, 2, cudaMemcpyHostToDevice));
  EXPECT_EQ(download(x, 12), values);
  EXPECT_OK(cudaMemcpy2DAsync(x + 2, 16, host, 12, 8, 3, cudaMemcpyHostToDevice));
  EXPECT_EQ(download(x, 12), (std::vector<int>{1, 2, 1, 2, 5, 6, 5, 6, 9, 10, 9, 10}));
  // The last row ends with the buffer; one int further it does not, on either side.
  EXPECT_OK(cudaMemcpy2D(host, 12, x + 2, 16, 8, 3, cudaMemcpyDeviceToHost));
  EXPECT_EQ(cudaMemcpy2D(host, 12, x + 3, 16, 8, 3, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2D(x + 3, 16, host, 12, 8, 3, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2D(host, 16, x + 5, 12, 8, 3, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2D(x, 12, x + 4, 16, 4, 3, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  // A pitch is at least a row; with one row it does not matter.
  EXPECT_EQ(cudaMemcpy2D(host, 7, x, 16, 8, 2, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaMemcpy2D(host, 16, x, 7, 8, 2, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue);
  EXPECT_OK(cudaMemcpy2D(host, 8, x, 8, 8, 2, cudaMemcpyDeviceToHost));
  EXPECT_OK(cudaMemcpy2D(host, 4, x, 4, 8, 1, cudaMemcpyDeviceToHost));
  EXPECT_OK(cudaMemcpy2D(host, 8, x, 8, 0, 99, cudaMemcpyDeviceToHost));
  EXPECT_OK(cudaMemcpy2D(host, 8, x, 8, 99, 0, cudaMemcpyDeviceToHost));
  EXPECT_OK(cudaMemcpy(host, host + 1, 8, cudaMemcpyHostToHost));  // they overlap
}

TEST_F(CheckRuntime, SetsBytesAndRows) {
  int* x = upload(counting(6));
  EXPECT_OK(cudaMemset(x + 1, 1, 8));
  EXPECT_EQ(download(x, 4), (std::vector<int>{1, 0x01010101, 0x01010101, 4}));
  EXPECT_OK(cudaMemsetAsync(x, 0, 4));
  EXPECT_OK(cudaMemset2D(x, 12, 0xff, 4, 2));
  EXPECT_EQ(download(x, 6), (std::vector<int>{-1, 0x01010101, 0x01010101, -1, 5, 6}));
  EXPECT_OK(cudaMemset2D(x + 2, 12, 0, 4, 2));  // ends with the buffer
  EXPECT_EQ(cudaMemset2D(x + 3, 12, 0, 4, 2), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset2D(x, 12, 0, 4, 3), cudaErrorInvalidValue);
  EXPECT_OK(cudaMemset2D(x, 12, 0, 0, 3));
  EXPECT_EQ(cudaMemset(x, 0, 25), cudaErrorInvalidValue);
  EXPECT_OK(cudaMemset(x, 0, 24));
  int on_host = 5;
  EXPECT_EQ(cudaMemset(&on_host, 0, 4), cudaErrorInvalidValue);
  EXPECT_EQ(on_host, 5);
}

TEST_F(CheckRuntime, PitchesAreMultiplesOf512) {
  for (const auto& [width, expected] :
       {std::pair<size_t, size_t>{1, 512}, {512, 512}, {513, 1024}}) {
    char* x = nullptr;
    size_t pitch = 0;
    EXPECT_OK(cudaMallocPitch(&x, &pitch, width, 3));
    EXPECT_EQ(pitch, expected);
    EXPECT_OK(cudaMemset(x, 0, 3 * pitch));
    EXPECT_EQ(cudaMemset(x, 0, 3 * pitch + 1), cudaErrorInvalidValue);
  }
}

TEST_F(CheckRuntime, CopiesOfSymbols) {
  const int values[4] = {1, 2, 3, 4};
  int got[4] = {};
  EXPECT_OK(cudaMemcpyToSymbol(variable, values, 16));
  EXPECT_OK(cudaMemcpyToSymbol(constant, values, 8, 8));
  EXPECT_OK(cudaMemcpyFromSymbol(got, variable, 8, 4));
  EXPECT_EQ(std::vector<int>(got, got + 3), (std::vector<int>{2, 3, 0}));
  EXPECT_OK(cudaMemcpyFromSymbolAsync(got, constant, 4, 12, cudaMemcpyDeviceToHost));
  EXPECT_EQ(got[0], 2);
  EXPECT_OK(cudaMemcpyToSymbolAsync(variable, values + 3, 4, 12, cudaMemcpyHostToDevice));
  EXPECT_EQ(variable[3], 4);
  EXPECT_EQ(cudaMemcpyToSymbol(variable, values, 17), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(variable, values, 8, 9), cudaErrorInvalidValue);
  EXPECT_OK(cudaMemcpyToSymbol(variable, values, 0, 16));
  EXPECT_EQ(cudaMemcpyToSymbol(variable, values, 0, 17), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(got, values, 16), cudaErrorInvalidSymbol);
  // A buffer has to be on the side that the kind names.
  int* x = upload({9});
  EXPECT_EQ(cudaMemcpyToSymbol(variable, x, 4), cudaErrorInvalidValue);
  EXPECT_OK(cudaMemcpyToSymbol(variable, x, 4, 4, cudaMemcpyDeviceToDevice));
  EXPECT_EQ(variable[1], 9);
  EXPECT_EQ(cudaMemcpyFromSymbol(x, variable, 4), cudaErrorInvalidValue);
  void* address = nullptr;
  EXPECT_OK(cudaGetSymbolAddress(&address, variable));
  EXPECT_EQ(address, variable);
  EXPECT_EQ(cudaGetSymbolAddress(&address, got), cudaErrorInvalidSymbol);
  EXPECT_EQ(cudaGetSymbolAddress(&address, variables.not_known), cudaErrorInvalidSymbol);
  size_t bytes = 0;
  EXPECT_OK(cudaGetSymbolSize(&bytes, variable));
  EXPECT_EQ(bytes, 16u);
}

TEST_F(CheckRuntime, RegisteredMemoryAndPointers) {
  std::vector<int> host(8);
  void* device = nullptr;
  EXPECT_EQ(cudaHostGetDevicePointer(&device, host.data(), 0), cudaErrorInvalidValue);
  EXPECT_OK(cudaHostRegister(host.data(), 32, cudaHostRegisterDefault));
  EXPECT_OK(cudaHostGetDevicePointer(&device, host.data() + 7, 0));
  EXPECT_EQ(device, host.data() + 7);
  EXPECT_EQ(cudaHostGetDevicePointer(&device, host.data() + 8, 0), cudaErrorInvalidValue);
  const auto expect = [](const void* pointer, cudaMemoryType type, const void* on_device,
                         const void* on_host) {
    cudaPointerAttributes attributes;
    EXPECT_OK(cudaPointerGetAttributes(&attributes, pointer));
    EXPECT_EQ(attributes.type, type);
    EXPECT_EQ(attributes.devicePointer, on_device);
    EXPECT_EQ(attributes.hostPointer, on_host);
  };
  expect(host.data(), cudaMemoryTypeHost, host.data(), host.data());
  EXPECT_OK(cudaHostUnregister(host.data()));
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaErrorHostMemoryNotRegistered);
  expect(host.data(), cudaMemoryTypeUnregistered, nullptr, nullptr);

  int *x = allocate(2), *managed = nullptr;
  expect(x + 1, cudaMemoryTypeDevice, x + 1, nullptr);
  EXPECT_EQ(cudaHostGetDevicePointer(&device, x, 0), cudaErrorInvalidValue);
  expect(x + 2, cudaMemoryTypeUnregistered, nullptr, nullptr);
  EXPECT_OK(cudaMallocManaged(&managed, 4));
  expect(managed, cudaMemoryTypeManaged, managed, managed);
  EXPECT_OK(cudaHostGetDevicePointer(&device, managed, 0));
}

// ---- errors ----

TEST_F(CheckRuntime, TheLastErrorIsKeptUntilItIsRead) {
  EXPECT_OK(cudaGetLastError());
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_OK(cudaDeviceSynchronize());  // no kernel failed
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_OK(cudaPeekAtLastError());
}

// A value that the enumeration does not name.
template <class E>
E no_such(int value) {
  return static_cast<E>(value);
}

TEST_F(CheckRuntime, ErrorsHaveTheirNamesAndTexts) {
  // As cudaGetErrorString() of CUDA says them.
  const std::tuple<cudaError_t, const char*, const char*> errors[] = {
      {cudaSuccess, "cudaSuccess", "no error"},
      {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
      {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
      {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
       "invalid configuration argument"},
      {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
      {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
       "an illegal memory access was encountered"},
      {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
      {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
      {no_such<cudaError_t>(12345), "cudaErrorUnknown", "unknown error"},
  };
  for (const auto& [error, name, text] : errors) {
    EXPECT_STREQ(cudaGetErrorName(error), name);
    EXPECT_STREQ(cudaGetErrorString(error), text);
  }
}

// ---- the device ----

TEST_F(CheckRuntime, OneDevice) {
  int count = 0, device = 7;
  EXPECT_OK(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 1);
  EXPECT_OK(cudaGetDevice(&device));
  EXPECT_EQ(device, 0);
  cudaDeviceProp properties;
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 1), cudaErrorInvalidDevice);
  int value = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, no_such<cudaDeviceAttr>(999), 0), cudaErrorInvalidValue);
  size_t bytes = 0;
  EXPECT_OK(cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
  EXPECT_EQ(bytes, 1024u);
  EXPECT_OK(cudaDeviceSetLimit(cudaLimitStackSize, 65536));
  EXPECT_OK(cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
  EXPECT_EQ(bytes, 65536u);
  EXPECT_EQ(cudaDeviceSetLimit(cudaLimitStackSize, 1 << 30), cudaErrorInvalidValue);
  EXPECT_OK(cudaDeviceSetLimit(cudaLimitStackSize, 1024));
}

TEST_F(CheckRuntime, PropertiesAreTheDevices) {
  const OnDevice device("rtx4090");
  cudaDeviceProp p;
  ASSERT_OK(cudaGetDeviceProperties(&p, 0));
  EXPECT_STREQ(p.name, "SIMT model of RTX 4090, cc 8.9");
  EXPECT_EQ(p.totalGlobalMem, device_info().memory_bytes);
  EXPECT_EQ(p.memPitch, 0x7fffffffu);
  EXPECT_EQ(p.reservedSharedMemPerBlock, 1024u);
  EXPECT_EQ(p.textureAlignment, 512u);
  // Every attribute with a name, as an RTX 4090 has it; 0 where the model has no such thing.
  const std::pair<cudaDeviceAttr, int> attributes[] = {
      {cudaDevAttrMaxThreadsPerBlock, 1024},
      {cudaDevAttrMaxBlockDimX, 1024},
      {cudaDevAttrMaxBlockDimY, 1024},
      {cudaDevAttrMaxBlockDimZ, 64},
      {cudaDevAttrMaxGridDimX, 0x7fffffff},
      {cudaDevAttrMaxGridDimY, 65535},
      {cudaDevAttrMaxGridDimZ, 65535},
      {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
      {cudaDevAttrTotalConstantMemory, 65536},
      {cudaDevAttrWarpSize, 32},
      {cudaDevAttrMaxRegistersPerBlock, 65536},
      {cudaDevAttrClockRate, 0},
      {cudaDevAttrMultiProcessorCount, 128},
      {cudaDevAttrIntegrated, 0},
      {cudaDevAttrCanMapHostMemory, 1},
      {cudaDevAttrComputeMode, 0},
      {cudaDevAttrConcurrentKernels, 1},
      {cudaDevAttrMemoryClockRate, 0},
      {cudaDevAttrGlobalMemoryBusWidth, 0},
      {cudaDevAttrL2CacheSize, 72 << 20},
      {cudaDevAttrMaxThreadsPerMultiProcessor, 1536},
      {cudaDevAttrAsyncEngineCount, 1},
      {cudaDevAttrUnifiedAddressing, 1},
      {cudaDevAttrComputeCapabilityMajor, 8},
      {cudaDevAttrComputeCapabilityMinor, 9},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 100 << 10},
      {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
      {cudaDevAttrManagedMemory, 1},
      {cudaDevAttrPageableMemoryAccess, 0},
      {cudaDevAttrConcurrentManagedAccess, 1},
      {cudaDevAttrCooperativeLaunch, 1},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, 99 << 10},
      {cudaDevAttrMaxBlocksPerMultiprocessor, 24},
      {cudaDevAttrMemoryPoolsSupported, 1},
  };
  for (const auto& [attribute, expected] : attributes) {
    int value = -1;
    EXPECT_OK(cudaDeviceGetAttribute(&value, attribute, 0));
    EXPECT_EQ(value, expected) << "attribute " << attribute;
  }
}

TEST_F(CheckRuntime, Occupancy) {
  const auto blocks = [](int threads, size_t shared_bytes) {
    int count = -1;
    EXPECT_OK(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, add_one, threads, shared_bytes));
    return count;
  };
  EXPECT_EQ(blocks(256, 0), 8);  // 2,048 threads
  EXPECT_EQ(blocks(257, 0), 7);  // of whole warps
  EXPECT_EQ(blocks(288, 0), 7);
  EXPECT_EQ(blocks(32, 0), 32);  // blocks
  EXPECT_EQ(blocks(1024, 0), 2);
  EXPECT_EQ(blocks(128, 113 << 10), 2);  // of 228 KB, of which each block has 1 KB more
  EXPECT_EQ(blocks(128, (113 << 10) + 1), 1);
  EXPECT_EQ(blocks(128, 227 << 10), 1);
  EXPECT_EQ(blocks(128, (227 << 10) + 1), 0);
  {
    const OnDevice device("t4");  // reserves nothing
    EXPECT_EQ(blocks(64, 0), 16);
    EXPECT_EQ(blocks(64, 32 << 10), 2);
    EXPECT_EQ(blocks(64, 64 << 10), 1);
  }
  int grid = 0, block = 0;
  EXPECT_OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, add_one));
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, 2 * device_info().sm_count);
  EXPECT_OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, add_one, 0, 128));
  EXPECT_EQ(block, 128);
  EXPECT_EQ(grid, 16 * device_info().sm_count);
  cudaFuncAttributes attributes;
  EXPECT_OK(cudaFuncGetAttributes(&attributes, add_one));
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
  EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, 49152);
  EXPECT_EQ(attributes.binaryVersion, 90);
  EXPECT_EQ(attributes.ptxVersion, 90);
}

// ---- streams and events ----

TEST_F(CheckRuntime, EventsMeasureWhatIsBetweenThem) {
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  ASSERT_NE(stream, nullptr);
  cudaEvent_t begin = nullptr, end = nullptr;
  EXPECT_OK(cudaEventCreate(&begin));
  EXPECT_OK(cudaEventCreateWithFlags(&end, 0));
  float ms = -1;
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end), cudaErrorInvalidResourceHandle);
  EXPECT_OK(cudaEventRecord(begin, stream));
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventElapsedTime(&ms, end, begin), cudaErrorInvalidResourceHandle);
  usleep(20000);
  EXPECT_OK(cudaEventRecord(end, stream));
  EXPECT_OK(cudaEventSynchronize(end));
  EXPECT_OK(cudaEventQuery(end));
  EXPECT_OK(cudaEventElapsedTime(&ms, begin, end));
  EXPECT_GE(ms, 20);
  EXPECT_LT(ms, 10000);
  float back = 0;
  EXPECT_OK(cudaEventElapsedTime(&back, end, begin));
  EXPECT_EQ(back, -ms);
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaStreamQuery(stream));
  EXPECT_OK(cudaEventDestroy(begin));
  EXPECT_OK(cudaEventDestroy(end));
  EXPECT_OK(cudaStreamDestroy(stream));
}

TEST_F(CheckRuntime, CallbacksRunAtOnce) {
  int calls = 0;
  const auto count = [](void* data) { ++*static_cast<int*>(data); };
  EXPECT_OK(cudaLaunchHostFunc(nullptr, count, &calls));
  EXPECT_EQ(calls, 1);
  cudaError_t status = cudaErrorUnknown;
  const auto keep = [](cudaStream_t, cudaError_t error, void* data) {
    *static_cast<cudaError_t*>(data) = error;
  };
  EXPECT_OK(cudaStreamAddCallback(nullptr, keep, &status, 0));
  EXPECT_OK(status);
}

// ---- launches ----

TEST_F(CheckRuntime, LaunchesWriteWhatTheyAreGiven) {
  int* x = upload(std::vector<int>(48, 1));
  launch_add_one(x, 40);
  EXPECT_OK(cudaGetLastError());
  std::vector<int> expected(48, 2);
  std::fill(expected.begin() + 40, expected.end(), 1);
  EXPECT_EQ(download(x, 48), expected);
  int n = 48;
  void* arguments[] = {&x, &n};
  EXPECT_OK(cudaLaunchKernel(add_one, 2, 32, arguments));
  EXPECT_EQ(download(x, 1)[0], 3);
  cudaLaunchConfig_t config;
  config.gridDim = 2;
  config.blockDim = 32;
  EXPECT_OK(cudaLaunchKernelEx(&config, add_one, x, 48));
  EXPECT_EQ(download(x, 1)[0], 4);
  launch_add_one(variable, 4);  // and what a kernel may be given besides
  int* pinned = nullptr;
  ASSERT_OK(cudaMallocHost(&pinned, 16));
  pinned[0] = 8;
  launch_add_one(pinned, 4);
  EXPECT_EQ(pinned[0], 9);
  launch_add_one(x + 48, 0);  // one past the end, unused
  launch_add_one(nullptr, 0);
  EXPECT_OK(cudaGetLastError());
  EXPECT_OK(cudaFreeHost(pinned));
}

TEST_F(CheckRuntime, LaunchesThatAGpuRefuses) {
  int* x = allocate(64);
  int n = 0;
  void* arguments[] = {&x, &n};
  const auto launch = [&](dim3 grid, dim3 block, size_t shared_bytes = 0) {
    const cudaError_t error = cudaLaunchKernel(use_shared, grid, block, arguments, shared_bytes);
    EXPECT_EQ(cudaGetLastError(), error);
    return error;
  };
  EXPECT_OK(launch(1, 32, 4));
  EXPECT_EQ(launch(0, 32), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(dim3(1, 0), 32), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(dim3(1, 1, 0), 32), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, 1025), cudaErrorInvalidConfiguration);
  EXPECT_OK(launch(1, 32, 49152));
  EXPECT_EQ(launch(1, 32, 49153), cudaErrorInvalidValue);
  constexpr auto kMost = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_EQ(cudaFuncSetAttribute(use_shared, kMost, -1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(use_shared, kMost, 232449), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(launch(1, 32, 49153), cudaErrorInvalidValue);
  EXPECT_OK(cudaFuncSetAttribute(add_one, kMost, 232448));  // another kernel's
  EXPECT_EQ(launch(1, 32, 49153), cudaErrorInvalidValue);
  EXPECT_OK(cudaFuncSetAttribute(use_shared, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
  EXPECT_EQ(launch(1, 32, 49153), cudaErrorInvalidValue);
  EXPECT_OK(cudaFuncSetAttribute(use_shared, kMost, 232448));
  n = 232448 / 4 - 1;
  EXPECT_OK(launch(1, 32, 232448));
  EXPECT_EQ(download(x, 1)[0], 3);
  EXPECT_EQ(launch(1, 32, 232449), cudaErrorInvalidValue);
  EXPECT_OK(cudaDeviceSynchronize());  // a refused launch ruins nothing
}

TEST_F(CheckRuntime, AfterAFailedKernelEverythingFails) {
  int *x = nullptr, reason = 4;
  void* arguments[] = {&x, &reason};
  for (const cudaError_t error : {cudaErrorLaunchFailure, cudaErrorMisalignedAddress,
                                  cudaErrorIllegalAddress, cudaErrorAssert}) {
    EXPECT_OK(cudaDeviceReset());
    x = allocate(32);
    --reason;
    EXPECT_EQ(cudaLaunchKernel(fails, 1, 32, arguments), error);
  }
  EXPECT_EQ(cudaGetLastError(), cudaErrorAssert);
  EXPECT_EQ(cudaGetLastError(), cudaErrorAssert);  // and stays
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorAssert);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorAssert);
  int* y = nullptr;
  EXPECT_EQ(cudaMalloc(&y, 4), cudaErrorAssert);
  EXPECT_EQ(cudaFree(x), cudaErrorAssert);
  EXPECT_EQ(cudaMemset(x, 0, 4), cudaErrorAssert);
  int host = 0;
  EXPECT_EQ(cudaMemcpy(&host, x, 4, cudaMemcpyDeviceToHost), cudaErrorAssert);
  EXPECT_EQ(cudaMemcpyToSymbol(variable, &host, 4), cudaErrorAssert);
  EXPECT_EQ(cudaHostRegister(&host, 4, 0), cudaErrorAssert);
  int one = 1;
  void* others[] = {&x, &one};
  EXPECT_EQ(cudaLaunchKernel(add_one, 1, 32, others), cudaErrorAssert);
  EXPECT_OK(cudaDeviceReset());
  EXPECT_OK(cudaGetLastError());
  EXPECT_EQ(cudaFree(x), cudaErrorInvalidValue);  // the reset freed it
  EXPECT_OK(cudaMalloc(&y, 4));
}

TEST_F(CheckRuntime, ArgumentsThatAreNoDeviceMemory) {
  std::vector<int> host(8);
  launch_add_one(host.data(), 8);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_OK(cudaDeviceReset());
  EXPECT_EQ(host, std::vector<int>(8));
  int* freed = allocate(8);
  EXPECT_OK(cudaFree(freed));
  launch_add_one(freed, 0);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

TEST_F(CheckRuntime, CooperativeLaunches) {
  int blocks = 4;
  int* x = upload({10, 20, 30, 40});
  void* arguments[] = {&x};
  EXPECT_OK(cudaLaunchCooperativeKernel(pass_on, blocks, 64, arguments));
  EXPECT_EQ(download(x, 4), (std::vector<int>{43, 13, 23, 33}));
  EXPECT_OK(cudaLaunchCooperativeKernel(pass_on, blocks, 64, arguments));
  EXPECT_EQ(download(x, 4), (std::vector<int>{36, 46, 16, 26}));
  // Two blocks of 1,024 threads per SM are resident.
  int* many = upload(std::vector<int>(2 * device_info().sm_count + 1));
  void* of_many[] = {&many};
  EXPECT_OK(cudaLaunchCooperativeKernel(pass_on, 2 * device_info().sm_count, 1024, of_many));
  EXPECT_EQ(cudaLaunchCooperativeKernel(pass_on, 2 * device_info().sm_count + 1, 1024, of_many),
            cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
  // grid.sync() in an ordinary launch.
  EXPECT_EQ(cudaLaunchKernel(pass_on, blocks, 64, arguments), cudaErrorLaunchFailure);
}

TEST_F(CheckRuntime, AttributesOfALaunch) {
  int* x = upload(std::vector<int>(4));
  cudaLaunchAttribute attributes[1];
  cudaLaunchConfig_t config;
  config.gridDim = 4;
  config.blockDim = 32;
  config.attrs = attributes;
  EXPECT_OK(cudaLaunchKernelEx(&config, block_of_cluster, x));
  EXPECT_EQ(download(x, 4), std::vector<int>(4, 1));
  config.numAttrs = 1;
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {2, 1, 1};
  EXPECT_OK(cudaLaunchKernelEx(&config, block_of_cluster, x));
  EXPECT_EQ(download(x, 4), std::vector<int>(4, 2));
  // Clusters of two rows: the block's place in its cluster, and the shape.
  int* places = upload(std::vector<int>(8));
  config.gridDim = {2, 4};
  attributes[0].val.clusterDim = {1, 2, 1};
  EXPECT_OK(cudaLaunchKernelEx(&config, place_in_cluster, places));
  EXPECT_EQ(download(places, 8), (std::vector<int>{0, 0, 1, 1, 0, 0, 1, 1}));
  attributes[0].val.clusterDim = {2, 2, 1};
  EXPECT_OK(cudaLaunchKernelEx(&config, place_in_cluster, places));
  EXPECT_EQ(download(places, 8), (std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3}));
  attributes[0].val.clusterDim = {1, 3, 1};
  EXPECT_EQ(cudaLaunchKernelEx(&config, place_in_cluster, places), cudaErrorInvalidConfiguration);
  attributes[0].val.clusterDim = {2, 0, 1};
  EXPECT_EQ(cudaLaunchKernelEx(&config, place_in_cluster, places), cudaErrorInvalidConfiguration);
  config.gridDim = 4;
  attributes[0].val.clusterDim = {3, 1, 1};
  EXPECT_EQ(cudaLaunchKernelEx(&config, block_of_cluster, x), cudaErrorInvalidConfiguration);
  attributes[0].id = cudaLaunchAttributeCooperative;
  attributes[0].val.cooperative = 1;
  EXPECT_OK(cudaLaunchKernelEx(&config, pass_on, x));
  attributes[0].val.cooperative = 0;
  EXPECT_EQ(cudaLaunchKernelEx(&config, pass_on, x), cudaErrorLaunchFailure);
}

// ---- the report ----

// GoogleTest runs suites of this ending first: before the other tests here have called the API.

TEST(CheckReportDeathTest, OfAProgramWithoutMistakes) {
  const Outcome outcome = run_program([] {
    int* x = nullptr;
    if (cudaMalloc(&x, 256)) return 1;
    launch_add_one(x, 64);
    launch_add_one(x, 64);
    return static_cast<int>(cudaFree(x));
  });
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.report["status"], 0);
  EXPECT_EQ(outcome.report["launches"], 2);
  EXPECT_EQ(outcome.report["crash"], "");
  EXPECT_TRUE(outcome.findings().empty());
  EXPECT_TRUE(outcome.failed_calls().empty());
}

TEST(CheckReportDeathTest, LeaksByTheirNames) {
  const auto program = [](int status) {
    return run_program([status] {
      static int* p[4];
      if (cudaMalloc({&p[0], "d_x"}, 4, Place("program.cu", 1))) return 9;
      if (cudaMalloc(&p[1], 8, Place("program.cu", 2))) return 9;
      if (cudaMallocManaged({&p[2], "m"}, 12, 1, Place("program.cu", 3))) return 9;
      if (cudaMalloc(&p[3], 4, Place("program.cu", 1)) || cudaFree(p[3])) return 9;
      return status;
    });
  };
  const Outcome outcome = program(0);
  EXPECT_EQ(outcome.status, 0);
  std::vector<std::string> leaks = outcome.findings();
  std::sort(leaks.begin(), leaks.end());
  const std::vector<std::string> expected = {
      "1 leak: leak: 'cudaMalloc at program.cu:2', 8 bytes of cudaMalloc at program.cu:2, is never "
      "freed",
      "1 leak: leak: 'd_x', 4 bytes of cudaMalloc at program.cu:1, is never freed",
      "1 leak: leak: 'm', 12 bytes of cudaMallocManaged at program.cu:3, is never freed"};
  EXPECT_EQ(leaks, expected);
  // A program that gave up frees nothing, and after a kernel failed nothing can be freed.
  const Outcome gave_up = program(4);
  EXPECT_EQ(gave_up.report["status"], 4);
  EXPECT_TRUE(gave_up.findings().empty());
  const Outcome failed = run_program([] {
    int* x = nullptr;
    if (cudaMalloc(&x, 4)) return 9;
    simt::program::launch_at("program.cu", 12, [](auto... a) { fails(a...); }).with(1, 32)(x, 3);
    return cudaFree(x) == cudaErrorLaunchFailure ? 0 : 9;
  });
  EXPECT_EQ(failed.status, 0);
  ASSERT_EQ(failed.findings().size(), 1u);
  EXPECT_CONTAINS(failed.findings()[0], "failed kernel");
}

// The host's name of a variable is no address on the device.
TEST(CheckReportDeathTest, SymbolsAreNoAddresses) {
  const Outcome outcome = run_program([] {
    const auto at = [](int line) { return Place("program.cu", line); };
    int host[4] = {};
    if (!cudaMemcpy(variable, host, 16, cudaMemcpyHostToDevice, at(3))) return 9;
    if (!cudaMemset(constant, 0, 16, at(4))) return 9;
    if (cudaMemcpyToSymbol(variable, host, 16)) return 9;
    void* address = nullptr;
    if (cudaGetSymbolAddress(&address, variable)) return 9;
    if (cudaMemcpy(address, host, 16, cudaMemcpyHostToDevice)) return 9;
    return 5;
  });
  EXPECT_EQ(outcome.status, 5);
  ASSERT_EQ(outcome.failed_calls().size(), 2u);
  EXPECT_CONTAINS(outcome.failed_calls()[0], "'variable', a symbol, which is no address");
  EXPECT_CONTAINS(outcome.failed_calls()[1], "'constant', a symbol, which is no address");
}

TEST(CheckReportDeathTest, FailedCallsByTheirReasons) {
  const Outcome outcome = run_program([] {
    const auto at = [](int line) { return Place("/home/program.cu", line); };
    int *x = nullptr, *y = nullptr, *pinned = nullptr, host = 0;
    if (cudaMalloc(&x, 32, at(1)) || cudaMalloc(&y, 8, at(2))) return 9;
    if (cudaMallocHost(&pinned, 8, 0, at(3)) || cudaFree(y, at(4))) return 9;
    int* z = nullptr;  // likely to lie where y did
    if (cudaMalloc(&z, 8, at(5)) || cudaFree(z, at(6))) return 9;
    bool failed = true;
    const auto fails = [&failed](cudaError_t error) { failed = failed && error != cudaSuccess; };
    void* address = nullptr;
    if (cudaGetSymbolAddress(&address, variable)) return 9;
    fails(cudaFree(&host, at(10)));
    fails(cudaFree(pinned, at(11)));
    fails(cudaFree(z, at(12)));
    fails(cudaMemcpy(x, &host, 36, cudaMemcpyHostToDevice, at(13)));
    fails(cudaMemcpy(x + 1, &host, 32, cudaMemcpyHostToDevice, at(14)));
    fails(cudaMemcpy(&host, x, 4, cudaMemcpyHostToHost, at(15)));
    fails(cudaMemcpy(&host, x, 4, cudaMemcpyDeviceToDevice, at(16)));
    fails(cudaMemcpy(x, nullptr, 4, cudaMemcpyDeviceToDevice, at(17)));
    fails(cudaMemcpy(x, z + 1, 4, cudaMemcpyDeviceToDevice, at(18)));
    fails(cudaMemset(variable, 0, 17, at(19)));
    fails(cudaMemcpyToSymbol(variable, &host, 8, 12, cudaMemcpyHostToDevice, at(20)));
    cudaPeekAtLastError();
    fails(cudaMalloc(&y, ~size_t{0}, at(21)));
    fails(cudaMemcpy2D(x, 16, x, 8, 4, 3, cudaMemcpyDeviceToDevice, at(22)));
    fails(cudaMemcpy2D(x, 8, x, 16, 4, 3, cudaMemcpyDeviceToDevice, at(23)));
    fails(cudaFree(z + 2, at(24)));
    fails(cudaFree(z, at(25)));
    return failed ? 5 : 9;
  });
  EXPECT_EQ(outcome.status, 5) << outcome.errors;
  EXPECT_EQ(
      outcome.failed_calls(),
      (std::vector<std::string>{
          "cudaFree: it is given memory that it did not allocate",
          "cudaFree: it is given 'cudaMallocHost at program.cu:3' of cudaMallocHost",
          "cudaFree: it is given 'cudaMalloc at program.cu:5', which was freed at program.cu:6",
          "cudaMemcpy: it writes 36 bytes at byte offset 0 of 'cudaMalloc at program.cu:1', which "
          "has 32 bytes (cudaMemcpyHostToDevice)",
          "cudaMemcpy: it writes 32 bytes at byte offset 4 of 'cudaMalloc at program.cu:1', which "
          "has 32 bytes (cudaMemcpyHostToDevice)",
          "cudaMemcpy: it reads 'cudaMalloc at program.cu:1', which is device memory "
          "(cudaMemcpyHostToHost)",
          "cudaMemcpy: it writes host memory (cudaMemcpyDeviceToDevice)",
          "cudaMemcpy: it reads a null pointer (cudaMemcpyDeviceToDevice)",
          "cudaMemcpy: it reads 'cudaMalloc at program.cu:5', which was freed at program.cu:6 "
          "(cudaMemcpyDeviceToDevice)",
          "cudaMemset: it writes more than 'variable' has",
          "cudaMemcpyToSymbol: it copies 8 bytes at byte offset 12 of 'variable', which has 16 "
          "bytes",
          "cudaMalloc: no memory for 18446744073709551615 bytes ('cudaMalloc at program.cu:21')",
          "cudaMemcpy2D: it writes 36 bytes at byte offset 0 of 'cudaMalloc at program.cu:1', "
          "which has 32 bytes",
          "cudaMemcpy2D: it reads 36 bytes at byte offset 0 of 'cudaMalloc at program.cu:1', which "
          "has 32 bytes",
          "cudaFree: it is given memory that it did not allocate",
          "cudaFree: it is given 'cudaMalloc at program.cu:5', which was freed at program.cu:6"}));
  const auto& calls = outcome.report["failed_calls"];
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i]["line"], 10 + i);
    EXPECT_EQ(calls[i]["file"], "/home/program.cu");
    EXPECT_EQ(calls[i]["is_launch"], false);
    EXPECT_EQ(calls[i]["looked_at"], i <= 10) << i;  // the program asked once, after the eleventh
  }
}

TEST(CheckReportDeathTest, LaunchesThatFail) {
  const Outcome refused = run_program([] {
    int* x = nullptr;
    if (cudaMalloc(&x, 4)) return 9;
    const auto body = [](auto... a) { use_shared(a...); };
    simt::program::launch_at("program.cu", 3, body).with(1, 32, 50000)(x, 0);
    simt::program::launch_at("program.cu", 4, body).with(1, 2048)(x, 0);
    return 5;
  });
  ASSERT_EQ(refused.report["failed_calls"].size(), 2u) << refused.errors;
  const auto& call = refused.report["failed_calls"][0];
  EXPECT_EQ(call["function"], "<<<>>>");
  EXPECT_EQ(call["is_launch"], true);
  EXPECT_EQ(call["line"], 3);
  EXPECT_EQ(call["looked_at"], false);
  const auto message = call["message"].get<std::string>();
  EXPECT_CONTAINS(message,
                  "50000 bytes of dynamic shared memory; more than 49152 need "
                  "cudaFuncSetAttribute(kernel, ");
  EXPECT_TRUE(refused.findings().empty());

  const Outcome failed = run_program([] {
    int host[64] = {};
    launch_add_one(host, 64);
    launch_add_one(host, 64);
    return cudaGetLastError() == cudaErrorIllegalAddress ? 5 : 9;
  });
  EXPECT_EQ(failed.status, 5);
  EXPECT_EQ(failed.report["launches"], 2);
  ASSERT_EQ(failed.findings().size(), 1u);
  EXPECT_EQ(failed.findings()[0].find(
                "1 failed kernel: failed kernel: launched at program.cu:12: out of bounds: "
                "argument 1 of "),
            0u)
      << failed.findings()[0];
  EXPECT_CONTAINS(failed.findings()[0], " is a pointer to host memory");
}

// Next to a buffer: found where it is not traced too, once for each buffer.
TEST(CheckReportDeathTest, StoresNextToABuffer) {
  const Outcome outcome = run_program([] {
    int *x = nullptr, *y = nullptr;
    if (cudaMalloc(&x, 32, Place("program.cu", 1)) || cudaMalloc(&y, 8, Place("program.cu", 2))) {
      return 9;
    }
    const auto body = [](auto... a) { store_at(a...); };
    for (const int index : {0, 7, 8, 9, -1}) {
      simt::program::launch_at("program.cu", 20 + index, body).with(1, 1)(x, index);
    }
    simt::program::launch_at("program.cu", 40, body).with(1, 1)(y, -1024);  // 4 KB before it
    return 5;
  });
  EXPECT_EQ(outcome.status, 5) << outcome.errors;
  EXPECT_EQ(outcome.findings(),
            (std::vector<std::string>{
                "1 out-of-bounds: out-of-bounds: a kernel launched at program.cu:28 wrote next to "
                "'cudaMalloc at program.cu:1', which has 32 bytes (cudaMalloc at program.cu:1)",
                "1 out-of-bounds: out-of-bounds: a kernel launched at program.cu:40 wrote next to "
                "'cudaMalloc at program.cu:2', which has 8 bytes (cudaMalloc at program.cu:2)"}));
}

// Host code that uses device memory ends the program, with a reason.
TEST(CheckReportDeathTest, HostCodeThatUsesDeviceMemory) {
  const auto crash = [](const std::function<void(volatile int*)>& use, bool launches) {
    return run_program([&use, launches] {
      int* x = nullptr;
      if (cudaMalloc(&x, 8192, Place("program.cu", 1))) return 9;
      if (launches) launch_add_one(x, 4);  // after which the memory is closed again
      use(x);
      return 0;
    });
  };
  const auto read_at = [](int index) { return [index](volatile int* x) { (void)x[index]; }; };
  const auto write = [](volatile int* x) { x[5] = 1; };
  const std::string closed =
      "host code uses device memory 'cudaMalloc at program.cu:1' (cudaMalloc at program.cu:1)";
  struct Use {
    std::function<void(volatile int*)> use;
    std::string reason;  // what is said begins with it
    bool launches = true;
  };
  for (const Use& each : std::vector<Use>{
           {read_at(0), closed},
           {read_at(2047), closed},
           {write, closed, false},
           {write, closed},
           {[&](volatile int* x) {
              if (cudaFree(const_cast<int*>(x), Place("program.cu", 7))) _exit(9);
              write(x);
            },
            "host code uses 'cudaMalloc at program.cu:1', which was freed at program.cu:7"},
           {[](volatile int*) { *reinterpret_cast<volatile int*>(16) = 1; },
            "host code uses an address that is not mapped"},
           {[](volatile int*) { std::abort(); }, "abort or failed assertion in host code"},
           {[](volatile int*) {
              volatile int zero = 0, some = 100;
              some = some / zero;
            },
            "integer division by zero in host"}}) {
    const Outcome outcome = crash(each.use, each.launches);
    EXPECT_EQ(outcome.status, simt::kCrashStatus) << each.reason;
    const auto text = outcome.report["crash"].get<std::string>();
    EXPECT_EQ(text.substr(0, each.reason.size()), each.reason) << text;
    EXPECT_EQ(outcome.errors, "error: " + text + "\n");
  }
}

TEST(CheckReportDeathTest, SharedVariablesOfACooperativeLaunch) {
  const Outcome outcome = run_program([] {
    const simt::program::CooperativeProgram cooperative;
    int *x = nullptr, bytes = 16, places[3] = {};
    void* arguments[] = {&x, &bytes};
    if (cudaMalloc(&x, 12)) return 9;
    if (cudaLaunchCooperativeKernel(place_shared, 1, 1, arguments, 20)) return 8;
    if (cudaMemcpy(places, x, 12, cudaMemcpyDeviceToHost)) return 7;
    if (places[0] != 32 || places[1] != 48 || places[2] != 32) return 6;
    bytes = (48 << 10) - 16;  // all there is
    if (cudaLaunchCooperativeKernel(place_shared, 1, 1, arguments, 20)) return 5;
    ++bytes;
    return cudaLaunchCooperativeKernel(place_shared, 1, 1, arguments, 20) ? 4 : 3;
  });
  EXPECT_EQ(outcome.status, 4) << outcome.errors;
}

TEST_F(CheckRuntime, SwizzlesOfTensorMaps) {
  alignas(128) static float tile[32];
  const auto encode = [](CUtensorMapSwizzle swizzle, CUtensorMap& map) {
    const cuuint64_t extents[] = {32}, strides[] = {0};
    const cuuint32_t box[] = {32}, steps[] = {1};
    return cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, tile, extents, strides,
                                  box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                  CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  CUtensorMap map{};
  EXPECT_EQ(encode(CU_TENSOR_MAP_SWIZZLE_128B, map), CUDA_SUCCESS);
  EXPECT_EQ(map.swizzle, static_cast<uint8_t>(Swizzle::b128));
  EXPECT_EQ(encode(CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B, map), CUDA_SUCCESS);
  EXPECT_EQ(map.swizzle, simt::kSwizzleOf32Bytes);
  testing::internal::CaptureStderr();
  EXPECT_EQ(encode(CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B, map), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(encode(CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B, map), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_CONTAINS(testing::internal::GetCapturedStderr(), "in units of 16 or 32 bytes");
}

TEST(CheckReportDeathTest, QuotesWhatJsonNeeds) {
  const Outcome outcome = run_program(
      [] { return cudaFree(&variable, Place("a\"b\\c\n\x01.cu", 1)) == cudaSuccess ? 9 : 5; });
  ASSERT_EQ(outcome.report["failed_calls"].size(), 1u);
  EXPECT_EQ(outcome.report["failed_calls"][0]["file"], "a\"b\\c\n\x01.cu");
}

}  // namespace
}  // namespace cookbook
