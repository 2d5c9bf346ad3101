// SPDX-License-Identifier: MIT
// Device memory that host code cannot touch, as on a GPU: for a grader. And a function that is
// called at each launch.
#pragma once

namespace cookbook {

struct LaunchConfig;

namespace simt {

/// Opens or closes all device memory that there is to loads and stores. What is allocated later is
/// open.
void open_device_memory(bool open);

/// Called before each launch runs, with its kernel and its extents, and after it with nulls, also
/// where it fails or none of its blocks run; null: no one is.
void set_launch_observer(void (*observer)(const void* kernel, const LaunchConfig* config));

}  // namespace simt
}  // namespace cookbook
