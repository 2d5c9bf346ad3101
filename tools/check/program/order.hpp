// SPDX-License-Identifier: MIT
//
// What orders launches, copies and the host. Everything runs synchronously here, on a GPU it does
// not: vector clocks say which operations of which stream the host, another stream or an event
// knows to be over.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/check/program/program.hpp"

namespace cookbook::simt::program {

class Order {
 public:
  /// By stream, and for the host: the number of its last operation that is known to be over.
  using Clock = std::map<const void*, uint64_t>;
  enum class Use : uint8_t { read, write, atomic };
  struct Range {
    uintptr_t begin, end;
    Use use;
  };
  struct Operation {
    std::string what;  ///< "the launch of k at prog.cu:12"
    std::string stream;
    const void* on = nullptr;
    uint64_t number = 0;
    bool prints = false;
    std::vector<Range> ranges;
  };
  /// Two that nothing orders and that share memory: one of them writes [begin, end) of it.
  using Report = std::function<void(const Operation&, const Operation&, uintptr_t, uintptr_t)>;
  explicit Order(Report report) : report_(std::move(report)) {}

  void add_stream(const void* stream, bool blocking, Place place);
  /// A chain of nodes of a graph that is instantiated at `place`.
  void add_branch(const void* stream, Place place);
  bool is_blocking(const void* stream) { return streams_[stream].blocking; }
  /// An operation comes next in `stream`; null: the default stream.
  void begin(const void* stream, std::string what);
  /// Of that operation.
  void use(uintptr_t begin, uintptr_t end, Use use) { now_.ranges.push_back({begin, end, use}); }
  void prints() { now_.prints = true; }
  void end();

  /// The host waits for all of `stream`, for what `event` recorded, or for everything.
  void wait_for(const void* stream) { learn(the_host(), known_[stream]); }
  void wait_for_event(const void* event) { learn(the_host(), events_[event]); }
  void wait_for_all();
  void record(const void* event, const void* stream);
  /// Whether the host knows that what `event` recorded is over.
  bool is_over(const void* event);
  void wait_in(const void* stream, const void* event) { learn(stream, events_[event]); }
  /// The host itself reads or writes memory.
  void host_access(uintptr_t begin, uintptr_t end, bool writes, const std::string& what);
  /// What the host does not know to be over.
  const std::vector<Operation>& pending();

 private:
  static const void* the_host();
  void learn(const void* who, const Clock& from);
  /// The default stream waits for the others, and they for it, unless they are non-blocking.
  void join_default(const void* stream);
  void check(const Operation& later, const Clock& known);

  Report report_;
  std::map<const void*, Clock> known_, events_;
  struct Stream {
    bool blocking;
    std::string name;
  };
  std::map<const void*, Stream> streams_{{nullptr, {true, "the default stream"}}};
  std::vector<Operation> pending_;
  Operation now_;
};

}  // namespace cookbook::simt::program
