// SPDX-License-Identifier: MIT
// A GEMM has the same bits on the CPU and on a GPU: of every level of chapters 5, 6
// and 8, at a size that no tile divides, against gemms.txt. On a GPU, COOKBOOK_WRITE_GEMMS
// names a file to write instead.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/harness/contract/level.hpp"
#include "common/harness/run/process.hpp"
#include "common/harness/verdict/inputs.hpp"
#if COOKBOOK_SIMT
#include "common/backend/simt/runtime/devices.hpp"
#endif

namespace cookbook {

Chapter chapter_5_entry();
Chapter chapter_6_entry();
Chapter chapter_8_entry();

namespace {

const Size kSize = {201, 136, 200};

// FNV-1a, 64 bits (Fowler, Noll, Vo): harness hashes are of the backend's own.
void hash(std::uint64_t& sum, const std::vector<std::byte>& bytes) {
  for (const std::byte each : bytes) {
    sum = (sum ^ static_cast<std::uint64_t>(each)) * 0x100000001b3u;
  }
}

// The problem's tensors, drawn, and their copies on the device.
struct Drawn {
  Drawn(const AnyProblem& problem, InputKind kind) {
    for (const TensorSpec& spec : problem.tensors()) {
      HostTensor tensor(spec);
      if (spec.role != Role::output) draw(tensor, kind, 7);
      memory.push_back(std::make_unique<DeviceMemory>(spec.bytes(), spec.name.c_str()));
      memory.back()->copy_from_host(tensor.storage.data(), spec.bytes());
      pointers.by_name[spec.name] = memory.back()->data();
      tensors.push_back(std::move(tensor));
    }
  }
  std::vector<HostTensor> tensors;
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  DevicePointers pointers;
};

// By level: a hash of what it makes of three kinds of inputs. Outputs are bf16, so most of them
// hide the last bits of a sum; those of numbers that cancel do not.
std::map<std::string, std::string> gemms(const Chapter& chapter) {
  std::map<std::string, std::string> found;
  for (const Ladder& ladder : chapter.ladders) {
    if (ladder.dims.size() != kSize.size()) continue;
    const auto problem = ladder.make_problem(kSize, {});
    for (const LevelEntry& level : ladder.levels) {
      if (!level.supports(*problem, device_info())) continue;
      std::uint64_t sum = 0xcbf29ce484222325u;
      try {
        for (const InputKind kind : {InputKind::normal, InputKind::wide, InputKind::cancellation}) {
          Drawn drawn(*problem, kind);
          level.prepare(*problem, drawn.pointers)(Stream{});
          synchronize();
          for (std::size_t i = 0; i < drawn.tensors.size(); ++i) {
            HostTensor& tensor = drawn.tensors[i];
            if (tensor.spec.role != Role::output) continue;
            drawn.memory[i]->copy_to_host(tensor.storage.data(), tensor.spec.bytes());
            hash(sum, tensor.storage);
          }
        }
      } catch (const std::invalid_argument&) {  // a rule that supports() cannot see
        continue;
      }
      found[fmt::format("{}/{}/{}", chapter.program(), ladder.name, level.name)] =
          fmt::format("{:016x}", sum);
    }
  }
  return found;
}

TEST(SameBits, GemmsAreThoseOfAGpu) {
#if COOKBOOK_SIMT
  simt::set_sm_count(132);  // levels divide work among as many
#endif
  if (device_info().cc() != 90) GTEST_SKIP() << "gemms.txt is of an H200";
  std::map<std::string, std::string> found;
  for (const Chapter& chapter : {chapter_5_entry(), chapter_6_entry(), chapter_8_entry()}) {
    found.merge(gemms(chapter));
  }
#if COOKBOOK_SIMT
  simt::set_sm_count(0);
#endif
  if (const char* file = std::getenv("COOKBOOK_WRITE_GEMMS")) {
    std::ofstream out(file);
    for (const auto& [level, hash] : found) out << level << " " << hash << "\n";
    return;
  }
  std::ifstream in(source_path("tests/tensor_cores/gemms.txt"));
  std::map<std::string, std::string> listed;
  for (std::string level, hash; in >> level >> hash;) listed[level] = hash;
  EXPECT_EQ(found, listed);
}

}  // namespace
}  // namespace cookbook
