// SPDX-License-Identifier: MIT
// The command lines of sidebar programs: a few numbers, or nothing. An argument that a program does
// not understand ends it with one line and status 2. If it were ignored, a mistyped size would give
// the table of another size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cookbook {

/// Ends the program: "chapter-7-waves: takes <accepted>; got '<got>'" on stderr, status 2.
[[noreturn]] void refuse_argument(char** argv, const std::string& accepted, const std::string& got);

/// For a program that takes no arguments.
void take_no_arguments(int argc, char** argv);

/// FILE of `--json FILE`, if that is the command line: for the data of a picture
/// (docs/pictures.md).
/// Ends the program as above where it cannot be written.
std::optional<std::string> json_argument(int argc, char** argv);

/// `text` as a whole number from 1 to 2^31 - 1 (kernels count rows in int), or nothing.
std::optional<std::int64_t> positive_number(std::string_view text);

/// The whole numbers from `least` to `most` that `text` joins by x; none if it is anything else.
std::vector<std::int64_t> joined_numbers(std::string_view text, std::int64_t most,
                                         std::int64_t least = 1);

/// M N K triples, all that is on the command line; `otherwise` where there is nothing on it.
std::vector<std::vector<std::int64_t>> product_sizes(
    int argc, char** argv, std::vector<std::vector<std::int64_t>> otherwise);

/// The same for sizes in one word each: "4096", a cube, or "4096x4096x64".
std::vector<std::vector<std::int64_t>> joined_sizes(
    int argc, char** argv, std::vector<std::vector<std::int64_t>> otherwise);

}  // namespace cookbook
