// SPDX-License-Identifier: MIT
// Which kernel the library chooses for a shape on an H200, and why:
//   library-choices 1000x1000x1000 NT          its candidates, fastest first
//   library-choices --json FILE                the choice for each judged shape, for the figure
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <exception>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "common/harness/run/options.hpp"
#include "common/harness/run/process.hpp"
#include "library/gemm/any_shape.cuh"

namespace {

using namespace cookbook;
using gemm::any_shape::Candidate;
using gemm::any_shape::kCandidates;
using library::Recording;

constexpr const char* kGpu = "NVIDIA H200";
constexpr int kSms = 132;

// Addresses, of which only the alignment counts: a kernel is chosen, none runs.
gemm::Buffers anywhere() {
  return {reinterpret_cast<const bf16*>(0x10000), reinterpret_cast<const bf16*>(0x20000),
          reinterpret_cast<bf16*>(0x30000)};
}

gemm::Problem problem_of(const std::vector<std::int64_t>& extents, const std::string& layout) {
  return gemm::Problem::make_layout(extents, {}, layout[0] == 'T', layout[1] == 'T');
}

auto ranked(const gemm::Problem& problem, const Recording* recording) {
  return gemm::any_shape::ranked(problem, anywhere(), kSms, recording);
}

// Without arithmetic: the candidate that was fastest at the nearest recorded shape, of those that
// support this one. Null where none of the nearest shapes has one.
const Candidate* of_nearest_shape(const gemm::Problem& problem, const library::Shape& shape,
                                  const Recording& recording) {
  for (const auto& [weight, entry] : recording.near(shape)) {
    const Candidate* nearest = nullptr;
    double fastest = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : kCandidates) {
      const auto us = entry->us.find(candidate.name);
      if (us == entry->us.end() || us->second >= fastest) continue;
      if (std::isinf(gemm::any_shape::predict(candidate, problem, anywhere(), kSms).us)) continue;
      nearest = &candidate;
      fastest = us->second;
    }
    if (nearest) return nearest;
  }
  return nullptr;
}

// The dimensions of a size on the command line.
Ladder gemm_dims() {
  Ladder ladder;
  ladder.name = "gemm";
  ladder.dims = {"M", "N", "K"};
  ladder.gpu_size = {1000, 1000, 1000};
  return ladder;
}

void explain(const std::vector<std::int64_t>& extents, const std::string& layout) {
  const auto problem = problem_of(extents, layout);
  const auto order = ranked(problem, gemm::any_shape::recording(kGpu));
  fmt::print("{} x {} x {} {} on an H200, microseconds\n  {:<20} {:>10} {:>10}\n", extents[0],
             extents[1], extents[2], layout, "candidate", "predicted", "corrected");
  for (const auto& estimate : order) {
    if (std::isinf(estimate.us)) {
      fmt::print("  {:<20} unsupported for this shape\n", estimate.candidate->name);
    } else {
      fmt::print("  {:<20} {:>10.1f} {:>10.1f}\n", estimate.candidate->name, estimate.predicted_us,
                 estimate.us);
    }
  }
}

// Each choice with its measured time.
nlohmann::ordered_json judged_choices() {
  std::ifstream file(source_path("library/gemm/judged_nvidia_h200.txt"));
  std::stringstream text;
  text << file.rdbuf();
  const Recording judged(text.str(), 3);
  const Recording& recording = *gemm::any_shape::recording(kGpu);
  nlohmann::ordered_json shapes = nlohmann::ordered_json::array();
  for (const auto& [shape, us] : judged.entries()) {
    const auto problem = problem_of(shape.extents, shape.kind);
    nlohmann::ordered_json json{{"extents", shape.extents}, {"layout", shape.kind}};
    const auto add = [&, &measured = us](const char* how, const Candidate* candidate) {
      json[how] = {{"candidate", candidate->name}, {"us", measured.at(candidate->name)}};
    };
    const Candidate* fastest = nullptr;
    for (const Candidate& candidate : kCandidates) {
      if (us.count(candidate.name) && (!fastest || us.at(candidate.name) < us.at(fastest->name))) {
        fastest = &candidate;
      }
    }
    add("fastest", fastest);
    add("arithmetic", ranked(problem, nullptr).front().candidate);
    if (const Candidate* nearest = of_nearest_shape(problem, shape, recording)) {
      add("recording", nearest);
    }
    add("both", ranked(problem, &recording).front().candidate);
    for (const char* one : {"persistent_128x256", "any_pitch_128x256"}) {
      if (us.count(one)) json["one_kernel"] = {{"candidate", one}, {"us", us.at(one)}};
    }
    json["cublas_us"] = us.at("cuBLAS");
    shapes.push_back(std::move(json));
  }
  return {{"operator", "gemm"}, {"device", kGpu}, {"shapes", std::move(shapes)}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Which GEMM kernel the library chooses for a shape on an H200, and why."};
  std::string size, layout = "NN", json;
  app.add_option("SIZE", size, "M x N x K, such as 1000x1000x1000");
  app.add_option("LAYOUT", layout, "of A and B")
      ->check(CLI::IsMember({"NN", "NT", "TN", "TT"}))
      ->capture_default_str();
  app.add_option("--json", json, "write the choices for all judged shapes to this file");
  try {
    app.parse(argc, argv);
    if (size.empty() == json.empty()) throw UsageError("wants a size, or --json FILE");
    if (!size.empty()) {
      explain(parse_size(gemm_dims(), size), layout);
    } else {
      const std::string text = judged_choices().dump(1) + "\n";
      if (std::ofstream file(json); !(file << text)) throw UsageError("cannot write " + json);
    }
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    fmt::print(stderr, "library-choices: {} (see --help)\n", error.what());
  } catch (const UsageError& error) {
    fmt::print(stderr, "library-choices: {} (see --help)\n", error.what());
  }
  return 2;
}
