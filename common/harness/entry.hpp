// SPDX-License-Identifier: MIT
// What a chapter's main function calls. Without level.hpp, because there are many such functions.
#pragma once

namespace cookbook {

struct Chapter;
struct Libraries;

/// runner.hpp has it for what these functions return. libraries: may be null.
int run_chapter(Chapter (*chapter)(), int argc, char** argv, Libraries (*libraries)());

}  // namespace cookbook
