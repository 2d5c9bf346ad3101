// SPDX-License-Identifier: MIT
// CUDA graphs, captured or made node by node. To the order of streams a graph is a few streams of
// its own, one for each chain of nodes.
#include "tools/check/program/graphs.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

struct CUgraphNode_st {
  cudaGraphNodeType type;
  cookbook::simt::program::Work work;
  std::vector<cudaGraphNode_t> after;
};
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
  struct Step {
    cudaGraphNode_t node;
    cookbook::simt::program::Work work;
    std::vector<size_t> after;
    cudaStream_t lane;
    bool is_last = true;  // nothing comes after it
  };
  std::vector<Step> steps;  // each after those that it waits for
  std::vector<cudaStream_t> lanes;
  cookbook::simt::program::Place place;
};

namespace cookbook::simt::program {
namespace {

using Nodes = std::vector<cudaGraphNode_t>;

struct Capture {
  cudaGraph_t graph;
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  bool is_broken = false;
  unsigned long long id;
};
struct Captured {
  Capture* capture;
  Nodes last;  // what comes next is after them
};
struct State {
  std::map<const void*, Captured> streams;
  std::map<cudaEvent_t, Captured> events;
  std::vector<std::unique_ptr<Capture>> captures;
  // cudaGraphAddKernelNode() under way: what is launched becomes this node.
  cudaGraphNode_t made = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;  // of cudaThreadExchange...()
  unsigned long long next_id = 1;
};
State& state() {
  static State* instance = new State;
  return *instance;
}
using Lock = std::lock_guard<std::recursive_mutex>;

cudaGraphNode_t add_node(cudaGraph_t graph, cudaGraphNodeType type, Work work, Nodes after) {
  auto node = std::make_unique<CUgraphNode_st>();
  *node = {type, std::move(work), std::move(after)};
  graph->nodes.push_back(std::move(node));
  return graph->nodes.back().get();
}

/// A node that a call of cudaGraphAdd...Node() makes.
cudaError_t add(cudaGraphNode_t* made, cudaGraph_t graph, const cudaGraphNode_t* after,
                size_t count, cudaGraphNodeType type, Work work, const char* function,
                Place place) {
  const Lock lock(mutex_of_calls());
  if (!made || !graph || (count != 0 && !after)) {
    return fail_call(cudaErrorInvalidValue, function, place, "it is given a null pointer");
  }
  *made = add_node(graph, type, std::move(work), Nodes(after, after + count));
  return cudaSuccess;
}

void join(Nodes& nodes, const Nodes& more) {
  for (cudaGraphNode_t node : more) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
}

void collect_before(cudaGraphNode_t node, std::map<cudaGraphNode_t, bool>& seen) {
  if (std::exchange(seen[node], true)) return;
  for (cudaGraphNode_t before : node->after) collect_before(before, seen);
}

void break_all() {
  for (auto& capture : state().captures) capture->is_broken = true;
}

/// In an order in which each node comes after those that it waits for; fewer if there is a cycle.
Nodes sorted(const CUgraph_st& graph) {
  Nodes order;
  std::map<cudaGraphNode_t, bool> done;
  for (bool found = true; found;) {
    found = false;
    for (const auto& node : graph.nodes) {
      if (done[node.get()]) continue;
      if (!std::all_of(node->after.begin(), node->after.end(),
                       [&](cudaGraphNode_t before) { return done[before]; })) {
        continue;
      }
      order.push_back(node.get());
      found = done[node.get()] = true;
    }
  }
  return order;
}

bool instantiate(CUgraphExec_st& exec, const CUgraph_st& graph) {
  const Nodes order = sorted(graph);
  if (order.size() != graph.nodes.size()) return false;
  std::map<cudaGraphNode_t, size_t> number;
  std::vector<size_t> last;  // step of each lane
  exec.steps.clear();
  for (cudaGraphNode_t node : order) {
    const size_t at = number[node] = exec.steps.size();
    CUgraphExec_st::Step step{node, node->work, {}, nullptr};
    for (cudaGraphNode_t before : node->after) {
      step.after.push_back(number[before]);
      exec.steps[number[before]].is_last = false;
    }
    // Behind a node that nothing else follows in its lane.
    auto lane = std::find_if(last.begin(), last.end(), [&](size_t one) {
      return std::find(step.after.begin(), step.after.end(), one) != step.after.end();
    });
    if (lane == last.end()) lane = last.insert(lane, at);
    *lane = at;
    const auto which = static_cast<size_t>(lane - last.begin());
    if (which == exec.lanes.size()) {
      exec.lanes.push_back(reinterpret_cast<cudaStream_t>(new char));
      order_of_streams().add_branch(exec.lanes.back(), exec.place);
    }
    step.lane = exec.lanes[which];
    exec.steps.push_back(std::move(step));
  }
  return true;
}

cudaError_t launch(CUgraphExec_st& exec, cudaStream_t stream) {
  Order& order = order_of_streams();
  const void* const of_order = stream == cudaStreamLegacy ? nullptr : stream;
  order.record(&exec, of_order);
  cudaError_t result = cudaSuccess;
  for (auto& step : exec.steps) {
    order.wait_in(step.lane, &exec);
    for (size_t before : step.after) order.wait_in(step.lane, &exec.steps[before]);
    const cudaError_t error = step.work ? step.work(step.lane) : cudaSuccess;
    if (result == cudaSuccess) result = error;
    order.record(&step, step.lane);
  }
  for (auto& step : exec.steps) {
    if (step.is_last) order.wait_in(of_order, &step);
  }
  return result;
}

Captured* find(const void* stream) {
  const auto at = state().streams.find(stream);
  return at == state().streams.end() ? nullptr : &at->second;
}

/// The work of a launch: `params` as cudaGraphAddKernelNode() is given them.
cudaError_t make_kernel(CUgraphNode_st& node, const cudaKernelNodeParams& params,
                        const char* function, Place place) {
  if (!params.func.launch) {
    return fail_call(cudaErrorInvalidDeviceFunction, function, place, "it is given no kernel");
  }
  state().made = &node;
  params.func.launch(params.func.kernel, place,
                     {params.gridDim, params.blockDim, params.sharedMemBytes, nullptr},
                     params.kernelParams);
  state().made = nullptr;
  return cudaSuccess;
}

Work memset_work(const cudaMemsetParams& p, Place place) {
  return [p, place](cudaStream_t lane) {
    return set_elements(p.dst, p.pitch, p.value, p.elementSize, p.width, p.height, lane, place);
  };
}

}  // namespace

bool is_captured(cudaStream_t stream) {
  const Lock lock(mutex_of_calls());
  return state().made || find(stream);
}

cudaError_t capture(cudaStream_t stream, cudaGraphNodeType type, Work work) {
  const Lock lock(mutex_of_calls());
  if (state().made) {
    state().made->work = std::move(work);
    return cudaSuccess;
  }
  Captured& captured = *find(stream);
  if (captured.capture->is_broken) return cudaErrorStreamCaptureInvalidated;
  captured.last = {
      add_node(captured.capture->graph, type, std::move(work), std::move(captured.last))};
  return cudaSuccess;
}

cudaError_t forbid(Call call, const void* what, const char* function, Place place) {
  const Lock lock(mutex_of_calls());
  if (state().captures.empty()) return cudaSuccess;
  const auto any = [&](auto test) {
    bool found = false;
    for (auto& [stream, captured] : state().streams) {
      if (!test(stream, *captured.capture)) continue;
      found = captured.capture->is_broken = true;
    }
    return found;
  };
  const auto fail = [&](cudaError_t error, const char* why) {
    return fail_call(error, function, place, why);
  };
  const auto is_blocking = [](const void* stream, const Capture&) {
    return order_of_streams().is_blocking(stream);
  };
  const auto is_strict = [](const void*, const Capture& capture) {
    return capture.mode != cudaStreamCaptureModeRelaxed &&
           state().mode != cudaStreamCaptureModeRelaxed;
  };
  constexpr const char* kCaptured = "a stream is being captured";
  switch (call) {
    case Call::waits_for_event:
      if (!state().events.count(static_cast<cudaEvent_t>(const_cast<void*>(what)))) break;
      break_all();
      return fail(cudaErrorCapturedEvent, "the event was recorded in a stream that is captured");
    case Call::waits_for_stream:
      if (!find(what)) break;
      find(what)->capture->is_broken = true;
      return fail(cudaErrorStreamCaptureUnsupported, "the stream is being captured");
    case Call::waits_for_device:
      break_all();
      return fail(cudaErrorStreamCaptureUnsupported, kCaptured);
    case Call::waits_for_legacy:
    case Call::uses_legacy_stream:
      if (any(is_blocking)) {
        return fail(cudaErrorStreamCaptureImplicit,
                    "the default stream would wait for a stream that is being captured");
      }
      if (call == Call::uses_legacy_stream) break;
      [[fallthrough]];
    case Call::changes_memory:
      if (any(is_strict)) return fail(cudaErrorStreamCaptureUnsupported, kCaptured);
  }
  return cudaSuccess;
}

bool capture_record(cudaEvent_t event, cudaStream_t stream) {
  state().events.erase(event);
  const Captured* const captured = find(stream);
  if (captured) state().events[event] = *captured;
  return captured;
}

bool capture_wait(cudaStream_t stream, cudaEvent_t event, cudaError_t* error) {
  *error = cudaSuccess;
  const auto at = state().events.find(event);
  Captured* const captured = find(stream);
  if (at == state().events.end()) {
    if (!captured) return false;
    captured->capture->is_broken = true;
    *error = cudaErrorStreamCaptureIsolation;
    return true;
  }
  if (!captured) {
    state().streams[stream] = at->second;
  } else if (captured->capture != at->second.capture) {
    captured->capture->is_broken = at->second.capture->is_broken = true;
    *error = cudaErrorStreamCaptureMerge;
  } else {
    join(captured->last, at->second.last);
  }
  return true;
}

}  // namespace cookbook::simt::program

using namespace cookbook::simt::program;  // NOLINT: the API below is global

// ---- capture ----

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode, Place place) {
  const Lock lock(mutex_of_calls());
  const char* const name = "cudaStreamBeginCapture";
  if (stream == nullptr || stream == cudaStreamLegacy) {
    return fail_call(cudaErrorStreamCaptureUnsupported, name, place,
                     "the default stream cannot be captured");
  }
  if (find(stream)) {
    return fail_call(cudaErrorIllegalState, name, place, "the stream is being captured already");
  }
  auto begun = std::make_unique<Capture>();
  *begun = {new CUgraph_st, stream, mode, false, state().next_id++};
  state().streams[stream] = {begun.get(), {}};
  state().captures.push_back(std::move(begun));
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph, Place place) {
  const Lock lock(mutex_of_calls());
  const char* const name = "cudaStreamEndCapture";
  *graph = nullptr;
  const Captured* const own = find(stream);
  if (!own) return fail_call(cudaErrorIllegalState, name, place, "the stream is not captured");
  const Capture ended = *own->capture;
  if (ended.origin != stream) {
    own->capture->is_broken = true;
    return fail_call(cudaErrorStreamCaptureUnmatched, name, place,
                     "the capture began in another stream");
  }
  std::map<cudaGraphNode_t, bool> before;
  for (cudaGraphNode_t node : own->last) collect_before(node, before);
  bool is_joined = true;
  for (const auto& [other, captured] : state().streams) {
    if (captured.capture != own->capture) continue;
    for (cudaGraphNode_t node : captured.last) is_joined &= before[node];
  }
  const auto is_own = [capture = own->capture](const auto& entry) {
    return entry.second.capture == capture;
  };
  const Capture* const gone = own->capture;
  std::erase_if(state().events, is_own);
  std::erase_if(state().streams, is_own);
  std::erase_if(state().captures, [gone](const auto& one) { return one.get() == gone; });
  if (ended.is_broken) {
    return fail_call(cudaErrorStreamCaptureInvalidated, name, place,
                     "an earlier call broke the capture");
  }
  if (!is_joined) {
    return fail_call(cudaErrorStreamCaptureUnjoined, name, place,
                     "another stream that joined the capture has work that this one does not wait "
                     "for: cudaEventRecord() there, cudaStreamWaitEvent() here");
  }
  *graph = ended.graph;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  const Lock lock(mutex_of_calls());
  std::swap(*mode, state().mode);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status, nullptr);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph) {
  const Lock lock(mutex_of_calls());
  const Captured* const own = find(stream);
  *status = !own                      ? cudaStreamCaptureStatusNone
            : own->capture->is_broken ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
  if (id && own) *id = own->capture->id;
  if (graph && own) *graph = own->capture->graph;
  return cudaSuccess;
}

// ---- graphs ----

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = new CUgraph_st;
  return cudaSuccess;
}
// Neither is deleted: a program may use what it has destroyed.
cudaError_t cudaGraphDestroy(cudaGraph_t graph, Place place) {
  if (graph) return cudaSuccess;
  return fail_call(cudaErrorInvalidValue, "cudaGraphDestroy", place, "it is given a null graph");
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec, Place place) {
  if (exec) return cudaSuccess;
  return fail_call(cudaErrorInvalidValue, "cudaGraphExecDestroy", place,
                   "it is given a null graph");
}
cudaError_t cudaGraphClone(cudaGraph_t* to, cudaGraph_t from) {
  const Lock lock(mutex_of_calls());
  *to = new CUgraph_st;
  std::map<cudaGraphNode_t, cudaGraphNode_t> copies;
  for (const auto& node : from->nodes) {
    copies[node.get()] = add_node(*to, node->type, node->work, node->after);
  }
  for (const auto& node : (*to)->nodes) {
    for (cudaGraphNode_t& before : node->after) before = copies[before];
  }
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long,
                                 Place place) {
  const Lock lock(mutex_of_calls());
  auto made = std::make_unique<CUgraphExec_st>();
  made->place = place;
  if (!graph || !instantiate(*made, *graph)) {
    return fail_call(cudaErrorInvalidValue, "cudaGraphInstantiate", place,
                     graph ? "nodes of the graph wait for each other" : "it is given a null graph");
  }
  *exec = made.release();
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream, Place place) {
  const Lock lock(mutex_of_calls());
  if (!exec) {
    return fail_call(cudaErrorInvalidValue, "cudaGraphLaunch", place, "it is given a null graph");
  }
  const auto work = [exec](cudaStream_t lane) { return launch(*exec, lane); };
  if (is_captured(stream)) return capture(stream, cudaGraphNodeTypeGraph, work);
  return work(stream);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info, Place place) {
  const Lock lock(mutex_of_calls());
  const Nodes order = sorted(*graph);
  bool is_same = order.size() == exec->steps.size();
  for (size_t i = 0; is_same && i < order.size(); ++i) {
    const auto& step = exec->steps[i];
    is_same = order[i]->after.size() == step.after.size() && !order[i]->work == !step.work;
  }
  *info = {is_same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged, nullptr,
           nullptr};
  if (!is_same) {
    return fail_call(cudaErrorGraphExecUpdateFailure, "cudaGraphExecUpdate", place,
                     "the graph has other nodes");
  }
  for (size_t i = 0; i < order.size(); ++i) exec->steps[i].work = order[i]->work;
  return cudaSuccess;
}

// ---- nodes ----

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* after, size_t count,
                                   const cudaKernelNodeParams* params, Place place) {
  const char* const name = "cudaGraphAddKernelNode";
  if (const auto e = add(node, graph, after, count, cudaGraphNodeTypeKernel, {}, name, place)) {
    return e;
  }
  return make_kernel(**node, *params, name, place);
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params,
                                         Place place) {
  return make_kernel(*node, *params, "cudaGraphKernelNodeSetParams", place);
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params, Place place) {
  const char* const name = "cudaGraphExecKernelNodeSetParams";
  const auto step = std::find_if(exec->steps.begin(), exec->steps.end(),
                                 [node](const auto& one) { return one.node == node; });
  if (step == exec->steps.end()) {
    return fail_call(cudaErrorInvalidValue, name, place, "the node is none of this graph");
  }
  CUgraphNode_st changed{};
  const cudaError_t error = make_kernel(changed, *params, name, place);
  if (error == cudaSuccess) step->work = changed.work;
  return error;
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* after, size_t count,
                                   const cudaMemcpy3DParms* params, Place place) {
  const auto work = [p = *params, place](cudaStream_t lane) {
    return cudaMemcpy3DAsync(&p, lane, place);
  };
  return add(node, graph, after, count, cudaGraphNodeTypeMemcpy, work, "cudaGraphAddMemcpyNode",
             place);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* after, size_t count, void* to,
                                     const void* from, size_t bytes, cudaMemcpyKind kind,
                                     Place place) {
  const auto work = [=](cudaStream_t lane) {
    return cudaMemcpyAsync(to, from, bytes, kind, lane, place);
  };
  return add(node, graph, after, count, cudaGraphNodeTypeMemcpy, work, "cudaGraphAddMemcpyNode1D",
             place);
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* after, size_t count,
                                   const cudaMemsetParams* params, Place place) {
  return add(node, graph, after, count, cudaGraphNodeTypeMemset, memset_work(*params, place),
             "cudaGraphAddMemsetNode", place);
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* after, size_t count,
                                 const cudaHostNodeParams* params, Place place) {
  const auto work = [p = *params](cudaStream_t) {
    p.fn(p.userData);
    return cudaSuccess;
  };
  return add(node, graph, after, count, cudaGraphNodeTypeHost, work, "cudaGraphAddHostNode", place);
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* after, size_t count, Place place) {
  return add(node, graph, after, count, cudaGraphNodeTypeEmpty, {}, "cudaGraphAddEmptyNode", place);
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* after, size_t count,
                                       cudaGraph_t child, Place place) {
  cudaGraphExec_t exec = nullptr;
  if (const cudaError_t error = cudaGraphInstantiate(&exec, child, 0, place)) return error;
  const auto work = [exec](cudaStream_t lane) { return launch(*exec, lane); };
  return add(node, graph, after, count, cudaGraphNodeTypeGraph, work, "cudaGraphAddChildGraphNode",
             place);
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, size_t count) {
  const Lock lock(mutex_of_calls());
  for (size_t i = 0; i < count; ++i) join(to[i]->after, {from[i]});
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  const Lock lock(mutex_of_calls());
  if (!nodes) {
    *count = graph->nodes.size();
    return cudaSuccess;
  }
  *count = std::min(*count, graph->nodes.size());
  for (size_t i = 0; i < *count; ++i) nodes[i] = graph->nodes[i].get();
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  *type = node->type;
  return cudaSuccess;
}
