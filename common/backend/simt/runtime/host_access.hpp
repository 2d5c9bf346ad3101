// SPDX-License-Identifier: MIT
// Device memory that host code cannot touch, as on a GPU: for a grader.
#pragma once

namespace cookbook::simt {

/// Opens or closes all device memory that there is to loads and stores. What is allocated later is
/// open.
void open_device_memory(bool open);

}  // namespace cookbook::simt
