// SPDX-License-Identifier: MIT
#include "common/harness/run/process.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <stdexcept>

extern char** environ;

namespace cookbook {

int run_program(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::fflush(stdout);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ);
  int status = 0;
  if (error != 0 || waitpid(child, &status, 0) < 0) {
    throw std::runtime_error(fmt::format("cannot start {}: {}", arguments[0],
                                         std::strerror(error != 0 ? error : errno)));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string traced_program(const std::string& program) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const std::filesystem::path& folder :
       {self.parent_path(), self.parent_path().parent_path() / "simt"}) {
    const auto traced = folder / (program + "-traced");
    if (std::filesystem::exists(traced, error)) return traced;
  }
  return {};
}

std::string source_path(const std::string& file) { return COOKBOOK_SOURCE_DIR "/" + file; }

std::string short_path(const std::string& file) {
  const std::string root = source_path("");
  if (file.starts_with(root)) return file.substr(root.size());
  return std::filesystem::path(file).filename();
}

std::string now_utc() {
  char text[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

std::optional<std::string> source_commit() {
  if (const char* given = std::getenv("COOKBOOK_COMMIT")) return given;
  const std::string command =
      "git -C '" COOKBOOK_SOURCE_DIR "' describe --always --dirty --abbrev=12 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return std::nullopt;
  char text[128] = {};
  const bool read = std::fgets(text, sizeof text, pipe) != nullptr;
  pclose(pipe);
  if (!read) return std::nullopt;
  std::string commit = text;
  while (!commit.empty() && commit.back() == '\n') commit.pop_back();
  return commit;
}

}  // namespace cookbook
