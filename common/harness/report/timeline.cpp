// SPDX-License-Identifier: MIT
#include "common/harness/report/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace cookbook {
namespace {

using timeline::Edge;
using timeline::Event;
using timeline::Kind;

/// What the marks of a block say of a barrier.
struct Barrier {
  std::string stage;  // "[2]", "K[0]" or "" if it has no name
  bool full = false;  // or else it says that a stage is empty
  bool named = false;
};

/// Spans of a warp, or of asynchronous operations, before they are laid out on tracks.
using Spans = std::vector<TimelineSpan>;

/// What is in flight, first in, first out, as the waits count it.
struct InFlight {
  std::deque<TimelineSpan> open;
  Spans done;

  /// A wait has shown that at most `keep` are left.
  void finish(std::size_t keep, double now) {
    while (open.size() > keep) {
      open.front().end = now;
      done.push_back(std::move(open.front()));
      open.pop_front();
    }
  }
};

struct Warp {
  Spans own;
  std::map<Kind, TimelineSpan> begun;
  InFlight multiplies, copies, stores;
  std::string stage;  // of the last full barrier that it waited for
  int multiplied = 0, copied = 0;
  bool loads = false, computes = false;
};

class Block {
 public:
  explicit Block(const std::vector<const Event*>& events) {
    for (const Event* event : events) name(*event);
  }

  void add(const Event& event, double now) {
    Warp& warp = warps_[event.warp];
    last_ = now;
    if (event.edge == Edge::moment) {
      start(warp, event, now);
    } else if (event.edge == Edge::begin) {
      warp.begun[event.kind] = begun_at(now, name_of(warp, event));
    } else if (const auto begun = warp.begun.find(event.kind); begun != warp.begun.end()) {
      begun->second.end = now;
      warp.own.push_back(std::move(begun->second));
      warp.begun.erase(begun);
      finish(warp, event, now);
    }
  }

  /// The tracks of the block, whose index is `block`.
  std::vector<TimelineTrack> tracks(std::uint32_t block) {
    std::vector<TimelineTrack> tracks;
    for (auto& [object, copies] : copies_) {
      copies.finish(0, last_);
      arrivals_.insert(arrivals_.end(), copies.done.begin(), copies.done.end());
    }
    lay_out(tracks, block, -1, "copies by TMA", arrivals_);
    const bool specialised = std::any_of(warps_.begin(), warps_.end(), [](const auto& warp) {
      return warp.second.loads && !warp.second.computes;
    });
    std::set<int> consumers;  // their warpgroups
    for (const auto& [index, warp] : warps_) {
      if (warp.computes) consumers.insert(index / 4);
    }
    for (auto& [warp_index, warp] : warps_) {
      const int index = warp_index;  // clang 14 lets no lambda use a structured binding
      std::string name = fmt::format("warp {}", index);
      if (specialised && warp.computes) {
        const auto rank = std::distance(consumers.begin(), consumers.find(index / 4));
        name = fmt::format("consumer {} ({})", rank, name);
      } else if (specialised && warp.loads) {
        name = fmt::format("producer ({})", name);
      }
      lay_out(tracks, block, index, name, warp.own);
      const auto in_flight = [&](InFlight& all, const char* what) {
        all.finish(0, last_);
        lay_out(tracks, block, index, fmt::format("{}: {} in flight", name, what), all.done);
      };
      in_flight(warp.copies, "copies");
      in_flight(warp.multiplies, "multiplies");
      in_flight(warp.stores, "stores");
    }
    return tracks;
  }

 private:
  void name(const Event& event) {
    if (event.edge != Edge::moment) return;
    if (event.kind == Kind::name_full || event.kind == Kind::name_empty) {
      const auto letter = static_cast<char>(event.value / 256);
      Barrier& barrier = barriers_[event.object];
      barrier.stage =
          fmt::format("{}[{}]", letter ? std::string(1, letter) : "", event.value % 256);
      barrier.full = event.kind == Kind::name_full;
      barrier.named = true;
    } else if (event.kind == Kind::expect_bytes) {
      barriers_[event.object].full = true;
    }
  }

  std::string name_of(const Warp& warp, const Event& event) const {
    switch (event.kind) {
      case Kind::wait_barrier: {
        const auto found = barriers_.find(event.object);
        if (found == barriers_.end()) return "wait barrier";
        return fmt::format("wait {}{}", found->second.full ? "full" : "empty", found->second.stage);
      }
      case Kind::wait_turn: return fmt::format("wait barrier {}", event.object);
      case Kind::wait_wgmma: return "wait wgmma";
      case Kind::wait_copies: return "wait copies";
      case Kind::wait_stores: return "wait stores";
      case Kind::copy: return fmt::format("copy {}", warp.copied);
      case Kind::multiply: return fmt::format("multiply {}", warp.multiplied);
      case Kind::softmax: return "softmax";
      default: return "store";
    }
  }

  /// The category is the first word of the name.
  static TimelineSpan begun_at(double now, const std::string& name, std::uint32_t bytes = 0) {
    return {name, name.substr(0, name.find(' ')), now, now, bytes};
  }

  void start(Warp& warp, const Event& event, double now) {
    switch (event.kind) {
      case Kind::expect_bytes: {
        warp.loads = true;
        const Barrier& barrier = barriers_[event.object];
        copies_[event.object].open.push_back(
            begun_at(now, barrier.named ? "copy " + barrier.stage : "copy", event.value));
        break;
      }
      case Kind::commit_wgmma: {
        warp.computes = true;
        const std::string which =
            warp.stage.empty() ? fmt::format("{}", warp.multiplied) : warp.stage;
        ++warp.multiplied;
        warp.multiplies.open.push_back(begun_at(now, "multiply " + which));
        break;
      }
      case Kind::commit_copies:
        warp.copies.open.push_back(begun_at(now, fmt::format("copy {}", warp.copied++)));
        break;
      case Kind::commit_stores: warp.stores.open.push_back(begun_at(now, "store")); break;
      default: break;
    }
  }

  /// What the end of a span shows about what is in flight.
  void finish(Warp& warp, const Event& event, double now) {
    switch (event.kind) {
      case Kind::wait_barrier:
        if (const auto copies = copies_.find(event.object); copies != copies_.end()) {
          copies->second.finish(0, now);
        }
        if (const auto found = barriers_.find(event.object);
            found != barriers_.end() && found->second.full && found->second.named) {
          warp.stage = found->second.stage;
        }
        break;
      case Kind::wait_wgmma: warp.multiplies.finish(event.value, now); break;
      case Kind::wait_copies: warp.copies.finish(event.value, now); break;
      case Kind::wait_stores: warp.stores.finish(event.value, now); break;
      case Kind::copy: ++warp.copied; break;
      case Kind::multiply:
        warp.computes = true;
        ++warp.multiplied;
        break;
      default: break;
    }
  }

  /// Adds `spans` as one track, or as several where they overlap without nesting.
  static void lay_out(std::vector<TimelineTrack>& tracks, std::uint32_t block, int warp,
                      const std::string& name, Spans spans) {
    std::stable_sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    struct Layer {
      TimelineTrack track;
      std::vector<double> ends;  // of the spans around the next one
    };
    std::vector<Layer> layers;
    for (TimelineSpan& span : spans) {
      std::size_t i = 0;
      for (; i < layers.size(); ++i) {
        std::vector<double>& ends = layers[i].ends;
        while (!ends.empty() && ends.back() <= span.begin) ends.pop_back();
        if (ends.empty() || ends.back() >= span.end) break;
      }
      if (i == layers.size()) layers.push_back({{block, name, warp, {}}, {}});
      layers[i].ends.push_back(span.end);
      layers[i].track.spans.push_back(std::move(span));
    }
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (i > 0) layers[i].track.name += fmt::format(", {}", i + 1);
      tracks.push_back(std::move(layers[i].track));
    }
  }

  std::map<std::uint32_t, Barrier> barriers_;
  std::map<std::uint32_t, InFlight> copies_;  // by barrier
  std::map<int, Warp> warps_;
  Spans arrivals_;
  double last_ = 0;
};

/// Microseconds since `origin`, in nanoseconds, of the events of one block. All of them come from
/// one SM: its clock is finer than the global timer, which is used for its rate and its origin, and
/// which only some events have read.
class Clock {
 public:
  Clock(const std::vector<const Event*>& events, std::uint64_t origin) {
    const Event *first = nullptr, *last = nullptr;
    for (const Event* event : events) {
      if (event->nanoseconds == 0) continue;
      if (first == nullptr) first = event;
      last = event;
    }
    if (first == nullptr) return;
    first_clock_ = first->clock;
    first_ = static_cast<double>(first->nanoseconds - origin) / 1000;
    const auto clocks = static_cast<double>(last->clock - first->clock);
    if (clocks > 0) {
      rate_ = static_cast<double>(last->nanoseconds - first->nanoseconds) / clocks / 1000;
    }
  }
  double at(const Event& event) const {
    const auto since = static_cast<std::int64_t>(event.clock - first_clock_);  // also before it
    return first_ + rate_ * static_cast<double>(since);
  }

 private:
  std::uint64_t first_clock_ = 0;
  double first_ = 0, rate_ = 0;
};

}  // namespace

std::vector<TimelineTrack> make_timeline(std::vector<Event> events, bool timed) {
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.block != b.block ? a.block < b.block : a.clock < b.clock;
  });
  std::map<std::uint32_t, std::vector<const Event*>> blocks;
  std::uint64_t origin = ~std::uint64_t{0};
  for (const Event& event : events) {
    blocks[event.block].push_back(&event);
    if (event.nanoseconds > 0) origin = std::min(origin, event.nanoseconds);
  }
  double earliest = 0;  // of marks that were made before the first reading that is left
  for (const auto& [index, of_block] : blocks) {
    if (timed) earliest = std::min(earliest, Clock(of_block, origin).at(*of_block.front()));
  }
  std::vector<TimelineTrack> tracks;
  for (const auto& [index, of_block] : blocks) {
    Block block(of_block);
    const Clock clock(of_block, origin);
    for (const Event* event : of_block) {
      const double now = clock.at(*event) - earliest;
      block.add(*event, timed ? now : static_cast<double>(event->clock));
    }
    const auto own = block.tracks(index);
    tracks.insert(tracks.end(), own.begin(), own.end());
  }
  return tracks;
}

nlohmann::ordered_json timeline_json(const std::vector<TimelineTrack>& tracks,
                                     const nlohmann::ordered_json& about) {
  using Json = nlohmann::ordered_json;
  Json events = Json::array();
  std::set<std::uint32_t> blocks;
  int thread = 0;
  for (const TimelineTrack& track : tracks) {
    const auto describe = [&](const char* what, const Json& args) {
      events.push_back(
          {{"name", what}, {"ph", "M"}, {"pid", track.block}, {"tid", thread}, {"args", args}});
    };
    if (blocks.insert(track.block).second) {
      describe("process_name", {{"name", fmt::format("block {}", track.block)}});
    }
    describe("thread_name", {{"name", track.name}});
    describe("thread_sort_index", {{"sort_index", thread}});
    std::vector<const TimelineSpan*> open;
    const auto close = [&] {
      events.push_back(
          {{"ph", "E"}, {"ts", open.back()->end}, {"pid", track.block}, {"tid", thread}});
      open.pop_back();
    };
    for (const TimelineSpan& span : track.spans) {
      while (!open.empty() && open.back()->end <= span.begin) close();
      Json begin{{"name", span.name}, {"cat", span.category}, {"ph", "B"},
                 {"ts", span.begin},  {"pid", track.block},   {"tid", thread}};
      if (span.bytes > 0) begin["args"] = {{"bytes", span.bytes}};
      events.push_back(std::move(begin));
      open.push_back(&span);
    }
    while (!open.empty()) close();
    ++thread;
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}, {"otherData", about}};
}

}  // namespace cookbook
