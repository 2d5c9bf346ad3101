// SPDX-License-Identifier: MIT
// Streams that are captured: what is launched there becomes a node of a graph.
#pragma once

#include <functional>

#include "tools/check/program/runtime.hpp"

namespace cookbook::simt::program {

/// What a node does, in the stream that it is given.
using Work = std::function<cudaError_t(cudaStream_t)>;

/// Whether work in `stream` is to become a node now.
bool is_captured(cudaStream_t stream);
/// That node comes after what the stream has so far.
cudaError_t capture(cudaStream_t stream, cudaGraphNodeType type, Work work);

/// A call that must not be made while a stream is captured breaks the capture and returns the
/// error. An event may be captured, too.
enum class Call {
  waits_for_stream,
  waits_for_device,
  waits_for_event,
  uses_legacy_stream,  // for a launch or an asynchronous operation
  waits_for_legacy,    // of cudaMemcpy()
  changes_memory,
};
cudaError_t forbid(Call call, const void* stream_or_event, const char* function, Place place);
/// cudaEventRecord() and cudaStreamWaitEvent(): whether they belong to a capture.
bool capture_record(cudaEvent_t event, cudaStream_t stream);
bool capture_wait(cudaStream_t stream, cudaEvent_t event, cudaError_t* error);

}  // namespace cookbook::simt::program
