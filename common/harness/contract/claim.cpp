// SPDX-License-Identifier: MIT
#include "common/harness/contract/claim.hpp"

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

Claim::Claim() = default;
Claim::Claim(const Claim&) = default;
Claim::Claim(Claim&&) noexcept = default;
Claim& Claim::operator=(const Claim&) = default;
Claim& Claim::operator=(Claim&&) noexcept = default;
Claim::~Claim() = default;

Accesses::Accesses(std::string_view space, std::string_view op, std::string_view buffer) {
  about_.space = space;
  about_.op = op;
  about_.buffer = buffer;
}

Accesses& Accesses::on(std::string_view tag) {
  about_.tag = tag;
  return *this;
}

Accesses& Accesses::in_kernel(std::string_view part) {
  about_.kernel = part;
  return *this;
}

std::string Accesses::describe() const {
  const std::string &space = about_.space, &op = about_.op, &buffer = about_.buffer;
  const std::string &tag = about_.tag, &kernel = about_.kernel;
  std::string operation = op;
  if (op == "async_load") operation = space == "global" ? "asynchronous load" : "shared read";
  if (op == "async_store") operation = space == "global" ? "TMA store" : "shared write";
  std::string text = op.rfind("async", 0) == 0 ? operation + "s" : space + " " + operation + "s";
  if (op == "alloc") text = "allocations of tensor memory";
  if (!buffer.empty()) text += " of `" + buffer + "`";
  if (!tag.empty()) text += " on line [" + tag + "]";
  if (!kernel.empty()) text += " in " + kernel;
  return text;
}

Claim Accesses::make(Metric metric, double value, Relation relation, std::string what) const {
  Claim claim = about_;
  claim.text = what.empty() ? describe() : describe() + ": " + what;
  claim.metric = metric;
  claim.relation = relation;
  claim.value = value;
  claim.tolerance = 1e-9;
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

Claim Accesses::columns(int value) const {
  return make(Metric::columns, value, Relation::equal,
              fmt::format("{} columns each, so at most {} blocks per SM", value, 512 / value));
}

Accesses global_loads(std::string_view buffer) { return {"global", "load", buffer}; }
Accesses global_stores(std::string_view buffer) { return {"global", "store", buffer}; }
Accesses shared_loads() { return {"shared", "load", ""}; }
Accesses shared_stores() { return {"shared", "store", ""}; }
Accesses global_atomics(std::string_view buffer) { return {"global", "atomic", buffer}; }
Accesses shared_atomics() { return {"shared", "atomic", ""}; }
Accesses tma_loads(std::string_view buffer) { return {"global", "async_load", buffer}; }
Accesses tma_stores(std::string_view buffer) { return {"global", "async_store", buffer}; }
Accesses tensor_core_reads() { return {"shared", "async_load", ""}; }
Accesses tensor_memory_allocations() { return {"tensor", "alloc", ""}; }

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

Claim faster_than_previous(double ratio, std::string_view when) {
  if (!(ratio >= 1)) {
    throw std::invalid_argument(fmt::format(
        "faster_than_previous({}): a level that may be slower claims at_least_previous", ratio));
  }
  return speed_claim(Metric::time_ratio_previous, ratio,
                     fmt::format("time: at least {:.3g}x the previous level{}{}", ratio,
                                 when.empty() ? "" : " ", when));
}

Claim at_least_previous(double ratio, std::string_view why) {
  if (!(ratio < 1)) {
    throw std::invalid_argument(fmt::format(
        "at_least_previous({}): a level that must be faster claims faster_than_previous", ratio));
  }
  return speed_claim(Metric::time_ratio_previous, ratio,
                     fmt::format("time: at least {:.3g}x the previous level: {}", ratio, why));
}

Claim against_library(std::string_view library, double ratio) {
  Claim claim = speed_claim(Metric::time_ratio_reference, ratio,
                            fmt::format("time: at least {:.3g}x {}", ratio, library));
  claim.name = library;
  return claim;
}

Claim fraction_of_roof(double fraction) {
  return speed_claim(Metric::roof_fraction, fraction,
                     fmt::format("at least {:.3g} of the measured roof", fraction));
}

Claim for_gpu(std::string_view gpu, Claim claim) {
  claim.gpu = gpu;
  return claim;
}

Claims mechanism(const Claims& claims) {
  Claims kept;
  for (const Claim& claim : claims) {
    if (claim.is_mechanism()) kept.push_back(claim);
  }
  return kept;
}

}  // namespace cookbook
