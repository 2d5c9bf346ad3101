// SPDX-License-Identifier: MIT
// What the files of the runtime API share.
#pragma once

#include <mutex>
#include <string>

#include "tools/check/program/include/cuda_runtime.h"
#include "tools/check/program/order.hpp"

namespace cookbook::simt::program {

Order& order_of_streams();
std::recursive_mutex& mutex_of_calls();
/// A call failed: cudaGetLastError() says so, and the report, if the program does not look.
cudaError_t fail_call(cudaError_t error, const char* function, Place place,
                      const std::string& message, bool is_launch = false);

}  // namespace cookbook::simt::program
