// SPDX-License-Identifier: MIT
/// @file
/// What host code launches, told while it does: for a record, and for tests.
#pragma once

#include <string>

namespace cookbook {

struct LaunchConfig;
struct TensorMapSpec;

/// Functions that are called; null: none is.
struct Observer {
  /// Before each launch with its kernel and its extents, and afterwards with nulls, also where it
  /// fails. On the SIMT backend a launch has run by then.
  void (*launch)(const void* kernel, const LaunchConfig* config) = nullptr;
  /// With each tensor map that is made.
  void (*tensor_map)(const TensorMapSpec& spec) = nullptr;
};
/// There is one: it replaces what was set before.
void set_observer(const Observer& observer);

/// A kernel's name as the compilers write it, such as "_Z4copyPf": alike on both backends.
std::string mangled_name(const void* kernel);

namespace detail {

const Observer& observer();

/// Tells of a launch at its beginning and its end.
class ObservedLaunch {
 public:
  ObservedLaunch(const void* kernel, const LaunchConfig& config) {
    if (observer().launch) observer().launch(kernel, &config);
  }
  ~ObservedLaunch() {
    if (observer().launch) observer().launch(nullptr, nullptr);
  }
  ObservedLaunch(const ObservedLaunch&) = delete;
  ObservedLaunch& operator=(const ObservedLaunch&) = delete;
};

}  // namespace detail

}  // namespace cookbook
