// SPDX-License-Identifier: MIT
// The data of a picture that a sidebar writes (docs/pictures.md), for sources that nvcc compiles:
// without the JSON library.
#pragma once

#include <string>
#include <vector>

namespace cookbook {

/// A JSON object that grows by its keys.
class PictureData {
 public:
  PictureData() = default;
  /// With the keys of a whole file: schema, kind and chapter.
  PictureData(const std::string& kind, int chapter);

  /// A number keeps all its digits.
  PictureData& set(const std::string& key, double value);
  /// Of a text without quotes, backslashes and line ends.
  PictureData& set(const std::string& key, const std::string& value);
  PictureData& set(const std::string& key, const std::vector<double>& values);
  PictureData& set(const std::string& key, const std::vector<PictureData>& objects);

  std::string json() const { return "{" + members_ + "}"; }
  /// Throws std::runtime_error where the file cannot be written.
  void write(const std::string& file) const;

 private:
  PictureData& add(const std::string& key, const std::string& value);
  std::string members_;
};

}  // namespace cookbook
