// SPDX-License-Identifier: MIT
// The tuner's small parts: where each searcher looks, with times that are made up, and how sizes
// and configurations are compared and written.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "chapters/11_autotuning/tuner/cache.hpp"
#include "chapters/11_autotuning/tuner/search.hpp"
#include "chapters/11_autotuning/tuner/tuner.hpp"

namespace cookbook::tune {
namespace {

using Indices = std::vector<std::size_t>;

/// Configuration c always takes us(c); NaN: it fails. Keeps what it was asked for.
class MadeUp final : public Timer {
 public:
  explicit MadeUp(std::function<double(std::size_t)> us) : us_(std::move(us)) {}
  explicit MadeUp(std::vector<double> us) : us_([us](std::size_t c) { return us.at(c); }) {}
  void warm_up(std::size_t) override {}
  std::vector<Samples> time(const Indices& candidates, int rounds) override {
    calls.push_back(candidates);
    // A search that does not end is a failure, not a wait.
    if (calls.size() > 10000) throw std::runtime_error("10,000 looks, and no end");
    std::vector<Samples> all;
    for (const std::size_t c : candidates) {
      Samples samples;
      if (std::isnan(us_(c))) {
        samples.failure = "it fails";
      } else {
        samples.us.assign(static_cast<std::size_t>(rounds), us_(c));
        if (c == noisy) samples.us.at(1) *= 1.3;
      }
      all.push_back(samples);
    }
    return all;
  }
  std::vector<Samples> time_as_ladder(const Indices& candidates) override {
    return time(candidates, 9);
  }
  Indices looks() const {
    Indices all;
    for (const Indices& call : calls) all.insert(all.end(), call.begin(), call.end());
    return all;
  }
  std::vector<Indices> calls;
  std::size_t noisy = ~std::size_t{0};  ///< whose second sample of a call is 30 % above the others

 private:
  std::function<double(std::size_t)> us_;
};

/// tile x stages, both from 0.
Space grid(int tiles, int stages) {
  Space space;
  space.kernel = "grid";
  for (int t = 0; t < tiles; ++t) {
    for (int s = 0; s < stages; ++s) space.add({{{"tile", t}, {"stages", s}}, "", {}, {}});
  }
  return space;
}

Arena arena_of(const Space& space, int looks = 1 << 20) {
  Arena arena;
  arena.space = &space;
  arena.candidates.resize(space.candidates().size());
  std::iota(arena.candidates.begin(), arena.candidates.end(), 0);
  arena.looks = looks;
  return arena;
}

constexpr double kFails = std::numeric_limits<double>::quiet_NaN();

TEST(WhereItLooks, ExhaustiveAtAllAtOnce) {
  const Space space = grid(2, 2);
  MadeUp timer({4, 2, kFails, 3});
  const Search search = exhaustive(arena_of(space), timer);
  EXPECT_EQ(timer.calls, (std::vector<Indices>{{0, 1, 2, 3}}));
  EXPECT_EQ(search.best, 1u);
  EXPECT_EQ(search.ranking(), (Indices{1, 3, 0}));
  EXPECT_EQ(search.candidates, (Indices{0, 1, 3}));
  EXPECT_EQ(search.failures, (std::map<std::size_t, std::string>{{2, "it fails"}}));
  EXPECT_EQ(search.us.at(0), (std::vector<double>{4, 4, 4}));
  ASSERT_EQ(search.steps.size(), 4u);
  EXPECT_EQ(search.steps[0].best, 0u);
  EXPECT_EQ(search.steps[1].best, 1u);
  EXPECT_EQ(search.steps[3].best, 1u);
  EXPECT_EQ(search.steps[3].looks, 4);
  MadeUp short_timer({4, 2, 1, 3});
  EXPECT_EQ(exhaustive(arena_of(space, 2), short_timer).best, 1u);
  EXPECT_EQ(short_timer.looks(), (Indices{0, 1}));
  MadeUp tie({2, 2, 2, 2});
  EXPECT_EQ(exhaustive(arena_of(space), tie).best, 0u);  // the first of equals
  MadeUp none({kFails, kFails, kFails, kFails});
  EXPECT_FALSE(exhaustive(arena_of(space), none).found);
}

TEST(WhereItLooks, AtRandomTheDefaultComesFirst) {
  const Space space = grid(5, 6);
  bool differs = false;
  for (const std::uint64_t seed : {1, 2, 3}) {
    Arena arena = arena_of(space);
    arena.seed = seed;
    MadeUp timer([](std::size_t c) { return 10.0 + static_cast<double>(c); });
    random_order(arena, timer);
    Indices looks = timer.looks();
    EXPECT_EQ(timer.calls.size(), 30u);
    EXPECT_EQ(looks.front(), 0u);
    differs = differs || looks != arena.candidates;
    std::sort(looks.begin(), looks.end());
    EXPECT_EQ(looks, arena.candidates);
    arena.looks = 7;
    MadeUp again([](std::size_t) { return 1.0; });
    random_order(arena, again);
    EXPECT_EQ(again.looks().size(), 7u);
  }
  EXPECT_TRUE(differs);
}

TEST(WhereItLooks, InTheOrderThatTheModelPredicts) {
  Space space = grid(1, 4);
  MadeUp plain({1, 1, 1, 1});
  by_model(arena_of(space), plain);
  EXPECT_EQ(plain.looks(), (Indices{0, 1, 2, 3}));
  space.model = [](const Parameters& p, const Size&, const DeviceInfo&) {
    return std::array<double, 4>{3, 1, 4, 1}[static_cast<std::size_t>(value_of(p, "stages"))];
  };
  MadeUp timer({1, 1, 1, 1});
  by_model(arena_of(space), timer);
  EXPECT_EQ(timer.looks(), (Indices{1, 3, 0, 2}));
}

// 8 % behind is dropped at once, 4 % in the second turn, 2.7 % in the third, 2 %, 1.6 %.
TEST(WhereItLooks, EliminationDropsWhatIsClearlyBehind) {
  const Space space = grid(2, 4);
  MadeUp timer({100, 107, 109, kFails, 105, 103, 102.2, 101});
  const Search search = successive_elimination(arena_of(space), timer);
  EXPECT_EQ(timer.calls,
            (std::vector<Indices>{
                {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 4, 5, 6, 7}, {0, 5, 6, 7}, {0, 6, 7}, {0, 7}}));
  EXPECT_EQ(search.best, 0u);
  EXPECT_EQ(search.us.at(0).size(), 15u);
  EXPECT_EQ(search.us.at(1).size(), 6u);
  // One that is left needs no further look.
  MadeUp clear({100, 200, 300, kFails, 400, 500, 600, 700});
  successive_elimination(arena_of(space), clear);
  EXPECT_EQ(clear.calls.size(), 1u);
  // What may be as fast is looked at again: the interval decides, not the median.
  MadeUp noisy({100, 101, 200, 200, 200, 200, 200, 200});
  noisy.noisy = 1;
  successive_elimination(arena_of(space), noisy);
  EXPECT_EQ(noisy.calls.size(), 5u);
  MadeUp poor({100, 101, 101, 101, 101, 101, 101, 101});
  successive_elimination(arena_of(space, 12), poor);
  EXPECT_EQ(poor.looks().size(), 12u);
}

// From where it is, only at the nearest that are left; it moves to the first that is better.
TEST(WhereItLooks, ClimbingGoesToNeighbours) {
  const Space space = grid(5, 6);
  const auto us = [](std::size_t c) {
    const double tile = static_cast<double>(c / 6) - 3, stage = static_cast<double>(c % 6) - 4;
    return 10 + tile * tile + stage * stage;
  };
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Arena arena = arena_of(space);
    arena.seed = seed;
    MadeUp timer(us);
    EXPECT_EQ(hill_climbing(arena, timer).best, 22u);
    const Indices looks = timer.looks();
    EXPECT_EQ(looks.size(), 30u);
    EXPECT_EQ(std::set<std::size_t>(looks.begin(), looks.end()).size(), 30u);
    std::size_t at = looks.at(0);
    EXPECT_EQ(at, 0u);
    const auto apart = [&](std::size_t c) {
      return distance(space[at].parameters, space[c].parameters);
    };
    std::set<std::size_t> left(arena.candidates.begin(), arena.candidates.end());
    left.erase(at);
    Indices now;  // what is nearest to `at`
    const auto around = [&] {
      int nearest = 3;
      for (const std::size_t c : left) nearest = std::min(nearest, apart(c));
      now.clear();
      for (const std::size_t c : left) {
        if (apart(c) == nearest) now.push_back(c);
      }
    };
    around();
    for (std::size_t i = 1; i < looks.size(); ++i) {
      const std::size_t c = looks[i];
      const bool anywhere = now.empty();  // all around are worse
      ASSERT_TRUE(std::erase(now, c) == 1 || anywhere)
          << "look " << i << " of seed " << seed << ": " << c;
      left.erase(c);
      if (anywhere || us(c) < us(at)) {
        at = c;
        around();
      }
    }
  }
  // Where one parameter less or more is not legal, two may change, and no more than two.
  Space holes;
  for (const int at : {0, 3, 4, 5, 1, 6, 7}) {
    holes.add({{{"a", at}, {"b", at}, {"c", at == 1 ? 0 : at}}, "", {}, {}});
  }
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Arena arena = arena_of(holes);
    arena.seed = seed;
    MadeUp alike([](std::size_t) { return 1.0; });
    hill_climbing(arena, alike);
    EXPECT_EQ(alike.looks().at(1), 4u);  // the only one that differs in two
  }
  Arena few = arena_of(space, 4);
  MadeUp timer(us);
  hill_climbing(few, timer);
  EXPECT_EQ(timer.looks().size(), 4u);
}

TEST(Parameters, AreComparedByName) {
  const Parameters a = {{"tile", 1}, {"stages", 2}}, b = {{"stages", 2}, {"tile", 1}},
                   c = {{"tile", 2}, {"stages", 3}}, other = {{"tile", 1}, {"warps", 2}};
  EXPECT_EQ(distance(a, a), 0);
  EXPECT_EQ(distance(a, b), 0);
  EXPECT_EQ(distance(a, c), 2);
  EXPECT_EQ(distance(a, other), 1);
  EXPECT_EQ(id_of(a), "tile=1 stages=2");
  EXPECT_EQ(value_of(a, "stages"), 2);
  EXPECT_EQ(value_of(a, "warps"), 0);
  EXPECT_EQ(value_of(a, "warps", 7), 7);
  EXPECT_EQ(differences(a, b), "");
  EXPECT_EQ(differences(a, c), "tile 1 -> 2, stages 2 -> 3");
  EXPECT_EQ(differences(c, a), "tile 2 -> 1, stages 3 -> 2");
  EXPECT_EQ(differences(a, other), "");
}

TEST(Sizes, SmallOnesAndBuckets) {
  EXPECT_EQ(small_size({639, 640, 641, 768}), (Size{639, 640, 513, 512}));
  // Extents up to 128 as they are, then of 16 steps per power of two; and how they are aligned.
  EXPECT_EQ(shape_bucket({1, 2, 4, 8}), "1/1 x 2/2 x 4/4 x 8/8");
  EXPECT_EQ(shape_bucket({16, 12, 127, 128}), "16/8 x 12/4 x 127/1 x 128/8");
  EXPECT_EQ(shape_bucket({129}), "144/1");
  EXPECT_EQ(shape_bucket({144}), "144/8");
  EXPECT_EQ(shape_bucket({145}), "160/1");
  EXPECT_EQ(shape_bucket({255, 256, 257}), "256/1 x 256/8 x 288/1");
  EXPECT_EQ(shape_bucket({4096, 4098}), "4096/8 x 4608/2");
}

}  // namespace
}  // namespace cookbook::tune
