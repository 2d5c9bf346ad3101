// SPDX-License-Identifier: MIT
// Tunes (or replays a recording), then runs the ladders. `chapter-11 tune|merge|replay` only tunes.
#include <cstdio>
#include <string>

#include "chapters/11_autotuning/spaces.hpp"
#include "common/harness/options.hpp"
#include "common/harness/runner.hpp"
#if !COOKBOOK_TRACED
#include "common/tune/cli.hpp"
#endif

namespace cookbook {
Chapter chapter_11_entry();
#if COOKBOOK_CUDA
Libraries chapter_11_libraries();
#endif

namespace {

#if !COOKBOOK_TRACED
// Options under which nobody waits for a search.
bool only_looks(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    for (const char* flag : {"--list", "--check", "--explain", "--exercise", "--help", "-h"}) {
      if (std::string(argv[i]).rfind(flag, 0) == 0) return true;
    }
  }
  return false;
}

// On a GPU: what each ladder's size was tuned to, searching where the cache has nothing. Without
// one: what a GPU recorded. Says so when it cannot, and leaves the ladder to run its defaults.
void tune_first(const Chapter& chapter, int argc, char** argv) {
  Options options;
  if (only_looks(argc, argv) || parse_options(chapter, argc, argv, options)) return;
  for (const tune::Space* space : autotuning::all_spaces()) {
    if (!options.ladder.empty() && options.ladder != space->kernel) continue;
    if (device_info().is_simt) {
      char verb[] = "replay", name[] = "--kernel";
      std::string kernel = space->kernel;
      char* arguments[] = {argv[0], verb, name, kernel.data()};
      tune::command({space}, 4, arguments);
      continue;
    }
    const tune::Mode mode = tune::mode_from_environment();
    if (mode != tune::Mode::tune) {
      std::printf("%s: no search, COOKBOOK_AUTOTUNE=%s\n", space->kernel.c_str(),
                  mode == tune::Mode::off ? "off" : "read");
      continue;
    }
    std::vector<Size> sizes;
    for (const std::string& text : options.sizes) sizes.push_back(parse_size(space->problem, text));
    if (sizes.empty()) sizes.push_back(space->problem.gpu_size);
    tune::TuneOptions tuning;
    tuning.progress = [](const std::string& text) {
      std::fprintf(stderr, "\r\033[K%s", text.c_str());
    };
    for (const Size& size : sizes) {
      tune::tune_and_print(*space, size, tuning, tune::Cache());
      std::fprintf(stderr, "\r\033[K");
    }
  }
}
#endif

}  // namespace
}  // namespace cookbook

int main(int argc, char** argv) {
  using namespace cookbook;
#if !COOKBOOK_TRACED
  if (const auto status = tune::command(autotuning::all_spaces(), argc, argv)) return *status;
  try {
    tune_first(chapter_11_entry(), argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chapter-11: %s\n", error.what());
  }
#endif
#if COOKBOOK_CUDA
  return run_chapter(chapter_11_entry(), chapter_11_libraries(), argc, argv);
#else
  return run_chapter(chapter_11_entry(), argc, argv);
#endif
}
