// SPDX-License-Identifier: MIT
/// @file
/// How every operator of the library chooses a kernel for a shape. An operator has a list of
/// candidates. Arithmetic on bytes, waves and clocks predicts the time of each; measured times of
/// similar shapes on the same GPU correct the predictions; the least corrected time is chosen.
/// Host code without CUDA, so that a test can ask for any shape.
///
///     predicted(candidate, shape)                      a page of arithmetic per operator
///     correction = measured / predicted                of the nearest recorded shapes
///     chosen = the candidate with the least predicted x correction
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cookbook::library {

/// What a choice depends on. `kind` holds what must be equal for two shapes to be similar: the
/// layout, the element type, whether rows are aligned.
struct Shape {
  std::vector<std::int64_t> extents;
  std::string kind;
};

/// How far two shapes of one kind are apart: in octaves of their extents.
inline double distance(const Shape& a, const Shape& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.extents.size(); ++i) {
    const auto log = [](std::int64_t extent) {
      return std::log2(static_cast<double>(std::max<std::int64_t>(extent, 1)));
    };
    const double octaves = log(a.extents[i]) - log(b.extents[i]);
    squares += octaves * octaves;
  }
  return std::sqrt(squares);
}

/// Measured times of an operator's candidates on one GPU: a line per shape,
/// "EXTENT... KIND NAME US NAME US ...". # begins a comment.
class Recording {
 public:
  struct Entry {
    Shape shape;
    std::map<std::string, double> us;  ///< by candidate
  };

  /// Throws std::invalid_argument for a line that has no such form.
  Recording(std::string_view text, int extents) {
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line.substr(0, line.find('#')));
      Entry entry;
      entry.shape.extents.resize(static_cast<std::size_t>(extents));
      if (!(words >> std::ws) || words.eof()) continue;
      for (std::int64_t& extent : entry.shape.extents) words >> extent;
      words >> entry.shape.kind;
      std::string name;
      double us = 0;
      while (words && words >> name) {
        if (words >> us) entry.us[name] = us;
      }
      if (!words.eof() || entry.us.empty()) throw std::invalid_argument("recording: " + line);
      entries_[entry.shape.kind].push_back(std::move(entry));
    }
  }

  /// The recorded shapes of this kind within kReach octaves, nearest first.
  std::vector<const Entry*> alike(const Shape& shape) const {
    std::vector<const Entry*> near;
    const auto of_kind = entries_.find(shape.kind);
    if (of_kind == entries_.end()) return near;
    for (const Entry& entry : of_kind->second) {
      if (distance(entry.shape, shape) <= kReach) near.push_back(&entry);
    }
    std::stable_sort(near.begin(), near.end(), [&shape](const Entry* a, const Entry* b) {
      return distance(a->shape, shape) < distance(b->shape, shape);
    });
    return near;
  }
  const std::map<std::string, std::vector<Entry>>& entries() const { return entries_; }

 private:
  static constexpr double kReach = 2.5;
  std::map<std::string, std::vector<Entry>> entries_;  // by kind
};

/// A candidate and its time for a shape. Infinite: it does not support the shape.
template <class Candidate>
struct Estimate {
  const Candidate* candidate;
  double predicted_us;  ///< by arithmetic
  double us;            ///< corrected by the recording
};

/// The candidates, fastest first. A candidate has a `name`. predict(candidate, shape): microseconds
/// by arithmetic. recording: of this GPU, or null.
template <class Candidates, class Predict>
auto ranked(const Candidates& candidates, const Shape& shape, const Predict& predict,
            const Recording* recording) {
  using Candidate = std::decay_t<decltype(*std::begin(candidates))>;
  std::vector<const Recording::Entry*> near;
  if (recording) near = recording->alike(shape);
  constexpr int kNearest = 3;
  double worst = 1;  // correction
  std::vector<Estimate<Candidate>> all;
  for (const Candidate& candidate : candidates) {
    Estimate<Candidate> estimate{&candidate, predict(candidate, shape), 0};
    // The mean of log(measured / predicted) of the nearest shapes at which this candidate was
    // timed, weighted by how near they are.
    double sum = 0, weights = 0;
    int timed = 0;
    for (const Recording::Entry* entry : near) {
      const auto us = entry->us.find(std::string(candidate.name));
      if (us == entry->us.end()) continue;
      const double apart = distance(entry->shape, shape), weight = 1 / (apart * apart + 0.02);
      sum += weight * std::log(us->second / predict(candidate, entry->shape));
      weights += weight;
      if (++timed == kNearest) break;
    }
    if (timed > 0) {
      const double correction = std::exp(sum / weights);
      estimate.us = estimate.predicted_us * correction;
      if (std::isfinite(estimate.us)) worst = std::max(worst, correction);
    }
    all.push_back(estimate);
  }
  for (auto& estimate : all) {  // what was never timed here is not believed to be fast
    if (estimate.us == 0) estimate.us = estimate.predicted_us * worst;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.us < b.us; });
  return all;
}

/// What an H200 or H100 does per clock, and what a launch costs: the constants of all predictions.
/// A candidate's time is launch_us + waves x clocks of a block / clock, or the time that device
/// memory needs, if that is longer.
struct Hopper {
  int sms = 132;
  double clock_mhz = 1900;          ///< of the SMs, under load
  double launch_us = 5.2;           ///< an empty kernel, its first loads and its last stores
  double hbm_bytes_per_us = 4.2e6;  ///< device memory: what a long copy reaches
  double fma_per_clock = 2048;      ///< bf16 multiply-adds of one SM's tensor cores
};

}  // namespace cookbook::library
