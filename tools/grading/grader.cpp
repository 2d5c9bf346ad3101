// SPDX-License-Identifier: MIT
// The grader of an assignment: it holds the sizes, the seeds, the inputs, the reference, the claims
// and the verdict. The submission runs in another process (worker.cpp), which gets inputs and
// returns outputs and counts.
//
//   grader PLAN.json OUT.json WORKER [ARGUMENT...]
//   grader --speed PLAN.json OUT.json   PLAN and OUT as in speed.hpp
//
// PLAN.json: {"public_sizes": [[1, 1], ...], "hidden_sizes": ..., "trace_sizes": ...,
//             "hidden_trace_sizes": ..., "seeds": [7, ...], "seconds": 10, "file": "a.cuh",
//             "tags": {"tag": {"a.cuh": [LINE, ...]}}}; with "drop_bad_sizes": true, hidden sizes
//             that the problem cannot have are left out. "tags": lines that count as marked;
//             with "/usr/", also what the standard library's code accesses. "capability": of the
//             device, such as 100; 0 is 90
// OUT.json:  {"checks": [{"step", "what", "hidden", "size", "passed", "property",
//              "fault", "reason"}, ...],
//             "complete": true}; checks of claims have "claim", its number, and "distance", how
//             far it is from holding (distance_of), and of a ratio "bytes_per_request", to be
//             compared with those of another text, and the "line" of the fewest
// `reason` may name hidden values: it is for the teacher. `property`, which says no more than
// `fault`, may be shown to anyone.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/backend/simt/runtime/devices.hpp"
#include "tools/grading/child.hpp"
#include "tools/grading/entry.hpp"
#include "tools/grading/speed.hpp"
#include "tools/grading/trace_json.hpp"
#include "common/harness/verdict/acceptance.hpp"
#include "common/harness/verdict/claims_check.hpp"
#include "common/harness/run/options.hpp"
#include "common/harness/run/plan.hpp"
#include "common/harness/report/console.hpp"

namespace cookbook::grading {
namespace {

using nlohmann::json;

/// What went wrong, in words that name no size, index, value or line: a submission could choose the
/// line to tell a size.
std::string property_of(Fault fault) {
  switch (fault) {
    case Fault::none: return "";
    case Fault::wrong_result: return "the result is wrong";
    case Fault::unwritten: return "an output element is never written";
    case Fault::padding_written: return "the padding between the rows of the output is written";
    case Fault::outside_written: return "memory outside a buffer is written";
    case Fault::input_changed: return "an input is changed";
    case Fault::runs_differ: return "two runs on the same inputs differ";
    case Fault::race:
      return "two threads access the same bytes, one of them writes, and no barrier orders them";
    case Fault::uninitialised: return "memory is read that nobody has written";
    case Fault::out_of_bounds: return "an access is out of bounds";
    case Fault::misaligned: return "an access is misaligned";
    case Fault::launch_refused:
    case Fault::shared_memory_refused:
    case Fault::residency_refused: return "the device cannot launch the kernel";
    case Fault::no_progress:
    case Fault::hang: return "the kernel does not end";
    case Fault::host_crash: return "host code crashes, or touches device memory";
    case Fault::unsupported: return "this problem is said to be unsupported";
    case Fault::false_claim:
    case Fault::not_counted: return "the claim does not hold";
    default: return "the kernel fails";
  }
}

// Of a submission's messages: what is longer, or more, is left out.
constexpr std::size_t kMostText = 2000, kMostChecks = 2000, kMostFindings = 40;

/// What is written of the checks, whole or not at all. A message may not be UTF-8.
void write_checks(const std::string& path, const json& checks) {
  write_file(path + ".partial", checks.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
  std::filesystem::rename(path + ".partial", path);
}

/// One task: runs of one plan, and what they count for.
struct Task {
  const char* step = "";
  bool hidden = false;
  AcceptanceRun run;
  bool traced = true;
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

  /// Gets what is known so far, after each step: it counts where the time limit ends the rest.
  std::function<void(const json&)> keep = [](const json&) {};

 private:
  std::vector<Size> sizes(const char* of) const { return plan_.at(of).get<std::vector<Size>>(); }
  std::vector<std::uint64_t> seeds() const {
    return plan_.at("seeds").get<std::vector<std::uint64_t>>();
  }
  void note(const Task& task, const char* step, const std::string& what, const CheckResult& check,
            const json& more = json::object()) {
    if (checks_.size() > kMostChecks) return;
    json noted{{"step", step},
               {"what", what},
               {"hidden", task.hidden},
               {"size", task.run.size},
               {"passed", check.fault == Fault::none},
               {"fault", fault_name(check.fault)},
               {"reason", check.reason.substr(0, kMostText)},
               {"property", property_of(check.fault)}};
    noted.update(more);
    // A race is found wherever there are many threads: once is enough.
    if (std::find(checks_.begin(), checks_.end(), noted) != checks_.end()) return;
    checks_.push_back(std::move(noted));
  }
  bool teacher_skips(Instance& instance) const;
  CheckResult outcome_of(const Task& task, Instance& instance, const json& answer);
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

// Compares what the runs of a task have left: the first fault, or none.
CheckResult Grader::outcome_of(const Task& task, Instance& instance, const json& answer) {
  const CheckResult ended = answer.at("check");
  if (ended.fault != Fault::none) return ended;
  const std::vector<Draw>& draws = task.run.draws;
  const json& result = answer.at("result");
  const json& runs = result.at("runs");
  std::vector<std::uint64_t> hashes;
  for (std::size_t i = 0; i < runs.size() && i < draws.size(); ++i) {
    const Draw& draw = draws[i];
    if (instance.drawn() != draw) instance.redraw(draw);
    const json& tensors = runs[i].at("tensors");
    for (const TensorSpec& spec : instance.problem().tensors()) {
      const auto& bytes = tensors.at(spec.name).get_binary();
      if (bytes.size() != spec.bytes()) return {Fault::no_answer, "an answer has the wrong size"};
      // Device memory is host memory here.
      std::memcpy(instance.pointers().get<std::uint8_t>(spec.name), bytes.data(), bytes.size());
    }
    const std::string outside = runs[i].at("outside");
    if (!outside.empty()) {
      return {Fault::outside_written, "wrote outside `" + outside + "`: guard band changed"};
    }
    const std::string inputs = draw.kind == InputKind::normal
                                   ? ""
                                   : fmt::format("{} inputs: ", input_kind_name(draw.kind));
    const Instance::Comparison comparison = instance.compare();
    const std::uint64_t hash = instance.output_hash();
    if (!comparison.ok) {
      return {comparison.fault,
              (i > 0 && hashes.size() == i ? "right on the first inputs only: " : "") + inputs +
                  comparison.message};
    }
    for (std::size_t before = 0; before < i; ++before) {
      if (draws[before] == draw && hashes[before] != hash && teacher_.level.same_every_run) {
        return {Fault::runs_differ, "two runs on the same inputs differ"};
      }
    }
    hashes.push_back(hash);
    instance.reset();
  }
  const CheckResult error = result.at("check");
  if (error.fault != Fault::none) return error;
  if (runs.size() != draws.size()) return {Fault::no_answer, "runs are missing from the answer"};
  return {};
}

bool mentions(const Claims& claims, const std::string& space, const std::string& op,
              const std::string& buffer) {
  return std::any_of(claims.begin(), claims.end(), [&](const Claim& claim) {
    return claim.op == op && (claim.space.empty() || claim.space == space) &&
           (buffer.empty() || claim.buffer.empty() || claim.buffer == buffer);
  });
}

// What was counted, as a claim about loads or about stores sees it. Atomics and asynchronous copies
// move data, too: they count with the loads or stores, unless a claim is about them. So does an
// output that is read back, with the loads of every buffer.
simt::Trace seen_by(const Claim& claim, simt::Trace counted, const Claims& claims,
                    const AnyProblem& problem) {
  const bool loads = claim.op == "load";
  if (!loads && claim.op != "store") return counted;
  const simt::Op op = loads ? simt::Op::load : simt::Op::store;
  const simt::Op copy = loads ? simt::Op::async_load : simt::Op::async_store;
  const std::vector<TensorSpec> tensors = problem.tensors();
  for (simt::AccessSite& site : counted.sites) {
    const std::string space = site.space == simt::Space::global ? "global" : "shared";
    const bool moves =
        (site.op == simt::Op::atomic && !mentions(claims, space, "atomic", site.buffer)) ||
        (site.op == copy && !mentions(claims, space, loads ? "async_load" : "async_store", ""));
    if (moves) site.op = op;
    const bool read_back = loads && site.op == op && space == "global" && !claim.buffer.empty() &&
                           !mentions(claims, space, "load", site.buffer) &&
                           std::any_of(tensors.begin(), tensors.end(), [&](const TensorSpec& spec) {
                             return spec.name == site.buffer && spec.role == Role::output;
                           });
    if (read_back) site.buffer = claim.buffer;
  }
  return counted;
}

// "", or " at line 41": where most is lost.
std::string worst_line(const Claim& claim, const simt::Trace& trace, const std::string& file,
                       const IsTagged& is_tagged) {
  const simt::AccessSite* worst = nullptr;
  const auto lost = [&](const simt::AccessSite& site) {
    if (claim.metric == Metric::bytes) return site.bytes;
    if (claim.metric == Metric::requests) return site.requests;
    return site.space == simt::Space::global ? site.sectors - site.ideal_sectors
                                             : site.wavefronts - site.ideal_wavefronts;
  };
  for (const simt::AccessSite& site : trace.sites) {
    if (!is_about(claim, site, is_tagged) || !site.file.ends_with("/" + file)) continue;
    if (worst == nullptr || lost(site) > lost(*worst)) worst = &site;
  }
  return worst == nullptr ? "" : fmt::format(" at line {}", worst->line);
}

// How far a claim is from holding; nothing where there is no such access. Of a ratio it is what the
// accesses cost too much: a ratio would come closer by accesses that do nothing, and cost little.
std::optional<double> distance_of(const Claim& claim, const ClaimResult& found,
                                  const simt::Trace& trace, const IsTagged& is_tagged) {
  if (!found.value || *found.value <= 0 || claim.value <= 0) return std::nullopt;
  if (claim.metric == Metric::requests || claim.metric == Metric::bytes) {
    return std::fabs(std::log(*found.value / claim.value));
  }
  const bool sectors =
      claim.metric == Metric::sectors_per_request || claim.metric == Metric::sectors_over_ideal;
  const bool per_request =
      claim.metric == Metric::sectors_per_request || claim.metric == Metric::wavefronts_per_request;
  double excess = 0;
  for (const simt::AccessSite& site : trace.sites) {
    if (!is_about(claim, site, is_tagged)) continue;
    const auto units = static_cast<double>(sectors ? site.sectors : site.wavefronts);
    const auto base = static_cast<double>(per_request ? site.requests
                                          : sectors   ? site.ideal_sectors
                                                      : site.ideal_wavefronts);
    const double more = units - claim.value * base;
    const bool allowed = claim.relation == Relation::at_most    ? more < 0
                         : claim.relation == Relation::at_least ? more > 0
                                                                : false;
    if (!allowed) excess += std::fabs(more);
  }
  return excess;
}

// Such a claim also holds where lanes that conflict take turns: the grade compares the lanes and
// the bytes per request with those of the part as it was handed out. `line`: of the fewest bytes.
void add_width(json& more, const Claim& claim, const simt::Trace& trace, const std::string& file,
               const IsTagged& is_tagged) {
  if (claim.metric == Metric::requests || claim.metric == Metric::bytes) return;
  double bytes = 0, lanes = 0, requests = 0, fewest = std::numeric_limits<double>::infinity();
  for (const simt::AccessSite& site : trace.sites) {
    if (!is_about(claim, site, is_tagged) || site.requests == 0) continue;
    bytes += static_cast<double>(site.bytes);
    lanes += static_cast<double>(site.lanes);
    requests += static_cast<double>(site.requests);
    const double width = static_cast<double>(site.bytes) / static_cast<double>(site.requests);
    if (width >= fewest || !site.file.ends_with("/" + file)) continue;
    fewest = width;
    more["line"] = site.line;
  }
  if (requests == 0) return;
  more["bytes_per_request"] = bytes / requests;
  more["lanes_per_request"] = lanes / requests;
}

void Grader::check_claims(const Task& task, const AnyProblem& problem, const json* trace) {
  simt::Trace counted;
  if (trace) trace->at("sites").get_to(counted.sites);
  const std::string file = plan_.value("file", "");
  const json tags = plan_.value("tags", json::object());
  // No file is opened that a submission names. Code of the standard library may be what a marked
  // line of the student's part calls.
  const IsTagged is_tagged = [&](const simt::AccessSite& site, const std::string& tag) {
    const json places = tags.value(tag, json::object());
    for (const auto& [name, lines] : places.items()) {
      if (site.file.ends_with("/" + name)) {
        return std::find(lines.begin(), lines.end(), json(site.line)) != lines.end();
      }
    }
    return places.contains("/usr/") && site.file.starts_with("/usr/");
  };
  const Claims claims = mechanism(teacher_.level.claims(problem));
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Claim& claim = claims[i];
    json more{{"claim", i}};
    CheckResult check(Fault::not_counted, "not counted: the run failed");
    if (trace) {
      const simt::Trace seen = seen_by(claim, counted, claims, problem);
      const ClaimResult found = check_on_trace(claim, seen, is_tagged);
      check = check_of(found);
      if (check.fault != Fault::none) check.reason += worst_line(claim, seen, file, is_tagged);
      const auto distance = distance_of(claim, found, seen, is_tagged);
      if (distance) more["distance"] = *distance;
      add_width(more, claim, seen, file, is_tagged);
    }
    note(task, "claims", claim.text, check, more);
  }
}

void Grader::run(const Task& task) {
  if (hung_) {
    note(task, task.step, task.what, {Fault::not_run, "not run: a kernel before it did not end"});
    return;
  }
  Instance instance = instance_of(task.run, ladder_);
  if (teacher_skips(instance)) return;  // nobody has to support it
  json runs = json::array();
  for (const Draw& draw : task.run.draws) {
    if (instance.drawn() != draw) instance.redraw(draw);
    json inputs = json::object();
    for (const HostTensor& tensor : instance.tensors().list) {
      if (tensor.spec.role == Role::output) continue;
      inputs[tensor.spec.name] = bytes_value(tensor.storage.data(), tensor.storage.size());
    }
    runs.push_back(std::move(inputs));
  }
  instance.redraw(task.run.draws.front());
  const Schedule schedule = task.run.schedule.value_or(Schedule{});
  json answer;
  try {
    if (!worker_) worker_ = std::make_unique<Child>(command_);
    answer = worker_->ask({{"size", task.run.size},
                           {"pitch", task.run.variant.extra_pitch},
                           {"shift", task.run.variant.misalign_elements},
                           {"copies", schedule.copies},
                           {"blocks", schedule.blocks},
                           {"order_seed", seeds().front()},
                           {"traced", task.traced},
                           {"capability", plan_.value("capability", 0)},
                           {"seconds", plan_.at("seconds")},
                           {"runs", std::move(runs)}});
    const CheckResult outcome = outcome_of(task, instance, answer);
    hung_ = outcome.fault == Fault::hang;
    note(task, task.step, task.what, outcome);
  } catch (const std::exception& error) {
    // The process is gone, or has sent what no honest one sends.
    worker_.reset();
    answer = json::object();
    note(task, task.step, task.what,
         {Fault::no_answer, std::string("the submission's process failed: ") + error.what()});
  }
  const json* trace = nullptr;
  if (answer.contains("result") && answer["result"].is_object() &&
      answer["result"].contains("trace")) {
    trace = &answer["result"]["trace"];
  }
  if (trace) {
    std::vector<FoundFault> faults;
    trace->at("findings").get_to(faults);
    faults.resize(std::min(faults.size(), kMostFindings));
    for (const FoundFault& found : faults) {
      note(task, "races", "the tracer finds a fault", {found.fault, found.message});
    }
  }
  if (task.run.axis == Axis::traced) check_claims(task, instance.problem(), trace);
}

json Grader::grade() {
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
  AcceptanceScope scope;
  scope.traced = sizes("trace_sizes").front();
  scope.seeds = seeds();
  const double budget = work_of(ladder_, scope.traced);
  const auto run_all = [&](Axis axis, const char* step, bool hidden, bool traced) {
    for (AcceptanceRun& each : acceptance_runs(Judge::grader, axis, ladder_, scope)) {
      const std::string at = hidden ? "a hidden size" : each.text();
      run({.step = step,
           .hidden = hidden,
           .run = each,
           .traced = axis == Axis::traced || (traced && work_of(ladder_, each.size) <= budget),
           .what = axis == Axis::traced ? "right under the tracer at " + at : at});
    }
  };
  json finished = json::array();
  const auto done = [&](const char* step) {
    finished.push_back(step);
    keep({{"checks", checks_}, {"done", finished}});
  };
  for (const bool hidden : {false, true}) {
    const char* step = hidden ? "hidden_sizes" : "public_sizes";
    if (hidden && !any_passed("public_sizes")) break;
    scope.sizes = sizes(step);
    std::stable_sort(scope.sizes.begin(), scope.sizes.end(), [&](const Size& a, const Size& b) {
      return work_of(ladder_, a) < work_of(ladder_, b);
    });
    run_all(Axis::shapes, step, hidden, true);
    done(step);
  }
  if (any_passed("public_sizes")) {
    scope.sizes = sizes("public_sizes");
    run_all(Axis::inputs, "inputs", false, false);
    done("inputs");
    run_all(Axis::layouts, "layouts", false, true);
    done("layouts");
    run_all(Axis::schedules, "schedules", false, false);
    done("schedules");
    for (const bool hidden : {false, true}) {
      for (const Size& size : sizes(hidden ? "hidden_trace_sizes" : "trace_sizes")) {
        scope.traced = size;
        run_all(Axis::traced, "races", hidden, true);
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
  simt::set_model_capability(plan.value("capability", 0));
  Grader grader(plan, argv + 3);
  grader.keep = [&](const json& result) { write_checks(argv[2], result); };
  write_checks(argv[2], grader.grade());
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
