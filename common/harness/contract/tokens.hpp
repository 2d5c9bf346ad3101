// SPDX-License-Identifier: MIT
// What the sources of levels say, as hashes that the build computes (tools/identity).
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

namespace cookbook {

/// Adds to the table that token_hash() reads: the last folder and the name of a source, and its
/// hash. Called by the files that the build writes, before main(). Returns true.
bool enter_tokens(std::initializer_list<std::pair<const char*, const char*>> hashes);

/// The hash of the tokens of a source file and of the project headers that it includes, as they
/// were when this was built; "" where the build has not entered the file. Folders before the last
/// one do not count, because a compiler's cache may name another clone's.
std::string token_hash(const std::string& file);

}  // namespace cookbook
