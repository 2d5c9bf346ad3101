// SPDX-License-Identifier: MIT
// What a trace counted, as JSON: line by line, and the worst requests of a level, from which
// pictures are drawn (docs/pictures.md).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "common/backend/simt/runtime/trace.hpp"
#include "common/harness/contract/level.hpp"

namespace cookbook {

/// The lines of a trace that cost most above their ideal, at most six of each memory, the worst
/// first, with one request each. The trace was made with simt::keep_requests.
nlohmann::ordered_json worst_requests(const simt::Trace& trace);

/// The counts of each line of a trace, in its order.
nlohmann::ordered_json line_counts(const simt::Trace& trace);

/// The file in `folder` for a level's requests.
std::string requests_file(const std::string& folder, const std::string& ladder,
                          const std::string& level);

/// Writes that file, and the pictures of its requests beside it. Throws std::runtime_error where
/// either fails.
void write_requests(const std::string& file, const Chapter& chapter, const std::string& ladder,
                    const std::string& level, const Size& size,
                    const nlohmann::ordered_json& requests);

}  // namespace cookbook
