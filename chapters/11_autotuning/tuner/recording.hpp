// SPDX-License-Identifier: MIT
/// @file
/// A space as a GPU measured it, once and for all: searchers run on it without that GPU.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chapters/11_autotuning/tuner/space.hpp"
#include "chapters/11_autotuning/tuner/timer.hpp"

namespace cookbook::tune {

/// Every configuration's samples on one problem. All were taken interleaved, so they pair by round.
struct RecordedProblem {
  Size size;
  bool held_out = false;
  double bytes = 0, flops = 0;
  std::map<std::string, Samples> configurations;  ///< by id; unsupported ones have their reason
  std::map<std::string, Samples> libraries;       ///< what a user would call instead
};

struct Recording {
  std::string kernel, commit, date, tokens;
  DeviceInfo device;
  std::map<std::string, Parameters> parameters;  ///< by id
  std::vector<RecordedProblem> problems;

  const RecordedProblem* find(const Size& size) const;
};

/// Throws std::runtime_error, naming the file and what is wrong with it.
Recording read_recording(const std::string& file);
void write_recording(const Recording& recording, const std::string& file);

/// The recording of `space` for a device of compute capability `cc` among the files of
/// `space.recordings`, or nothing. Files that cannot be read are reported on standard error.
std::optional<Recording> find_recording(const Space& space, int cc);

/// Every other round: the first, third, fifth ... or the second, fourth ... Whoever chooses on the
/// same samples that the choice is scored on counts luck as skill: the minimum of noisy numbers is
/// too small. So replays choose on the odd rounds and score on the even ones.
enum class Rounds { odd, even };
RecordedProblem only(Rounds rounds, const RecordedProblem& problem);
Recording only(Rounds rounds, const Recording& recording);

/// Plays recorded samples back, round after round, from the start again when they run out.
class ReplayTimer : public Timer {
 public:
  /// `ids`: what candidate i is called.
  ReplayTimer(const RecordedProblem& problem, std::vector<std::string> ids);
  void warm_up(std::size_t) override {}  // recordings were taken warm
  std::vector<Samples> time(const std::vector<std::size_t>& candidates, int rounds) override;
  /// Every sample once: to repeat them would only make intervals look narrower.
  std::vector<Samples> time_as_ladder(const std::vector<std::size_t>& candidates) override;

 private:
  const RecordedProblem& problem_;
  std::vector<std::string> ids_;
  std::size_t round_ = 0;
};

/// Median times of every candidate of `space` (rows) on every recorded training problem (columns);
/// infinity where a configuration cannot run.
struct TimeMatrix {
  std::vector<Size> sizes;
  std::vector<std::vector<double>> us;  ///< [candidate][size]
};
TimeMatrix recorded_times(const Space& space, const Recording& recording, bool held_out = false);
/// The same from the space's model, for a device that nobody has recorded.
TimeMatrix predicted_times(const Space& space, const DeviceInfo& device);

/// The one configuration that does best over all sizes; where it cannot run, the default stands in.
std::size_t best_fixed(const TimeMatrix& times);
/// At most `count` (2 or more) candidates: the default, the best fixed one, then greedily whatever
/// brings the best of them closest to the best of all on every size (geometric mean).
std::vector<std::size_t> shrink(const TimeMatrix& times, std::size_t count);

}  // namespace cookbook::tune
