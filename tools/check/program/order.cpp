// SPDX-License-Identifier: MIT
#include "tools/check/program/order.hpp"

#include <algorithm>

#include "tools/check/program/report.hpp"

namespace cookbook::simt::program {

// The host's own entry among the streams.
const void* Order::the_host() {
  static const char host = 0;
  return &host;
}

void Order::learn(const void* who, const Clock& from) {
  Clock& known = known_[who];
  for (const auto& [stream, number] : from) known[stream] = std::max(known[stream], number);
}

void Order::add_stream(const void* stream, bool blocking, Place place) {
  streams_[stream] = {blocking, "the stream created at " + describe(place)};
}

void Order::add_branch(const void* stream, Place place) {
  streams_[stream] = {false, "a branch of the graph instantiated at " + describe(place)};
}

void Order::join_default(const void* stream) {
  if (stream != nullptr) {
    if (streams_[stream].blocking) learn(stream, known_[nullptr]);
    return;
  }
  for (const auto& [other, facts] : streams_) {
    if (other != nullptr && facts.blocking) learn(nullptr, known_[other]);
  }
}

void Order::begin(const void* stream, std::string what) {
  learn(stream, known_[the_host()]);
  join_default(stream);
  now_ = {std::move(what), streams_[stream].name, stream, ++known_[stream][stream], false, {}};
}

void Order::end() {
  check(now_, known_[now_.on]);
  pending_.push_back(std::move(now_));
  now_ = {};
  // A program that never waits must not become slow.
  constexpr size_t kRemembered = 256;
  if (pending().size() > kRemembered) pending_.erase(pending_.begin());
}

void Order::check(const Operation& later, const Clock& known) {
  for (const Operation& earlier : pending_) {
    const auto at = known.find(earlier.on);
    if (at != known.end() && at->second >= earlier.number) continue;
    for (const Range& a : earlier.ranges) {
      const auto meets = [&a](const Range& b) {
        if (a.use == b.use && a.use != Use::write) return false;
        return a.begin < b.end && b.begin < a.end;
      };
      const auto b = std::find_if(later.ranges.begin(), later.ranges.end(), meets);
      if (b == later.ranges.end()) continue;
      report_(earlier, later, std::max(a.begin, b->begin), std::min(a.end, b->end));
      break;
    }
  }
}

const std::vector<Order::Operation>& Order::pending() {
  Clock& known = known_[the_host()];
  std::erase_if(pending_, [&](const Operation& one) { return known[one.on] >= one.number; });
  return pending_;
}

void Order::wait_for_all() {
  for (const auto& [stream, facts] : streams_) wait_for(stream);
  pending();
}

void Order::record(const void* event, const void* stream) {
  learn(stream, known_[the_host()]);
  join_default(stream);
  events_[event] = known_[stream];
}

bool Order::is_over(const void* event) {
  const Clock &host = known_[the_host()], &recorded = events_[event];
  return std::all_of(recorded.begin(), recorded.end(), [&host](const auto& entry) {
    const auto at = host.find(entry.first);
    return entry.first == the_host() || (at != host.end() && at->second >= entry.second);
  });
}

void Order::host_access(uintptr_t begin, uintptr_t end, bool writes, const std::string& what) {
  Operation host{what, "the host", the_host(), 0, false, {}};
  host.ranges.push_back({begin, end, writes ? Use::write : Use::read});
  check(host, known_[the_host()]);
}

}  // namespace cookbook::simt::program
