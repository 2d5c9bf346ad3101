// SPDX-License-Identifier: MIT
// What an ordinary CUDA program needs at run time when ./run check compiles it for the SIMT backend
// (docs/check.md): its launches, and where its calls are. tools/check/rewrite.py writes calls of
// launch_at() in place of <<<...>>>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <typeinfo>

#include "common/backend/simt/language/intrinsics.hpp"
#include "common/backend/simt/language/kernel_call.hpp"
#include "tools/check/program/functions.hpp"

struct CUstream_st;
typedef CUstream_st* cudaStream_t;

namespace cookbook::simt::program {

/// A line of the program.
struct Place {
  const char* file = "";
  int line = 0;
  constexpr Place(const char* file_ = __builtin_FILE(), int line_ = __builtin_LINE())
      : file(file_), line(line_) {}
};

/// Where an allocation writes its address, and what the program calls it.
struct AnyPointer {
  void** at = nullptr;
  const char* name = "";
  AnyPointer(std::nullptr_t, const char* = "") {}
  AnyPointer(AnyPointer pointer, const char* name_) : at(pointer.at), name(name_) {}
  template <class T>
  AnyPointer(T** pointer, const char* name_ = "")
      : at(reinterpret_cast<void**>(pointer)), name(name_) {}
};

/// True while a kernel is only asked who it is. Like threadIdx it is no memory traffic.
extern __thread const bool asking;
/// Called by a kernel that is asked; true. Its return address tells which kernel it is.
/// `most_threads`: of its __launch_bounds__, `x`, `y`, `z`: of its __cluster_dims__; 0: it has
/// none.
bool answer(unsigned most_threads = 0, unsigned x = 0, unsigned y = 1, unsigned z = 1);

struct LaunchSizes {
  dim3 grid, block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  bool cooperative = false;
  uint3 cluster{1, 1, 1};
  int polymorphic = 0;  ///< The number of an argument with virtual functions, from 1; 0: none.
};

/// An argument that is a pointer: its number, from 1, and its value.
struct PointerArgument {
  int number;
  const void* value;
};

/// Runs the launch; what goes wrong becomes the program's error state and a finding. `keep` copies
/// the arguments for the node of a graph.
void run(Place place, const LaunchSizes& sizes, const KernelCall& call,
         const PointerArgument* pointers, int pointer_count,
         const void* (*keep)(const void* arguments));

template <class Body, class... P>
struct BoundCall {
  const Body* body;
  Arguments<P...> arguments;

  COOKBOOK_SIMT_UNTRACED static void invoke(void*, const void* self) {
    const auto& bound = *static_cast<const BoundCall*>(self);
    call_with(*bound.body, bound.arguments);
  }
  COOKBOOK_SIMT_UNTRACED static const void* keep(const void* self) {
    const auto& bound = *static_cast<const BoundCall*>(self);
    return new BoundCall{new Body(*bound.body), bound.arguments};
  }
};

template <class T>
constexpr bool is_data_pointer =
    std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>;

/// `kernel<<<sizes>>>(arguments)`. `body` calls the kernel with the arguments it is given.
template <class Body>
class Launch {
 public:
  COOKBOOK_SIMT_UNTRACED Launch(Place place, const Body& body) : place_(place), body_(body) {}

  COOKBOOK_SIMT_UNTRACED Launch&& with(dim3 grid, dim3 block, size_t shared_bytes = 0,
                                       cudaStream_t stream = nullptr) && {
    return static_cast<Launch&&>(*this).with(LaunchSizes{grid, block, shared_bytes, stream});
  }
  COOKBOOK_SIMT_UNTRACED Launch&& with(const LaunchSizes& sizes) && {
    sizes_ = sizes;
    return static_cast<Launch&&>(*this);
  }

  template <class... A>
  COOKBOOK_SIMT_UNTRACED void operator()(const A&... arguments) && {
    using Call = BoundCall<Body, std::decay_t<A>...>;
    Call call{&body_, Arguments<std::decay_t<A>...>(arguments...)};
    PointerArgument pointers[sizeof...(A) + 1];
    int count = 0, number = 0;
    (note_pointer<std::decay_t<A>>(arguments, ++number, pointers, count), ...);
    number = 0;
    ((++number,
      std::is_polymorphic_v<std::decay_t<A>> ? void(sizes_.polymorphic = number) : void()),
     ...);
    run(place_, sizes_, KernelCall(&Call::invoke, &call, sizeof(call)), pointers, count,
        &Call::keep);
  }

 private:
  template <class T, class A>
  COOKBOOK_SIMT_UNTRACED static void note_pointer(const A& argument, int number,
                                                  PointerArgument* pointers, int& count) {
    if constexpr (is_data_pointer<T>) {
      const T value = argument;
      pointers[count++] = {number,
                           const_cast<const void*>(static_cast<const volatile void*>(value))};
    }
  }

  Place place_;
  Body body_;
  LaunchSizes sizes_;
};

template <class Body>
COOKBOOK_SIMT_UNTRACED Launch<Body> launch_at(const char* file, int line, const Body& body) {
  return Launch<Body>(Place(file, line), body);
}

/// `extern __shared__ T name[];` in a function is `T* name = dynamic_shared<T,
/// "file:line:name">();`.
template <class T>
__forceinline__ T* dynamic_shared() {
  return static_cast<T*>(dynamic_shared_memory());
}
template <size_t kBytes>
struct Text {
  char text[kBytes];
  consteval Text(const char (&from)[kBytes]) {
    for (size_t i = 0; i < kBytes; ++i) text[i] = from[i];
  }
};
bool note_dynamic_shared(const char* place, const std::type_info& type);
template <class T, Text kPlace>
struct DynamicSharedType {
  static inline const bool noted = note_dynamic_shared(kPlace.text, typeid(T));
};
template <class T, Text kPlace>
__forceinline__ T* dynamic_shared() {
  (void)&DynamicSharedType<T, kPlace>::noted;
  return static_cast<T*>(dynamic_shared_memory());
}
/// The same outside of functions: an object that becomes the pointer where it is used.
template <class T>
struct DynamicShared {
  __forceinline__ operator T*() const { return dynamic_shared<T>(); }
};

/// Where the `__shared__` variable `name` of the current block lies in a cooperative launch.
void* cooperative_shared(const char* name, size_t bytes, size_t alignment);

/// rewrite.py defines one in a program with cooperative launches.
struct CooperativeProgram {
  CooperativeProgram();
};

/// A `__device__`, `__managed__` or `__constant__` variable: rewrite.py defines one behind each.
struct DeviceVariable {
  enum Kind { device, managed, constant };
  DeviceVariable(const void* address, size_t bytes, const char* name, Kind kind);
};
/// What lies around such variables: an access there is beyond the end of one.
struct RedZones {
  RedZones(std::initializer_list<const void*> zones, size_t bytes);
};

// ---- the heap of kernels ----

struct Heap {};
void* heap_malloc(size_t bytes);
void heap_free(void* pointer);
void set_heap_limit(size_t bytes);
size_t heap_limit();

}  // namespace cookbook::simt::program

void* operator new(size_t bytes, cookbook::simt::program::Heap);
void* operator new[](size_t bytes, cookbook::simt::program::Heap);
