// SPDX-License-Identifier: MIT
// The results of a run, and how they are written as JSON (schema 1, see docs/json.md).
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/contract/level.hpp"
#include "common/harness/verdict/verdict.hpp"

namespace cookbook {

struct Launches;  // launches.hpp

/// Microseconds over `n` samples.
struct Timing {
  double median = 0, q1 = 0, q3 = 0;
  int n = 0;
};

/// A ratio of times from interleaved pairs, with its 95 % interval. Above 1: this one is faster.
struct Ratio {
  double ratio = 0, low = 0, high = 0;
};
/// "faster", "slower", or "same" when within 2 % or when the interval contains 1.
const char* verdict(const Ratio& ratio);

struct LevelResult {
  std::string name, changed, expect;
  std::string tokens;  ///< token_hash() of its source
  CheckResult check;
  std::optional<Timing> cold, hot;
  std::optional<double> gbps, tflops, roof_fraction;
  std::optional<Ratio> vs_previous, vs_reference;
  std::string reference_name;
  std::map<std::string, double> counters;  ///< from the SIMT backend's traced run
  std::vector<ClaimResult> claims;
  std::shared_ptr<const Launches> launches;  ///< at the timed size; null: not recorded
  std::vector<FoundFault> findings;          ///< races, uninitialised reads ... (traced run)
  std::string not_traced;                    ///< why the traced size is not supported
  std::string lines;                         ///< with --explain: counts per source line, as JSON
};

/// Whether nothing is wrong with a level, as far as the run could check it.
bool is_right(const LevelResult& level);

struct ReferenceResult {
  std::string name;
  CheckResult check;
  std::optional<Timing> cold, hot;
  std::optional<double> gbps, tflops;
};

/// Those that were measured, in the unit of measured_roofs().
using Roofs = std::map<Roof, double>;

/// What is known of a roof that chapter 0 measures.
struct RoofInfo {
  Roof roof;
  const char* name;  ///< in the JSON's "roof", and for people
  const char* key;   ///< in the JSON's "roofs"
  const char* unit;  ///< "GB/s", "TFLOP/s" or "TOP/s"
  const char* type;  ///< element type; empty for a roof of memory
  bool cold;         ///< measured after the caches were flushed: a roof of device memory
};
/// All of them, in the order of the JSON.
const std::vector<RoofInfo>& measured_roofs();
std::vector<Roof> all_roofs();
/// What the results of ladders with the roofs `own` need, in that order: the roofs of memory, and
/// those of the ladders' element types, because a figure draws all roofs of one type.
std::vector<Roof> needed_roofs(const std::vector<Roof>& own);

/// Clock, power and temperature while a ladder was timed (NVML; empty where it is missing).
struct ClockSample {
  double seconds = 0;
  int sm_mhz = 0, memory_mhz = 0, celsius = 0;
  double watts = 0;
};

struct LadderResult {
  int chapter = 0;
  std::string capstone, program, heading;  ///< as in Chapter
  std::string ladder, title, backend, date, dtype, layout;
  std::optional<std::string> commit;
  std::uint64_t seed = 0;
  Size size, check_size, trace_size;
  std::vector<std::string> dims;
  double bytes = 0, flops = 0, trace_bytes = 0;  ///< at size; at trace_size
  Roof roof = Roof::hbm_copy;
  std::optional<Roofs> roofs;
  std::string operation;           ///< with Roof::own: of the ladder's OwnOperations
  std::optional<double> own_gops;  ///< the same: 10^9 per second, as the ladder states
  std::vector<ClockSample> clocks;
  std::vector<LevelResult> levels;
  std::vector<ReferenceResult> references;

  bool device_lost = false;  ///< a level made the GPU unusable to this process
  std::string trace_error;   ///< the traced run failed: why; mechanism claims then stay open

  /// True if there was no mismatch, race or false claim, and everything was traced.
  bool all_right() const;
  /// 0: all right; 1: not; 3: a level crashed or hung.
  int exit_status() const;

  /// What its speed is counted in: "GB/s", "TFLOP/s", or of its own kind "Gkey/s".
  std::string speed_unit() const;
  /// The roof in that unit. Empty when it was not measured.
  std::optional<double> roof_speed() const;
  /// In that unit, the speed of a level or library with these rates.
  std::optional<double> speed(const std::optional<double>& gbps,
                              const std::optional<double>& tflops) const;
};

/// The roof of `roofs` that `roof` names: GB/s or TFLOP/s. Empty when it was not measured.
std::optional<double> roof_value(const Roofs& roofs, Roof roof);
bool roof_is_bandwidth(Roof roof);
const char* roof_name(Roof roof);

nlohmann::ordered_json to_json(const LadderResult& result);
nlohmann::ordered_json roofs_json(const std::optional<Roofs>& roofs);
/// Takes over counters, mechanism claims and findings from the JSON of a traced run.
void merge_traced(LadderResult& result, const nlohmann::json& traced_run);

}  // namespace cookbook
