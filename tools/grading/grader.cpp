// SPDX-License-Identifier: MIT
// The grader of an assignment: it holds the sizes, the seeds, the inputs, the reference, the claims
// and the verdict. The submission runs in another process (worker.cpp), which gets inputs and
// returns outputs and counts.
//
//   grader PLAN.json OUT.json WORKER [ARGUMENT...]
//   grader --speed PLAN.json OUT.json   PLAN and OUT as in speed.hpp
//
// PLAN.json: {"public_sizes": [[1, 1], ...], "hidden_sizes": ..., "trace_sizes": ...,
//             "hidden_trace_sizes": ..., "seeds": [7, ...], "seconds": 10}; with "drop_bad_sizes":
//             true, hidden sizes that the problem cannot have are left out
// OUT.json:  {"checks": [{"step", "what", "hidden", "size", "passed", "property",
//              "reason"}, ...],
//             "complete": true}
// `reason` may name hidden values: it is for the teacher. `property` may be shown to anyone.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tools/grading/child.hpp"
#include "tools/grading/entry.hpp"
#include "tools/grading/speed.hpp"
#include "common/harness/check.hpp"
#include "common/harness/claims_check.hpp"
#include "common/harness/options.hpp"
#include "common/harness/console.hpp"

namespace cookbook::grading {
namespace {

using nlohmann::json;

/// What went wrong, in words that name no size, index, value or line: a submission could choose the
/// line to tell a size.
std::string property_of(const std::string& reason) {
  struct Words {
    const char *part, *property;
  };
  static constexpr Words kWords[] = {
      {"was never written", "an output element is never written"},
      {"is padding between rows", "the padding between the rows of the output is written"},
      {"guard band", "memory outside a buffer is written"},
      {"was changed", "an input is changed"},
      {"race", "two threads access the same bytes, one of them writes, and no barrier orders them"},
      {"uninitialised", "memory is read that nobody has written"},
      {"out of bounds", "an access is out of bounds"},
      {"out-of-bounds", "an access is out of bounds"},
      {"misaligned", "an access is misaligned"},
      {"runs on the same inputs differ", "two runs on the same inputs differ"},
      {"in host code", "host code crashes, or touches device memory"},
      {"no thread has finished", "the kernel does not end"},
      {"no progress", "the kernel does not end"},
      {"refused", "the device cannot launch the kernel"},
      {": got ", "the result is wrong"},
      {"unsupported", "this problem is said to be unsupported"},
  };
  for (const Words& words : kWords) {
    if (reason.find(words.part) != std::string::npos) return words.property;
  }
  return "the kernel fails";
}

simt::Trace trace_of(const json& from) {
  simt::Trace trace;
  for (const json& entry : from.at("sites")) {
    simt::AccessSite site;
    entry.at("kernel").get_to(site.kernel);
    entry.at("file").get_to(site.file);
    entry.at("line").get_to(site.line);
    site.space = entry.at("space").get<simt::Space>();
    site.op = entry.at("op").get<simt::Op>();
    entry.at("buffer").get_to(site.buffer);
    entry.at("requests").get_to(site.requests);
    entry.at("sectors").get_to(site.sectors);
    entry.at("ideal_sectors").get_to(site.ideal_sectors);
    entry.at("wavefronts").get_to(site.wavefronts);
    entry.at("ideal_wavefronts").get_to(site.ideal_wavefronts);
    entry.at("bytes").get_to(site.bytes);
    trace.sites.push_back(std::move(site));
  }
  return trace;
}

/// One task: a problem, the inputs of each run of one plan, and how blocks and copies are ordered.
struct Task {
  const char* step = "";
  bool hidden = false;
  Size size;
  Variant variant{};
  std::vector<Draw> draws;
  int schedule = 0, order = 0;
  bool traced = true;
  bool claims = false;
  std::string what;
};

class Grader {
 public:
  Grader(json plan, char** worker_command)
      : plan_(std::move(plan)), command_(worker_command), teacher_(entry()) {
    ladder_.name = "graded";
    ladder_.make_problem = teacher_.make_problem;
  }

  json grade();

 private:
  std::vector<Size> sizes(const char* of) const { return plan_.at(of).get<std::vector<Size>>(); }
  std::uint64_t seed(std::size_t i) const {
    const auto& seeds = plan_.at("seeds");
    return seeds.at(i % seeds.size()).get<std::uint64_t>();
  }
  void note(const Task& task, const std::string& what, const std::string& reason,
            const char* step = nullptr) {
    json check{{"step", step ? step : task.step},
               {"what", what},
               {"hidden", task.hidden},
               {"size", task.size},
               {"passed", reason.empty()},
               {"reason", reason},
               {"property", reason.empty() ? "" : property_of(reason)}};
    // A race is found wherever there are many threads: once is enough.
    if (step && std::find(checks_.begin(), checks_.end(), check) != checks_.end()) return;
    checks_.push_back(std::move(check));
  }
  bool teacher_skips(Instance& instance) const;
  std::string outcome_of(const Task& task, Instance& instance, const json& answer);
  void run(const Task& task);
  void check_claims(const Task& task, const AnyProblem& problem, const json* trace);
  bool any_passed(const std::string& step) const {
    return std::any_of(checks_.begin(), checks_.end(), [&](const json& check) {
      return check.at("step") == step && check.at("passed").get<bool>();
    });
  }

  json plan_;
  char** command_;
  Entry teacher_;
  Ladder ladder_;
  std::unique_ptr<Child> worker_;
  json checks_ = json::array();
  bool hung_ = false;
};

// Whether the teacher's own file does not support this layout either.
bool Grader::teacher_skips(Instance& instance) const {
  if (!teacher_.level.supports(instance.problem(), device_info())) return true;
  try {
    teacher_.level.prepare(instance.problem(), instance.pointers());
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

// Compares what the runs of a task have left; the first thing that is wrong, or nothing.
std::string Grader::outcome_of(const Task& task, Instance& instance, const json& answer) {
  if (answer.at("end") != "done") return answer.at("reason").get<std::string>();
  const json& result = answer.at("result");
  if (result.contains("skipped")) {
    return "unsupported: " + result.at("skipped").get<std::string>();
  }
  const json& runs = result.at("runs");
  std::vector<std::uint64_t> hashes;
  for (std::size_t i = 0; i < runs.size() && i < task.draws.size(); ++i) {
    const Draw& draw = task.draws[i];
    if (instance.drawn() != draw) instance.redraw(draw);
    const json& tensors = runs[i].at("tensors");
    for (const TensorSpec& spec : instance.problem().tensors()) {
      const auto& bytes = tensors.at(spec.name).get_binary();
      if (bytes.size() != spec.bytes()) return "an answer has the wrong size";
      // Device memory is host memory here.
      std::memcpy(instance.pointers().get<std::uint8_t>(spec.name), bytes.data(), bytes.size());
    }
    const std::string outside = runs[i].at("outside");
    if (!outside.empty()) return "wrote outside `" + outside + "`: guard band changed";
    const std::string inputs = draw.kind == InputKind::normal
                                   ? ""
                                   : fmt::format("{} inputs: ", input_kind_name(draw.kind));
    const Instance::Comparison comparison = instance.compare();
    const std::uint64_t hash = instance.output_hash();
    if (!comparison.ok) {
      return (i > 0 && hashes.size() == i ? "right on the first inputs only: " : "") + inputs +
             comparison.message;
    }
    for (std::size_t before = 0; before < i; ++before) {
      if (task.draws[before] == draw && hashes[before] != hash && teacher_.level.same_every_run) {
        return "two runs on the same inputs differ";
      }
    }
    hashes.push_back(hash);
    instance.reset();
  }
  if (result.contains("error")) return result.at("error").get<std::string>();
  if (runs.size() != task.draws.size()) return "runs are missing from the answer";
  return "";
}

void Grader::check_claims(const Task& task, const AnyProblem& problem, const json* trace) {
  const simt::Trace counted = trace ? trace_of(*trace) : simt::Trace{};
  for (const Claim& claim : mechanism(teacher_.level.claims(problem))) {
    const ClaimResult result = check_on_trace(claim, counted);
    const bool holds = trace && result.holds.value_or(false);
    json check{{"step", "claims"},
               {"what", claim.text},
               {"hidden", task.hidden},
               {"size", task.size},
               {"passed", holds},
               {"reason", holds   ? ""
                          : trace ? "measured " + result.measured
                                  : "not counted: the run failed"}};
    check["property"] = holds ? "" : "the claim does not hold";
    checks_.push_back(std::move(check));
  }
}

void Grader::run(const Task& task) {
  if (hung_) {
    note(task, task.what, "not run: a kernel before it did not end");
    return;
  }
  Instance instance(ladder_, task.size, task.draws.front().kind, task.draws.front().seed,
                    task.variant);
  if (teacher_skips(instance)) return;  // nobody has to support it
  json runs = json::array();
  for (const Draw& draw : task.draws) {
    if (instance.drawn() != draw) instance.redraw(draw);
    json inputs = json::object();
    for (const HostTensor& tensor : instance.tensors().list) {
      if (tensor.spec.role == Role::output) continue;
      inputs[tensor.spec.name] = bytes_value(tensor.storage.data(), tensor.storage.size());
    }
    runs.push_back(std::move(inputs));
  }
  instance.redraw(task.draws.front());
  json answer;
  try {
    if (!worker_) worker_ = std::make_unique<Child>(command_);
    answer = worker_->ask({{"size", task.size},
                           {"pitch", task.variant.extra_pitch},
                           {"shift", task.variant.misalign_elements},
                           {"schedule", task.schedule},
                           {"order", task.order},
                           {"order_seed", seed(0)},
                           {"traced", task.traced},
                           {"seconds", plan_.at("seconds")},
                           {"runs", std::move(runs)}});
    note(task, task.what, outcome_of(task, instance, answer));
  } catch (const std::exception& error) {
    // The process is gone, or has sent what no honest one sends.
    worker_.reset();
    answer = {{"end", "crashed"}};
    note(task, task.what, std::string("the submission's process failed: ") + error.what());
  }
  hung_ = answer.at("end") == "hung";
  const json* trace = nullptr;
  if (answer.contains("result") && answer["result"].is_object() &&
      answer["result"].contains("trace")) {
    trace = &answer["result"]["trace"];
  }
  if (trace) {
    for (const json& finding : trace->at("findings")) {
      note(task, "the tracer finds no fault", finding.at("message"), "races");
    }
  }
  if (task.claims) check_claims(task, instance.problem(), trace);
}

std::string name_of(const Size& size, bool hidden) {
  return hidden ? "a hidden size" : size_text(size);
}

json Grader::grade() {
  const auto work = [this](const Size& size) {
    const auto problem = ladder_.make_problem(size, {});
    return problem->bytes() + problem->flops();
  };
  if (plan_.value("drop_bad_sizes", false)) {
    for (const char* of : {"hidden_sizes", "hidden_trace_sizes"}) {
      json kept = json::array();
      for (const Size& size : sizes(of)) {
        try {
          ladder_.make_problem(size, {});
          kept.push_back(size);
        } catch (const BadSize&) {
        }
      }
      plan_[of] = std::move(kept);
    }
  }
  const std::vector<Size> traced = sizes("trace_sizes"),
                          hidden_traced = sizes("hidden_trace_sizes");
  const double budget = work(traced.front());
  for (const bool hidden : {false, true}) {
    const char* step = hidden ? "hidden_sizes" : "public_sizes";
    if (hidden && !any_passed("public_sizes")) break;
    auto of_step = sizes(step);
    std::stable_sort(of_step.begin(), of_step.end(),
                     [&](const Size& a, const Size& b) { return work(a) < work(b); });
    for (std::size_t i = 0; i < of_step.size(); ++i) {
      const Draw integers{InputKind::integers, seed(2 * i)},
          normal{InputKind::normal, seed(2 * i + 1)};
      run({.step = step,
           .hidden = hidden,
           .size = of_step[i],
           .draws = {integers, normal, integers},
           .traced = work(of_step[i]) <= budget,
           .what = name_of(of_step[i], hidden)});
    }
  }
  if (any_passed("public_sizes")) {
    // The largest public size that is cheap, for layouts.
    Size layout_size = traced.front();
    double largest = 0;
    for (const Size& size : sizes("public_sizes")) {
      if (work(size) <= budget / 4 && work(size) > largest) {
        layout_size = size;
        largest = work(size);
      }
    }
    for (const InputKind kind : all_input_kinds()) {
      run({.step = "inputs",
           .size = layout_size,
           .draws = {{kind, seed(0)}},
           .traced = false,
           .what = fmt::format("{}, {} inputs", size_text(layout_size), input_kind_name(kind))});
    }
    for (const Variant& variant : graded_layouts()) {
      run({.step = "layouts",
           .size = layout_size,
           .variant = variant,
           .draws = {{InputKind::normal, seed(1)}},
           .what = fmt::format("{}, rows {} elements longer, bases {} elements further",
                               size_text(layout_size), variant.extra_pitch,
                               variant.misalign_elements)});
    }
    const char* const schedules[] = {"asynchronous copies late, blocks in order",
                                     "asynchronous copies early, blocks in reverse order",
                                     "asynchronous copies and blocks in random order"};
    for (const int schedule : {0, 1, 2}) {
      run({.step = "schedules",
           .size = traced.front(),
           .draws = {{InputKind::integers, seed(2)}},
           .schedule = schedule,
           .order = schedule,
           .traced = false,
           .what = fmt::format("{}, {}", size_text(traced.front()), schedules[schedule])});
    }
    for (const bool hidden : {false, true}) {
      for (const Size& size : hidden ? hidden_traced : traced) {
        run({.step = "races",
             .hidden = hidden,
             .size = size,
             .draws = {{InputKind::normal, seed(3)}},
             .claims = true,
             .what = "right under the tracer at " + name_of(size, hidden)});
      }
    }
  }
  worker_.reset();
  return {{"checks", checks_}, {"complete", !hung_}};
}

int main_of(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "grader PLAN.json OUT.json WORKER [ARGUMENT...]\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  if (std::string(argv[1]) == "--speed") {
    const json found = time_submission(json::parse(std::ifstream(argv[2])), entry());
    write_file(argv[3], found.dump(1) + "\n");
    return 0;
  }
  const json plan = json::parse(std::ifstream(argv[1]));
  const json result = Grader(plan, argv + 3).grade();
  write_file(argv[2], result.dump(1) + "\n");
  return 0;
}

}  // namespace
}  // namespace cookbook::grading

int main(int argc, char** argv) {
  try {
    return cookbook::grading::main_of(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "grader: {}\n", error.what());
    return 1;
  }
}
