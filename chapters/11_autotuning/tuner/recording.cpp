// SPDX-License-Identifier: MIT
#include "chapters/11_autotuning/tuner/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>

#include "common/harness/report/statistics.hpp"
#include "common/harness/run/options.hpp"

namespace cookbook::tune {

template <class Json>
void to_json(Json& json, const Samples& samples) {
  if (!samples.failure.empty()) {
    json["failure"] = samples.failure;
    return;
  }
  json["us"] = Json::array();
  for (double us : samples.us) {  // a nanosecond is far below the noise of an event
    json["us"].push_back(std::isnan(us) ? Json(nullptr) : Json(std::round(us * 1e3) / 1e3));
  }
}

static void from_json(const nlohmann::json& json, Samples& samples) {
  samples.failure = json.value("failure", "");
  if (!samples.failure.empty()) return;
  for (const nlohmann::json& us : json.at("us")) {
    samples.us.push_back(us.is_null() ? std::nan("") : us.get<double>());
  }
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RecordedProblem, size, held_out, bytes, flops, configurations,
                                   libraries)

namespace {

using OrderedJson = nlohmann::ordered_json;
constexpr const char* kRecordingSchema = "kernel-cookbook recording 1";
constexpr double kNever = std::numeric_limits<double>::infinity();

// What a configuration costs where it cannot run: ten times the best.
constexpr double kPenalty = 10;

// Mean logarithm of how much slower than the best of all the best of `set` is.
double loss(const TimeMatrix& times, const std::vector<std::size_t>& set) {
  double sum = 0;
  for (std::size_t s = 0; s < times.sizes.size(); ++s) {
    double best = kNever, all = kNever;
    for (std::size_t c : set) best = std::min(best, times.us[c][s]);
    for (const auto& row : times.us) all = std::min(all, row[s]);
    if (std::isinf(all)) continue;  // nobody can
    sum += std::log(std::isinf(best) ? kPenalty : best / all);
  }
  return sum;
}

}  // namespace

const RecordedProblem* Recording::find(const Size& size) const {
  for (const RecordedProblem& problem : problems) {
    if (problem.size == size) return &problem;
  }
  return nullptr;
}

Recording read_recording(const std::string& file) {
  try {
    std::ifstream in(file);
    if (!in) throw std::runtime_error("cannot be opened");
    const OrderedJson json = OrderedJson::parse(in);
    if (json.at("schema") != kRecordingSchema) {
      throw std::runtime_error(
          fmt::format("schema {}, not \"{}\"", json.at("schema").dump(), kRecordingSchema));
    }
    Recording r;
    r.kernel = json.at("kernel");
    r.commit = json.at("commit");
    r.date = json.at("date");
    r.tokens = json.at("tokens");
    const OrderedJson& device = json.at("device");
    r.device.name = device.at("name");
    const int cc = device.at("cc");
    r.device.cc_major = cc / 10, r.device.cc_minor = cc % 10;
    r.device.sm_count = device.at("sm_count");
    r.device.l2_bytes = device.at("l2_bytes");
    r.device.smem_per_block_bytes = device.at("smem_per_block_bytes");
    r.device.clock_mhz = device.at("clock_mhz");
    r.device.driver = device.at("driver");
    r.device.toolkit = device.at("toolkit");
    for (const auto& [id, values] : json.at("configurations").items()) {
      for (const auto& [name, value] : values.items()) r.parameters[id].push_back({name, value});
    }
    nlohmann::json(json.at("problems")).get_to(r.problems);
    return r;
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("recording {}: {}", file, error.what()));
  }
}

void write_recording(const Recording& r, const std::string& file) {
  OrderedJson json{{"schema", kRecordingSchema},
                   {"kernel", r.kernel},
                   {"commit", r.commit},
                   {"date", r.date},
                   {"tokens", r.tokens}};
  json["device"] = {{"name", r.device.name},
                    {"cc", r.device.cc()},
                    {"sm_count", r.device.sm_count},
                    {"l2_bytes", r.device.l2_bytes},
                    {"smem_per_block_bytes", r.device.smem_per_block_bytes},
                    {"clock_mhz", r.device.clock_mhz},
                    {"driver", r.device.driver},
                    {"toolkit", r.device.toolkit}};
  json["configurations"] = OrderedJson::object();
  for (const auto& [id, parameters] : r.parameters) {
    json["configurations"][id] = OrderedJson::object();
    for (const Parameter& p : parameters) json["configurations"][id][p.name] = p.value;
  }
  json["problems"] = OrderedJson::array();
  for (const RecordedProblem& problem : r.problems) {
    json["problems"].push_back({{"size", problem.size},
                                {"held_out", problem.held_out},
                                {"bytes", problem.bytes},
                                {"flops", problem.flops},
                                {"configurations", problem.configurations},
                                {"libraries", problem.libraries}});
  }
  // Indented down to configurations; a configuration's samples stay on one line.
  static const std::regex before_number(R"(([\[,])\n +(?=[-0-9n]))"),
      after_last(R"(([0-9l])\n +\])");
  const std::string text = std::regex_replace(json.dump(1), before_number, "$1");
  write_file(file, std::regex_replace(text, after_last, "$1]") + "\n");
}

std::optional<Recording> find_recording(const Space& space, int cc) {
  std::error_code none;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(space.recordings, none)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    try {
      Recording recording = read_recording(file);
      if (recording.kernel == space.kernel && recording.device.cc() == cc) return recording;
    } catch (const std::exception& error) {
      fmt::print(stderr, "autotune: {}\n", error.what());
    }
  }
  return std::nullopt;
}

RecordedProblem only(Rounds rounds, const RecordedProblem& problem) {
  RecordedProblem half = problem;
  for (auto* all : {&half.configurations, &half.libraries}) {
    for (auto& [id, samples] : *all) {
      std::vector<double> us;
      for (std::size_t r = rounds == Rounds::odd ? 0 : 1; r < samples.us.size(); r += 2) {
        us.push_back(samples.us[r]);
      }
      samples.us = std::move(us);
    }
  }
  return half;
}

Recording only(Rounds rounds, const Recording& recording) {
  Recording half = recording;
  for (RecordedProblem& problem : half.problems) problem = only(rounds, problem);
  return half;
}

ReplayTimer::ReplayTimer(const RecordedProblem& problem, std::vector<std::string> ids)
    : problem_(problem), ids_(std::move(ids)) {}

std::vector<Samples> ReplayTimer::time(const std::vector<std::size_t>& candidates, int rounds) {
  std::vector<Samples> all;
  for (std::size_t c : candidates) {
    const auto found = problem_.configurations.find(ids_.at(c));
    if (found == problem_.configurations.end()) {
      all.push_back({{}, "was not recorded"});
      continue;
    }
    const auto& [us, failure] = found->second;
    Samples& samples = all.emplace_back();
    samples.failure = failure.empty() && us.empty() ? "has no samples" : failure;
    if (!samples.failure.empty()) continue;
    for (std::size_t r = 0; r < static_cast<std::size_t>(rounds); ++r) {
      samples.us.push_back(us[(round_ + r) % us.size()]);
    }
  }
  round_ += static_cast<std::size_t>(rounds);
  return all;
}

std::vector<Samples> ReplayTimer::time_as_ladder(const std::vector<std::size_t>& candidates) {
  std::size_t rounds = 1;
  for (const auto& [id, each] : problem_.configurations) rounds = std::max(rounds, each.us.size());
  return time(candidates, static_cast<int>(rounds));
}

TimeMatrix recorded_times(const Space& space, const Recording& recording, bool held_out) {
  TimeMatrix times;
  times.us.resize(space.candidates().size());
  for (const RecordedProblem& problem : recording.problems) {
    if (problem.held_out != held_out) continue;
    times.sizes.push_back(problem.size);
    for (std::size_t c = 0; c < times.us.size(); ++c) {
      const auto found = problem.configurations.find(space[c].id());
      times.us[c].push_back(found == problem.configurations.end() ? kNever
                                                                  : median(found->second.us));
    }
  }
  return times;
}

TimeMatrix predicted_times(const Space& space, const DeviceInfo& device) {
  TimeMatrix times;
  times.us.resize(space.candidates().size());
  for (const Size& size : space.training) {
    times.sizes.push_back(size);
    const auto problem = space.problem.make_problem(size, {});
    for (auto& row : times.us) row.push_back(kNever);
    const auto able = legal(space, *problem, device);
    for (std::size_t place = 0; place < able.size(); ++place) {
      // Without a model every configuration looks alike, and the order of the space decides.
      times.us[able[place]].back() = space.model
                                         ? space.model(space[able[place]].parameters, size, device)
                                         : 1.0 + 1e-9 * static_cast<double>(place);
    }
  }
  return times;
}

std::vector<std::size_t> shrink(const TimeMatrix& times, std::size_t count) {
  std::vector<std::size_t> kept;
  for (std::size_t c = 0; c < times.us.size() && kept.empty(); ++c) {
    // The default: the first configuration that runs anywhere.
    for (double us : times.us[c]) {
      if (!std::isinf(us) && kept.empty()) kept.push_back(c);
    }
  }
  // Who tunes must never do worse than who does not.
  if (const std::size_t fixed = best_fixed(times); !kept.empty() && fixed != kept.front()) {
    kept.push_back(fixed);
  }
  while (!kept.empty() && kept.size() < count) {
    double least = loss(times, kept);
    int best = -1;
    for (std::size_t c = 0; c < times.us.size(); ++c) {
      std::vector<std::size_t> with = kept;  // one that is kept already brings nothing
      with.push_back(c);
      if (const double now = loss(times, with); now < least - 1e-12) {
        least = now;
        best = static_cast<int>(c);
      }
    }
    if (best < 0) break;  // nothing that is left ever wins
    kept.push_back(static_cast<std::size_t>(best));
  }
  return kept;
}

std::size_t best_fixed(const TimeMatrix& times) {
  std::size_t best = 0;
  double least = kNever;
  for (std::size_t c = 0; c < times.us.size(); ++c) {
    double sum = 0;
    bool runs = false;
    for (std::size_t s = 0; s < times.sizes.size(); ++s) {
      double us = times.us[c][s];
      runs = runs || !std::isinf(us);
      for (std::size_t d = 0; std::isinf(us) && d < times.us.size(); ++d) us = times.us[d][s];
      if (!std::isinf(us)) sum += std::log(us);
    }
    if (runs && sum < least - 1e-12) least = sum, best = c;
  }
  return best;
}

}  // namespace cookbook::tune
