// SPDX-License-Identifier: MIT
/// @file
/// A tuning space: the configurations a kernel is compiled for, and why the others are not.
///
/// A configuration is a type. What it needs is known before anything is instantiated, so an illegal
/// one costs no compile time and is listed with its reason:
///
///   template <int kRows> struct Config {
///     static tune::Parameters parameters() { return {{"rows", kRows}}; }
///     static constexpr bool kLegal = kRows * kRowBytes <= 232448;
///     static std::string why_illegal() { return tune::too_much_shared_memory(kRows * kRowBytes); }
///   };
///   space.add(tune::candidate<Config<64>, MyLevel>());   // MyLevel<Config<64>> if it is legal
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/contract/level.hpp"

namespace cookbook::tune {

/// Most configurations in the code of one space: each costs compile time, binary size and a reader.
inline constexpr std::size_t kMostConfigurations = 30;
/// Most configurations of a space that one architecture still searches.
inline constexpr std::size_t kMostSurvivors = 8;
/// Shared memory a block can opt in to on cc 9.0, in bytes.
inline constexpr std::int64_t kSharedMemoryBytes = 232448;

/// What one configuration sets: a name and a number.
struct Parameter {
  std::string name;
  std::int64_t value = 0;
};
using Parameters = std::vector<Parameter>;

/// "block_m=128 stages=4": how a configuration is called everywhere, caches included.
std::string id_of(const Parameters& parameters);
/// The value called `name`, or `otherwise`.
std::int64_t value_of(const Parameters& parameters, const std::string& name,
                      std::int64_t otherwise = 0);
/// 245,760
std::string with_commas(std::int64_t number);
/// "shared memory 245,760 > 232,448 bytes"
std::string too_much_shared_memory(std::int64_t bytes, std::int64_t limit = kSharedMemoryBytes);

/// 16 hexadecimal digits that stand for a text: FNV-1a.
std::string text_hash(std::string_view text);

/// One configuration. A level's entry is all the tuner needs to check, prepare and launch it.
struct Candidate {
  Parameters parameters;
  std::string illegal;  ///< why no kernel was compiled for it; empty: there is one
  LevelEntry level;     ///< on the problem as users have it
  LevelEntry search;    ///< on split buffers, see Space::search_problem; else the same as `level`
  std::string id() const { return id_of(parameters); }
};

/// A space that cannot be searched, with the reason.
struct SpaceError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// Configurations of one kernel in order of trust: the first that can run a problem is its default.
class Space {
 public:
  std::string kernel;  ///< names the space in caches and recordings
  std::string source;  ///< the file whose hash (with the headers it includes) identifies the kernel
  Ladder problem;      ///< make_problem, dims, dtype, layout; no levels
  /// Where the kernel works in place: the same problem with input and output apart. A search runs a
  /// kernel hundreds of times; on one buffer every run would transform the result of the last one.
  std::optional<Ladder> search_problem;
  std::function<Size(const AnyProblem&)> size_of;
  /// Predicted microseconds; only their order matters. Optional.
  std::function<double(const Parameters&, const Size&, const DeviceInfo&)> model;
  std::vector<Size>
      training;  ///< shapes that survivors and the best fixed configuration are chosen on
  std::vector<Size> held_out;  ///< shapes that judge the choice
  std::string recordings;      ///< folder of committed recordings; may be empty

  /// Throws SpaceError beyond kMostConfigurations, or for a second configuration of the same name.
  void add(Candidate candidate);
  const std::vector<Candidate>& candidates() const { return candidates_; }
  const Candidate& operator[](std::size_t index) const { return candidates_.at(index); }
  /// Index of the configuration called `id`, or nothing.
  std::optional<std::size_t> find(const std::string& id) const;
  /// What they are called, in order.
  std::vector<std::string> ids() const;
  /// The problem that searches run on.
  const Ladder& searched() const { return search_problem ? *search_problem : problem; }
  /// A hash of every configuration and why it is illegal, in order.
  std::string hash() const;

 private:
  std::vector<Candidate> candidates_;
};

/// Whether a space of `count` configurations may be compiled; for a static_assert beside the list.
constexpr bool within_compile_budget(std::size_t count) { return count <= kMostConfigurations; }

/// The candidate of configuration C: instantiates Level<C> (and Search<C>) only if C is legal.
template <class C, template <class> class Level, template <class> class Search = Level>
Candidate candidate() {
  Candidate made;
  made.parameters = C::parameters();
  if constexpr (C::kLegal) {
    made.level = make_level<Level<C>>();
    made.search = make_level<Search<C>>();
    made.level.name = made.search.name = made.id();
  } else {
    made.illegal = C::why_illegal();
  }
  return made;
}

/// A list of configurations.
template <class... C>
struct Configs {};

/// Adds the candidates of all of them. The compiler already counts them.
template <template <class> class Level, template <class> class Search = Level, class... C>
void add_candidates(Space& space, Configs<C...>) {
  static_assert(within_compile_budget(sizeof...(C)));
  (space.add(candidate<C, Level, Search>()), ...);
}

/// What became of one configuration.
enum class Stage {
  illegal,      ///< at compile time: no kernel
  unsupported,  ///< at plan time: not this problem, or not this device
  pruned,       ///< not among the architecture's survivors
  other_shard,  ///< measured by another process
  failed,       ///< wrong result, or a launch error
  timed,        ///< measured and beaten
  finalist,     ///< measured again, interleaved with the default
};
const char* stage_name(Stage stage);

struct Fate {
  std::size_t candidate = 0;
  Stage stage = Stage::timed;
  std::string reason;
};

/// Every configuration's fate before anything runs: illegal, unsupported, or not (Stage::timed).
std::vector<Fate> legality(const Space& space, const AnyProblem& problem, const DeviceInfo& device);

/// Indices that can run `problem`; the first is the default. Empty: the space has nothing for it.
std::vector<std::size_t> legal(const Space& space, const AnyProblem& problem,
                               const DeviceInfo& device);

}  // namespace cookbook::tune
