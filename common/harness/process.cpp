// SPDX-License-Identifier: MIT
#include "common/harness/process.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

extern char** environ;

namespace cookbook {

int run_program(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::fflush(stdout);
  pid_t child = 0;
  if (posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return 127;
  int status = 0;
  if (waitpid(child, &status, 0) < 0) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string traced_program(int chapter) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const std::filesystem::path& folder :
       {self.parent_path(), self.parent_path().parent_path() / "simt"}) {
    const auto program = folder / fmt::format("chapter-{}-traced", chapter);
    if (std::filesystem::exists(program, error)) return program;
  }
  return {};
}

std::string run_traced_json(const std::string& program, std::vector<std::string> arguments) {
  std::string path = std::filesystem::temp_directory_path() / "cookbook-trace-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) throw std::runtime_error("cannot create a temporary file in " + path);
  close(file);
  arguments.insert(arguments.begin(), program);
  arguments.push_back("--json");
  arguments.push_back(path);
  const int status = run_program(arguments);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  if (status != 0 && status != 1) {
    throw std::runtime_error(fmt::format("{} ended with status {}", program, status));
  }
  return text.str();
}

}  // namespace cookbook
