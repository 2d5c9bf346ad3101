// SPDX-License-Identifier: MIT
#include "chapters/11_autotuning/tuner/search.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include "common/harness/report/statistics.hpp"

namespace cookbook::tune {
namespace {

// The samples of a search as they come in.
class Log {
 public:
  Log(const Arena& arena, Timer& timer) : arena_(arena), timer_(timer) {}

  bool spent() const { return looks_ >= arena_.looks; }
  bool seen(std::size_t c) const { return search_.us.contains(c) || search_.failures.contains(c); }
  double us(std::size_t c) const { return search_.median_us(c); }
  const std::vector<double>& samples(std::size_t c) const { return search_.us.at(c); }

  /// One look at each of `which`, interleaved; stops at the budget.
  void look(std::vector<std::size_t> which) {
    const auto left = static_cast<std::size_t>(std::max(0, arena_.looks - looks_));
    if (which.size() > left) which.resize(left);
    if (which.empty()) return;
    const std::vector<Samples> all = timer_.time(which, arena_.rounds);
    for (std::size_t i = 0; i < which.size(); ++i) {
      ++looks_;
      const std::size_t c = which[i];
      if (all[i].failure.empty()) {
        if (!search_.us.contains(c)) search_.candidates.push_back(c);
        search_.us[c].insert(search_.us[c].end(), all[i].us.begin(), all[i].us.end());
      } else if (!seen(c)) {
        search_.failures[c] = all[i].failure;
      }
      note();
    }
  }

  Search finish() { return std::move(search_); }

 private:
  void note() {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t c : search_.candidates) {
      if (us(c) < least) least = us(c), search_.best = c, search_.found = true;
    }
    if (search_.found) search_.steps.push_back({looks_, search_.best});
  }

  const Arena& arena_;
  Timer& timer_;
  Search search_;
  int looks_ = 0;
};

Search one_by_one(const Arena& arena, Timer& timer, const std::vector<std::size_t>& order) {
  Log log(arena, timer);
  for (std::size_t c : order) {
    if (log.spent()) break;
    log.look({c});
  }
  return log.finish();
}

}  // namespace

double Search::median_us(std::size_t candidate) const {
  const auto at = us.find(candidate);
  return at == us.end() ? std::numeric_limits<double>::infinity() : median(at->second);
}

std::vector<std::size_t> Search::ranking() const {
  std::vector<std::size_t> order = candidates;
  std::ranges::stable_sort(order, {}, [this](std::size_t c) { return median_us(c); });
  return order;
}

int distance(const Parameters& a, const Parameters& b) {
  int different = 0;
  for (const Parameter& p : a) different += value_of(b, p.name, p.value - 1) != p.value;
  return different;
}

Search exhaustive(const Arena& arena, Timer& timer) {
  Log log(arena, timer);
  log.look(arena.candidates);
  return log.finish();
}

Search random_order(const Arena& arena, Timer& timer) {
  std::vector<std::size_t> order = arena.candidates;
  std::mt19937_64 random(arena.seed);
  if (order.size() > 1) std::shuffle(order.begin() + 1, order.end(), random);
  return one_by_one(arena, timer, order);
}

Search hill_climbing(const Arena& arena, Timer& timer) {
  Log log(arena, timer);
  std::mt19937_64 random(arena.seed);
  std::vector<std::size_t> unseen = arena.candidates;
  auto forget_seen = [&] { std::erase_if(unseen, [&](std::size_t c) { return log.seen(c); }); };
  for (bool first = true; !unseen.empty() && !log.spent(); first = false) {
    std::size_t at = unseen[first ? 0 : random() % unseen.size()];
    log.look({at});
    forget_seen();
    for (bool climbing = true; climbing && !log.spent();) {
      climbing = false;
      // The nearest that are left: a space of legal configurations has holes, so a neighbour may
      // differ in two parameters.
      int nearest = std::numeric_limits<int>::max();
      auto apart = [&](std::size_t c) {
        return distance((*arena.space)[at].parameters, (*arena.space)[c].parameters);
      };
      for (std::size_t c : unseen) nearest = std::min(nearest, apart(c));
      std::vector<std::size_t> neighbours;
      for (std::size_t c : unseen) {
        if (apart(c) == nearest && nearest <= 2) neighbours.push_back(c);
      }
      std::shuffle(neighbours.begin(), neighbours.end(), random);
      for (std::size_t i = 0; i < neighbours.size() && !climbing; ++i) {
        log.look({neighbours[i]});
        climbing = log.us(neighbours[i]) < log.us(at);
        if (climbing) at = neighbours[i];
      }
      forget_seen();
    }
  }
  return log.finish();
}

Search successive_elimination(const Arena& arena, Timer& timer) {
  Log log(arena, timer);
  std::vector<std::size_t> alive = arena.candidates;
  for (int turn = 0; turn < 5 && !alive.empty() && !log.spent(); ++turn) {
    log.look(alive);
    std::erase_if(alive, [&](std::size_t c) { return std::isinf(log.us(c)); });
    if (alive.size() < 2) break;
    const std::size_t leader =
        *std::ranges::min_element(alive, {}, [&](std::size_t c) { return log.us(c); });
    // Few samples say little: the first turns drop only what is far behind.
    const double margin = 1.0 + 0.08 / (turn + 1);
    std::erase_if(alive, [&](std::size_t c) {  // above 1: the leader is faster
      return c != leader && paired_ratio(log.samples(c), log.samples(leader)).low > margin;
    });
    if (alive.size() < 2) break;
  }
  return log.finish();
}

Search by_model(const Arena& arena, Timer& timer) {
  std::vector<std::size_t> order = arena.candidates;
  if (arena.space->model && order.size() > 1) {
    std::ranges::stable_sort(order, {}, [&](std::size_t c) {
      return arena.space->model((*arena.space)[c].parameters, arena.size, arena.device);
    });
  }
  return one_by_one(arena, timer, order);
}

const std::vector<NamedSearcher>& searchers() {
  static const std::vector<NamedSearcher> all = {{"exhaustive", exhaustive},
                                                 {"random", random_order},
                                                 {"hill climbing", hill_climbing},
                                                 {"successive elimination", successive_elimination},
                                                 {"model", by_model}};
  return all;
}

}  // namespace cookbook::tune
