// SPDX-License-Identifier: MIT
// The solutions of the book's capstones as exercises of one program, in the order of the folders,
// and then a wrong solution of each. The levels are not compiled. generated/levels.hpp includes
// the solutions in the place of the exercises.
#include "common/harness/contract/exercises_only.hpp"
// The above comes first.
#include "common/harness/run/runner.hpp"
#define capstone capstone_convolution
#include "capstones/convolution/ladder.hpp"
#undef capstone
#define capstone capstone_gemv
#include "capstones/gemv/ladder.hpp"
#undef capstone
#define capstone capstone_histogram
#include "capstones/histogram/ladder.hpp"
#undef capstone
#define capstone capstone_scan
#include "capstones/scan/ladder.hpp"
#undef capstone
#define capstone capstone_spmv
#include "capstones/spmv/ladder.hpp"
#undef capstone

int main(int argc, char** argv) {
  using namespace cookbook;
  Chapter all;
  all.capstone = "solutions";
  std::vector<LevelEntry> wrong;
  const auto add = [&](Chapter one, LevelEntry wrong_one) {
    for (LevelEntry* entry : {&one.exercises.at(0), &wrong_one}) {
      if (entry->ladder.empty()) entry->ladder = one.ladders.front().name;
    }
    wrong_one.ladder = one.exercises.front().ladder;
    all.exercises.push_back(one.exercises.front());
    wrong.push_back(wrong_one);
    all.ladders.insert(all.ladders.end(), one.ladders.begin(), one.ladders.end());
  };
  add(capstone_convolution(), make_any_level<convolution::wrong::Release>());
  add(capstone_gemv(), make_any_level<gemv::wrong::Merge>());
  add(capstone_histogram(), make_any_level<histogram::wrong::Packed>());
  add(capstone_scan(), make_any_level<cookbook::scan::wrong::Ticket>());
  add(capstone_spmv(), make_any_level<spmv::wrong::Carries>());
  all.exercises.insert(all.exercises.end(), wrong.begin(), wrong.end());
  return run_chapter(all, argc, argv);
}
