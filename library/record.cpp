// SPDX-License-Identifier: MIT
// Records the cold times of all candidates of rows or transposes on this GPU, for the shapes of a
// list, "LADDER ROWS COLS" per line: library/choose.hpp reads what it writes.
//   library-record rows library/rows/recorded/shapes.txt library/rows/recorded/nvidia_h100.inc
// gemm has capstone-gemm-measure, which compares with cuBLAS as well.
#include <fmt/format.h>

#include <exception>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/bench/bench.hpp"
#include "common/harness/run/arguments.hpp"
#include "common/harness/verdict/check.hpp"
#include "library/rows/choose.hpp"
#include "library/transpose/choose.hpp"

namespace cookbook {

Chapter capstone_rows_entry();
Chapter capstone_transpose_entry();

namespace {

/// The kind of a dense matrix, as recordings name it.
std::string kind_of(const std::string& ladder, const Size& size) {
  return ladder == "transpose" ? transpose::kind_of(size[0], size[1], size[1], size[0])
                               : softmax::kind_of(softmax::dense_case(ladder, size[1]));
}

/// NAME US of each candidate that supports the shape. A ladder's last level chooses among them.
std::string times_of(const Ladder& ladder, const Size& size) {
  Instance inputs(ladder, size, InputKind::normal, 1);
  std::vector<Contender> contenders;
  for (std::size_t i = 0; i + 1 < ladder.levels.size(); ++i) {
    const LevelEntry& level = ladder.levels[i];
    if (!level.supports(inputs.problem(), device_info()).ok) continue;
    try {
      contenders.push_back({level.name, level.prepare(inputs.problem(), inputs.pointers())});
    } catch (const std::invalid_argument&) {  // not these rows, or not with this alignment
    }
  }
  BenchOptions options;
  options.min_rounds = options.max_rounds = 11;
  options.hot = options.clocks = false;
  const auto measured = measure(contenders, options, nullptr);
  std::string text;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (measured[i].error.empty())
      text += fmt::format(" {} {:.2f}", contenders[i].name, measured[i].cold.median);
  }
  return text;
}

int record(const Chapter& chapter, std::istream& list, std::ostream& out) {
  out << "R\"recording(\n# SPDX-License-Identifier: MIT\n# " << device_info().name
      << ", cold medians in us: ROWS COLS KIND, then CANDIDATE US of each that supports the "
         "shape.\n";
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    Size size(2);
    if (!(words >> name)) continue;
    const Ladder* ladder = nullptr;
    for (const Ladder& each : chapter.ladders) {
      if (each.name == name) ladder = &each;
    }
    if (!ladder || !(words >> size[0] >> size[1])) throw std::invalid_argument(line);
    out << fmt::format("{} {} {}{}\n", size[0], size[1], kind_of(name, size),
                       times_of(*ladder, size))
        << std::flush;
  }
  out << ")recording\"\n";
  return 0;
}

}  // namespace
}  // namespace cookbook

int main(int argc, char** argv) {
  using namespace cookbook;
  const std::string what = argc == 4 ? argv[1] : "";
  if (what != "rows" && what != "transpose")
    refuse_argument(argv, "rows or transpose, LIST, OUT", argc > 1 ? argv[1] : "");
  std::ifstream list(argv[2]);
  if (!list) refuse_argument(argv, "a list", argv[2]);
  std::ofstream out(argv[3]);
  if (!out) refuse_argument(argv, "a file to write", argv[3]);
  try {
    return record(what == "rows" ? capstone_rows_entry() : capstone_transpose_entry(), list, out);
  } catch (const std::exception& error) {
    refuse_argument(argv, "LADDER ROWS COLS per line", error.what());
  }
}
