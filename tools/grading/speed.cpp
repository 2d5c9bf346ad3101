// SPDX-License-Identifier: MIT
#include "tools/grading/speed.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "tools/grading/child.hpp"
#include "common/harness/verdict/check.hpp"
#include "common/harness/report/statistics.hpp"

namespace cookbook::grading {
namespace {

using nlohmann::json;

// Measured roofs, and times near them, vary by a few per cent.
constexpr double kAboveRoof = 1.05;
// What the grader's clock may count beyond the baseline's: scheduling on the host.
constexpr double kSlackUs = 25, kSlackOfTime = 0.05;

struct Refused : std::runtime_error {
  Refused(const std::string& why, std::string what)
      : std::runtime_error(why), property(std::move(what)) {}
  std::string property;
};

/// A process that is timed, and the memory that it shares with the grader.
class Timed {
 public:
  Timed(const std::vector<std::string>& command, const std::vector<TensorSpec>& specs,
        const Size& size)
      : specs_(specs) {
    for (const TensorSpec& spec : specs_) bytes_ += spec.bytes();
    bytes_ = std::max<std::size_t>(bytes_, 1);
    memory_ = memfd_create("tensors", 0);
    if (memory_ < 0 || ftruncate(memory_, static_cast<off_t>(bytes_)) != 0) {
      throw std::runtime_error("no shared memory");
    }
    shared_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
    if (shared_ == MAP_FAILED) throw std::runtime_error("no shared memory");
    std::vector<char*> arguments;
    for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
    arguments.push_back(nullptr);
    process_ = std::make_unique<Child>(arguments.data());
    fcntl(memory_, F_SETFD, FD_CLOEXEC);  // for this process only
    ask({{"do", "open"}, {"size", size}, {"fd", memory_}, {"bytes", bytes_}});
  }
  ~Timed() {
    process_.reset();
    munmap(shared_, bytes_);
    close(memory_);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  json ask(const json& order) {
    json answer = process_->ask(order);
    if (answer.contains("error")) throw std::runtime_error(answer.at("error").get<std::string>());
    return answer;
  }
  void load(const HostTensors& inputs) {
    auto* to = static_cast<std::byte*>(shared_);
    for (const HostTensor& tensor : inputs.list) {
      if (tensor.spec.role != Role::output) {
        std::memcpy(to, tensor.storage.data(), tensor.storage.size());
      }
      to += tensor.spec.bytes();
    }
    ask({{"do", "load"}});
  }
  Sample go() {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const json answer = ask({{"do", "go"}});
    const double wall = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    return {answer.at("us"), answer.at("whole_us"), wall};
  }
  /// Compares what the last run has left with the reference of the drawn inputs.
  std::string wrong(Instance& instance) {
    const json answer = ask({{"do", "fetch"}});
    const std::string outside = answer.at("outside"), changed = answer.at("changed");
    const auto* from = static_cast<const std::byte*>(shared_);
    for (const TensorSpec& spec : specs_) {
      // Device memory is host memory here.
      if (spec.role != Role::input) {
        std::memcpy(instance.pointers().get<std::byte>(spec.name), from, spec.bytes());
      }
      from += spec.bytes();
    }
    if (!outside.empty()) return "wrote outside `" + outside + "`: guard band changed";
    if (!changed.empty()) return "input `" + changed + "` was changed";
    return instance.compare().message;
  }

 private:
  std::vector<TensorSpec> specs_;
  std::size_t bytes_ = 0;
  int memory_ = -1;
  void* shared_ = nullptr;
  std::unique_ptr<Child> process_;
};

double time_of(const Sample& sample) { return sample.us; }
double after_of(const Sample& sample) { return sample.whole_us - sample.us; }
double around_of(const Sample& sample) { return sample.wall_us - sample.us; }

std::vector<double> values(const std::vector<Sample>& samples, double (*of)(const Sample&)) {
  std::vector<double> found(samples.size());
  std::transform(samples.begin(), samples.end(), found.begin(), of);
  return found;
}
double median_of(const std::vector<Sample>& samples, double (*of)(const Sample&)) {
  return median(values(samples, of));
}

json measure(const json& plan, const Entry& teacher) {
  Ladder ladder;
  ladder.name = "graded";
  ladder.make_problem = teacher.make_problem;
  const Size size = plan.at("size");
  std::uint64_t seed = plan.at("seed");
  Instance instance(ladder, size, InputKind::normal, ++seed);
  const auto specs = instance.problem().tensors();
  const double bytes_per_us = plan.at("roof_bytes").get<double>() * 1e-6,
               flops_per_us = plan.at("roof_flops").get<double>() * 1e-6;
  const double least_us = bytes_per_us > 0   ? instance.problem().bytes() / bytes_per_us
                          : flops_per_us > 0 ? instance.problem().flops() / flops_per_us
                                             : 0;
  Timed baseline(plan.at("baseline"), specs, size);
  std::unique_ptr<Timed> submission;
  const auto of_submission = [](auto&& work) {
    try {
      return work();
    } catch (const Refused&) {
      throw;
    } catch (const std::exception& error) {
      throw Refused(std::string("the submission's process failed: ") + error.what(),
                    "it fails where it is timed");
    }
  };
  of_submission([&] { submission = std::make_unique<Timed>(plan.at("submission"), specs, size); });

  std::vector<Sample> theirs, mine;
  int least_mhz = 0, most_mhz = 0;
  const int samples = plan.at("samples");
  constexpr int kWarmUp = 2, kAttempts = 3;
  for (int round = -kWarmUp; round < samples; ++round) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      instance.redraw({InputKind::normal, ++seed});
      Sample of_baseline, of_mine;
      const auto run_baseline = [&] {
        baseline.load(instance.tensors());
        of_baseline = baseline.go();
      };
      if (round % 2 == 0) run_baseline();
      of_submission([&] {
        submission->load(instance.tensors());
        of_mine = submission->go();
        if (const std::string wrong = submission->wrong(instance); !wrong.empty()) {
          throw Refused("wrong while it was timed: " + wrong, "wrong where it is timed");
        }
      });
      if (round % 2 != 0) run_baseline();
      // From the process that runs the teacher's code.
      const json clock = baseline.ask({{"do", "clock"}});
      const int mhz = clock.at("mhz"), max_mhz = clock.at("max_mhz");
      if (mhz * 4 < max_mhz * 3 && attempt + 1 < kAttempts) continue;
      if (round < 0) break;
      theirs.push_back(of_baseline);
      mine.push_back(of_mine);
      least_mhz = round == 0 ? mhz : std::min(least_mhz, mhz);
      most_mhz = std::max(most_mhz, mhz);
      break;
    }
  }
  if (std::string wrong = baseline.wrong(instance); !wrong.empty()) {
    throw std::runtime_error("the baseline is wrong: " + wrong);
  }
  if (const std::string why = not_believed(theirs, mine, least_us); !why.empty()) {
    throw Refused(why, "its times are not believed");
  }
  const Ratio ratio = paired_ratio(values(theirs, time_of), values(mine, time_of));
  const double us = median_of(mine, time_of);
  return {{"refused", ""},
          {"property", ""},
          {"us", us},
          {"baseline_us", median_of(theirs, time_of)},
          {"ratio", ratio.ratio},
          {"low", ratio.low},
          {"high", ratio.high},
          {"of_roof", us > 0 ? least_us / us : 0},
          {"samples", samples},
          {"least_mhz", least_mhz},
          {"most_mhz", most_mhz}};
}

}  // namespace

std::string not_believed(const std::vector<Sample>& baseline, const std::vector<Sample>& submission,
                         double least_us) {
  const double us = median_of(submission, time_of);
  // Infinity: no sample was a number.
  if (!(us * kAboveRoof >= least_us) || !(us > 0) || std::isinf(us)) {
    return fmt::format("above the roof: {:.1f} us where the measured roof allows {:.1f} us", us,
                       least_us);
  }
  const double slack = kSlackUs + kSlackOfTime * us;
  const double after = median_of(submission, after_of), usual = median_of(baseline, after_of);
  if (!(after <= usual + slack)) {
    return fmt::format(
        "work goes on after its stream has ended, on another stream: {:.0f} us; {:.0f} us are "
        "usual",
        after, usual);
  }
  const double around = median_of(submission, around_of),
               usual_around = median_of(baseline, around_of);
  if (!(around <= usual_around + slack)) {
    return fmt::format(
        "its process says {:.1f} us, and the grader's clock {:.0f} us more; {:.0f} us more are "
        "usual",
        us, around, usual_around);
  }
  return "";
}

json time_submission(const json& plan, const Entry& teacher) {
  try {
    return measure(plan, teacher);
  } catch (const Refused& refused) {
    return {{"refused", refused.what()}, {"property", refused.property}};
  }
}

}  // namespace cookbook::grading
