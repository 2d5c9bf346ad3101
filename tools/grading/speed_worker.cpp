// SPDX-License-Identifier: MIT
// The process of a submission that is timed, in a sandbox: it reads orders from standard input, and
// answers on standard output. Tensors lie in memory that the grader shares with it.
//
//   {"do": "open", "size": [...], "fd": 7, "bytes": N}  prepares the plan: no input exists yet
//   {"do": "load"}   inputs from the shared memory to the device; outputs are poisoned
//   {"do": "go"}     runs the plan once: {"us", "whole_us"}, as in Bracket
//   {"do": "fetch"}  outputs to the shared memory: {"outside": "name"} as in Buffers, {"changed":
//                    "name"} of an input that is another than loaded
//   {"do": "clock"}  {"mhz", "max_mhz"}
//
// An order that fails is answered with {"error": "why"}. In this process the submission's own code
// runs, so nothing that it says is believed without the grader's own clock (speed.hpp).
#include <sys/mman.h>

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/grading/buffers.hpp"
#include "tools/grading/entry.hpp"
#include "tools/grading/gpu_clock.hpp"
#include "tools/grading/message.hpp"

namespace cookbook::grading {
namespace {

using nlohmann::json;

class Session {
 public:
  json obey(const json& order) {
    const std::string what = order.at("do");
    if (what == "open") return open(order);
    if (what == "clock") {
      const SmClock clock = sm_clock();
      return {{"mhz", clock.mhz}, {"max_mhz", clock.max_mhz}};
    }
    if (!run_) throw std::runtime_error("nothing is open");
    if (what == "load") {
      forget_persisting_lines();
      buffers_->fill([&](std::size_t i) { return at(i); });
      synchronize();
      loaded_ = hashes();
      return json::object();
    }
    if (what == "go") {
      const Bracket bracket = time_cold([&] { run_(Stream{}); });
      return {{"us", bracket.us}, {"whole_us", bracket.whole_us}};
    }
    if (what == "fetch") {
      std::string changed;
      const std::vector<std::uint64_t> now = hashes();
      for (std::size_t i = 0; i < buffers_->specs().size(); ++i) {
        const TensorSpec& spec = buffers_->specs()[i];
        if (spec.role != Role::input) buffers_->memory(i).copy_to_host(at(i), spec.bytes());
        if (now[i] != loaded_[i] && changed.empty()) changed = spec.name;
      }
      return {{"outside", buffers_->written_outside()}, {"changed", changed}};
    }
    throw std::runtime_error("no such order");
  }

 private:
  json open(const json& order) {
    const Entry submitted = entry();
    problem_ = submitted.make_problem(order.at("size").get<Size>(), Variant{});
    const std::size_t bytes = order.at("bytes");
    shared_ =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, order.at("fd").get<int>(), 0);
    if (shared_ == MAP_FAILED) throw std::runtime_error("no shared memory");
    if (const Support support = submitted.level.supports(*problem_, device_info()); !support) {
      throw std::runtime_error("unsupported: " + support.reason);
    }
    buffers_.emplace(problem_->tensors(), Variant{});
    run_ = submitted.level.prepare(*problem_, buffers_->pointers());
    synchronize();
    return json::object();
  }
  // Of what a run may not change; 0 for the rest.
  std::vector<std::uint64_t> hashes() {
    std::vector<std::uint64_t> found;
    for (std::size_t i = 0; i < buffers_->specs().size(); ++i) {
      const TensorSpec& spec = buffers_->specs()[i];
      found.push_back(
          spec.role == Role::input ? hash_bytes(buffers_->memory(i).data(), spec.bytes()) : 0);
    }
    return found;
  }
  // Where a tensor lies in the shared memory: one after the other.
  std::byte* at(std::size_t tensor) const {
    auto* place = static_cast<std::byte*>(shared_);
    for (std::size_t i = 0; i < tensor; ++i) place += buffers_->specs()[i].bytes();
    return place;
  }

  std::shared_ptr<AnyProblem> problem_;
  std::optional<Buffers> buffers_;
  void* shared_ = nullptr;
  std::vector<std::uint64_t> loaded_;
  std::function<void(Stream)> run_;
};

}  // namespace
}  // namespace cookbook::grading

int main() {
  using namespace cookbook::grading;
  Session session;
  return serve(1 << 16, [&](const nlohmann::json& order, const Pipes&) -> nlohmann::json {
    try {
      return session.obey(order);
    } catch (const std::exception& error) {
      return {{"error", error.what()}};
    }
  });
}
