// SPDX-License-Identifier: MIT
/// @file
/// How every operator of the library chooses a kernel for a shape. An operator has a list of
/// candidates. Arithmetic on bytes, waves and clocks predicts the time of each; measured times of
/// similar shapes on the same GPU correct the predictions; the least corrected time is chosen.
/// Host code without CUDA, so that a test can ask for any shape.
///
///     predicted(candidate, shape)                      a page of arithmetic per operator
///     correction = measured / predicted                mean over the bucket of the shape
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

/// Shapes share a bucket if their kinds are equal and their extents round to the same powers of
/// two.
inline std::string bucket_of(const Shape& shape) {
  std::string bucket = shape.kind;
  for (std::int64_t extent : shape.extents) {
    const double log = std::log2(static_cast<double>(std::max<std::int64_t>(extent, 1)));
    bucket += " " + std::to_string(std::lround(log));
  }
  return bucket;
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
      buckets_[bucket_of(entry.shape)].push_back(std::move(entry));
    }
  }

  /// The recorded shapes of this shape's bucket.
  const std::vector<Entry>& alike(const Shape& shape) const {
    static const std::vector<Entry> none;
    const auto found = buckets_.find(bucket_of(shape));
    return found == buckets_.end() ? none : found->second;
  }
  const std::map<std::string, std::vector<Entry>>& buckets() const { return buckets_; }

 private:
  std::map<std::string, std::vector<Entry>> buckets_;
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
  std::vector<Estimate<Candidate>> all;
  for (const Candidate& candidate : candidates) {
    Estimate<Candidate> estimate{&candidate, predict(candidate, shape), 0};
    double sum = 0;
    int measured = 0;
    if (recording) {
      for (const Recording::Entry& entry : recording->alike(shape)) {
        const auto us = entry.us.find(std::string(candidate.name));
        const double predicted = predict(candidate, entry.shape);
        if (us == entry.us.end() || !std::isfinite(predicted)) continue;
        sum += std::log(us->second / predicted);
        ++measured;
      }
    }
    estimate.us = estimate.predicted_us * std::exp(measured == 0 ? 0 : sum / measured);
    all.push_back(estimate);
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
