// SPDX-License-Identifier: MIT
#include "common/harness/roofs.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "common/bench/bench.hpp"
#include "common/harness/check.hpp"
#include "common/harness/rates.hpp"

namespace cookbook {

Chapter chapter_0_entry();

Roofs measure_roofs(const std::function<void(const std::string&)>& progress,
                    const std::vector<Roof>& only) {
  // The inputs are drawn once; measuring again only launches again.
  struct Prepared {
    double bytes, flops;
    std::unique_ptr<Instance> instance;
    Contender contender;
  };
  static std::map<Roof, Prepared> prepared;

  // Each kernel is long enough for a steady clock, and the whole set takes about two seconds.
  BenchOptions options;
  options.min_rounds = 7;
  options.seconds = 0.15;
  Roofs roofs;
  for (const Ladder& ladder : chapter_0_entry().ladders) {
    if (std::count(only.begin(), only.end(), ladder.roof) == 0) continue;
    auto entry = prepared.find(ladder.roof);
    if (entry == prepared.end()) {
      const LevelEntry& level = ladder.levels[0];
      auto instance = std::make_unique<Instance>(ladder, ladder.gpu_size, InputKind::normal, 1);
      if (!level.supports(instance->problem(), device_info())) continue;
      Contender contender{ladder.name, level.prepare(instance->problem(), instance->pointers())};
      const double bytes = instance->problem().bytes();
      const double flops = instance->problem().flops();
      Prepared made{bytes, flops, std::move(instance), std::move(contender)};
      entry = prepared.emplace(ladder.roof, std::move(made)).first;
    }
    const Prepared& roof = entry->second;
    if (progress) progress("measuring this GPU's roofs: " + roof.contender.name);
    const Measurement m = measure({roof.contender}, options, nullptr).front();
    if (!m.error.empty()) continue;
    enter_roof(ladder.roof, roof.bytes, roof.flops, m.cold, m.hot, roofs);
  }
  return roofs;
}

}  // namespace cookbook
