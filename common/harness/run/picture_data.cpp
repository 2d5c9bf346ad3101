// SPDX-License-Identifier: MIT
#include "common/harness/run/picture_data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/harness/run/options.hpp"

namespace cookbook {

PictureData::PictureData(const std::string& kind, int chapter) {
  set("schema", 1).set("kind", kind).set("chapter", chapter);
}

PictureData& PictureData::add(const std::string& key, const std::string& value) {
  members_ += fmt::format("{}\"{}\": {}", members_.empty() ? "" : ", ", key, value);
  return *this;
}

PictureData& PictureData::set(const std::string& key, double value) {
  return add(key, fmt::format("{}", value));
}

PictureData& PictureData::set(const std::string& key, const std::string& value) {
  return add(key, "\"" + value + "\"");
}

PictureData& PictureData::set(const std::string& key, const std::vector<double>& values) {
  return add(key, fmt::format("[{}]", fmt::join(values, ", ")));
}

PictureData& PictureData::set(const std::string& key, const std::vector<PictureData>& objects) {
  std::string list;
  for (const PictureData& object : objects) list += (list.empty() ? "\n" : ",\n") + object.json();
  return add(key, "[" + list + "]");
}

void PictureData::write(const std::string& file) const { write_file(file, json() + "\n"); }

}  // namespace cookbook
