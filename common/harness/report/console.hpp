// SPDX-License-Identifier: MIT
// Output for people: the ladder as a table, and progress. Colour only on a terminal.
#pragma once

#include <string>

#include "common/harness/report/result.hpp"

namespace cookbook {

/// Whether standard output is a terminal that wants colour (NO_COLOR is honoured).
bool colour_wanted();

/// A transient line on standard error while long work runs; nothing when that is no terminal.
class Progress {
 public:
  ~Progress() { clear(); }
  void show(const std::string& text);
  void clear();

 private:
  bool shown_ = false;
};

/// Prints the ladder as a table of at most 100 columns: times, rates and % of roof on a GPU;
/// counters on the SIMT backend.
void print_ladder(const LadderResult& result);
/// Prints one line instead: the ladder's name, its size, how many levels it has, whether all is
/// right, and on a GPU the highest speed. Below it every level that is wrong, with its errors.
void print_summary(const LadderResult& result);
/// Prints the report of a traced level, for --explain, and below it the errors of the level.
void print_explained(const Ladder& ladder, const LevelResult& level, const std::string& size,
                     const std::string& report);
/// Below it: that claims are about the traced size and normal inputs, where this was another.
void print_not_judged(const Ladder& ladder);
/// One line on standard error for each level that mismatched, crashed or hung.
void print_failures(const LadderResult& result);
/// Prints names, what changes and what is expected.
void print_list(const Ladder& ladder);

}  // namespace cookbook
