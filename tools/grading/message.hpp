// SPDX-License-Identifier: MIT
// Messages between the grader and the process of a submission: 8 bytes of length, then CBOR.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace cookbook::grading {

/// The other end of the pipe is gone, or what came is no message.
struct BrokenPipe : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Writes a message to a file descriptor. Throws BrokenPipe.
void send(int to, const nlohmann::json& message);

/// Reads one of at most `most_bytes`; false where the other end was closed before it. Throws
/// BrokenPipe.
bool receive(int from, std::uint64_t most_bytes, nlohmann::json& message);

/// The pipes to and from the grader.
struct Pipes {
  int in, out;
};

/// What the process of a submission does: answers messages of at most `most_bytes` on standard
/// input until that is closed. Returns the exit status: 1 where the grader is gone.
int serve(std::uint64_t most_bytes,
          const std::function<nlohmann::json(const nlohmann::json&, const Pipes&)>& answer_to);

/// The bytes as a value of a message.
inline nlohmann::json bytes_value(const void* data, std::size_t bytes) {
  const auto* begin = static_cast<const std::uint8_t*>(data);
  return nlohmann::json::binary({begin, begin + bytes});
}

}  // namespace cookbook::grading
