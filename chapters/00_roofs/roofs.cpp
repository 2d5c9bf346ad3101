// SPDX-License-Identifier: MIT
#include "common/harness/roofs.hpp"

#include <memory>

#include "common/bench/bench.hpp"
#include "common/harness/check.hpp"
#include "common/harness/rates.hpp"

namespace cookbook {

Chapter chapter_0_entry();

Roofs measure_roofs(const std::function<void(const std::string&)>& progress,
                    std::optional<Roof> only) {
  // The inputs are drawn once; measuring again only launches again.
  struct Prepared {
    Roof roof;
    double bytes, flops;
    std::unique_ptr<Instance> instance;
    Contender contender;
  };
  static const std::vector<Prepared> prepared = [] {
    std::vector<Prepared> list;
    for (const Ladder& ladder : chapter_0_entry().ladders) {
      // Each kernel is long enough for a steady clock, and the whole set takes about two seconds.
      const LevelEntry& level = ladder.levels[0];
      auto instance = std::make_unique<Instance>(ladder, ladder.gpu_size, InputKind::normal, 1);
      if (!level.supports(instance->problem(), device_info())) continue;
      Contender contender{ladder.name, level.prepare(instance->problem(), instance->pointers())};
      const double bytes = instance->problem().bytes();
      const double flops = instance->problem().flops();
      list.push_back({ladder.roof, bytes, flops, std::move(instance), std::move(contender)});
    }
    return list;
  }();

  BenchOptions options;
  options.min_rounds = 7;
  options.seconds = 0.15;
  Roofs roofs;
  for (const Prepared& entry : prepared) {
    if (only && entry.roof != *only) continue;
    if (progress) progress("measuring this GPU's roofs: " + entry.contender.name);
    const Measurement m = measure({entry.contender}, options, nullptr).front();
    if (!m.error.empty()) continue;
    enter_roof(entry.roof, entry.bytes, entry.flops, m.cold, m.hot, roofs);
  }
  return roofs;
}

}  // namespace cookbook
