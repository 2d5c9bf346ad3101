// SPDX-License-Identifier: MIT
#include "tools/grading/message.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace cookbook::grading {
namespace {

void write_all(int to, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = write(to, from, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw BrokenPipe("a message could not be sent");
    from += count;
    bytes -= static_cast<std::size_t>(count);
  }
}

// False where nothing came before the end.
bool read_all(int from, void* data, std::size_t bytes) {
  auto* to = static_cast<char*>(data);
  for (std::size_t got = 0; got < bytes;) {
    const ssize_t count = read(from, to + got, bytes - got);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 && got == 0) return false;
    if (count <= 0) throw BrokenPipe("a message ended early");
    got += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

void send(int to, const nlohmann::json& message) {
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(message);
  const std::uint64_t length = bytes.size();
  write_all(to, &length, sizeof length);
  write_all(to, bytes.data(), bytes.size());
}

bool receive(int from, std::uint64_t most_bytes, nlohmann::json& message) {
  std::uint64_t length = 0;
  if (!read_all(from, &length, sizeof length)) return false;
  if (length > most_bytes) throw BrokenPipe("a message is longer than it may be");
  std::vector<std::uint8_t> bytes(length);
  if (length > 0 && !read_all(from, bytes.data(), length)) {
    throw BrokenPipe("a message ended early");
  }
  message = nlohmann::json::from_cbor(bytes, true, false);
  if (message.is_discarded()) throw BrokenPipe("a message is not CBOR");
  return true;
}

int serve(std::uint64_t most_bytes,
          const std::function<nlohmann::json(const nlohmann::json&, const Pipes&)>& answer_to) {
  // The pipes get other numbers, so that what a kernel prints is no answer.
  const Pipes pipes{fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 100),
                    fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100)};
  const int nothing = open("/dev/null", O_RDWR);
  if (pipes.in < 0 || pipes.out < 0 || nothing < 0) return 1;
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, standard);
  signal(SIGPIPE, SIG_IGN);
  try {
    nlohmann::json message;
    while (receive(pipes.in, most_bytes, message)) send(pipes.out, answer_to(message, pipes));
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

}  // namespace cookbook::grading
