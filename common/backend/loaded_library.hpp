// SPDX-License-Identifier: MIT
/// @file
/// A shared library that is opened when a program runs, so that no build needs it.
#pragma once

#include <dlfcn.h>

#include <string>
#include <utility>

namespace cookbook {

/// To be derived from, with a member per function: `decltype(&f) call_f = find("f");`.
struct LoadedLibrary {
  std::string missing;  ///< why not all of its functions can be called; empty if they can

  /// `name`: as people call the library. `file`: as dlopen() takes it. `absent`: what `missing` is
  /// if there is none.
  LoadedLibrary(std::string name, const char* file, std::string absent)
      : name_(std::move(name)), library_(dlopen(file, RTLD_NOW)) {
    if (!library_) missing = std::move(absent);
  }

 protected:
  /// A pointer to a function of any type.
  struct Address {
    void* address;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };
  Address find(const char* function) {
    if (!library_) return {nullptr};
    void* address = dlsym(library_, function);
    if (!address) missing = "this " + name_ + " has no " + function;
    return {address};
  }

 private:
  std::string name_;
  void* library_;
};

}  // namespace cookbook
