// SPDX-License-Identifier: MIT
// Memory counters of one case, from the SIMT backend's trace or from the golden file that was
// measured on a GPU, and their comparison. SIMT backend only.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/backend/simt/runtime/trace.hpp"
#include "tests/parity/cases.hpp"

namespace cookbook::parity {

using Json = nlohmann::ordered_json;

/// What is counted of one kind of access: "global_load", "shared_store" ..., and of cp.async
/// "global_async_load" and "shared_async_store".
struct Counts {
  std::uint64_t requests = 0;   ///< warp-wide instructions: depends on the compiler, not compared
  std::uint64_t sectors = 0;    ///< global memory: 32-byte sectors
  std::uint64_t conflicts = 0;  ///< shared memory: wavefronts beyond those without bank conflicts
  std::uint64_t wavefronts = 0;
};

/// One line of a kernel's source.
struct LineCounts {
  std::string file;  ///< relative to the repository
  int line = 0;
  std::string text;  ///< the line without surrounding space
  std::string op;    ///< "global_load" ...
  int bytes = 0;     ///< per lane; the widest
  Counts counts;
};

struct CaseCounts {
  Size size;
  std::map<std::string, Counts> totals;  ///< by op; ops that did not happen are absent
  std::vector<LineCounts> lines;
};

/// The ops that are compared, and the counter that is: sectors of global memory, conflicts of
/// shared memory. Atomics, TMA and wgmma go past these counters.
struct Compared {
  const char* op;
  const char* counter;
  std::uint64_t Counts::*value;
};
const std::vector<Compared>& compared();

/// Runs `one` at `size` under the tracer. Throws what the kernels throw.
CaseCounts trace_case(const Case& one, const Size& size);

/// Makes the SIMT backend claim as many SMs as the measured device has: a kernel's grid, and with
/// it the warps at the end of an array, may depend on their number. Before the first launch.
void model_sms(int count);

/// A difference that is not a mistake of the model, and why. Both numbers are part of it, so that
/// neither side drifts unseen - but for lines that g++ may or may not split into basic blocks,
/// which differs by version: there only g++ 12 must give the number, others the hardware's or more.
struct Exception {
  std::string name;  ///< of the case
  std::string op;    ///< "global_load" ...
  std::string text;  ///< of the source line; empty: the case's total
  std::uint64_t simt = 0, hardware = 0;
  std::string why;
  bool by_compiler = false;  ///< `simt` is what g++ 12 gives
};

/// tests/parity/golden/h200.json and exceptions.json.
class Golden {
 public:
  /// An empty one if `file` does not exist; throws std::runtime_error if it cannot be read.
  static Golden load(const std::string& file, const std::string& exceptions_file);
  static std::string default_file();
  static std::string default_exceptions_file();

  bool empty() const { return cases.empty(); }

  std::string device;
  int sm_count = 0;
  std::map<std::string, CaseCounts> cases;
  std::vector<Exception> exceptions;
};

/// One counter that hardware and model do not agree on.
struct Difference {
  std::string op;
  std::string counter;
  std::string text;   ///< of the source line; empty: the case's total
  std::string where;  ///< file:line
  std::uint64_t simt = 0, hardware = 0;
};

struct Comparison {
  std::vector<Difference> differences;
  std::vector<std::string> notes;  ///< lines that could not be compared, and why
  int compared_lines = 0;          ///< of either side; those of changed files are not
};

/// Compares totals, and every source line that both sides name. Lines of a file whose text has
/// changed since the measurement are not compared, which a note says; totals always are.
Comparison compare(const CaseCounts& simt, const CaseCounts& hardware);

/// What the test says of one case: nothing to fix where `failures` is empty.
struct Verdict {
  std::vector<std::string> failures;
  std::vector<std::string> explained;  ///< differences that an exception explains
  std::vector<std::string> notes;
};
/// `gcc`: the version that compiled what `simt` counted.
Verdict judge(const std::string& name, const CaseCounts& simt, const Golden& golden,
              int gcc = __GNUC__);

Json to_json(const CaseCounts& counts);

}  // namespace cookbook::parity
