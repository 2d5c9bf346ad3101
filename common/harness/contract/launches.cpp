// SPDX-License-Identifier: MIT
#include "common/harness/contract/launches.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/backend/observe.hpp"

namespace cookbook {
namespace {

using Json = nlohmann::ordered_json;

std::string extents(const dim3& extent) {
  return fmt::format("{}x{}x{}", extent.x, extent.y, extent.z);
}

Json to_json(const Launch& launch) {
  const LaunchConfig& config = launch.config;
  Json json{
      {"kernel", launch.kernel}, {"grid", extents(config.grid)}, {"block", extents(config.block)}};
  if (config.cluster > 1) json["cluster"] = config.cluster;
  if (config.smem_bytes > 0) json["shared_bytes"] = config.smem_bytes;
  if (config.cooperative) json["cooperative"] = true;
  if (config.dependent) json["dependent"] = true;
  return json;
}

Json to_json(const TensorMapSpec& map) {
  return {{"box", fmt::format("{}", fmt::join(map.box, "x"))},
          {"element_bytes", tensor_type_bytes(map.dtype)},
          {"swizzle_bytes", swizzle_span_bytes(map.swizzle)},
          {"l2_promotion", static_cast<int>(map.l2_promotion)}};
}

}  // namespace

Launches launches_of(const std::function<void()>& work) {
  static Launches seen;
  seen = {};
  struct Observing {
    Observing() {
      set_observer(
          {.launch =
               [](const void* kernel, const LaunchConfig* config) {
                 if (config) seen.launches.push_back({mangled_name(kernel), *config});
               },
           .tensor_map = [](const TensorMapSpec& spec) { seen.tensor_maps.push_back(spec); }});
    }
    ~Observing() { set_observer({}); }
  } const observing;
  work();
  return std::move(seen);
}

nlohmann::ordered_json to_json(const Launches& all) {
  Json launches = Json::array(), maps = Json::array();
  for (std::size_t i = 0; i < all.launches.size();) {
    Json one = to_json(all.launches[i]);
    std::size_t end = i + 1;
    while (end < all.launches.size() && to_json(all.launches[end]) == one) ++end;
    if (end - i > 1) one["times"] = end - i;
    launches.push_back(std::move(one));
    i = end;
  }
  for (const TensorMapSpec& map : all.tensor_maps) maps.push_back(to_json(map));
  return {{"launches", launches}, {"tensor_maps", maps}};
}

}  // namespace cookbook
