// SPDX-License-Identifier: MIT
// Includes nothing: the build compiles a table per program and mode (tools/identity).
#pragma once

namespace cookbook {

/// The last folder and the name of a source, and the hash of its tokens.
struct TokenHash {
  const char* source;
  const char* hash;
};

/// Adds to the table that token_hash() reads. Called by the files that the build writes, before
/// main(). Returns true.
bool enter_tokens(const TokenHash* begin, const TokenHash* end);
template <int kCount>
bool enter_tokens(const TokenHash (&hashes)[kCount]) {
  return enter_tokens(hashes, hashes + kCount);
}

}  // namespace cookbook
