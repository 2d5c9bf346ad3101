// SPDX-License-Identifier: MIT
// A product of matrices has the same bits on the CPU and on a GPU: of every level of chapters 5, 6
// and 8, at a size that no tile divides, against products.txt. On a GPU, COOKBOOK_WRITE_PRODUCTS
// names a file to write instead.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "common/harness/run/process.hpp"
#include "common/harness/verdict/check.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/devices.hpp"
#endif

namespace cookbook {

Chapter chapter_5_entry();
Chapter chapter_6_entry();
Chapter chapter_8_entry();

namespace {

const Size kSize = {201, 136, 200};

// By level: a hash of its output.
std::map<std::string, std::string> products(const Chapter& chapter) {
  std::map<std::string, std::string> found;
  for (const Ladder& ladder : chapter.ladders) {
    if (ladder.dims.size() != kSize.size()) continue;
    Instance instance(ladder, kSize, InputKind::normal, 7);
    for (const LevelEntry& level : ladder.levels) {
      if (!level.supports(instance.problem(), device_info())) continue;
      instance.reset();
      try {
        level.prepare(instance.problem(), instance.pointers())(Stream{});
      } catch (const std::invalid_argument&) {  // a rule that supports() cannot see
        continue;
      }
      synchronize();
      found[fmt::format("{}/{}/{}", chapter.program(), ladder.name, level.name)] =
          fmt::format("{:016x}", instance.output_hash());
    }
  }
  return found;
}

TEST(SameBits, ProductsAreThoseOfAGpu) {
#if COOKBOOK_SIMT
  simt::set_sm_count(132);  // levels divide work among as many
#endif
  if (device_info().cc() != 90) GTEST_SKIP() << "products.txt is of an H200";
  std::map<std::string, std::string> found;
  for (const Chapter& chapter : {chapter_5_entry(), chapter_6_entry(), chapter_8_entry()}) {
    found.merge(products(chapter));
  }
#if COOKBOOK_SIMT
  simt::set_sm_count(0);
#endif
  if (const char* file = std::getenv("COOKBOOK_WRITE_PRODUCTS")) {
    std::ofstream out(file);
    for (const auto& [level, hash] : found) out << level << " " << hash << "\n";
    return;
  }
  std::ifstream in(source_path("tests/tensor_cores/products.txt"));
  std::map<std::string, std::string> listed;
  for (std::string level, hash; in >> level >> hash;) listed[level] = hash;
  EXPECT_EQ(found, listed);
}

}  // namespace
}  // namespace cookbook
