// SPDX-License-Identifier: MIT
#include "common/harness/report/result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "common/harness/contract/json.hpp"
#include "common/harness/contract/launches.hpp"
#include "common/harness/report/rates.hpp"

namespace cookbook {

using Json = nlohmann::ordered_json;

static void to_json(Json& json, const Timing& timing) {
  json = {{"median", timing.median}, {"q1", timing.q1}, {"q3", timing.q3}, {"n", timing.n}};
}

namespace {

Json level_json(const LevelResult& level) {
  Json json{{"name", level.name},
            {"changed", level.changed},
            {"expect", level.expect},
            // The code is entered when the file is complete (runner.cpp).
            {"identity", {{"code", nullptr}, {"tokens", text_or_null(level.tokens)}}},
            {"status", status_name(level.check.status)},
            {"fault", fault_name(level.check.fault)},
            {"reason", text_or_null(level.check.reason)},
            {"max_error", level.check.max_error},
            {"error_bound", level.check.error_bound},
            {"time_us", level.cold},
            {"time_hot_us", level.hot},
            {"gbps", level.gbps},
            {"tflops", level.tflops},
            {"roof_fraction", level.roof_fraction}};
  auto ratio = [](const std::optional<Ratio>& r) -> Json {
    if (!r) return nullptr;
    return Json{{"ratio", r->ratio}, {"low", r->low}, {"high", r->high}};
  };
  json["vs_previous"] = ratio(level.vs_previous);
  if (level.vs_previous) json["vs_previous"]["verdict"] = verdict(*level.vs_previous);
  json["vs_reference"] = ratio(level.vs_reference);
  if (level.vs_reference) json["vs_reference"]["name"] = level.reference_name;
  json["counters"] = level.counters.empty() ? Json(nullptr) : Json(level.counters);
  json["claims"] = Json::array();
  for (const ClaimResult& claim : level.claims) json["claims"].push_back(to_json(claim));
  json["findings"] = Json::array();
  json["faults"] = Json::array();
  for (const FoundFault& found : level.findings) {
    json["findings"].push_back(found.message);
    json["faults"].push_back(fault_name(found.fault));
  }
  if (!level.lines.empty()) json["lines"] = Json::parse(level.lines);
  if (level.launches) json["launches"] = to_json(*level.launches);
  return json;
}

}  // namespace

const char* verdict(const Ratio& ratio) {
  if (ratio.low > 1 && ratio.ratio >= 1.02) return "faster";
  if (ratio.high < 1 && ratio.ratio <= 1 / 1.02) return "slower";
  return "same";
}

int LadderResult::exit_status() const {
  for (const LevelResult& level : levels) {
    using Status = CheckResult::Status;
    if (level.check.status == Status::crashed || level.check.status == Status::hung) return 3;
  }
  return all_right() ? 0 : 1;
}

bool is_right(const LevelResult& level) {
  return !level.check.is_failure() && level.findings.empty() && !over_its_roof(level) &&
         std::none_of(level.claims.begin(), level.claims.end(),
                      [](const ClaimResult& claim) { return claim.holds == false; });
}

bool LadderResult::all_right() const {
  return trace_error.empty() && std::all_of(levels.begin(), levels.end(), is_right);
}

const std::vector<RoofInfo>& measured_roofs() {
  static const std::vector<RoofInfo> all = {
      {Roof::hbm_copy, "HBM copy", "hbm_copy_gbps", "GB/s", "", true},
      {Roof::hbm_read, "HBM read", "hbm_read_gbps", "GB/s", "", true},
      {Roof::l2, "L2", "l2_gbps", "GB/s", "", false},
      {Roof::shared, "shared memory", "shared_gbps", "GB/s", "", false},
      {Roof::fp32, "FP32 FMA", "fp32_tflops", "TFLOP/s", "fp32", false},
      {Roof::mma_bf16, "mma.sync bf16", "mma_bf16_tflops", "TFLOP/s", "bf16", false},
      {Roof::wgmma_bf16, "wgmma bf16", "wgmma_bf16_tflops", "TFLOP/s", "bf16", false},
      {Roof::fp64, "FP64 FMA", "fp64_tflops", "TFLOP/s", "fp64", false},
      {Roof::mma_tf32, "mma.sync tf32", "mma_tf32_tflops", "TFLOP/s", "tf32", false},
      {Roof::mma_int8, "mma.sync int8", "mma_int8_tops", "TOP/s", "int8", false},
      {Roof::wgmma_tf32, "wgmma tf32", "wgmma_tf32_tflops", "TFLOP/s", "tf32", false},
      {Roof::wgmma_fp8, "wgmma fp8", "wgmma_fp8_tflops", "TFLOP/s", "fp8", false},
      {Roof::wgmma_int8, "wgmma int8", "wgmma_int8_tops", "TOP/s", "int8", false}};
  return all;
}

std::vector<Roof> all_roofs() {
  std::vector<Roof> all;
  for (const RoofInfo& one : measured_roofs()) all.push_back(one.roof);
  return all;
}

std::vector<Roof> needed_roofs(const std::vector<Roof>& own) {
  std::set<std::string> types{""};
  for (const RoofInfo& one : measured_roofs()) {
    if (std::count(own.begin(), own.end(), one.roof) > 0) types.insert(one.type);
  }
  std::vector<Roof> needed;
  for (const RoofInfo& one : measured_roofs()) {
    if (types.count(one.type) > 0) needed.push_back(one.roof);
  }
  return needed;
}

namespace {

/// Null for Roof::own, which is not measured.
const RoofInfo* find_roof(Roof roof) {
  for (const RoofInfo& one : measured_roofs()) {
    if (one.roof == roof) return &one;
  }
  return nullptr;
}

}  // namespace

std::optional<double> roof_value(const Roofs& roofs, Roof roof) {
  const auto found = roofs.find(roof);
  return found == roofs.end() ? std::nullopt : std::optional(found->second);
}

bool roof_is_bandwidth(Roof roof) { return roof <= Roof::shared; }

const char* roof_name(Roof roof) {
  const RoofInfo* found = find_roof(roof);
  return found ? found->name : "stated roof";
}

std::string LadderResult::speed_unit() const {
  const RoofInfo* found = find_roof(roof);
  return found ? found->unit : "G" + operation + "/s";
}

std::optional<double> LadderResult::roof_speed() const {
  if (roof == Roof::own) return own_gops;
  return roofs ? roof_value(*roofs, roof) : std::nullopt;
}

std::optional<double> LadderResult::speed(const std::optional<double>& gbps,
                                          const std::optional<double>& tflops) const {
  if (roof_is_bandwidth(roof)) return gbps;
  return roof == Roof::own && tflops ? std::optional(1e3 * *tflops) : tflops;
}

nlohmann::ordered_json roofs_json(const std::optional<Roofs>& roofs) {
  if (!roofs) return nullptr;
  Json json;
  for (const RoofInfo& one : measured_roofs()) json[one.key] = roof_value(*roofs, one.roof);
  return json;
}

nlohmann::ordered_json to_json(const LadderResult& result) {
  const DeviceInfo& device = device_info();
  const bool is_capstone = !result.capstone.empty();
  Json run{{"chapter", is_capstone ? Json(nullptr) : Json(result.chapter)},
           {"capstone", text_or_null(result.capstone)},
           {"ladder", result.ladder},
           {"title", result.title},
           {"backend", result.backend},
           {"commit", result.commit},
           {"date", result.date},
           {"seed", result.seed},
           {"device",
            {{"name", device.name},
             {"cc", std::to_string(device.cc_major) + "." + std::to_string(device.cc_minor)},
             {"sm_count", device.sm_count},
             {"l2_bytes", device.l2_bytes},
             {"clock_mhz", device.is_simt ? Json(nullptr) : Json(device.clock_mhz)},
             {"driver", text_or_null(device.driver)},
             {"toolkit", text_or_null(device.toolkit)}}},
           {"problem",
            {{"size", result.size},
             {"dims", result.dims},
             {"layout", text_or_null(result.layout)},
             {"dtype", result.dtype},
             {"bytes", result.bytes},
             {"flops", result.flops},
             {"check_size", result.check_size},
             {"trace_size", result.trace_size},
             {"trace_bytes", result.trace_bytes}}},
           {"roof", roof_name(result.roof)},
           {"roofs", roofs_json(result.roofs)},
           {"roofs_after", nullptr}};
  if (result.roof == Roof::own) {
    run["problem"]["operation"] = result.operation;
    run["own_gops"] = result.own_gops;
  }
  run["clocks"] = result.clocks.empty() ? Json(nullptr) : Json::array();
  for (const ClockSample& sample : result.clocks) {
    run["clocks"].push_back({{"seconds", sample.seconds},
                             {"sm_mhz", sample.sm_mhz},
                             {"memory_mhz", sample.memory_mhz},
                             {"celsius", sample.celsius},
                             {"watts", sample.watts}});
  }
  run["levels"] = Json::array();
  for (const LevelResult& level : result.levels) run["levels"].push_back(level_json(level));
  run["references"] = Json::array();
  for (const ReferenceResult& reference : result.references) {
    run["references"].push_back({{"name", reference.name},
                                 {"status", status_name(reference.check.status)},
                                 {"fault", fault_name(reference.check.fault)},
                                 {"reason", text_or_null(reference.check.reason)},
                                 {"time_us", reference.cold},
                                 {"time_hot_us", reference.hot},
                                 {"gbps", reference.gbps},
                                 {"tflops", reference.tflops}});
  }
  return run;
}

void merge_traced(LadderResult& result, const nlohmann::json& traced_run) {
  for (LevelResult& level : result.levels) {
    for (const auto& traced : traced_run.at("levels")) {
      if (traced.at("name") != level.name) continue;
      const CheckResult check = traced;
      if (check.fault == Fault::unsupported && level.check.fault == Fault::none) {
        level.not_traced = check.reason;
      }
      if (check.is_failure() && level.check.fault == Fault::none) {
        level.check.set(check.fault, "traced run: " + check.reason);
      }
      if (traced.at("counters").is_object()) {
        level.counters = traced.at("counters").get<std::map<std::string, double>>();
      }
      level.findings.clear();
      for (std::size_t i = 0; i < traced.at("findings").size(); ++i) {
        level.findings.push_back(
            {fault_named(traced.at("faults").at(i).get<std::string>()), traced["findings"].at(i)});
      }
      enter_counts(traced.at("claims"), level.claims);
    }
  }
}

}  // namespace cookbook
