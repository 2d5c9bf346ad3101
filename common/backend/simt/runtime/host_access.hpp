// SPDX-License-Identifier: MIT
// What only a grader asks of the backend: device memory that host code cannot touch, as on a GPU,
// and copies that count as what they are at least.
#pragma once

namespace cookbook::simt {

/// Opens or closes all device memory that there is to loads and stores. What is allocated later is
/// open.
void open_device_memory(bool open);

/// Of a copy that is not known to be aligned to its size nvcc makes narrow accesses. If this is
/// set, a struct counts as accesses of at most 4 bytes, and memcpy() as accesses of one byte.
inline constinit bool copies_are_narrow = false;

}  // namespace cookbook::simt
