// SPDX-License-Identifier: MIT
// Tunes (or replays a recording), runs the ladders, and then says whether tuning paid. `chapter-11
// tune|merge|replay|record` does only that.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chapters/11_autotuning/spaces.hpp"
#include "common/harness/report/console.hpp"
#include "common/harness/run/options.hpp"
#include "common/harness/run/runner.hpp"
#if !COOKBOOK_TRACED
#include "chapters/11_autotuning/tuner/cli.hpp"
#endif

namespace cookbook {
Chapter chapter_11_entry();
#if COOKBOOK_CUDA
Libraries chapter_11_libraries();
#else
inline Libraries chapter_11_libraries() { return {}; }
#endif

namespace {

#if !COOKBOOK_TRACED
// On a GPU: the configuration tuned for each ladder's size, with a search if the cache has none.
// Without one: the configuration that a GPU recorded. If that fails, it says so, and the ladder
// runs its defaults.
void tune_first(const Options& options) {
  for (const tune::Space* space : autotuning::all_spaces()) {
    if (!options.ladder.empty() && options.ladder != space->kernel) continue;
    if (device_info().is_simt) {
      tune::print_recorded(*space);
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
    for (const Size& size : sizes) {
      Progress progress;
      tuning.progress = [&progress](const std::string& text) { progress.show(text); };
      tune::tune_and_print(*space, size, tuning, tune::Cache());
    }
  }
}

// Runs the ladders, and prints over several sizes what they prove.
int run_and_judge(const Options& options, int argc, char** argv) {
  const auto run = [](std::vector<char*> words) {
    return run_chapter(chapter_11_entry(), static_cast<int>(words.size()), words.data(),
                       chapter_11_libraries());
  };
  std::vector<char*> words(argv, argv + argc);
  if (options.sizes.size() < 2 || !options.launches.empty()) return run(words);
  // The times come back through the file that --json writes: a temporary file if the user gave
  // none.
  const std::string passing = (std::filesystem::temp_directory_path() /
                               ("chapter-11." + std::to_string(getpid()) + ".json"))
                                  .string();
  std::string flag = "--json", file = options.json.empty() ? passing : options.json;
  if (options.json.empty()) words.insert(words.end(), {flag.data(), file.data()});
  const int status = run(words);
  std::ifstream in(file);
  const auto document = nlohmann::ordered_json::parse(in, nullptr, false);
  if (options.json.empty()) std::filesystem::remove(file);
  if (document.is_discarded()) return status;
  for (const tune::Proof& proof : tune::proofs(document, autotuning::all_spaces())) print(proof);
  return status;
}
#endif

}  // namespace
}  // namespace cookbook

int main(int argc, char** argv) {
  using namespace cookbook;
#if !COOKBOOK_TRACED
  if (const auto status =
          tune::command(autotuning::all_spaces(), argc, argv, chapter_11_libraries())) {
    return *status;
  }
  Options options;
  if (const auto status = parse_options(chapter_11_entry(), argc, argv, options)) {
    if (*status == 0) std::printf("\nIn place of options:\n%s", tune::kCommands);  // it was --help
    return *status;
  }
  try {
    tune::mode_from_environment();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chapter-11: %s\n", error.what());
    return 2;
  }
  try {
    // With these no user waits for a search.
    const bool only_looks = options.list || options.check || options.explain ||
                            options.exercise != 0 || !options.launches.empty();
    if (!only_looks) tune_first(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chapter-11: %s\n", error.what());
  }
  return run_and_judge(options, argc, argv);
#else
  return run_chapter(chapter_11_entry(), argc, argv);
#endif
}
