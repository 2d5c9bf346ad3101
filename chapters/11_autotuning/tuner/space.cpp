// SPDX-License-Identifier: MIT
#include "chapters/11_autotuning/tuner/space.hpp"

#include <fmt/format.h>

namespace cookbook::tune {

std::string id_of(const Parameters& parameters) {
  std::string id;
  for (const Parameter& p : parameters) {
    id += fmt::format("{}{}={}", id.empty() ? "" : " ", p.name, p.value);
  }
  return id;
}

std::int64_t value_of(const Parameters& parameters, const std::string& name,
                      std::int64_t otherwise) {
  for (const Parameter& p : parameters) {
    if (p.name == name) return p.value;
  }
  return otherwise;
}

std::string with_commas(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const bool group = i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0;
    if (group) text += ',';
    text += digits[i];
  }
  return text;
}

std::string too_much_shared_memory(std::int64_t bytes, std::int64_t limit) {
  return fmt::format("shared memory {} > {} bytes", with_commas(bytes), with_commas(limit));
}

std::string text_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

void Space::add(Candidate candidate) {
  if (!within_compile_budget(candidates_.size() + 1)) {
    throw SpaceError(fmt::format(
        "space `{}` has more than {} configurations: each one is compiled for every architecture",
        kernel, kMostConfigurations));
  }
  if (find(candidate.id())) {
    throw SpaceError(fmt::format("space `{}` has `{}` twice", kernel, candidate.id()));
  }
  candidates_.push_back(std::move(candidate));
}

std::optional<std::size_t> Space::find(const std::string& id) const {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].id() == id) return i;
  }
  return std::nullopt;
}

std::vector<std::string> Space::ids() const {
  std::vector<std::string> ids;
  for (const Candidate& each : candidates_) ids.push_back(each.id());
  return ids;
}

std::string Space::hash() const {
  std::string all;
  for (const Candidate& each : candidates_) all += each.id() + "|" + each.illegal + "\n";
  return text_hash(all);
}

const char* stage_name(Stage stage) {
  switch (stage) {
    case Stage::illegal: return "illegal";
    case Stage::unsupported: return "unsupported";
    case Stage::pruned: return "pruned";
    case Stage::other_shard: return "other shard";
    case Stage::failed: return "failed";
    case Stage::timed: return "timed";
    case Stage::finalist: return "finalist";
  }
  return "?";
}

std::vector<Fate> legality(const Space& space, const AnyProblem& problem,
                           const DeviceInfo& device) {
  std::vector<Fate> fates;
  for (std::size_t i = 0; i < space.candidates().size(); ++i) {
    const Candidate& each = space[i];
    if (!each.illegal.empty()) {
      fates.push_back({i, Stage::illegal, each.illegal});
    } else if (const Support support = each.level.supports(problem, device); !support) {
      fates.push_back({i, Stage::unsupported, support.reason});
    } else {
      fates.push_back({i, Stage::timed, ""});
    }
  }
  return fates;
}

std::vector<std::size_t> legal(const Space& space, const AnyProblem& problem,
                               const DeviceInfo& device) {
  std::vector<std::size_t> indices;
  for (const Fate& fate : legality(space, problem, device)) {
    if (fate.stage == Stage::timed) indices.push_back(fate.candidate);
  }
  return indices;
}

}  // namespace cookbook::tune
