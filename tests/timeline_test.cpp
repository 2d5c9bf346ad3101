// SPDX-License-Identifier: MIT
// The timeline of a level on the SIMT backend: an order, by which the levels of the chapters differ
// as they say. Each property is asked of a kernel that lacks it, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "common/backend/simt/runtime/timeline.hpp"
#include "common/device/cp_async.cuh"
#include "common/device/timeline.cuh"
#include "common/harness/report/timeline.hpp"
#include "common/harness/run/commands.hpp"
#include "common/harness/run/options.hpp"
#include "common/harness/verdict/check.hpp"
#include "tests/error_of.hpp"
#include "tests/folder.hpp"
#include "tests/text.hpp"

namespace cookbook {

Chapter chapter_6_entry();

namespace {

using Tracks = std::vector<TimelineTrack>;
using Spans = std::vector<TimelineSpan>;

Tracks record_launch(const std::function<void()>& launches) {
  simt::start_timeline(4);
  launches();
  return make_timeline(simt::stop_timeline(), false);
}

/// The timeline of a level of the chapter's first ladder.
Tracks record_level(const Chapter& chapter, const std::string& name, const Size& size) {
  const Ladder& ladder = chapter.ladders.front();
  const LevelEntry* level = ladder.find(name);
  if (!level) throw std::out_of_range("no level " + name);
  Instance instance(ladder, size, InputKind::normal, 1);
  const auto run = level->prepare(instance.problem(), instance.pointers());
  instance.reset();
  Tracks tracks = record_launch([&] { run(Stream{}); });
  EXPECT_TRUE(instance.compare().ok) << name;
  return tracks;
}

/// Block 0's spans of a category, by their begins. warp -1: its copies by TMA.
Spans spans_of(const Tracks& tracks, int warp, const std::string& category) {
  Spans found;
  for (const TimelineTrack& track : tracks) {
    if (track.block != 0 || track.warp != warp) continue;
    for (const TimelineSpan& span : track.spans) {
      if (span.category == category) found.push_back(span);
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return found;
}

/// Of how many tiles the next one's copy begins before their multiply ends.
int copied_ahead(const Spans& copies, const Spans& multiplies) {
  int ahead = 0;
  for (std::size_t i = 0; i + 1 < copies.size() && i < multiplies.size(); ++i) {
    ahead += copies[i + 1].begin < multiplies[i].end;
  }
  return ahead;
}

bool has_track(const Tracks& tracks, const std::string& name) {
  return std::any_of(tracks.begin(), tracks.end(),
                     [&](const TimelineTrack& track) { return track.name == name; });
}

// ---- a kernel with two buffers, and the planted one that has a single buffer ----

constexpr int kThreads = 64, kTiles = 4;

/// out[i] = sum of tiles' in[i]. `kBuffers`: 2 copies the next tile during this one's sum.
template <int kBuffers>
__global__ void sum_tiles(const float* in, float* out) {
  __shared__ float tile[kBuffers][kThreads];
  const int i = static_cast<int>(threadIdx.x);
  const auto copy = [&](int t) {
    cp_async<4>(&tile[t % kBuffers][i], &in[t * kThreads + i]);
    cp_async_commit();
  };
  float sum = 0;
  copy(0);
  for (int t = 0; t < kTiles; ++t) {
    if (kBuffers > 1 && t + 1 < kTiles) {
      copy(t + 1);
      cp_async_wait<1>();
    } else {
      cp_async_wait<0>();
    }
    __syncthreads();
    timeline::begin(timeline::Kind::multiply);
    sum += tile[t % kBuffers][(i + 1) % kThreads];
    timeline::end(timeline::Kind::multiply);
    __syncthreads();
    if (kBuffers == 1 && t + 1 < kTiles) copy(t + 1);
  }
  out[i] = sum;
}

template <int kBuffers>
void launch_sum() {
  DeviceMemory in(kTiles * kThreads * sizeof(float), "in"), out(kThreads * sizeof(float), "out");
  in.fill(0);
  launch(sum_tiles<kBuffers>, {dim3(8), dim3(kThreads)}, Stream{}, in.as<float>(), out.as<float>());
}
template <int kBuffers>
Tracks record_sum() {
  return record_launch(launch_sum<kBuffers>);
}

TEST(Timeline, TwoBuffersCopyDuringTheSum) {
  const Tracks tracks = record_sum<2>();
  for (const int warp : {0, 1}) {
    EXPECT_EQ(copied_ahead(spans_of(tracks, warp, "copy"), spans_of(tracks, warp, "multiply")),
              kTiles - 1);
  }
  EXPECT_TRUE(has_track(tracks, "warp 0"));
  EXPECT_TRUE(has_track(tracks, "warp 1: copies in flight"));
}

TEST(Timeline, TheFirstFourBlocksAreRecorded) {
  std::set<std::uint32_t> blocks;
  for (const TimelineTrack& track : record_sum<2>()) blocks.insert(track.block);
  EXPECT_EQ(blocks, (std::set<std::uint32_t>{0, 1, 2, 3}));
}

TEST(Timeline, OneBufferDoesNot) {
  const Tracks tracks = record_sum<1>();
  const Spans copies = spans_of(tracks, 0, "copy"), sums = spans_of(tracks, 0, "multiply");
  ASSERT_EQ(copies.size(), std::size_t{kTiles});
  ASSERT_EQ(sums.size(), std::size_t{kTiles});
  EXPECT_EQ(copied_ahead(copies, sums), 0);
}

TEST(Timeline, NothingIsRecordedUnlessAsked) {
  record_sum<2>();
  launch_sum<2>();
  EXPECT_TRUE(record_launch([] {}).empty());
}

// ---- the levels of the chapters ----

TEST(TimelineOfChapter6, APipelineCopiesAheadAndASingleStageDoesNot) {
  const Chapter chapter = chapter_6_entry();
  const Size size = {128, 128, 320};  // five k-blocks
  const Tracks single = record_level(chapter, "swizzle_128", size);
  EXPECT_EQ(spans_of(single, -1, "copy").size(), 5u);
  EXPECT_EQ(spans_of(single, 0, "multiply").size(), 5u);
  EXPECT_EQ(copied_ahead(spans_of(single, -1, "copy"), spans_of(single, 0, "multiply")), 0);
  const Tracks pipeline = record_level(chapter, "pipeline", size);
  EXPECT_EQ(copied_ahead(spans_of(pipeline, -1, "copy"), spans_of(pipeline, 0, "multiply")), 4);
}

TEST(TimelineOfChapter6, WarpsAreNamedByTheirRoles) {
  const Tracks tracks = record_level(chapter_6_entry(), "two_consumers", {128, 256, 320});
  EXPECT_TRUE(has_track(tracks, "producer (warp 0)"));
  EXPECT_TRUE(has_track(tracks, "consumer 0 (warp 4)"));
  EXPECT_TRUE(has_track(tracks, "consumer 1 (warp 11): multiplies in flight"));
  const Spans waits = spans_of(tracks, 4, "wait"), copies = spans_of(tracks, -1, "copy");
  ASSERT_FALSE(waits.empty());
  EXPECT_EQ(waits.front().name, "wait full[0]");
  EXPECT_EQ(spans_of(tracks, 0, "wait").front().name, "wait empty[0]");
  EXPECT_EQ(copies.front().name, "copy [0]");
  EXPECT_EQ(copies.front().bytes, (128u + 256u) * 64 * 2);
  EXPECT_EQ(copies.back().name, "copy [0]");  // the fifth k-block, in the first of four stages
  EXPECT_FALSE(spans_of(tracks, 4, "store").empty());
}

/// How many batches of a warp begin before the previous one is known to have ended.
int batches_overlap(const Spans& batches) { return copied_ahead(batches, batches); }

TEST(TimelineOfChapter6, OneBatchStaysInFlight) {
  const Chapter chapter = chapter_6_entry();
  const Size size = {128, 256, 320};
  EXPECT_EQ(batches_overlap(spans_of(record_level(chapter, "two_consumers", size), 4, "multiply")),
            0);
  EXPECT_EQ(batches_overlap(spans_of(record_level(chapter, "one_in_flight", size), 4, "multiply")),
            4);
}

// ---- from events to tracks ----

timeline::Event event(std::uint64_t clock, timeline::Kind kind, timeline::Edge edge,
                      std::uint32_t value = 0) {
  return {0, clock, 0, 0, kind, edge, 0, value};
}

TEST(Timeline, OverlappingSpansAreOnTracksOfTheirOwn) {
  using enum timeline::Kind;
  using enum timeline::Edge;
  const Tracks tracks =
      make_timeline({event(0, commit_wgmma, moment), event(1, commit_wgmma, moment),
                     event(2, wait_wgmma, begin, 1), event(3, wait_wgmma, end, 1),
                     event(4, wait_wgmma, begin), event(5, wait_wgmma, end)},
                    false);
  ASSERT_EQ(tracks.size(), 3u);
  EXPECT_EQ(tracks[1].name, "warp 0: multiplies in flight");
  EXPECT_EQ(tracks[2].name, "warp 0: multiplies in flight, 2");
  EXPECT_EQ(tracks[1].spans.front().end, 3);
  EXPECT_EQ(tracks[2].spans.front().begin, 1);
  EXPECT_EQ(tracks[2].spans.front().end, 5);
}

// Without a name: a barrier that expects bytes says that a stage is full, and nothing else does.
TEST(Timeline, ABarrierThatExpectsBytesIsAFullOne) {
  using enum timeline::Kind;
  using enum timeline::Edge;
  std::vector<timeline::Event> events = {
      event(0, expect_bytes, moment, 512), event(1, commit_stores, moment),
      event(2, wait_barrier, begin),       event(3, wait_barrier, end),
      event(4, wait_barrier, begin),       event(5, wait_barrier, end)};
  for (const int of_first : {0, 2, 3}) events[of_first].object = 64;
  for (const int of_second : {1, 4, 5}) events[of_second].object = 128;
  std::vector<std::string> names;
  for (const TimelineTrack& track : make_timeline(events, false)) {
    for (const TimelineSpan& span : track.spans) {
      if (span.category == "wait") names.push_back(span.name);
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"wait full", "wait barrier"}));
}

struct Marks {
  const char* why;
  std::uint64_t clocks[4], nanoseconds[4];  // of two spans; 0: has not read the timer
  double us[4];                             // what they are drawn at
};

TEST(Timeline, TimesComeFromTheSmsClockAtTheGlobalTimersRate) {
  using enum timeline::Kind;
  using enum timeline::Edge;
  for (const Marks& marks :
       {Marks{"three clocks take two units of the timer, which ticks more rarely than the clock",
              {10000, 10300, 11500, 13000},
              {500000, 500000, 501000, 502000},
              {0, 0.2, 1, 2}},
        {"the oldest marks are lost, so the first that is left has not read the timer",
         {7000, 10000, 11500, 13000},
         {0, 500000, 0, 502000},
         {0, 2, 3, 4}}}) {
    SCOPED_TRACE(marks.why);
    std::vector<timeline::Event> events = {
        event(marks.clocks[0], multiply, begin), event(marks.clocks[1], multiply, end),
        event(marks.clocks[2], store, begin), event(marks.clocks[3], store, end)};
    for (std::size_t i = 0; i < 4; ++i) events[i].nanoseconds = marks.nanoseconds[i];
    const Tracks tracks = make_timeline(events, true);
    ASSERT_EQ(tracks.size(), 1u);
    for (std::size_t i = 0; i < 4; ++i) {
      const TimelineSpan& span = tracks[0].spans[i / 2];
      EXPECT_DOUBLE_EQ(i % 2 == 0 ? span.begin : span.end, marks.us[i]) << i;
    }
  }
}

// ---- the trace ----

/// What is wrong with the begins and ends of a trace; "" if they nest on each thread, in order.
std::string mistake_in(const nlohmann::json& trace) {
  std::map<std::pair<int, int>, std::vector<double>> open;
  std::map<std::pair<int, int>, double> now;
  for (const auto& entry : trace.at("traceEvents")) {
    const std::string phase = entry.at("ph");
    if (phase == "M") continue;
    const std::pair<int, int> thread{entry.at("pid"), entry.at("tid")};
    const double at = entry.at("ts");
    if (now.count(thread) && at < now[thread]) return "time runs backwards";
    now[thread] = at;
    if (phase == "B") {
      open[thread].push_back(at);
    } else if (open[thread].empty()) {
      return "an end without a begin";
    } else {
      open[thread].pop_back();
    }
  }
  for (const auto& [thread, begins] : open) {
    if (!begins.empty()) return "a begin without an end";
  }
  return "";
}

/// The file that is recorded of a level, or by default.
nlohmann::json recorded(const Chapter& chapter, const std::vector<std::string>& levels) {
  const Folder folder;
  Options options;
  options.levels = levels;
  options.timeline = folder / "trace.json";
  EXPECT_EQ(record_timeline(chapter, options), 0);
  return nlohmann::json::parse(std::ifstream(options.timeline));
}

TEST(TimelineJson, NestsAndSaysThatItHasNoTimes) {
  nlohmann::json trace = recorded(chapter_6_entry(), {"one_in_flight"});
  EXPECT_EQ(mistake_in(trace), "");
  EXPECT_GT(trace.at("traceEvents").size(), 100u);
  const auto& about = trace.at("otherData");
  EXPECT_EQ(about.at("clock"), "order");
  EXPECT_CONTAINS(about.at("note").get<std::string>(), "no time");
  EXPECT_EQ(about.at("level"), "one_in_flight");
  // The check itself: without its last end the trace is wrong.
  trace["traceEvents"].erase(trace["traceEvents"].size() - 1);
  EXPECT_EQ(mistake_in(trace), "a begin without an end");
}

TEST(TimelineJson, RecordsTheLastLevelUnlessTold) {
  const Chapter chapter = chapter_6_entry();
  EXPECT_EQ(recorded(chapter, {}).at("otherData").at("level"),
            chapter.ladders.front().levels.back().name);
}

TEST(TimelineJson, ALevelThatMarksNothingSaysSo) {
  Chapter chapter = chapter_6_entry();
  LevelEntry& level = chapter.ladders.front().levels.front();
  level.name = "silent";
  level.prepare = [](const AnyProblem&, const DevicePointers&) { return [](Stream) {}; };
  const Folder folder;
  Options options;
  options.levels = {"silent"};
  options.timeline = folder / "trace.json";
  const std::string said = error_of<UsageError>([&] { record_timeline(chapter, options); });
  EXPECT_CONTAINS(said, "level silent has no marks");
  EXPECT_FALSE(std::filesystem::exists(options.timeline));
}

TEST(TimelineJson, OneLevelAtATime) {
  Options options;
  options.levels = {"1", "2"};
  options.timeline = "unused.json";
  EXPECT_THROW(record_timeline(chapter_6_entry(), options), UsageError);
}

}  // namespace
}  // namespace cookbook
