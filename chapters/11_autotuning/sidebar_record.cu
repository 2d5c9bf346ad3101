// SPDX-License-Identifier: MIT
// needs: cuda
// Sidebar: measures whole spaces on this GPU, verified and interleaved with cuBLAS. It writes the
// recordings that `./run 11` replays without a GPU. Usage: chapter-11-record FOLDER [KERNEL]...
// writes FOLDER/KERNEL_GPU.json
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "chapters/05_tensor_cores/cublas_gemm.hpp"
#include "chapters/11_autotuning/spaces.hpp"
#include "common/harness/arguments.hpp"
#include "common/harness/console.hpp"
#include "chapters/11_autotuning/tuner/cli.hpp"

int main(int argc, char** argv) {
  using namespace cookbook;
  if (argc < 2) {
    std::fprintf(stderr, "usage: chapter-11-record FOLDER [KERNEL]...\n");
    return 2;
  }
  const std::string accepted = "FOLDER [KERNEL]..., KERNEL being one of";
  std::string kernels;
  for (const tune::Space* space : autotuning::all_spaces()) kernels += " " + space->kernel;
  if (argv[1][0] == '-' || argv[1][0] == '\0') refuse_argument(argv, accepted + kernels, argv[1]);
  for (int i = 2; i < argc; ++i) {
    if ((kernels + " ").find(" " + std::string(argv[i]) + " ") == std::string::npos) {
      refuse_argument(argv, accepted + kernels, argv[i]);
    }
  }
  std::string gpu = device_info().name;
  for (char& c : gpu) c = c == ' ' ? '_' : static_cast<char>(std::tolower(c));
  try {
    std::filesystem::create_directories(argv[1]);
    for (const tune::Space* space : autotuning::all_spaces()) {
      bool wanted = argc == 2;
      for (int i = 2; i < argc; ++i) wanted = wanted || space->kernel == argv[i];
      if (!wanted) continue;
      const auto start = std::chrono::steady_clock::now();
      const auto seconds = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      };
      std::vector<ReferenceEntry> libraries;
      if (space->kernel == "gemm") libraries.push_back(gemm::cublas_gemm<bf16>());
      constexpr int kRounds = 15;
      Progress progress;
      const tune::Recording recording =
          tune::record(*space, libraries, kRounds, [&](const std::string& text) {
            progress.show(std::to_string(static_cast<int>(seconds())) + " s  " + text);
          });
      const std::string file = std::string(argv[1]) + "/" + space->kernel + "_" + gpu + ".json";
      tune::write_recording(recording, file);
      progress.clear();
      std::printf("%s: %.1f s\n", file.c_str(), seconds());
      tune::print_replay(*space, recording);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "\nchapter-11-record: %s\n", error.what());
    return 1;
  }
}
