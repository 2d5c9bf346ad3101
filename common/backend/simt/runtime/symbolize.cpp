// SPDX-License-Identifier: MIT
// By addr2line on the file that contains a program counter.
#include "common/backend/simt/runtime/symbolize.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "common/backend/observe.hpp"
#include "common/backend/simt/runtime/thread_hierarchy.hpp"

namespace cookbook::simt {
namespace {

struct ModuleQuery {
  uintptr_t address;
  Module module;
};

int match_module(dl_phdr_info* info, size_t, void* data) {
  auto& query = *static_cast<ModuleQuery*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD &&
        query.address - (info->dlpi_addr + header.p_vaddr) < header.p_memsz) {
      query.module = {info->dlpi_addr, info->dlpi_name};
      return 1;
    }
  }
  return 0;
}

}  // namespace

Module find_module(uintptr_t address) {
  ModuleQuery query{address, {}};
  if (dl_iterate_phdr(&match_module, &query) && query.module.path.empty()) {
    std::error_code ignored;
    query.module.path = std::filesystem::read_symlink("/proc/self/exe", ignored);
  }
  return query.module;
}

std::string shell_quote(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

namespace {

using Frames = std::vector<SourceLocation>;  // innermost inlined function first

std::string without_newline(std::string line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return line;
}

SourceLocation parse_location(const std::string& function, const std::string& position) {
  SourceLocation location;
  location.function = function == "??" ? "" : function;
  const std::string text = position.substr(0, position.find(" ("));  // "(discriminator 2)"
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || text[0] == '?') return location;
  location.file = text.substr(0, colon);
  location.line = std::atoi(text.c_str() + colon + 1);
  return location;
}

// One addr2line for many addresses of one module. The i-th result belongs to the i-th address.
std::vector<Frames> run_addr2line(const Module& module, const std::vector<uintptr_t>& addresses) {
  std::vector<Frames> result(addresses.size());
  std::string command = "addr2line -a -i -f -C -e " + shell_quote(module.path);
  for (uintptr_t address : addresses) command += fmt::format(" {:#x}", address - module.base);
  command += " 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return result;
  char* buffer = nullptr;
  size_t capacity = 0;
  size_t current = 0, started = 0;
  std::string function;
  bool have_function = false;
  while (getline(&buffer, &capacity, pipe) > 0) {
    std::string line = without_newline(buffer);
    if (!have_function && line.compare(0, 2, "0x") == 0) {
      current = started++;
    } else if (!have_function) {
      function = line;
      have_function = true;
    } else {
      if (current < result.size()) result[current].push_back(parse_location(function, line));
      have_function = false;
    }
  }
  std::free(buffer);
  pclose(pipe);
  return result;
}

std::mutex cache_mutex;

std::map<uintptr_t, Frames>& cache() {
  static auto* frames = new std::map<uintptr_t, Frames>;
  return *frames;
}

// Fills the cache for all `addresses`. The caller holds cache_mutex.
void look_up(const std::vector<uintptr_t>& addresses) {
  constexpr size_t kBatch = 1000;  // keeps the command line short enough
  std::map<std::string, std::pair<Module, std::vector<uintptr_t>>> by_module;
  for (uintptr_t address : std::set<uintptr_t>(addresses.begin(), addresses.end())) {
    if (cache().count(address)) continue;
    const Module module = find_module(address);
    if (module.path.empty()) {
      cache()[address] = {};
      continue;
    }
    auto& entry = by_module[module.path];
    entry.first = module;
    entry.second.push_back(address);
  }
  for (auto& [path, entry] : by_module) {
    const std::vector<uintptr_t>& all = entry.second;
    for (size_t begin = 0; begin < all.size(); begin += kBatch) {
      const std::vector<uintptr_t> batch(
          all.begin() + static_cast<std::ptrdiff_t>(begin),
          all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), begin + kBatch)));
      const std::vector<Frames> frames = run_addr2line(entry.first, batch);
      for (size_t i = 0; i < batch.size(); ++i) cache()[batch[i]] = frames[i];
    }
  }
}

// While it is looked for, no thread runs here.
const Frames& frames_of(uintptr_t address) {
  const NoThread none;
  const std::lock_guard<std::mutex> lock(cache_mutex);
  look_up({address});
  return cache()[address];
}
const Frames& frames_of_call(void* pc) { return frames_of(reinterpret_cast<uintptr_t>(pc) - 1); }

bool is_plumbing(const SourceLocation& location) {
  return location.file.find("/common/device/") != std::string::npos ||
         location.file.find("/common/backend/") != std::string::npos ||
         location.file.find("/tools/check/") != std::string::npos ||
         location.file.compare(0, 5, "/usr/") == 0;
}

SourceLocation choose(const Frames& frames) {
  SourceLocation chosen;
  for (const SourceLocation& frame : frames) {
    if (frame.line == 0 || is_plumbing(frame)) continue;
    if (chosen.line == 0) {
      chosen = frame;
    } else if (frame.function != chosen.function && is_of_kernel(frame)) {
      chosen.caller = describe_line(frame);
      break;
    }
  }
  if (chosen.line != 0) return chosen;
  return frames.empty() ? SourceLocation{} : frames.front();
}

// "void cookbook::sgemm<cookbook::Config<32, 32> >(float const*, int)" -> "sgemm<Config<32, 32>>"
std::string short_function_name(std::string name) {
  const size_t clone = name.find(" [clone");
  if (clone != std::string::npos) name.resize(clone);
  if (!name.empty() && name.back() == ')') {  // drop the parameters
    int depth = 0;
    size_t i = name.size();
    while (i > 0) {
      --i;
      if (name[i] == ')') ++depth;
      if (name[i] == '(' && --depth == 0) break;
    }
    if (i > 0) name.resize(i);
  }
  int depth = 0;
  size_t start = 0;  // drop the return type: everything up to the last space outside of brackets
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '(') ++depth;
    if (name[i] == '>' || name[i] == ')') --depth;
    if (name[i] == ' ' && depth == 0) start = i + 1;
  }
  name.erase(0, start);
  for (const std::string& noise :
       {std::string("cookbook::"), std::string("(anonymous namespace)::")}) {
    for (size_t at; (at = name.find(noise)) != std::string::npos;) name.erase(at, noise.size());
  }
  for (size_t at; (at = name.find("> >")) != std::string::npos;) name.erase(at + 1, 1);
  return name;
}

}  // namespace

std::vector<SourceLocation> symbolize(const std::vector<void*>& pcs) {
  // A pc is a return address: the call that it belongs to ends one byte before.
  std::vector<uintptr_t> addresses;
  for (void* pc : pcs) addresses.push_back(pc ? reinterpret_cast<uintptr_t>(pc) - 1 : 0);
  const NoThread none;
  const std::lock_guard<std::mutex> lock(cache_mutex);
  look_up(addresses);
  std::vector<SourceLocation> result;
  for (uintptr_t address : addresses) result.push_back(choose(cache()[address]));
  return result;
}

bool is_of_kernel(const SourceLocation& location) {
  return location.line != 0 && !is_plumbing(location) &&
         location.file.find("/common/harness/") == std::string::npos;
}

bool is_own_struct(void* pc) {
  const Frames& frames = frames_of_call(pc);
  return !frames.empty() && frames[0].line != 0 && !is_plumbing(frames[0]);
}

bool copies_vector_type(void* pc) {
  const Frames& frames = frames_of_call(pc);
  return !frames.empty() && frames[0].file.ends_with("/language/vector_types.hpp");
}

std::string describe_line(const SourceLocation& location) {
  if (location.line == 0) return "";
  return location.file.substr(location.file.rfind('/') + 1) + ":" + std::to_string(location.line);
}

std::string describe_call(const SourceLocation& location) {
  return describe_line(location) +
         (location.caller.empty() ? "" : " (called at " + location.caller + ")");
}

std::string describe_stack(void* const* frames, int count) {
  // Only code that was compiled here: on systems with glibc's debug information this would name
  // abort().
  const std::string here = find_module(reinterpret_cast<uintptr_t>(&describe_stack)).path;
  std::vector<void*> own;
  for (int i = 0; i < count; ++i) {
    if (find_module(reinterpret_cast<uintptr_t>(frames[i]) - 1).path == here) {
      own.push_back(frames[i]);
    }
  }
  SourceLocation found;
  for (const SourceLocation& location : symbolize(own)) {
    if (location.line == 0 || is_plumbing(location)) continue;
    if (found.line == 0) {
      found = location;
      if (!found.caller.empty()) break;
    } else {  // of a function that was not inlined
      if (is_of_kernel(location)) found.caller = describe_line(location);
      break;
    }
  }
  return describe_call(found);
}

std::string describe_pc(void* pc) {
  const std::string line = describe_line(symbolize({pc})[0]);
  if (!line.empty()) return line;
  return fmt::format("pc {}", fmt::ptr(pc));
}

std::string kernel_name(const void* kernel) {
  const Frames& frames = frames_of(reinterpret_cast<uintptr_t>(kernel));
  // The last frame is the function itself, the others are inlined at its first instruction.
  if (!frames.empty() && !frames.back().function.empty()) {
    return short_function_name(frames.back().function);
  }
  return fmt::format("kernel at {}", fmt::ptr(kernel));
}

void for_each_symbol(const void* address, const std::function<void(const Symbol&)>& visit) {
  ModuleQuery query{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(&match_module, &query);
  const std::string& path = query.module.path;
  const int file = open(path.empty() ? "/proc/self/exe" : path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  // Mapped, not read: symbols are a small part of it, and every traced process looks for them.
  const auto size = static_cast<size_t>(lseek(file, 0, SEEK_END));
  void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return;
  const char* const bytes = static_cast<const char*>(mapped);
  const auto& header = *reinterpret_cast<const ElfW(Ehdr)*>(bytes);
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(bytes + header.e_shoff);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const char* const names = bytes + sections[sections[i].sh_link].sh_offset;
    const auto* symbol = reinterpret_cast<const ElfW(Sym)*>(bytes + sections[i].sh_offset);
    for (const auto* end = symbol + sections[i].sh_size / sizeof *symbol; symbol != end; ++symbol) {
      const int type = ELF64_ST_TYPE(symbol->st_info);
      visit({names + symbol->st_name, type,
             symbol->st_value + (type == STT_TLS ? 0 : query.module.base), symbol->st_size});
    }
  }
  munmap(mapped, size);
}

}  // namespace cookbook::simt

namespace cookbook {

std::string mangled_name(const void* kernel) {
  static const auto names = [kernel] {
    std::map<uintptr_t, std::string> all;
    simt::for_each_symbol(kernel, [&all](const simt::Symbol& symbol) {
      if (symbol.type == STT_FUNC) all[symbol.begin] = symbol.name;
    });
    return all;
  }();
  return names.at(reinterpret_cast<uintptr_t>(kernel));
}

}  // namespace cookbook
