// SPDX-License-Identifier: MIT
#include "common/harness/contract/tokens.hpp"

#include <filesystem>
#include <map>

namespace cookbook {
namespace {

std::map<std::string, std::string>& table() {
  static std::map<std::string, std::string> hashes;
  return hashes;
}

}  // namespace

bool enter_tokens(const TokenHash* begin, const TokenHash* end) {
  for (; begin != end; ++begin) table().emplace(begin->source, begin->hash);
  return true;
}

std::string token_hash(const std::string& file) {
  const auto path = std::filesystem::path(file).lexically_normal();
  const auto found = table().find((path.parent_path().filename() / path.filename()).string());
  return found == table().end() ? "" : found->second;
}

}  // namespace cookbook
