// SPDX-License-Identifier: MIT
// needs: cuda sm_90a
// Sidebar: records the times of all candidates for each shape of a list, "M N K LAYOUT" per line:
// cold L2, interleaved with cuBLAS, medians in microseconds. Each result is compared with cuBLAS's.
// What it writes is a recording of library/choose.hpp; what it prints is how good the choice is.
// Usage: capstone-gemm-measure LIST OUT
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "chapters/05_tensor_cores/sweep.hpp"
#include "common/harness/run/arguments.hpp"
#include "library/gemm/any_shape.cuh"

namespace cookbook::gemm {
namespace {

/// Medians of the contenders that did not fail, by name.
std::map<std::string, double> times_of(const std::vector<Contender>& contenders, int rounds) {
  BenchOptions options;
  options.min_rounds = options.max_rounds = rounds;
  options.hot = false;
  const auto measured = measure(contenders, options, nullptr);
  std::map<std::string, double> us;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (measured[i].error.empty()) us[contenders[i].name] = measured[i].cold.median;
  }
  return us;
}

/// Times of cuBLAS and of all candidates that support the problem: few rounds for all, more for
/// those that are close to the fastest.
std::map<std::string, double> measure_candidates(const Problem& p) {
  Sweep sweep({p.m, p.n, p.k}, p.a_transposed, p.b_transposed);
  for (const any_shape::Candidate& c : any_shape::kCandidates) {
    const any_shape::Predicted predicted =
        any_shape::predict(c, p, sweep.buffers, device_info().sm_count);
    if (!std::isfinite(predicted.us)) continue;
    sweep.add(c.name, [&] {
      auto plan = std::make_shared<any_shape::Plan>(
          any_shape::prepare(c, p, sweep.buffers, predicted.splits));
      return [plan](Stream stream) { AnyShape::run(*plan, stream); };
    });
  }
  std::map<std::string, double> us = times_of(sweep.contenders(), 2);
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [name, time] : us) best = std::min(best, time);
  std::vector<Contender> close;
  for (const Contender& each : sweep.contenders()) {
    if (us.count(each.name) && us[each.name] <= 1.3 * best) close.push_back(each);
  }
  for (const auto& [name, time] : times_of(close, 11)) us[name] = time;
  return us;
}

int record(std::istream& list, std::ostream& out) {
  double of_fastest = 0, of_library = 0;
  int shapes = 0;
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    Size size(3);
    std::string layout;
    if (!(words >> size[0])) continue;
    if (!(words >> size[1] >> size[2] >> layout)) throw std::invalid_argument(line);
    const auto p = Problem::make_layout(size, {}, layout[0] == 'T', layout[1] == 'T');
    const auto us = measure_candidates(p);
    out << size[0] << ' ' << size[1] << ' ' << size[2] << ' ' << any_shape::kind_of(p, Buffers{});
    double fastest = std::numeric_limits<double>::infinity();
    for (const auto& [name, time] : us) {
      char number[32];
      std::snprintf(number, sizeof number, " %.2f", time);
      out << ' ' << name << number;
      if (name != "cuBLAS") fastest = std::min(fastest, time);
    }
    out << std::endl;
    const std::string chosen = any_shape::choose(p, Buffers{}).name;
    std::printf("%-28s %-18s %.3f of the fastest candidate, %.3f of cuBLAS\n", line.c_str(),
                chosen.c_str(), fastest / us.at(chosen), us.at("cuBLAS") / us.at(chosen));
    of_fastest += std::log(fastest / us.at(chosen));
    of_library += std::log(us.at("cuBLAS") / us.at(chosen));
    ++shapes;
  }
  std::printf("geometric means of %d shapes: %.3f of the fastest candidate, %.3f of cuBLAS\n",
              shapes, std::exp(of_fastest / shapes), std::exp(of_library / shapes));
  return 0;
}

}  // namespace
}  // namespace cookbook::gemm

int main(int argc, char** argv) {
  if (argc != 3) cookbook::refuse_argument(argv, "LIST OUT", argc > 1 ? argv[1] : "");
  std::ifstream list(argv[1]);
  std::ofstream out(argv[2]);
  if (!list || !out)
    cookbook::refuse_argument(argv, "a list and a file to write", argv[list ? 2 : 1]);
  return cookbook::gemm::record(list, out);
}
