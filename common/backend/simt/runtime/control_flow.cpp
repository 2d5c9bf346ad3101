// SPDX-License-Identifier: MIT
// Read from the machine code, by objdump: g++ neither keeps blocks in the source's order nor says
// which loops it made.
#include "common/backend/simt/runtime/control_flow.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/backend/simt/runtime/symbolize.hpp"
#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {
namespace {

struct Instruction {
  uintptr_t address;
  uintptr_t target = 0;       // of a jump; 0 if it is none or goes elsewhere
  bool ends_segment = false;  // a jump or a call
  bool falls_through = true;
};

/// From behind a jump or call, or where a jump goes, to the next of these.
struct Segment {
  std::vector<size_t> next, previous;
  size_t scope = 0;  // the loop that is being arranged and has it
};

// "   29285:\tcall   b4b10 <__tsan_func_exit>", "  4005c:\ttbnz\tw0, #3, 40080 <f+0x24>"
bool parse(const char* line, uintptr_t base, Instruction& result) {
  char* end = nullptr;
  const uintptr_t address = std::strtoull(line, &end, 16);
  if (end == line || *end != ':') return false;
  result = {base + address};
  const std::string_view text(end + 1);
  const std::string_view code = text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
  const std::string_view name = code.substr(0, code.find_first_of(" \t\n"));
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const bool leaves = name.starts_with("ret") || is_one_of({"ud2", "hlt", "brk"});
  const bool always = name.starts_with("jmp") || is_one_of({"b", "br"});
  const bool jumps = always || name.starts_with('j') || name.starts_with("b.") ||
                     is_one_of({"cbz", "cbnz", "tbz", "tbnz"});
  result.ends_segment = leaves || jumps || name.starts_with("call") || is_one_of({"bl", "blr"});
  result.falls_through = !leaves && !always;
  const size_t symbol = code.find(" <");
  if (jumps && symbol != std::string_view::npos) {
    const size_t from = code.find_last_of(" \t", symbol - 1);
    result.target = base + std::strtoull(code.data() + from, nullptr, 16);
  }
  return true;
}

void read_machine_code(const Module& module, uintptr_t begin, uintptr_t end,
                       const std::function<void(const char*)>& visit) {
  const std::string command = fmt::format(
      "objdump -d --no-show-raw-insn --start-address={:#x} --stop-address={:#x} {} 2>/dev/null",
      begin - module.base, end - module.base, shell_quote(module.path));
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return;
  char* line = nullptr;
  size_t capacity = 0;
  while (getline(&line, &capacity, pipe) > 0) visit(line);
  std::free(line);
  pclose(pipe);
}

std::vector<Instruction> disassemble(const Module& module, uintptr_t begin, uintptr_t end) {
  std::vector<Instruction> code;
  read_machine_code(module, begin, end, [&](const char* line) {
    Instruction one{};
    if (parse(line, module.base, one)) code.push_back(one);
  });
  return code;
}

Symbol function_at(uintptr_t pc) {
  Symbol function{};
  for_each_symbol(reinterpret_cast<const void*>(pc), [&](const Symbol& symbol) {
    if (symbol.type == STT_FUNC && pc - 1 - symbol.begin < symbol.bytes) function = symbol;
  });
  return function;
}

class Function {
 public:
  Function(const std::vector<Instruction>& code, uintptr_t end) {
    std::map<uintptr_t, size_t> begins{{code.front().address, 0}};
    for (size_t i = 0; i < code.size(); ++i) {
      const uintptr_t target = code[i].target;
      if (target >= code.front().address && target <= code.back().address) begins[target];
      if (code[i].ends_segment && i + 1 < code.size()) begins[code[i + 1].address];
    }
    for (auto& [begin, number] : begins) {
      number = begins_.size();
      begins_.push_back(begin);
    }
    segments_.resize(begins_.size());
    begins_.push_back(end);
    size_t current = 0;
    for (size_t i = 0; i < code.size(); ++i) {
      const auto begun = begins.find(code[i].address);
      if (begun != begins.end()) {
        if (i > 0 && code[i - 1].falls_through) link(current, begun->second);
        current = begun->second;
      }
      const auto target = begins.find(code[i].target);
      if (target != begins.end()) link(current, target->second);
    }
    std::vector<size_t> all(segments_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    arrange(all);
  }

  /// The segments by rank, as numbers in the order of their addresses.
  const std::vector<size_t>& order() const { return order_; }
  /// The return address of the call that ends a segment.
  uintptr_t end(size_t segment) const { return begins_[segment + 1]; }

 private:
  void link(size_t from, size_t to) {
    segments_[from].next.push_back(to);
    segments_[to].previous.push_back(from);
  }

  /// Appends `members`, the earliest first, to the order: strongly connected components, each
  /// behind those that lead to it. In a component the head comes last; without it, the loop has no
  /// way back, and what is left is arranged likewise.
  void arrange(const std::vector<size_t>& members) {
    const size_t scope = ++scopes_;
    for (const size_t one : members) segments_[one].scope = scope;
    const std::vector<size_t> reached = depth_first(members, scope);
    for (const size_t head : reached) {
      if (segments_[head].scope != scope) continue;  // in the loop of an earlier head
      const size_t inside = ++scopes_;
      if (take_loop(head, scope, inside)) {
        std::vector<size_t> loop;
        std::copy_if(reached.begin(), reached.end(), std::back_inserter(loop),
                     [&](size_t one) { return segments_[one].scope == inside; });
        arrange(loop);
      }
      order_.push_back(head);
    }
  }

  /// In the reverse of the order in which a depth-first search leaves them. The search takes higher
  /// addresses first, so that of two sides of a branch the lower one comes first in the end.
  std::vector<size_t> depth_first(const std::vector<size_t>& members, size_t scope) {
    std::vector<size_t> left;
    std::vector<bool> seen(segments_.size());
    std::vector<std::pair<size_t, size_t>> path;  // and how many of its successors are done
    for (const size_t start : members) {
      if (!seen[start]) path.push_back({start, 0});
      seen[start] = true;
      while (!path.empty()) {
        auto& [one, done] = path.back();
        std::vector<size_t>& next = segments_[one].next;
        if (done == 0) std::sort(next.begin(), next.end(), std::greater());
        if (done == next.size()) {
          left.push_back(one);
          path.pop_back();
          continue;
        }
        const size_t to = next[done++];
        if (segments_[to].scope != scope || seen[to]) continue;
        seen[to] = true;
        path.push_back({to, 0});
      }
    }
    std::reverse(left.begin(), left.end());
    return left;
  }

  /// Moves what leads to `head` from the scope to `inside`, and the head out of it.
  bool take_loop(size_t head, size_t scope, size_t inside) {
    segments_[head].scope = 0;
    std::vector<size_t> open{head};
    bool some = false;
    while (!open.empty()) {
      const size_t one = open.back();
      open.pop_back();
      for (const size_t before : segments_[one].previous) {
        if (segments_[before].scope != scope) continue;
        segments_[before].scope = inside;
        open.push_back(before);
        some = true;
      }
    }
    return some;
  }

  std::vector<uintptr_t> begins_;  // of the segments, and the end
  std::vector<Segment> segments_;
  std::vector<size_t> order_;
  size_t scopes_ = 0;
};

using Ranks = std::unordered_map<uintptr_t, uintptr_t>;

// Adds the function that `pc` is in.
void read_function(uintptr_t pc, Ranks& ranks) {
  const Symbol function = function_at(pc);
  const uintptr_t end = function.begin + function.bytes;
  std::vector<Instruction> code;
  if (function.bytes > 0) code = disassemble(find_module(pc), function.begin, end);
  if (code.empty() && function.bytes > 0) {
    [[maybe_unused]] static const int once = std::fputs(
        "note: objdump did not read the kernels; lanes that diverge may meet late, and then more "
        "requests are counted\n",
        stderr);
  } else if (!code.empty()) {
    const Function read(code, end);
    uintptr_t rank = function.begin;
    for (const size_t segment : read.order()) ranks[read.end(segment)] = rank++;
  }
  ranks.try_emplace(pc, pc);
}

}  // namespace

void* branch_between(void* from, void* to) {
  const auto begin = reinterpret_cast<uintptr_t>(from), next = reinterpret_cast<uintptr_t>(to);
  const Symbol function = function_at(begin);
  if (function.bytes == 0) return from;
  constexpr uintptr_t kHeadBytes = 64;  // of a block, before what its hook returns to
  uintptr_t branch = 0;
  for (const Instruction& one :
       disassemble(find_module(begin), begin, function.begin + function.bytes)) {
    if (one.target != 0 && one.falls_through) {
      branch = one.address;
      if (one.target < next && next - one.target < kHeadBytes) break;
    }
    if (one.address >= next && next > begin) break;  // fell through
    if (!one.falls_through) break;
  }
  return branch != 0 ? reinterpret_cast<void*>(branch + 1) : from;
}

bool returns_after(void* pc) {
  // What a compiler moves into a loop around the function: additions and the like of integers.
  static const std::set<std::string_view> harmless = {
      "mov",  "movl", "movq", "movss", "movsd", "movaps", "movslq",  "lea", "pop",
      "push", "add",  "sub",  "imul",  "and",   "or",     "xor",     "not", "neg",
      "shl",  "nop",  "nopw", "nopl",  "leave", "jo",     "endbr64", "mul", "madd",
      "ldp",  "ldr",  "str",  "stp",   "sxtw",  "b.vs"};
  const Symbol function = function_at(reinterpret_cast<uintptr_t>(pc));
  if (function.bytes == 0) return false;
  const Module module = find_module(function.begin);
  std::map<uintptr_t, std::string> code;
  read_machine_code(module, function.begin, function.begin + function.bytes, [&](const char* line) {
    Instruction one{};
    if (!parse(line, module.base, one)) return;
    const std::string_view text = std::strchr(line, ':') + 1;
    code[one.address] = text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
  });
  auto at = code.find(reinterpret_cast<uintptr_t>(pc));
  for (int steps = 0; at != code.end() && steps < 100; ++steps) {
    const std::string_view text = at->second;
    const std::string_view name = text.substr(0, text.find_first_of(" \t\n"));
    if (name.starts_with("ret")) return true;
    const bool is_hook = text.find("__tsan_func_exit") != std::string_view::npos ||
                         text.find("__sanitizer_cov_trace_pc") != std::string_view::npos;
    if (name == "jmp" || name == "b") {
      Instruction jump{};
      const std::string line = fmt::format("{:x}:\t{}", at->first - module.base, at->second);
      if (!parse(line.c_str(), module.base, jump) || jump.target == 0) return false;
      at = code.find(jump.target);
    } else if (is_hook || harmless.contains(name)) {
      ++at;
    } else {
      return false;
    }
  }
  return false;
}

uintptr_t reconvergence_rank(uintptr_t pc) {
  static std::mutex mutex;
  static Ranks ranks;
  const NoThread none;
  const std::lock_guard<std::mutex> lock(mutex);
  auto found = ranks.find(pc);
  if (found == ranks.end()) {
    read_function(pc, ranks);
    found = ranks.find(pc);
  }
  return found->second;
}

}  // namespace cookbook::simt
