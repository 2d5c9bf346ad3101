// SPDX-License-Identifier: MIT
// What the main function of a chapter without libraries calls. It does not include level.hpp,
// because there are many such functions.
#pragma once

namespace cookbook {

struct Chapter;

/// run_chapter() of runner.hpp for what `chapter` returns, without libraries.
int run_chapter(Chapter (*chapter)(), int argc, char** argv);

}  // namespace cookbook
