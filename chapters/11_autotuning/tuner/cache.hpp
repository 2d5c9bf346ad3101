// SPDX-License-Identifier: MIT
/// @file
/// What tuning found, kept between processes: one JSON file, written atomically under a lock.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "chapters/11_autotuning/tuner/space.hpp"

namespace cookbook::tune {

/// How much faster a configuration must be to replace the one that would be launched without it,
/// besides being faster beyond noise. Under 2 % is "same" everywhere in this book (see `verdict`),
/// and here it must be: an interval tells how well a search repeats itself, not whether its gain
/// survives elsewhere. A configuration that a search on an H200 found 1.009x as fast, interval
/// [1.007, 1.013], was the slower one in the ladder that ran straight after, between other
/// neighbours in each round.
inline constexpr double kLeastGain = 1.02;

/// Whether `ratio`, the old configuration's time over the new one's, is worth the change.
constexpr bool worth_changing(double ratio, double low) { return ratio >= kLeastGain && low > 1; }

/// Everything a winner depends on. Change any of it, and it is another entry.
struct Key {
  std::string kernel, tokens, space;  ///< `tokens`: token_hash() of its source; hash of the space
  std::string shape, dtype, layout;   ///< see shape_bucket
  std::string gpu, cc, driver, toolkit;
  int sm_count = 0;
  std::size_t l2_bytes = 0;

  /// 16 hexadecimal digits that stand for all of the above.
  std::string digest() const;
};

/// Which sizes share a winner: every extent above 128 is rounded up to four significant bits
/// (4,095 and 4,096 are 4096; 4,100 is 4608), and says by which power of two up to 8 it can be
/// divided, because alignment decides which kernel path runs: "4096/1 x 4096/8".
std::string shape_bucket(const Size& size);

Key make_key(const Space& space, const AnyProblem& problem, const DevicePointers& at,
             const DeviceInfo& device);

/// One configuration as one process measured it. Ratios to the default, timed in the same rounds,
/// are what can be compared between GPUs and processes; microseconds are for people.
struct Measured {
  double us = 0;
  double ratio = 0, low = 0, high = 0;  ///< default's time / this one's, 95 % interval
  int rounds = 0;      ///< of the finals; 0: only the search saw it, and it may not win
  std::string failed;  ///< why it may not be chosen; empty: it was verified and timed
  bool may_win() const { return failed.empty() && rounds > 0; }
};

struct Entry {
  Key key;
  std::string default_id;
  std::string fixed_id;                      ///< best over all shapes; empty: nobody knows
  std::map<std::string, Measured> measured;  ///< by id

  /// The configuration to launch. The default, unless the best fixed one is worth changing to; and
  /// that, unless the fastest is. What many shapes speak for gives way only to what is faster by
  /// kLeastGain and beyond noise. Depends on what was measured, not on who came when.
  std::string winner() const;
};

/// What two processes measured, together. Associative, commutative, idempotent - so shards can be
/// merged in any order: of two measurements of one configuration a fixed rule keeps one.
Entry joined(const Entry& a, const Entry& b);

class Cache {
 public:
  /// $XDG_CACHE_HOME/kernel-cookbook/tune.json, or ~/.cache/kernel-cookbook/tune.json.
  static std::string default_file();

  explicit Cache(std::string file = default_file()) : file_(std::move(file)) {}
  const std::string& file() const { return file_; }

  /// The entry for `key`, or nothing. A file that is no cache is reported on standard error,
  /// renamed to FILE.corrupt-<n> and not trusted; one that cannot be read is reported and left.
  std::optional<Entry> find(const Key& key) const;
  /// Joins `entry` to what the file holds, now, under the lock: nobody's result is lost.
  /// Throws std::runtime_error where the file cannot be read or written.
  void add(const Entry& entry) const;
  /// The same, for who has just searched and must not lose that as well: "", or why it failed.
  std::string try_add(const Entry& entry) const;
  /// Joins every entry of another cache file. Throws std::runtime_error if it is not one.
  void merge(const std::string& other) const;
  /// All of them; sets a file aside that is no cache.
  std::map<std::string, Entry> entries() const;

 private:
  void update(const std::map<std::string, Entry>& added) const;
  std::string file_;
};

}  // namespace cookbook::tune
