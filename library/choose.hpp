// SPDX-License-Identifier: MIT
/// @file
/// How every operator of the library chooses a kernel for a shape. An operator has a list of
/// candidates. Arithmetic on bytes, waves and clocks predicts the time of each; measured times of
/// similar shapes on the same GPU correct the predictions; the least corrected time is chosen.
/// Host code without CUDA, so that a test can ask for any shape.
///
///     predicted(candidate, shape)        a page of arithmetic per operator
///     correction = measured / predicted  of the recorded shapes nearby, the nearer the more
///     chosen                             the candidate with the least predicted x correction
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

/// What a choice depends on. `kind` is what sets shapes of equal extents apart: the layout, the
/// element type, whether rows are aligned.
struct Shape {
  std::vector<std::int64_t> extents;
  std::string kind;
};

/// How far two shapes are apart: the length of the vector of the logarithms of their extents'
/// ratios, and 1 more where their kinds differ. 0.7: twice as long in one extent.
inline double distance(const Shape& a, const Shape& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.extents.size(); ++i) {
    const auto log = [](std::int64_t extent) {
      return std::log(static_cast<double>(std::max<std::int64_t>(extent, 1)));
    };
    squares += std::pow(log(a.extents[i]) - log(b.extents[i]), 2);
  }
  return std::sqrt(squares) + (a.kind == b.kind ? 0 : 1.0);
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
      entries_.push_back(std::move(entry));
    }
  }

  const std::vector<Entry>& entries() const { return entries_; }

  /// The recorded shapes that are nearest to this one, at most kNearest, with their weights.
  std::vector<std::pair<double, const Entry*>> near(const Shape& shape) const {
    std::vector<std::pair<double, const Entry*>> all;
    for (const Entry& entry : entries_) all.emplace_back(distance(shape, entry.shape), &entry);
    const auto count = std::min<std::size_t>(kNearest, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
    all.resize(count);
    for (auto& [weight, entry] : all) weight = std::exp(-weight / kReach);
    return all;
  }

 private:
  static constexpr std::size_t kNearest = 12;
  static constexpr double kReach = 0.4;  // the distance at which a weight is 1 / e
  std::vector<Entry> entries_;
};

/// A candidate and its time for a shape. Infinite: it does not support the shape.
template <class Candidate>
struct Estimate {
  const Candidate* candidate;
  double predicted_us;  ///< by arithmetic
  double us;            ///< corrected by the recording
};

/// The candidates, fastest first. A candidate has a `name`. query: a Shape, or a struct derived
/// from it that says more. predict(candidate, query), predict(candidate, shape of the recording):
/// microseconds by arithmetic. recording: of this GPU, or null. counts > 0: the arithmetic counts
/// as much as so many measurements of this very shape. An operator takes the number with which its
/// recorded shapes, each left out of the recording, are chosen best.
template <class Candidates, class Query, class Predict>
auto ranked(const Candidates& candidates, const Query& query, const Predict& predict,
            const Recording* recording, double counts) {
  using Candidate = std::decay_t<decltype(*std::begin(candidates))>;
  const auto near = recording ? recording->near(query) : decltype(recording->near(query)){};
  std::vector<Estimate<Candidate>> all;
  for (const Candidate& candidate : candidates) {
    Estimate<Candidate> estimate{&candidate, predict(candidate, query), 0};
    double sum = 0, weights = counts;
    for (const auto& [weight, entry] : near) {
      const auto us = entry->us.find(std::string(candidate.name));
      if (us == entry->us.end()) continue;
      const double predicted = predict(candidate, entry->shape);
      if (!std::isfinite(predicted)) continue;
      sum += weight * std::log(us->second / predicted);
      weights += weight;
    }
    estimate.us = estimate.predicted_us * std::exp(sum / weights);
    all.push_back(estimate);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.us < b.us; });
  return all;
}

/// What a Hopper GPU does: the constants that all operators share.
struct Hopper {
  double launch_us = 5.2;           ///< an empty kernel, its first loads and its last stores
  double clock_mhz = 1900;          ///< of the SMs, under load
  double hbm_bytes_per_us = 4.2e6;  ///< device memory: what a long copy reaches
  double l2_bytes_per_clock = 32;   ///< from L2 to one SM, while all SMs load
  double fma_per_clock = 2048;      ///< bf16 multiply-adds of one SM's tensor cores
};

}  // namespace cookbook::library
