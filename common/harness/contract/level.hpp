// SPDX-License-Identifier: MIT
// The contract between a chapter and the harness: problem, level, ladder, chapter.
//
// A chapter's problem.hpp defines two plain structs:
//
//   struct Problem {                       // one instance: extents and leading dimensions
//     static Problem make(const Size& size, const Variant& variant);   // throws BadSize
//     std::vector<TensorSpec> tensors() const;
//     double bytes() const;                // fewest bytes through device memory
//     double flops() const;                // floating-point operations, 0 when none count; with
//                                          // Roof::own, operations of the problem's own kind
//     void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
//                        double* value, double* bound) const;   // fp64 result, allowed error
//     static constexpr bool kExactOnIntegers = false;   // optional, see AnyProblem
//     void complete_inputs(HostTensors& tensors) const;   // optional, see AnyProblem
//     void begin_reference(const HostTensors& tensors);   // optional, too
//     void normalise(const HostTensors& tensors, HostTensors& outputs) const;   // optional, too
//   };
//   struct Buffers {                       // typed device pointers to the tensors
//     static Buffers bind(const DevicePointers& at);
//   };
//   using Level = LevelOf<Problem, Buffers>;
//
// A level is a struct that derives from it:
//
//   struct Padded : Level {
//     static constexpr LevelText text{
//         .name = "padded",     // as in its file's name
//         .changed = "...",     // the one idea
//         .expect = "...",      // the prediction, written before measuring
//         .cost = "...",        // what it takes: registers, shared memory
//     };
//
//     static Claims claims(const Problem& trace_problem);
//
//     static void run(const Plan& plan, Stream stream);  // only launches
//
//     // optional: static constexpr bool same_every_run = false;  // see LevelEntry
//     //           static Support supports(const Problem&, const DeviceInfo&);
//     //           struct Plan + static Plan prepare(const Problem&, const Buffers&);
//   };
//
// prepare() may find a broken hardware rule that supports() cannot see, such as a base address that
// TMA does not support. It then throws std::invalid_argument with the reason, and the level is
// skipped.
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/backend/backend.hpp"
#include "common/harness/contract/claim.hpp"
#include "common/harness/contract/tensor.hpp"

namespace cookbook {

/// Extents of a problem in the order of `Ladder::dims`, outermost first.
using Size = std::vector<std::int64_t>;
/// "4096x1024".
std::string size_text(const Size& size);

/// A different layout of one tensor, for tests.
struct Layout {
  std::int64_t extra_pitch = 0;        ///< elements added to the leading dimension
  std::int64_t misalign_elements = 0;  ///< elements by which the base address is shifted
};

/// A different layout of the same problem, for tests: all tensors alike except those in `tensors`.
struct Variant {
  std::int64_t extra_pitch = 0;        ///< as in Layout
  std::int64_t misalign_elements = 0;  ///< as in Layout
  std::map<std::string, Layout> tensors = {};

  Layout of(const std::string& tensor) const {
    const auto own = tensors.find(tensor);
    return own == tensors.end() ? Layout{extra_pitch, misalign_elements} : own->second;
  }
};

/// A size the problem cannot have; the message says what it accepts.
struct BadSize : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// Whether a level can run a problem, or the reason why not.
struct Support {
  bool ok = true;
  std::string reason;
  static Support yes() { return {}; }
  static Support no(std::string why) { return {false, std::move(why)}; }
  explicit operator bool() const { return ok; }
};

/// Device addresses by tensor name.
struct DevicePointers {
  std::map<std::string, void*> by_name;
  template <class T>
  T* get(const std::string& name) const {
    return static_cast<T*>(by_name.at(name));
  }
};

/// What a level says about itself, and the file that says it.
struct LevelText {
  const char* name;  ///< lower_snake_case
  const char* changed = "";
  const char* expect = "";
  const char* cost = "";
  const char* ladder = "";  ///< exercises only: the ladder whose problem they solve; else the first
  const char* source = __builtin_FILE();
};

/// What a level inherits: the default plan (problem and buffers), support and claims.
template <class ProblemT, class BuffersT>
struct LevelOf {
  using Problem = ProblemT;
  using Buffers = BuffersT;
  struct Plan {
    Problem problem;
    Buffers buffers;
  };
  static Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }
  static Plan prepare(const Problem& problem, const Buffers& buffers) { return {problem, buffers}; }
  static Claims claims(const Problem&) { return {}; }
};

/// A problem with its type erased, for the harness.
class AnyProblem {
 public:
  virtual ~AnyProblem() = default;
  virtual std::vector<TensorSpec> tensors() const = 0;
  virtual double bytes() const = 0;
  virtual double flops() const = 0;
  virtual void reference_row(const HostTensors& tensors, const std::string& output,
                             std::int64_t row, double* value, double* bound) const = 0;
  /// Called when all inputs are drawn: for those that follow from the others, such as what a
  /// forward pass leaves to the backward pass.
  virtual void complete_inputs(HostTensors& /*tensors*/) const {}
  /// Called before rows of new inputs are asked for: for what all rows need, such as the sums of
  /// all rows before each one. Other inputs may have been asked for before. Where a problem has it,
  /// reference_row() without it throws std::logic_error.
  virtual void begin_reference(const HostTensors& /*tensors*/) {}
  /// For results of which several are right, such as a list in any order: rewrites what a level has
  /// written to the one form that reference_row states. `outputs` holds the tensors that are not
  /// inputs. It may hold anything, so extents come from `tensors`, the inputs. What the result
  /// leaves undefined, and a level need not write, becomes what reference_row says of it.
  virtual void normalise(const HostTensors& /*tensors*/, HostTensors& /*outputs*/) const {}
  /// Whether fp32 arithmetic makes no error where all inputs are small whole numbers, so that the
  /// output must be the correctly rounded result. True unless the problem says kExactOnIntegers =
  /// false, because it holds a division, a root, an exponential, or inputs that it fills itself.
  virtual bool exact_on_integers() const = 0;
  virtual const void* get() const = 0;
};

template <class P>
class ProblemHolder final : public AnyProblem {
  // A member that these names have and that cannot be called as AnyProblem's is called by nothing.
  static_assert(
      !requires { &P::begin_reference; } ||
          requires(P & p, const HostTensors& t) { p.begin_reference(t); },
      "problem.hpp: it must be `void begin_reference(const HostTensors& tensors)`");
  static_assert(
      !requires { &P::complete_inputs; } ||
          requires(const P& p, HostTensors& t) { p.complete_inputs(t); },
      "problem.hpp: it must be `void complete_inputs(HostTensors& tensors) const`");
  static_assert(
      !requires { &P::normalise; } ||
          requires(const P& p, const HostTensors& t, HostTensors& o) { p.normalise(t, o); },
      "problem.hpp: it must be `void normalise(const HostTensors& tensors, HostTensors& outputs) "
      "const`");

 public:
  explicit ProblemHolder(P problem) : problem_(std::move(problem)) {}
  std::vector<TensorSpec> tensors() const override { return problem_.tensors(); }
  double bytes() const override { return problem_.bytes(); }
  double flops() const override { return problem_.flops(); }
  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
                     double* value, double* bound) const override {
    if constexpr (requires(P & p, const HostTensors& t) { p.begin_reference(t); }) {
      if (!begun_) throw std::logic_error("reference_row() before begin_reference()");
    }
    problem_.reference_row(tensors, output, row, value, bound);
  }
  void complete_inputs([[maybe_unused]] HostTensors& tensors) const override {
    if constexpr (requires { problem_.complete_inputs(tensors); }) {
      problem_.complete_inputs(tensors);
    }
  }
  void begin_reference([[maybe_unused]] const HostTensors& tensors) override {
    if constexpr (requires { problem_.begin_reference(tensors); }) {
      problem_.begin_reference(tensors);
      begun_ = true;
    }
  }
  void normalise([[maybe_unused]] const HostTensors& tensors,
                 [[maybe_unused]] HostTensors& outputs) const override {
    if constexpr (requires { problem_.normalise(tensors, outputs); }) {
      problem_.normalise(tensors, outputs);
    }
  }
  bool exact_on_integers() const override {
    if constexpr (requires { P::kExactOnIntegers; }) return P::kExactOnIntegers;
    return true;
  }
  const void* get() const override { return &problem_; }

 private:
  P problem_;
  bool begun_ = false;
};

/// A level with its types erased. `prepare` returns what one call of the level needs.
struct LevelEntry {
  std::string name, changed, expect, cost, source;
  std::string ladder;  ///< of an exercise, as in LevelText
  /// Whether two runs on the same inputs give the same bytes. False where blocks add in the order
  /// in which they come, by atomics or a look-back: then each run must only be within its bound.
  bool same_every_run = true;
  std::function<Support(const AnyProblem&, const DeviceInfo&)> supports;
  std::function<std::function<void(Stream)>(const AnyProblem&, const DevicePointers&)> prepare;
  std::function<Claims(const AnyProblem&)> claims;
};

/// The plan of one level, and the function that runs it.
struct PlannedLevel {
  std::shared_ptr<const void> plan;
  void (*run)(const void* plan, Stream stream);
  void operator()(Stream stream) const { run(plan.get(), stream); }
};

// What of a level depends on its types. Plain functions, because each lambda that a std::function
// holds is compiled with its own copies of std::function's: that would be most of what a chapter's
// compilation takes.
template <class L>
Support level_supports(const AnyProblem& problem, const DeviceInfo& device) {
  return L::supports(*static_cast<const typename L::Problem*>(problem.get()), device);
}
template <class L>
Claims level_claims(const AnyProblem& problem) {
  return L::claims(*static_cast<const typename L::Problem*>(problem.get()));
}
template <class L>
PlannedLevel level_prepare(const AnyProblem& problem, const DevicePointers& at) {
  const auto& own = *static_cast<const typename L::Problem*>(problem.get());
  using Plan = decltype(L::prepare(own, L::Buffers::bind(at)));
  // Shared so that a plan may own memory (workspaces) without being copyable.
  return {std::make_shared<const Plan>(L::prepare(own, L::Buffers::bind(at))),
          [](const void* plan, Stream stream) { L::run(*static_cast<const Plan*>(plan), stream); }};
}

/// The same with the types erased.
struct LevelFunctions {
  Support (*supports)(const AnyProblem&, const DeviceInfo&);
  PlannedLevel (*prepare)(const AnyProblem&, const DevicePointers&);
  Claims (*claims)(const AnyProblem&);
};
LevelEntry level_entry(const LevelText& text, bool same_every_run, const LevelFunctions& functions);

template <class L>
LevelEntry make_level() {
  bool same_every_run = true;
  if constexpr (requires { L::same_every_run; }) same_every_run = L::same_every_run;
  return level_entry(L::text, same_every_run,
                     {&level_supports<L>, &level_prepare<L>, &level_claims<L>});
}

/// Which roof a ladder is judged against: a measured one, or `own`, which the ladder states. fp8 is
/// e4m3.
enum class Roof {
  hbm_copy,
  hbm_read,
  l2,
  shared,
  fp32,
  mma_bf16,
  wgmma_bf16,
  fp64,
  mma_tf32,
  mma_int8,
  wgmma_tf32,
  wgmma_fp8,
  wgmma_int8,
  own
};

/// Operations of a problem's own kind, for Roof::own: flops() counts them.
struct OwnOperations {
  std::string name = {};  ///< of one: with "key", the speed is in Gkey/s
  /// The most per second that a device can do, or 0 if that is not known.
  double (*per_second)(const DeviceInfo&) = nullptr;
};

/// A named ladder: one problem, its levels in order.
struct Ladder {
  std::string name;               ///< "transpose": used on the command line and in the JSON
  std::string title;              ///< one line for people
  std::vector<std::string> dims;  ///< "rows", "cols" or "M", "N", "K"
  std::string dtype = "f32";
  std::string layout;  ///< "NN" for GEMMs, "" otherwise
  Roof roof = Roof::hbm_copy;
  OwnOperations operations;  ///< where `roof` is Roof::own
  Size gpu_size, check_size, trace_size;
  std::vector<Size> test_sizes;  ///< the shapes that the tests run, odd ones included
  std::vector<LevelEntry> levels;
  std::function<std::shared_ptr<AnyProblem>(const Size&, const Variant&)> make_problem;
  /// fp32 ladders: a level may have at most twice the error of the first (see docs/measuring.md).
  bool gate_on_first_level = false;

  /// The level called `level_name`, or null.
  const LevelEntry* find(const std::string& level_name) const;
};

/// Bytes plus operations of the ladder's problem at `size`: a measure of how long a run takes.
double work_of(const Ladder& ladder, const Size& size);

/// Starts a ladder over problem type P; its `levels` are then `rows<Level, ...>()`.
template <class P>
Ladder ladder_over(std::string name, std::string title, std::vector<std::string> dims) {
  Ladder ladder;
  ladder.name = std::move(name);
  ladder.title = std::move(title);
  ladder.dims = std::move(dims);
  ladder.make_problem = [](const Size& size, const Variant& variant) {
    return std::shared_ptr<AnyProblem>(std::make_shared<ProblemHolder<P>>(P::make(size, variant)));
  };
  return ladder;
}

/// The levels that these functions make, in their order.
std::vector<LevelEntry> made_by(std::initializer_list<LevelEntry (*)()> levels);

/// The levels of a ladder, in order: `rows<Naive, Tile, Padded>()`.
template <class... Levels>
std::vector<LevelEntry> rows() {
  return made_by({&make_level<Levels>...});
}

/// What a user would pick instead (cudaMemcpy, cuBLAS, cuDNN), timed beside the levels. It has the
/// members of a level, so `make_level` makes one.
using ReferenceEntry = LevelEntry;
/// Ladder name and its library.
using Libraries = std::vector<std::pair<std::string, ReferenceEntry>>;

/// A chapter of the book, or a reader's capstone: the ladders of one folder.
struct Chapter {
  int number = 0;        ///< of a chapter
  std::string capstone;  ///< of a capstone: its name, such as "scan"; empty for a chapter
  std::string title;
  /// The GPU for which the claims about speed were made: a part of its name, such as "H200".
  /// Empty: they are held against every GPU.
  std::string speed_claims_for;
  /// The compute capability of the SIMT backend's model where no device is named: 100 is sm_100a.
  /// 0: the model's own, 9.0a.
  int model_capability = 0;
  std::vector<Ladder> ladders;
  std::vector<LevelEntry> exercises;  ///< graded by `./run exercise N.M`
  std::vector<std::string> files;     ///< level_*.cuh of its folder

  bool is_capstone() const { return !capstone.empty(); }
  /// What its executable is called: "chapter-3" or "capstone-scan".
  std::string program() const {
    return is_capstone() ? "capstone-" + capstone : "chapter-" + std::to_string(number);
  }
  /// The same for people: "Chapter 3" or "Capstone scan".
  std::string heading() const {
    return is_capstone() ? "Capstone " + capstone : "Chapter " + std::to_string(number);
  }
  /// An exercise as people write it: "3.1" or "scan.1".
  std::string exercise_text(int exercise) const {
    return (is_capstone() ? capstone : std::to_string(number)) + "." + std::to_string(exercise);
  }
};

/// Those of `chapter.files` of which no ladder has a level.
std::vector<std::string> unlisted_files(const Chapter& chapter);

}  // namespace cookbook
