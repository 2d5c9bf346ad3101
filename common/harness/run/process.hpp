// SPDX-License-Identifier: MIT
// Plain and traced kernels are in separate executables: one starts the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cookbook {

/// Runs a program and waits for it: its exit status. Throws std::runtime_error when it cannot be
/// started.
int run_program(const std::vector<std::string>& arguments);

/// The traced executable of `program`, such as "chapter-3" (beside this one, or in the SIMT build
/// folder beside the CUDA one), or an empty string when it was not built.
std::string traced_program(const std::string& program);

/// The path of `file`, which is relative to the book's folder as it was when this was compiled.
std::string source_path(const std::string& file);

/// The path of a source file from the book's folder; of a file elsewhere its name alone.
std::string short_path(const std::string& file);

/// Now, as "2026-11-21T22:24:27Z".
std::string now_utc();

/// The commit of the source tree, with "-dirty" when it has changes; COOKBOOK_COMMIT overrides.
/// Nothing where there is no git, or no commit.
std::optional<std::string> source_commit();

}  // namespace cookbook
