// SPDX-License-Identifier: MIT
// A folder of a test's own, with a name that no other process has, removed when the test ends.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace cookbook {

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "cookbook-test.XXXXXX") {
    if (!mkdtemp(path_.data())) throw std::runtime_error("cannot create a folder like " + path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& file) const { return path_ + "/" + file; }

 private:
  std::string path_;
};

}  // namespace cookbook
