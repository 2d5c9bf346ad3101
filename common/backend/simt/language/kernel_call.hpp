// SPDX-License-Identifier: MIT
// How a kernel and its arguments reach the fibers.
#pragma once

#include <cstddef>
#include <type_traits>

#include "common/backend/simt/language/half_types.hpp"

namespace cookbook::simt {

// The arguments of one launch, copied once. Plain nested members instead of std::tuple: its
// accessors would be compiled, and traced, as part of the kernel.
template <class... P>
struct Arguments {
  Arguments() = default;
};
template <class Head, class... Tail>
struct Arguments<Head, Tail...> {
  COOKBOOK_SIMT_UNTRACED explicit Arguments(const Head& head_, const Tail&... tail_)
      : head(head_), tail(tail_...) {}
  Head head;
  Arguments<Tail...> tail;
};

template <class Kernel, class... Done>
COOKBOOK_SIMT_UNTRACED void call_with(Kernel kernel, const Arguments<>&, const Done&... done) {
  kernel(done...);
}
template <class Kernel, class Head, class... Tail, class... Done>
COOKBOOK_SIMT_UNTRACED void call_with(Kernel kernel, const Arguments<Head, Tail...>& rest,
                                      const Done&... done) {
  call_with(kernel, rest.tail, done..., rest.head);
}

// A kernel with its arguments, for the runtime: `invoke(kernel, arguments)` runs one CUDA thread.
struct KernelCall {
  template <class... P>
  COOKBOOK_SIMT_UNTRACED KernelCall(void (*)(P...), const Arguments<P...>& arguments_)
      : invoke(&invoke_kernel<P...>), arguments(&arguments_), argument_bytes(sizeof(arguments_)) {
    // A copy is made on the device, where no tracer sees what a constructor does.
    static_assert((std::is_trivially_copyable_v<P> && ...),
                  "the arguments of a kernel must be trivially copyable");
  }
  COOKBOOK_SIMT_UNTRACED KernelCall(void (*invoke_)(void*, const void*), const void* arguments_,
                                    size_t argument_bytes_)
      : invoke(invoke_), arguments(arguments_), argument_bytes(argument_bytes_) {}

  void (*invoke)(void* kernel, const void* arguments);
  const void* arguments;
  size_t argument_bytes;

 private:
  template <class... P>
  COOKBOOK_SIMT_UNTRACED static void invoke_kernel(void* kernel, const void* arguments) {
    call_with(reinterpret_cast<void (*)(P...)>(kernel),
              *static_cast<const Arguments<P...>*>(arguments));
  }
};

}  // namespace cookbook::simt
