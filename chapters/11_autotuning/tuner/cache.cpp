// SPDX-License-Identifier: MIT
#include "chapters/11_autotuning/tuner/cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "common/harness/contract/tokens.hpp"

namespace cookbook::tune {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Key, kernel, tokens, space, shape, dtype, layout, gpu, cc,
                                   driver, toolkit, sm_count, l2_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Measured, us, ratio, low, high, rounds)

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;  // sorted keys: equal contents are equal bytes
constexpr const char* kSchema = "kernel-cookbook tuning cache 4";

Json to_json(const Entry& entry) {
  Json measured = Json::object();
  for (const auto& [id, m] : entry.measured) {
    measured[id] = m.failed.empty() ? Json(m) : Json{{"failed", m.failed}};
  }
  return {{"key", entry.key},
          {"default", entry.default_id},
          {"best_fixed", entry.fixed_id},
          {"measured", measured},
          {"winner", entry.winner()}};
}

Entry entry_from(const Json& json) {
  Entry entry;
  entry.key = json.at("key");
  entry.default_id = json.at("default");
  entry.fixed_id = json.at("best_fixed");
  for (const auto& [id, m] : json.at("measured").items()) {
    if (m.contains("failed")) {
      entry.measured[id].failed = m.at("failed");
    } else {
      m.get_to(entry.measured[id]);
    }
  }
  if (entry.winner() != json.at("winner").get<std::string>())
    throw std::runtime_error("a winner that did not win");
  return entry;
}

// Says nothing about what is in the file, which is left where it is.
struct Unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::map<std::string, Entry> parse(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw Unreadable("cannot open " + file);
  const Json json = Json::parse(in);
  if (!json.is_object() || json.value("schema", "") != kSchema) {
    throw std::runtime_error("is not a tuning cache of this version");
  }
  std::map<std::string, Entry> entries;
  for (const auto& [digest, each] : json.at("entries").items()) {
    Entry entry = entry_from(each);
    if (entry.key.digest() != digest) {
      throw std::runtime_error("entry " + digest + " does not belong to its key");
    }
    entries[digest] = std::move(entry);
  }
  return entries;
}

// Held while the file is changed. The lock is a file of its own: the cache itself is replaced.
class Lock {
 public:
  explicit Lock(const std::string& file) {
    handle_ = open((file + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (handle_ < 0 || flock(handle_, LOCK_EX) != 0) {
      if (handle_ >= 0) close(handle_);
      throw std::runtime_error("cannot lock " + file + ".lock");
    }
  }
  ~Lock() { close(handle_); }  // and unlocks
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int handle_;
};

auto order(const Measured& m) {
  // A failure beats a time: what was wrong once is not chosen. Then the more careful measurement,
  // then the one that promises less.
  return std::tuple(m.failed.empty(), -m.rounds, m.ratio, m.low, m.high, m.us, m.failed);
}

// The source's hash, or that of this program where the build has entered none: without either, the
// winner of an older kernel would be taken for this one's.
std::string kernel_hash(const std::string& source) {
  if (const std::string hash = token_hash(source); !hash.empty()) return hash;
  std::ifstream program("/proc/self/exe", std::ios::binary);
  return text_hash(std::string(std::istreambuf_iterator<char>(program), {}));
}

std::int64_t rounded_up(std::int64_t extent) {
  if (extent <= 128) return extent;
  std::int64_t step = 1;
  while (extent / step >= 16) step *= 2;
  return (extent + step - 1) / step * step;
}

int alignment(std::int64_t elements) {
  int power = 1;
  while (power < 8 && elements % (2 * power) == 0) power *= 2;
  return power;
}

}  // namespace

std::string Key::digest() const { return text_hash(Json(*this).dump()); }

std::string shape_bucket(const Size& size) {
  std::string text;
  for (std::int64_t extent : size) {
    text +=
        fmt::format("{}{}/{}", text.empty() ? "" : " x ", rounded_up(extent), alignment(extent));
  }
  return text;
}

Key make_key(const Space& space, const AnyProblem& problem, const DevicePointers& at,
             const DeviceInfo& device) {
  // Hashing may read the whole program: once a process and file is enough.
  static std::map<std::string, std::string> hashes;
  auto& source = hashes[space.source];
  if (source.empty()) source = kernel_hash(space.source);
  Key key;
  key.kernel = space.kernel, key.tokens = source, key.space = space.hash();
  key.shape = shape_bucket(space.size_of(problem));
  key.dtype = space.problem.dtype;
  key.layout = space.problem.layout;
  for (const TensorSpec& spec : problem.tensors()) {
    const auto found = at.by_name.find(spec.name);
    const bool aligned =
        found == at.by_name.end() || reinterpret_cast<std::uintptr_t>(found->second) % 16 == 0;
    key.layout += fmt::format("{}{}/{}{}", key.layout.empty() ? "" : " ", spec.name,
                              alignment(spec.pitch), aligned ? "" : " unaligned");
  }
  key.gpu = device.name, key.cc = fmt::format("{}.{}", device.cc_major, device.cc_minor);
  key.driver = device.driver, key.toolkit = device.toolkit;
  key.sm_count = device.sm_count, key.l2_bytes = device.l2_bytes;
  return key;
}

std::string Entry::winner() const {
  std::string chosen = default_id;
  double speed = 1;  // of `chosen`, the default's being 1
  const auto replace = [&](const std::string& id) {
    const auto at = measured.find(id);
    if (at == measured.end() || !at->second.may_win()) return;
    const Measured& m = at->second;
    if (worth_changing(m.ratio / speed, m.low / speed)) chosen = id, speed = m.ratio;
  };
  std::string fastest = default_id;
  double most = 1;
  for (const auto& [id, m] : measured) {  // in the order of ids: ties have one answer
    if (m.may_win() && m.low > 1 && m.ratio > most) fastest = id, most = m.ratio;
  }
  if (fixed_id != default_id) replace(fixed_id);
  if (fastest != chosen) replace(fastest);
  return chosen;
}

Entry joined(const Entry& a, const Entry& b) {
  Entry both = a;
  both.default_id = std::min(a.default_id, b.default_id);  // equal, or the space hash would differ
  both.fixed_id = std::max(a.fixed_id, b.fixed_id);  // from different recordings: either will do
  for (const auto& [id, m] : b.measured) {
    const auto [at, is_new] = both.measured.try_emplace(id, m);
    if (!is_new && order(m) < order(at->second)) at->second = m;
  }
  return both;
}

std::string Cache::default_file() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base =
      cache && *cache ? fs::path(cache) : fs::path(home && *home ? home : "/tmp") / ".cache";
  return base / "kernel-cookbook" / "tune.json";
}

std::map<std::string, Entry> Cache::entries() const {
  if (!fs::exists(file_)) return {};
  try {
    return parse(file_);
  } catch (const Unreadable&) {
    throw;
  } catch (const std::exception& error) {
    int n = 1;
    while (fs::exists(fmt::format("{}.corrupt-{}", file_, n))) ++n;
    const std::string aside = fmt::format("{}.corrupt-{}", file_, n);
    std::error_code failed;
    fs::rename(file_, aside, failed);
    if (failed) {
      throw std::runtime_error(fmt::format("{} is not trusted ({}) and cannot be set aside: {}",
                                           file_, error.what(), failed.message()));
    }
    fmt::print(stderr, "autotune: {} is not trusted ({}); set aside as {}\n", file_, error.what(),
               aside);
    return {};
  }
}

std::optional<Entry> Cache::find(const Key& key) const {
  std::error_code ignored;
  if (!fs::exists(file_, ignored)) return std::nullopt;
  // Replaced, never edited: what can be opened is whole, so reading needs no lock - unless it turns
  // out to be bad and has to be moved, which only one process should do.
  std::map<std::string, Entry> all;
  try {
    try {
      all = parse(file_);
    } catch (const std::exception&) {
      const Lock lock(file_);
      all = entries();
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "autotune: {}; going on without the cache\n", error.what());
  }
  const auto found = all.find(key.digest());
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

void Cache::update(const std::map<std::string, Entry>& added) const {
  fs::create_directories(fs::absolute(file_).parent_path());
  const Lock lock(file_);
  std::map<std::string, Entry> all = entries();
  for (const auto& [digest, entry] : added) {
    const auto [at, is_new] = all.try_emplace(digest, entry);
    if (!is_new) at->second = joined(at->second, entry);
  }
  Json json{{"schema", kSchema}, {"entries", Json::object()}};
  for (const auto& [digest, entry] : all) json["entries"][digest] = to_json(entry);
  const std::string text = json.dump(1) + "\n", fresh = fmt::format("{}.{}.tmp", file_, getpid());
  const int out = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  std::size_t written = 0;
  while (out >= 0 && written < text.size()) {
    const ssize_t n = write(out, text.data() + written, text.size() - written);
    if (n <= 0) break;
    written += static_cast<std::size_t>(n);
  }
  const bool whole = out >= 0 && written == text.size() && fsync(out) == 0;
  if (out >= 0) close(out);
  // rename() replaces the file in one step: readers see the old one or the new one.
  if (!whole || std::rename(fresh.c_str(), file_.c_str()) != 0) {
    unlink(fresh.c_str());
    throw std::runtime_error("cannot write " + file_);
  }
}

void Cache::add(const Entry& entry) const { update({{entry.key.digest(), entry}}); }

std::string Cache::try_add(const Entry& entry) const {
  try {
    add(entry);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void Cache::merge(const std::string& other) const {
  try {
    update(parse(other));
  } catch (const std::exception& error) {
    throw std::runtime_error(other + ": " + error.what());
  }
}

}  // namespace cookbook::tune
