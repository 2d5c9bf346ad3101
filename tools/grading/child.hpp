// SPDX-License-Identifier: MIT
// A process that answers messages (message.hpp), for the grader: that of a submission.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/grading/message.hpp"

namespace cookbook::grading {

/// A process between two pipes. Ends when its input does, at the latest in the destructor, which
/// waits for it.
class Child {
 public:
  /// `command` ends with a null pointer. Throws std::runtime_error without a pipe or a process.
  explicit Child(char* const* command) {
    int down[2], up[2];
    // Closed in other children: the end of this one's input must not depend on them.
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) {
      throw std::runtime_error("no pipe");
    }
    child_ = fork();
    if (child_ < 0) throw std::runtime_error("no process");
    if (child_ == 0) {
      dup2(down[0], STDIN_FILENO);
      dup2(up[1], STDOUT_FILENO);
      execvp(command[0], command);
      _exit(127);
    }
    close(down[0]);
    close(up[1]);
    to_ = down[1];
    from_ = up[0];
  }
  ~Child() {
    close(to_);
    close(from_);
    int status = 0;
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Throws BrokenPipe where the process is gone, or has sent no message.
  nlohmann::json ask(const nlohmann::json& task) {
    send(to_, task);
    nlohmann::json answer;
    if (!receive(from_, kMostAnswerBytes, answer)) throw BrokenPipe("the process has ended");
    return answer;
  }

 private:
  // More than the tensors of any task and what the tracer says of it.
  static constexpr std::uint64_t kMostAnswerBytes = std::uint64_t{2} << 30;

  pid_t child_ = -1;
  int to_ = -1, from_ = -1;
};

}  // namespace cookbook::grading
