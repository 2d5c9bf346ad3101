// SPDX-License-Identifier: MIT
#pragma once

#include "common/backend/backend.hpp"

namespace cookbook {

/// Fills the L2 with clean lines that no benchmark uses, by reading four times its size. (Writing
/// would leave dirty lines, whose write-back the next kernel would pay for.) Takes long enough to
/// hide the latency of the launches queued behind it.
void flush_l2(Stream stream);

}  // namespace cookbook
