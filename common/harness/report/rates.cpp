// SPDX-License-Identifier: MIT
#include "common/harness/report/rates.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/harness/report/statistics.hpp"
#include "common/harness/verdict/claims_check.hpp"

namespace cookbook {
namespace {

double gbps(double bytes, const Timing& timing) { return bytes / timing.median * 1e-3; }
double tflops(double flops, const Timing& timing) { return flops / timing.median * 1e-6; }

template <class Row>
void enter_rates(const TimedContender& from, const LadderResult& result, Row& row) {
  row.cold = from.cold;
  if (from.hot.n > 0) row.hot = from.hot;
  row.gbps = gbps(result.bytes, from.cold);
  if (result.flops > 0) row.tflops = tflops(result.flops, from.cold);
}

}  // namespace

void enter_times(const std::vector<TimedContender>& contenders, LadderResult& result) {
  const auto library =
      std::find_if(contenders.begin(), contenders.end(), [](const TimedContender& one) {
        return one.number == TimedContender::kLibrary && one.error.empty();
      });
  const std::optional<double> roof = result.roof_speed();
  const TimedContender* previous = nullptr;
  for (const TimedContender& one : contenders) {
    if (one.number == TimedContender::kLibrary) {
      ReferenceResult& row = result.references[one.row];
      if (one.error.empty()) {
        enter_rates(one, result, row);
      } else {
        row.check.set(Fault::unsupported, one.error);
      }
      continue;
    }
    LevelResult& row = result.levels[one.row];
    if (!one.error.empty()) {
      row.check.set(Fault::kernel_failed, one.error);
      continue;
    }
    enter_rates(one, result, row);
    const std::optional<double> speed = result.speed(row.gbps, row.tflops);
    if (roof && speed) row.roof_fraction = *speed / *roof;
    // The level below in the ladder: not the last one that was selected, or could run.
    if (previous != nullptr && previous->number + 1 == one.number) {
      row.vs_previous = paired_ratio(previous->cold_us, one.cold_us);
    }
    previous = &one;
    if (library != contenders.end()) {
      row.vs_reference = paired_ratio(library->cold_us, one.cold_us);
      row.reference_name = library->name;
    }
  }
}

void check_speed_claim(ClaimResult& claim, const LevelResult& level, const std::string& device,
                       const std::string& made_for) {
  std::optional<double> measured;
  switch (claim.claim.metric) {
    case Metric::time_ratio_previous:
      if (level.vs_previous) measured = level.vs_previous->ratio;
      break;
    case Metric::time_ratio_reference:
      if (level.vs_reference && level.reference_name == claim.claim.name) {
        measured = level.vs_reference->ratio;
      }
      break;
    case Metric::roof_fraction: measured = level.roof_fraction; break;
    default: return;
  }
  if (!measured) return;
  claim.checked_by = "cuda";
  claim.measured = fmt::format("{:.3f}", *measured);
  const std::string& gpu = claim.claim.gpu.empty() ? made_for : claim.claim.gpu;
  const bool made_here = device.find(gpu) != std::string::npos;
  if (satisfies(claim.claim, *measured)) {
    claim.holds = true;
  } else if (made_here) {
    claim.holds = false;
  } else {
    claim.measured += fmt::format(" here; {} claimed on {}", number_text(claim.claim.value), gpu);
  }
}

void enter_roof(Roof roof, double bytes, double flops, const Timing& cold, const Timing& hot,
                Roofs& roofs) {
  const double work = roof_is_bandwidth(roof) ? bytes * 1e-3 : flops * 1e-6;
  for (const RoofInfo& one : measured_roofs()) {
    if (one.roof == roof) roofs[roof] = work / (one.cold ? cold : hot).median;
  }
}

bool over_its_roof(const LevelResult& level) {
  return level.roof_fraction && *level.roof_fraction > 1.03;
}

void raise_roofs(const Roofs& again, Roofs& roofs) {
  for (const auto& [roof, value] : again) {
    double& known = roofs.try_emplace(roof, value).first->second;
    known = std::max(known, value);
  }
}

}  // namespace cookbook
