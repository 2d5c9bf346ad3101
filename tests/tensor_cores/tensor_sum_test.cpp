// SPDX-License-Identifier: MIT
// What the SIMT backend's tensor cores add up, against what GPUs returned: the committed results of
// cases.hpp, and, where COOKBOOK_TENSOR_VECTORS names their folder, the public vectors of eight
// GPUs (north-numerical-computing/MATLAB-tensor-core, model_validation).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "common/harness/run/process.hpp"
#include "tests/tensor_cores/cases.hpp"

namespace cookbook::tensor_cores {
namespace {

const Form* find_form(const std::string& name) {
  for (const Form& form : kForms) {
    if (form.name == name) return &form;
  }
  return nullptr;
}

int find_kind(const std::string& name) {
  for (int kind = 0; kind < kKindCount; ++kind) {
    if (kKinds[kind] == name) return kind;
  }
  return -1;
}

// Calls visit(form, kind, results) for each form and kind of a file that `tensor-cores` wrote.
template <class Visit>
void for_each_recorded(const std::string& file, const Visit& visit) {
  std::ifstream in(source_path("tests/tensor_cores/" + file));
  ASSERT_TRUE(in.is_open()) << file;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string forms, kind;
    words >> forms >> kind >> std::hex;
    std::array<uint32_t, 128> results{};
    for (uint32_t& each : results) words >> each;
    ASSERT_TRUE(words) << line.substr(0, 80);
    std::istringstream names(forms);
    for (std::string name; std::getline(names, name, ',');) {
      const Form* const form = find_form(name);
      ASSERT_NE(form, nullptr) << name;
      ASSERT_GE(find_kind(kind), 0) << kind;
      visit(*form, static_cast<Kind>(find_kind(kind)), results);
    }
  }
}

TEST(TensorSum, AllRecordedResultsOfHopperAreEqual) {
  std::map<std::string, int> kinds_of_form;
  for_each_recorded("hopper.txt", [&](const Form& form, Kind kind, const auto& results) {
    ++kinds_of_form[std::string(form.name)];
    EXPECT_EQ(modelled(form, draw(form, kind, 0), 90), results)
        << form.name << ", " << kKinds[static_cast<int>(kind)];
  });
  EXPECT_EQ(kinds_of_form.size(), std::size(kForms));
  for (const auto& [form, kinds] : kinds_of_form) EXPECT_EQ(kinds, kKindCount) << form;
}

// A rule that is wrong in one number is seen: no other fits what was recorded.
TEST(TensorSum, OtherRulesDoNotFit) {
  const auto misses = [](const Form& asked, const simt::SumRule& rule) {
    int count = 0;
    for_each_recorded("hopper.txt", [&](const Form& form, Kind kind, const auto& results) {
      if (form.name != asked.name) return;
      const Case drawn = draw(form, kind, 0);
      std::vector<float> a, b;
      for (const uint32_t bits : drawn.a) a.push_back(value_of(bits, layout_of(form.a)));
      for (const uint32_t bits : drawn.b) b.push_back(value_of(bits, layout_of(form.b)));
      for (size_t i = 0; i < 128; ++i) {
        const float c = value_of(drawn.c[i], kSingle);
        count += simt::tensor_sum(rule, form.a, form.b, a.data() + i / 8 * form.k, b.data() + i % 8,
                                  8, form.k, c, false) != results[i];
      }
    });
    return count;
  };
  const Form& bf16 = *find_form("wgmma.m64n8k16.f32.bf16");
  const Form& e5m2 = *find_form("wgmma.m64n8k32.f32.e5m2");
  EXPECT_EQ(misses(bf16, {16, 25, 23}), 0);
  EXPECT_EQ(misses(e5m2, {32, 13, 13}), 0);
  for (const simt::SumRule& rule : {simt::SumRule{8, 25, 23}, simt::SumRule{16, 24, 23},
                                    simt::SumRule{16, 26, 23}, simt::SumRule{16, 25, 22}}) {
    EXPECT_GT(misses(bf16, rule), 0) << rule.terms << " " << rule.fraction_bits;
  }
  for (const simt::SumRule& rule : {simt::SumRule{16, 13, 13}, simt::SumRule{32, 12, 13},
                                    simt::SumRule{32, 14, 13}, simt::SumRule{32, 13, 23}}) {
    EXPECT_GT(misses(e5m2, rule), 0) << rule.terms << " " << rule.fraction_bits;
  }
}

std::vector<std::vector<float>> rows_of(const std::string& file) {
  std::ifstream in(file);
  std::vector<std::vector<float>> rows;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<float> row;
    for (std::string word; words >> word;) {  // hexadecimal, or in binary digits
      row.push_back(std::bit_cast<float>(
          static_cast<uint32_t>(std::stoul(word, nullptr, word.size() > 8 ? 2 : 16))));
    }
    if (!row.empty()) rows.push_back(row);
  }
  return rows;
}

struct PublicGpu {
  const char* name;
  int cc;
};

TEST(TensorSum, PublicVectorsAreEqual) {
  const char* const root = std::getenv("COOKBOOK_TENSOR_VECTORS");
  if (root == nullptr) GTEST_SKIP() << "COOKBOOK_TENSOR_VECTORS names no folder";
  const std::map<std::string, Format> formats = {{"bf16", Format::bf16},
                                                 {"fp16", Format::f16},
                                                 {"tf32", Format::tf32},
                                                 {"E4M3", Format::e4m3},
                                                 {"E5M2", Format::e5m2}};
  int files = 0;
  for (const PublicGpu& gpu : {PublicGpu{"V100", 70},
                               {"A2", 86},
                               {"A100", 80},
                               {"Ada", 89},
                               {"L40S", 89},
                               {"H100", 90},
                               {"H200", 90},
                               {"B200", 100}}) {
    for (const auto& [folder, format] : formats) {
      for (const bool half : {false, true}) {
        const auto path = [&](const std::string& what, const std::string& type) {
          return fmt::format("{0}/{1}/{2}/{3}_{1}_{4}.txt", root, gpu.name, folder, what, type);
        };
        const auto d = rows_of(path("d", half ? "fp16" : "fp32"));
        if (d.empty()) continue;
        ++files;
        const auto a = rows_of(path("a", folder)), b = rows_of(path("b", folder));
        const auto c = rows_of(path("c", "fp32"));
        ASSERT_EQ(a.size(), d.size());
        const bool fp8 = format == Format::e4m3 || format == Format::e5m2;
        // Of fp8 with fp32 results on Hopper they hold what its own unit returns, without C.
        const bool own_unit = fp8 && gpu.cc == 90 && !half;
        const simt::SumRule rule = simt::sum_rule(format, own_unit, gpu.cc);
        int wrong = 0;
        for (size_t i = 0; i < d.size(); ++i) {
          float sum = own_unit ? 0 : c[i][0];
          if (half) sum = static_cast<float>(__half(sum));
          const uint32_t bits = simt::tensor_sum(rule, format, format, a[i].data(), b[i].data(), 1,
                                                 static_cast<int>(a[i].size()), sum, half);
          const float got = half ? value_of(bits, kHalf) : std::bit_cast<float>(bits);
          wrong += std::bit_cast<uint32_t>(got) != std::bit_cast<uint32_t>(d[i][0]);
        }
        EXPECT_EQ(wrong, 0) << gpu.name << " " << folder << (half ? " fp16" : " fp32") << ", of "
                            << d.size();
      }
    }
  }
  EXPECT_EQ(files, 48) << "the folder does not hold all of them";
}

}  // namespace
}  // namespace cookbook::tensor_cores
