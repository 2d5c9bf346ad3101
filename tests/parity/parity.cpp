// SPDX-License-Identifier: MIT
// Runs the cases that hardware and model are compared on, each exactly once: under Nsight Compute
// on a GPU (tests/parity/run_ncu.sh), under the tracer as parity-traced. See docs/parity.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/backend/backend.hpp"
#include "common/harness/run/options.hpp"
#include "common/harness/run/process.hpp"
#include "tests/parity/cases.hpp"
#if COOKBOOK_CUDA
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#endif
#if COOKBOOK_TRACED
#include "tests/parity/counts.hpp"
#endif

namespace cookbook::parity {
namespace {

using Json = nlohmann::ordered_json;

#if COOKBOOK_CUDA
void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

/// The mangled names of the kernels that `launches` would launch, in order; none runs.
std::vector<std::string> kernels_of(const std::function<void(Stream)>& launches) {
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  launches(Stream{stream});
  cudaGraph_t graph;
  check(cudaStreamEndCapture(stream, &graph));
  std::size_t count = 0;
  check(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  check(cudaGraphGetNodes(graph, nodes.data(), &count));
  std::vector<std::string> names;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    check(cudaGraphNodeGetType(node, &type));
    if (type != cudaGraphNodeTypeKernel) continue;
    cudaKernelNodeParams parameters{};
    check(cudaGraphKernelNodeGetParams(node, &parameters));
    const char* name = nullptr;
    // Without a name the merge goes by what the profiler says.
    if (cudaFuncGetName(&name, parameters.func) != cudaSuccess) cudaGetLastError();
    names.emplace_back(name ? name : "");
  }
  check(cudaGraphDestroy(graph));
  check(cudaStreamDestroy(stream));
  return names;
}
#endif

#if !COOKBOOK_TRACED
/// Everything but the kernel launches happens outside of what a profiler records.
void run_once(const Case& one) {
  const auto launches = one.prepare(one.size);
  synchronize();
#if COOKBOOK_CUDA
  check(cudaProfilerStart());
#endif
  launches(Stream{});
  synchronize();
#if COOKBOOK_CUDA
  check(cudaProfilerStop());
#endif
}

Json describe(const std::vector<const Case*>& cases) {
  const DeviceInfo& device = device_info();
  Json list = Json::array();
  for (const Case* one : cases) {
    Json entry = {{"name", one->name}, {"size", one->size}};
#if COOKBOOK_CUDA
    entry["kernels"] = kernels_of(one->prepare(one->size));
#endif
    list.push_back(std::move(entry));
  }
  return {{"source_dir", source_path("")},
          {"device",
           {{"name", device.name},
            {"cc", fmt::format("{}.{}", device.cc_major, device.cc_minor)},
            {"sm_count", device.sm_count},
            {"driver", device.driver},
            {"toolkit", device.toolkit}}},
          {"cases", list}};
}
#else
Json traced(const std::vector<const Case*>& cases) {
  Json all = Json::object();
  for (const Case* one : cases) all[one->name] = to_json(trace_case(*one, one->size));
  return {{"schema", 1}, {"backend", "simt"}, {"cases", all}};
}

/// What tests/parity/exceptions.json lacks: the differences that nothing explains, without a why.
Json unexplained(const std::vector<const Case*>& cases, const Golden& golden) {
  Json list = Json::array();
  for (const Case* one : cases) {
    const auto measured = golden.cases.find(one->name);
    if (measured == golden.cases.end()) continue;
    const CaseCounts& hardware = measured->second;
    for (const Difference& difference :
         compare(trace_case(*one, hardware.size), hardware).differences) {
      const bool known = std::any_of(
          golden.exceptions.begin(), golden.exceptions.end(), [&](const Exception& exception) {
            return exception.name == one->name && exception.op == difference.op &&
                   exception.text == difference.text && exception.simt == difference.simt &&
                   exception.hardware == difference.hardware;
          });
      if (known) continue;
      Json entry = {{"case", one->name}, {"op", difference.op}};
      if (!difference.text.empty()) entry["text"] = difference.text;
      entry["simt"] = difference.simt;
      entry["hardware"] = difference.hardware;
      entry["why"] = "";
      list.push_back(std::move(entry));
    }
  }
  return list;
}
#endif

void write(const std::string& file, const Json& json) {
  std::ofstream out(file);
  out << json.dump(1) << "\n";
  if (!out) throw std::runtime_error("cannot write " + file);
}

int main(int argc, char** argv) {
  CLI::App app("The cases that the SIMT backend and a GPU are compared on");
  std::string name, group, json;
  bool list = false;
  app.add_option("--case", name, "only this one");
  app.add_option("--group", group, "only this one: kernels, chapter-1 ...");
  app.add_flag("--list", list, "name the cases, run nothing");
#if COOKBOOK_TRACED
  int sms = 132;
  std::string unexplained_file;
  app.add_option("--json", json, "write the counters of every source line to this file");
  app.add_option("--sms", sms, "SMs that the model has; an H200's 132 unless given");
  app.add_option("--unexplained", unexplained_file,
                 "write the differences from the golden file that lack an exception to this file");
#else
  app.add_option("--json", json, "write cases and kernels to this file, run nothing");
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
#if COOKBOOK_TRACED
  model_sms(sms);
#endif
  std::vector<const Case*> cases;
  for (const Case& one : all_cases()) {
    if (!name.empty() && one.name != name) continue;
    if (!group.empty() && one.group() != group) continue;
    cases.push_back(&one);
  }
  if (cases.empty()) {
    fmt::print(stderr, "parity: no such case; --list names them\n");
    return 2;
  }
  if (list) {
    for (const Case* one : cases) fmt::print("{}  {}\n", one->name, size_text(one->size));
    if (json.empty()) return 0;
  }
#if COOKBOOK_TRACED
  if (!unexplained_file.empty()) {
    const Golden golden = Golden::load(Golden::default_file(), Golden::default_exceptions_file());
    const Json open = unexplained(cases, golden);
    write(unexplained_file, open);
    fmt::print("{} differences without an explanation\n", open.size());
    return 0;
  }
  const Json result = traced(cases);
#else
  if (json.empty()) {
    for (const Case* one : cases) run_once(*one);
    fmt::print("{} cases run\n", cases.size());
    return 0;
  }
  const Json result = describe(cases);
#endif
  if (json.empty()) {
    std::cout << result.dump(1) << "\n";
  } else {
    write(json, result);
  }
  return 0;
}

}  // namespace
}  // namespace cookbook::parity

int main(int argc, char** argv) {
  try {
    return cookbook::parity::main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "parity: {}\n", error.what());
    return 1;
  }
}
