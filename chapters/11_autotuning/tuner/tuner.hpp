// SPDX-License-Identifier: MIT
/// @file
/// The tuner: check, time, decide, remember. `decide` is all that a level's prepare() calls.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chapters/11_autotuning/tuner/cache.hpp"
#include "chapters/11_autotuning/tuner/recording.hpp"
#include "chapters/11_autotuning/tuner/search.hpp"
#include "common/bench/bench.hpp"
#include "common/harness/verdict/check.hpp"

namespace cookbook::tune {

/// COOKBOOK_AUTOTUNE: `off` launches the default, `read` takes what the cache has, `tune` (when
/// unset) searches where it has nothing. Throws std::invalid_argument for anything else.
enum class Mode { off, read, tune };
Mode mode_from_environment();

/// Why times taken now would be worthless: a profiler or sanitizer that serialises launches, or
/// CUDA_LAUNCH_BLOCKING. Empty: nothing of the kind. `environment` and `libraries` (the text of
/// /proc/self/maps) are parameters so that a test can plant one.
std::string why_not_time(const std::function<const char*(const char*)>& environment,
                         const std::string& libraries);
std::string why_not_time();  ///< of this process

/// Checks configurations before they may be timed.
class Verifier {
 public:
  virtual ~Verifier() = default;
  /// Empty if the configuration is right, else what is wrong with it.
  virtual std::string check(std::size_t candidate) = 0;
  /// The same for the winner, at full size where check() used a smaller one.
  virtual std::string confirm(std::size_t) { return ""; }
  /// What may be wrong with the check itself when everything fails it.
  virtual std::string hint() { return ""; }
};

/// Runs candidates on poisoned outputs and compares with fp64 (check_level), on this device. Where
/// the buffers take more than `full_bytes` the check runs at small_size() and only the winner is
/// confirmed at full size.
class DeviceVerifier : public Verifier {
 public:
  static constexpr double kFullBytes = 128.0 * (1 << 20);
  /// `instance`: the searched problem at `size` and `variant`; must outlive this.
  DeviceVerifier(const Space& space, Instance& instance, const Size& size,
                 const Variant& variant = {}, double full_bytes = kFullBytes);
  std::string check(std::size_t candidate) override;
  std::string confirm(std::size_t candidate) override;
  std::string hint() override;

 private:
  const Space& space_;
  Instance& full_;
  std::unique_ptr<Instance> small_;
};

/// `size` with every extent above 640 replaced by the number in 512 .. 639 that leaves the same
/// remainder modulo 128: the same alignments, the same ragged edges, a fraction of the work.
Size small_size(Size size);

/// Whether the error that `problem` allows is less than one rounding to the output's own type
/// costs: then no kernel can pass, however right. Empty, or where and by how much.
std::string tolerance_too_tight(const AnyProblem& problem, const HostTensors& tensors);

/// One of `count` processes that split a space; every shard also times the default.
struct Shard {
  int index = 0, count = 1;
};
/// Parses "0/4"; throws std::invalid_argument.
Shard parse_shard(const std::string& text);

struct TuneOptions {
  Shard shard;
  int search_rounds = 5;
  std::size_t finalists = 3;  ///< beside the default and the best fixed configuration
  std::function<void(const std::string&)> progress;
};

/// What a search found, for people and for the cache.
struct Report {
  Size size;
  std::string device, chosen_by;  ///< who picked the survivors
  std::vector<Fate> fates;        ///< one a configuration, in the order of the space
  Entry entry;                    ///< its key is the caller's business
  std::string tie;                ///< configurations that the winner is not worth_changing from
  std::string unconfirmed;        ///< finalists worth_changing to in the search and not after it
  std::string problem;            ///< nothing can be launched: why
  std::string not_kept;           ///< the cache could not take the entry: why
  int looks = 0;
  double seconds = 0;  ///< of everything: inputs, checks, times
};

/// The configurations an architecture still searches, and who chose them.
struct Survivors {
  std::vector<std::size_t> indices;
  std::string chosen_by;
  std::optional<std::size_t> fixed;  ///< the best one over all shapes
};
Survivors survivors(const Space& space, const Recording& recording);
/// From the recording of that compute capability if there is one, else from the model.
Survivors survivors(const Space& space, const DeviceInfo& device);

/// Searches: legality, survivors, shard, verification, successive elimination, finalists again as
/// a ladder would time them.
Report tune(const Space& space, const Size& size, const AnyProblem& problem,
            const DeviceInfo& device, const Survivors& survivors, Timer& timer, Verifier* verifier,
            const TuneOptions& options);

/// As many rounds a look as `problem` has samples, and no more.
TuneOptions replay_options(const RecordedProblem& problem);

/// What `to` sets differently: "stages 4 -> 6, cluster 2 -> 1".
std::string differences(const Parameters& from, const Parameters& to);

/// Prints the funnel, the table of what was found and why, and the decision.
void print(const Report& report, const Space& space);

/// Calls of `decide` during `runs` runs of a plan of `level`: 0, or the level rebuilds on its hot
/// path.
std::uint64_t decisions_on_hot_path(const LevelEntry& level, Instance& instance, int runs = 10);

/// Which configuration to launch, and why that one.
struct Decision {
  std::size_t candidate = 0;
  std::string why;
};
/// What a decision needs from its surroundings; a parameter, so that a test can be a GPU.
struct Machine {
  DeviceInfo device;
  std::function<std::string()> why_not_time;
  std::function<Report(const Space&, const Size&, const Variant&, const TuneOptions&, const Cache&)>
      search;
};
/// device_info(), why_not_time() and tune_on_device().
Machine this_machine();

/// Settled once per plan: cache, search or default as COOKBOOK_AUTOTUNE allows. Buffers behind `at`
/// are looked at for their alignment only; a search uses buffers of its own.
/// Throws std::invalid_argument when no configuration can run the problem, with every reason.
Decision decide(const Space& space, const AnyProblem& problem, const DevicePointers& at,
                const Cache& cache = Cache(), const Machine& machine = this_machine());

/// The configurations that can run `problem`; throws std::invalid_argument, with every reason, when
/// there is none.
std::vector<std::size_t> require_legal(const Space& space, const AnyProblem& problem,
                                       const DeviceInfo& device);

/// Prepares the first of `order` that takes these buffers (a base address may rule one out that the
/// shape did not).
std::function<void(Stream)> prepare_first(const Space& space, const std::vector<std::size_t>& order,
                                          const AnyProblem& problem, const DevicePointers& at);

/// Times contenders on a device: `measure` of common/bench, or what a test makes up.
using Sampler =
    std::function<std::vector<Measurement>(const std::vector<Contender>&, const BenchOptions&)>;

/// Searches on this device on buffers of its own, laid out as `variant` says. The result is in the
/// cache when this returns. Without a sampler the GPU is timed; std::runtime_error on the SIMT
/// backend.
Report tune_on_device(const Space& space, const Size& size, const Variant& variant,
                      const TuneOptions& options, const Cache& cache, const Sampler& sampler = {});

/// Samples of the configurations of `space` (all that can run, none pruned) and of `libraries` over
/// its shapes, training and held out; verified first. `sampler` as in tune_on_device.
Recording record(const Space& space, const std::vector<ReferenceEntry>& libraries, int rounds,
                 const std::function<void(const std::string&)>& progress,
                 const Sampler& sampler = {});

}  // namespace cookbook::tune
