// SPDX-License-Identifier: MIT
#include "common/harness/run/roofs.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "common/bench/bench.hpp"
#include "common/harness/report/rates.hpp"
#include "common/harness/verdict/check.hpp"

namespace cookbook {

Chapter chapter_0_entry();

Roofs measure_roofs(const std::function<void(const std::string&)>& progress,
                    const std::vector<Roof>& only) {
  struct Prepared {
    double bytes, flops;
    std::unique_ptr<Instance> instance;
    Contender contender;
  };
  // The inputs are drawn once, and before anything is measured; measuring again only launches
  // again.
  static std::map<Roof, Prepared> prepared;
  for (const Ladder& ladder : chapter_0_entry().ladders) {
    const bool wanted = std::count(only.begin(), only.end(), ladder.roof) > 0;
    if (!wanted || prepared.count(ladder.roof) > 0) continue;
    const LevelEntry& level = ladder.levels[0];
    auto instance = std::make_unique<Instance>(ladder, ladder.gpu_size, InputKind::normal, 1);
    if (!level.supports(instance->problem(), device_info())) continue;
    Contender contender{ladder.name, level.prepare(instance->problem(), instance->pointers())};
    const double bytes = instance->problem().bytes();
    const double flops = instance->problem().flops();
    prepared.emplace(ladder.roof,
                     Prepared{bytes, flops, std::move(instance), std::move(contender)});
  }

  // Each kernel is long enough for a steady clock, and the whole set takes about two seconds.
  BenchOptions options;
  options.min_rounds = 7;
  options.seconds = 0.15;
  Roofs roofs;
  for (const Roof roof : only) {
    const auto found = prepared.find(roof);
    if (found == prepared.end()) continue;
    const Prepared& entry = found->second;
    if (progress) progress("measuring this GPU's roofs: " + entry.contender.name);
    const Measurement m = measure({entry.contender}, options, nullptr).front();
    if (!m.error.empty()) continue;
    enter_roof(roof, entry.bytes, entry.flops, m.cold, m.hot, roofs);
  }
  return roofs;
}

}  // namespace cookbook
