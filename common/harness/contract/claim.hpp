// SPDX-License-Identifier: MIT
// Claims are data: what a level states about itself, in a form that a program can check.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cookbook {

enum class Relation { equal, at_least, at_most };

enum class Metric {
  sectors_per_request,     ///< 32-byte sectors per warp-wide global access
  sectors_over_ideal,      ///< sectors divided by the fewest that could carry the same bytes
  wavefronts_over_ideal,   ///< shared-memory wavefronts divided by the fewest possible
  wavefronts_per_request,  ///< shared-memory wavefronts per warp-wide access
  requests,                ///< warp-wide accesses
  bytes,                   ///< bytes asked for by all lanes
  time_ratio_previous,     ///< time of the previous level / time of this one
  time_ratio_reference,    ///< time of the named library / time of this level
  roof_fraction,           ///< achieved / measured roof
  columns,                 ///< of tensor memory, per allocation
};

struct Claim {
  std::string text;  ///< the sentence a reader sees
  Metric metric = Metric::requests;
  Relation relation = Relation::equal;
  double value = 0;
  double tolerance = 0;  ///< relative, on `value`

  // Which accesses the metric is taken over; empty means any.
  std::string space;   ///< "global", "shared" or "tensor"
  std::string op;      ///< "load", "store", "atomic", "async_load", "async_store", "alloc"
  std::string buffer;  ///< name of a tensor or workspace
  std::string tag;     ///< only lines whose source ends in the comment `// [tag]`
  std::string kernel;  ///< part of the kernel's name
  std::string name;    ///< of the library, for time_ratio_reference
  /// Of a claim about speed: part of the name of the GPU for which it was made, such as "H200".
  /// Empty: the chapter's (Chapter::speed_claims_for).
  std::string gpu;

  // Defaulted in claim.cpp: a chapter makes hundreds of claims, and seven strings copied and freed
  // at each would be most of what its compilation takes.
  Claim();
  Claim(const Claim&);
  Claim(Claim&&) noexcept;
  Claim& operator=(const Claim&);
  Claim& operator=(Claim&&) noexcept;
  ~Claim();

  bool is_mechanism() const { return metric <= Metric::bytes || metric == Metric::columns; }
};

using Claims = std::vector<Claim>;

/// "5,242,880" for a whole number, six digits of any other.
std::string number_text(double value);

/// A set of accesses about which something is claimed: `global_loads("in").sectors_per_request(4)`.
class Accesses {
 public:
  Accesses(std::string_view space, std::string_view op, std::string_view buffer);
  Accesses& on(std::string_view tag);          ///< only the source lines marked `// [tag]`
  Accesses& in_kernel(std::string_view part);  ///< only kernels whose name contains `part`

  Claim sectors_per_request(double value, Relation relation = Relation::equal) const;
  /// Every sector that is moved is wholly used: sectors = ideal.
  Claim coalesced() const;
  Claim sectors_over_ideal(double value, Relation relation = Relation::equal) const;
  /// No bank conflict: wavefronts = ideal.
  Claim conflict_free() const;
  Claim wavefronts_over_ideal(double value, Relation relation = Relation::equal) const;
  Claim wavefronts_per_request(double value, Relation relation = Relation::equal) const;
  Claim requests(double value, Relation relation = Relation::equal) const;
  /// Bytes requested by all threads together.
  Claim bytes(double value, Relation relation = Relation::equal) const;
  /// Columns of tensor memory per allocation. With one allocation per block, as many blocks fit an
  /// SM as 512 columns allow.
  Claim columns(int value) const;

 private:
  Claim make(Metric metric, double value, Relation relation, std::string what) const;
  std::string describe() const;
  Claim about_;  // says which accesses; nothing is claimed about them yet
};

Accesses global_loads(std::string_view buffer = "");
Accesses global_stores(std::string_view buffer = "");
Accesses shared_loads();
Accesses shared_stores();
Accesses global_atomics(std::string_view buffer = "");  ///< read-modify-writes, as by atomicAdd
Accesses shared_atomics();  ///< of the lanes on one word, each takes a wavefront
Accesses tma_loads(std::string_view buffer = "");  ///< by the bulk copy engine
Accesses tma_stores(std::string_view buffer = "");
/// Of operands in shared memory, by wgmma and tcgen05: a request per instruction.
Accesses tensor_core_reads();
Accesses tensor_memory_allocations();  ///< by tcgen05.alloc, a request each

// Speed claims are checked on a GPU at the ladder's `gpu_size`; at any other size they are not
// checked. Each is a lower bound on the measured median, without a tolerance. None has an upper
// bound. A claim can be false only on the GPU for which it was made: elsewhere the same kernel may
// be bound by something else, and a measurement below the bound is shown, but is no failure.

/// A level that must be faster: time of the previous level of the ladder / time of this one is at
/// least `ratio`. Throws std::invalid_argument where `ratio` is below 1.
Claim faster_than_previous(double ratio, std::string_view when = "");
/// A level that need not be faster: the same, with a `ratio` below 1, and `why` it may be slower.
/// Throws std::invalid_argument where `ratio` is not below 1.
Claim at_least_previous(double ratio, std::string_view why);
/// "at least `ratio` times as fast as `library`".
Claim against_library(std::string_view library, double ratio);
/// "at least `fraction` of the measured roof".
Claim fraction_of_roof(double fraction);

/// The same claim, for GPUs only whose name contains `gpu`, such as "H100": a level whose gain
/// depends on the GPU has a claim for each.
Claim for_gpu(std::string_view gpu, Claim claim);

/// Those of `claims` that are about a mechanism and not about speed.
Claims mechanism(const Claims& claims);

}  // namespace cookbook
