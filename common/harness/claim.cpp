// SPDX-License-Identifier: MIT
#include "common/harness/claim.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

namespace cookbook {
namespace {

std::string compare_words(Relation relation, double value) {
  switch (relation) {
    case Relation::equal: return "= " + number_text(value);
    case Relation::at_least: return "at least " + number_text(value);
    case Relation::at_most: return "at most " + number_text(value);
  }
  return {};
}

}  // namespace

std::string number_text(double value) {
  if (std::fabs(value) >= 1e15 || value != std::floor(value)) return fmt::format("{:.6g}", value);
  std::string text = fmt::format("{:.0f}", value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

Accesses::Accesses(std::string space, std::string op, std::string buffer)
    : space_(std::move(space)), op_(std::move(op)), buffer_(std::move(buffer)) {}

Accesses& Accesses::on(std::string tag) {
  tag_ = std::move(tag);
  return *this;
}

Accesses& Accesses::in_kernel(std::string part) {
  kernel_ = std::move(part);
  return *this;
}

std::string Accesses::describe() const {
  std::string operation = op_;
  if (op_ == "async_load") operation = space_ == "global" ? "asynchronous load" : "shared read";
  if (op_ == "async_store") operation = space_ == "global" ? "TMA store" : "shared write";
  std::string text = op_.rfind("async", 0) == 0 ? operation + "s" : space_ + " " + operation + "s";
  if (!buffer_.empty()) text += " of `" + buffer_ + "`";
  if (!tag_.empty()) text += " on line [" + tag_ + "]";
  if (!kernel_.empty()) text += " in " + kernel_;
  return text;
}

Claim Accesses::make(Metric metric, double value, Relation relation, std::string what) const {
  Claim claim;
  claim.text = what.empty() ? describe() : describe() + ": " + what;
  claim.metric = metric;
  claim.relation = relation;
  claim.value = value;
  claim.tolerance = 1e-9;
  claim.space = space_;
  claim.op = op_;
  claim.buffer = buffer_;
  claim.tag = tag_;
  claim.kernel = kernel_;
  return claim;
}

Claim Accesses::sectors_per_request(double value, Relation relation) const {
  return make(Metric::sectors_per_request, value, relation,
              "sectors per request " + compare_words(relation, value));
}

Claim Accesses::coalesced() const {
  return make(Metric::sectors_over_ideal, 1, Relation::equal, "sectors = ideal");
}

Claim Accesses::sectors_over_ideal(double value, Relation relation) const {
  return make(Metric::sectors_over_ideal, value, relation,
              "sectors / ideal " + compare_words(relation, value));
}

Claim Accesses::conflict_free() const {
  return make(Metric::wavefronts_over_ideal, 1, Relation::equal, "wavefronts = ideal");
}

Claim Accesses::wavefronts_over_ideal(double value, Relation relation) const {
  return make(Metric::wavefronts_over_ideal, value, relation,
              "wavefronts / ideal " + compare_words(relation, value));
}

Claim Accesses::wavefronts_per_request(double value, Relation relation) const {
  return make(Metric::wavefronts_per_request, value, relation,
              "wavefronts per request " + compare_words(relation, value));
}

Claim Accesses::requests(double value, Relation relation) const {
  return make(Metric::requests, value, relation, "requests " + compare_words(relation, value));
}

Claim Accesses::bytes(double value, Relation relation) const {
  return make(Metric::bytes, value, relation, "bytes " + compare_words(relation, value));
}

Accesses global_loads(std::string buffer) { return {"global", "load", std::move(buffer)}; }
Accesses global_stores(std::string buffer) { return {"global", "store", std::move(buffer)}; }
Accesses shared_loads() { return {"shared", "load", ""}; }
Accesses shared_stores() { return {"shared", "store", ""}; }
Accesses global_atomics(std::string buffer) { return {"global", "atomic", std::move(buffer)}; }
Accesses shared_atomics() { return {"shared", "atomic", ""}; }
Accesses tma_loads(std::string buffer) { return {"global", "async_load", std::move(buffer)}; }
Accesses tma_stores(std::string buffer) { return {"global", "async_store", std::move(buffer)}; }

namespace {

Claim speed_claim(Metric metric, double value, std::string text) {
  Claim claim;
  claim.text = std::move(text);
  claim.metric = metric;
  claim.relation = Relation::at_least;
  claim.value = value;
  return claim;
}

}  // namespace

Claim faster_than_previous(double ratio, std::string when) {
  if (!(ratio >= 1)) {
    throw std::invalid_argument(fmt::format(
        "faster_than_previous({}): a level that may be slower claims at_least_previous", ratio));
  }
  return speed_claim(Metric::time_ratio_previous, ratio,
                     fmt::format("time: at least {:.3g}x the previous level{}{}", ratio,
                                 when.empty() ? "" : " ", when));
}

Claim at_least_previous(double ratio, std::string why) {
  if (!(ratio < 1)) {
    throw std::invalid_argument(fmt::format(
        "at_least_previous({}): a level that must be faster claims faster_than_previous", ratio));
  }
  return speed_claim(Metric::time_ratio_previous, ratio,
                     fmt::format("time: at least {:.3g}x the previous level: {}", ratio, why));
}

Claim against_library(std::string library, double ratio) {
  Claim claim = speed_claim(Metric::time_ratio_reference, ratio,
                            fmt::format("time: at least {:.3g}x {}", ratio, library));
  claim.name = std::move(library);
  return claim;
}

Claim fraction_of_roof(double fraction) {
  return speed_claim(Metric::roof_fraction, fraction,
                     fmt::format("at least {:.3g} of the measured roof", fraction));
}

Claims mechanism(const Claims& claims) {
  Claims kept;
  for (const Claim& claim : claims) {
    if (claim.is_mechanism()) kept.push_back(claim);
  }
  return kept;
}

}  // namespace cookbook
