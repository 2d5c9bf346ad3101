// SPDX-License-Identifier: MIT
// What the sources of levels say, as hashes that the build computes (tools/identity).
#pragma once

#include <string>

#include "common/harness/contract/token_table.hpp"

namespace cookbook {

/// The hash of the tokens of a source file and of the project headers that it includes, as they
/// were when this was built; "" where the build has not entered the file. Folders before the last
/// one do not count, because a compiler's cache may name another clone's.
std::string token_hash(const std::string& file);

}  // namespace cookbook
