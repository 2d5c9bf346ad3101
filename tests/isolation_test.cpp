// SPDX-License-Identifier: MIT
// Levels that crash, hang or exit: the run continues, names the line, and writes its results. SIMT
// only; compiled for the plain and for the traced executable.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/harness/verdict/check.hpp"
#include "common/harness/verdict/isolate.hpp"
#include "tests/planted/reverse.hpp"
#include "tests/ended_run.hpp"
#include "tests/error_of.hpp"
#include "tests/text.hpp"

namespace cookbook {
namespace {

enum class Hazard {
  none,
  wild_store,      // far outside of the buffer
  recursion,       // without an end
  abort_called,    //
  exit_called,     // with the status of success
  endless_loop,    // that calls nothing
  endless_spin,    // on a flag that nobody sets, without yielding
  host_exception,  // of no type that the harness knows
  host_crash,      // before the kernel
  heap_overrun,    // of what malloc gave the host; free() notices
  host_hang,       // after the kernel
  mismatch,        // an ordinary one, for comparison
};

#pragma GCC diagnostic ignored "-Winfinite-recursion"
int recurse(volatile int* depth) {
  volatile int here[64] = {*depth};
  *depth = here[0] + 1;
  return recurse(depth) + here[0];
}

template <Hazard kHazard>
__global__ void reverse(const float* in, float* out, int cols, volatile int* flag) {
  const int c = threadIdx.x;
  if (kHazard == Hazard::wild_store && c == 3) out[-1000000] = 1;
  if (kHazard == Hazard::recursion && c == 3) out[0] = static_cast<float>(recurse(flag));
  if (kHazard == Hazard::abort_called && c == 3) std::abort();
  if (kHazard == Hazard::exit_called && c == 3) std::exit(0);
  if (kHazard == Hazard::endless_loop && c == 3) {
    for (int i = 0; i < 10;) *flag = i;
  }
  if (kHazard == Hazard::endless_spin && c == 3) {
    while (*flag == 0) {
    }
  }
  const float scale = kHazard == Hazard::mismatch ? 3 : 2;
  if (c < cols) out[blockIdx.x * cols + c] = scale * in[blockIdx.x * cols + cols - 1 - c];
}

/// A zero in global memory, until the program ends.
volatile int* zero_on_device() {
  static const auto* memory = [] {
    auto* made = new DeviceMemory(sizeof(int), "flag");
    const int zero = 0;
    made->copy_from_host(&zero, sizeof zero);
    return made;
  }();
  return memory->as<volatile int>();
}

template <Hazard kHazard>
struct Hazardous : planted::Level {
  static constexpr LevelText text{.name = "?", .changed = "one hazard"};
  static void run(const Plan& plan, Stream stream) {
    const planted::Problem& p = plan.problem;
    static volatile int never = 0;
    static volatile int* volatile nowhere = nullptr;
    if (kHazard == Hazard::host_exception) throw 42;
    if (kHazard == Hazard::host_crash) *nowhere = 1;
    if (kHazard == Hazard::heap_overrun) {
      volatile char* memory = static_cast<char*>(std::malloc(24));
      for (int i = -16; i < 48; ++i) memory[i] = 0x5a;
      std::free(const_cast<char*>(memory));
    }
    launch(reverse<kHazard>, {dim3(static_cast<unsigned>(p.rows)), dim3(64)}, stream,
           plan.buffers.in, plan.buffers.out, static_cast<int>(p.cols), zero_on_device());
    if (kHazard == Hazard::host_hang) {
      while (never == 0) {
      }
    }
  }
};

template <Hazard... kHazards>
Chapter with_hazards(const std::vector<std::string>& names) {
  Ladder ladder = ladder_over<planted::Problem>("reverse", "reverse rows", {"rows", "cols"});
  ladder.gpu_size = ladder.check_size = ladder.trace_size = {4, 64};
  ladder.test_sizes = {{1, 1}, {4, 64}};
  ladder.levels = rows<Hazardous<kHazards>...>();
  for (std::size_t i = 0; i < names.size(); ++i) ladder.levels[i].name = names[i];
  return chapter_of({ladder});
}

// Mistakes of host code, in the order in which a run gets there.
enum class Mistake {
  null_pointer,
  abort_called,
  exception,
  other_exception,
  division,
  recursion,
  exit_called,
  slow,
};
struct Planted {
  std::string phase;
  Mistake mistake = Mistake::null_pointer;
} planted_mistake;

void host_code(const std::string& phase) {
  if (phase != planted_mistake.phase) return;
  static volatile int* volatile nowhere = nullptr;
  static volatile int zero = 0, seven = 7;
  switch (planted_mistake.mistake) {
    case Mistake::null_pointer: *nowhere = 1; break;
    case Mistake::abort_called: std::abort();
    case Mistake::exception: throw std::out_of_range("too far");
    case Mistake::other_exception: throw 42;
    case Mistake::division: zero = seven / zero; break;
    case Mistake::recursion: recurse(&zero); break;
    case Mistake::exit_called: std::exit(0);
    case Mistake::slow:  // once
      planted_mistake.phase.clear();
      for (const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2500);
           std::chrono::steady_clock::now() < end;) {
        zero = 1;
      }
      zero = 0;
  }
}

struct FragileProblem : planted::Problem {
  static FragileProblem make(const Size& size, const Variant& variant) {
    host_code("make()");
    return {planted::Problem::make(size, variant)};
  }
  void complete_inputs(HostTensors&) const { host_code("complete_inputs()"); }
  void begin_reference(const HostTensors&) { host_code("begin_reference()"); }
  void reference_row(const HostTensors& tensors, const std::string& output, std::int64_t row,
                     double* value, double* bound) const {
    host_code("reference_row() of out");
    planted::Problem::reference_row(tensors, output, row, value, bound);
  }
  void normalise(const HostTensors&, HostTensors&) const { host_code("normalise()"); }
};

template <bool kFragile>
struct FragileLevel : LevelOf<FragileProblem, planted::Buffers> {
  static constexpr LevelText text{.name = "?", .changed = "a mistake of host code"};
  static void may(const std::string& phase) {
    if (kFragile) host_code(phase);
  }
  static Support supports(const FragileProblem&, const DeviceInfo&) {
    may("supports()");
    return Support::yes();
  }
  static Claims claims(const FragileProblem&) {
    may("claims()");
    return {};
  }
  static Plan prepare(const FragileProblem& problem, const planted::Buffers& buffers) {
    may("prepare()");
    return {problem, buffers};
  }
  static void run(const Plan& plan, Stream stream) {
    may("run()");
    const planted::Problem& p = plan.problem;
    launch(reverse<Hazard::none>, {dim3(static_cast<unsigned>(p.rows)), dim3(64)}, stream,
           plan.buffers.in, plan.buffers.out, static_cast<int>(p.cols), zero_on_device());
  }
};

Chapter with_fragile_ladder() {
  Chapter chapter = with_hazards<Hazard::none>({"sound"});
  Ladder ladder = ladder_over<FragileProblem>("fragile", "host code", {"rows", "cols"});
  ladder.gpu_size = ladder.check_size = ladder.trace_size = {4, 64};
  ladder.test_sizes = {{4, 64}};
  ladder.levels = rows<FragileLevel<false>, FragileLevel<true>, FragileLevel<false>>();
  for (const int i : {0, 1, 2}) {
    ladder.levels[i].name = std::vector<std::string>{"before", "broken", "after"}[i];
  }
  chapter.ladders.insert(chapter.ladders.begin(), ladder);
  return chapter;
}

const std::vector<std::pair<Mistake, std::string>> kMistakes{
    {Mistake::null_pointer, "access to an address that is not mapped in host code"},
    {Mistake::abort_called, "abort or failed assertion in host code"},
    {Mistake::exception, "threw: too far"},
    {Mistake::other_exception, "an exception was thrown that is no std::exception"},
    {Mistake::division, "integer division by zero in host code"},
    {Mistake::recursion, "stack overflow in host code"},
    {Mistake::exit_called, "exit() was called in host code"},
};

/// Those that are tried in every call of host code; the others in one.
bool is_for_all_calls(Mistake mistake) {
  return mistake == Mistake::null_pointer || mistake == Mistake::exception;
}

nlohmann::json level_of(const EndedRun& ended, const std::string& name) {
  for (const auto& level : ended.json.at("runs").at(0).at("levels")) {
    if (level.at("name") == name) return level;
  }
  return {{"status", "missing"}, {"reason", ""}};
}

void expect_level(const EndedRun& ended, const std::string& name, const std::string& status,
                  const std::vector<std::string>& words) {
  const auto level = level_of(ended, name);
  EXPECT_EQ(level.at("status"), status) << name;
  const std::string reason = level.at("reason").is_null() ? "" : level.at("reason");
  for (const std::string& part : words) {
    EXPECT_CONTAINS(reason, part) << name;
  }
  if (status == "ok") return;
#if !COOKBOOK_TRACED  // which leaves this to the program that started it
  EXPECT_CONTAINS(ended.err, "Chapter 99: level " + name + ": ");
#endif
}

constexpr const char* kHere = "isolation_test.cpp:";

TEST(Isolation, ALevelThatCrashesIsNamedAndTheOthersRun) {
  const EndedRun ended = run_with_json(
      with_hazards<Hazard::none, Hazard::wild_store, Hazard::recursion, Hazard::abort_called,
                   Hazard::exit_called, Hazard::host_exception, Hazard::host_crash,
                   Hazard::heap_overrun, Hazard::mismatch, Hazard::none>(
          {"first", "wild_store", "recursion", "abort", "exit", "exception", "host", "heap",
           "mismatch", "last"}),
      {"--check", "--no-trace"});
  ASSERT_EQ(ended.status, 3) << ended.err;
  expect_level(ended, "first", "ok", {});
#if COOKBOOK_TRACED  // the tracer sees it before it happens
  expect_level(ended, "wild_store", "mismatch", {"out of bounds: writes 4 bytes", kHere});
#else
  expect_level(ended, "wild_store", "crashed",
               {"not mapped in a kernel, block (", "thread (3,0,0)", "kernel reverse", kHere});
#endif
  expect_level(ended, "recursion", "crashed", {"stack overflow in a kernel", kHere});
  expect_level(ended, "abort", "crashed", {"abort or failed assertion in a kernel", kHere});
  expect_level(ended, "exit", "crashed", {"exit() was called in a kernel", "(3,0,0)", kHere});
  expect_level(ended, "exception", "crashed", {"an exception was thrown that is no std"});
  expect_level(ended, "host", "crashed", {"not mapped in host code", kHere});
  expect_level(ended, "heap", "crashed", {"abort or failed assertion in host code"});
  expect_level(ended, "mismatch", "mismatch", {"out[0][0]: got "});
  expect_level(ended, "last", "ok", {});
}

// One line: what ran, in which call of host code, what happened, where.
TEST(Isolation, HostCodeOfAProblemThatEndsALadderIsALineAndTheOtherLaddersRun) {
  for (const std::string phase :
       {"make()", "complete_inputs()", "begin_reference()", "reference_row() of out"}) {
    for (const auto& [mistake, text] : kMistakes) {
      if (phase != "reference_row() of out" && !is_for_all_calls(mistake)) continue;
      planted_mistake = {phase, mistake};
      const EndedRun ended = run_with_json(with_fragile_ladder(), {"--check", "--no-trace"});
      planted_mistake = {};
      EXPECT_EQ(ended.status, 3) << phase << ": " << text;
      EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
      for (const std::string& part : {std::string("Chapter 99: ladder fragile at 4x64: crashed: "),
                                      text, phase, std::string(kHere)}) {
        EXPECT_CONTAINS(ended.err, part);
      }
      ASSERT_FALSE(ended.json.is_null()) << phase << ": " << text;
      ASSERT_EQ(ended.json.at("runs").size(), 1u);
      EXPECT_EQ(ended.json["runs"][0].at("ladder"), "reverse");
      EXPECT_EQ(level_of(ended, "sound").at("status"), "ok");
    }
  }
}

// Before any ladder runs: there is no process but this one.
TEST(Isolation, HostCodeThatEndsTheProgramIsALine) {
  const auto run = [](Mistake mistake) {
    planted_mistake = {"make()", mistake};
    called_with(
        {"chapter-99", "--check", "--ladder", "fragile", "--size", "4x64"},
        [](int argc, char** argv) { return run_chapter(with_fragile_ladder(), argc, argv); });
  };
  const std::string where = " in host code \\(make\\(\\), --size 4x64\\).* at isolation_test.cpp:";
  EXPECT_EXIT(run(Mistake::exit_called), testing::ExitedWithCode(3),
              "^error: exit.. was called" + where);
  EXPECT_EXIT(run(Mistake::recursion), testing::ExitedWithCode(3),
              "^error: stack overflow" + where);
}

TEST(Isolation, HostCodeOfALevelThatEndsItIsALineAndTheOtherLevelsRun) {
  for (const std::string phase : {"supports()", "claims()", "prepare()", "run()"}) {
    for (const auto& [mistake, text] : kMistakes) {
      if (phase != "run()" && !is_for_all_calls(mistake)) continue;
      planted_mistake = {phase, mistake};
      const EndedRun ended = run_with_json(with_fragile_ladder(), {"--check", "--no-trace"});
      planted_mistake = {};
      const bool is_fault = phase == "run()" && mistake == Mistake::exception;
      EXPECT_EQ(ended.status, is_fault ? 1 : 3) << phase << ": " << text << ended.err;
      expect_level(ended, "before", "ok", {});
      expect_level(ended, "after", "ok", {});
      expect_level(ended, "broken", is_fault ? "mismatch" : "crashed", {text, kHere});
#if !COOKBOOK_TRACED
      EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
      EXPECT_CONTAINS(ended.err, phase == "run()" ? kHere : phase);  // the line says it
#endif
    }
  }
}

// Each within the time limit, which is a second here.
TEST(Isolation, ALevelThatHangsIsNamedAndTheOthersRun) {
  const EndedRun ended =
      run_with_json(with_hazards<Hazard::endless_loop, Hazard::endless_spin, Hazard::none>(
                        {"loop", "spin", "last"}),
                    {"--check", "--no-trace", "--time-limit", "1"});
  EXPECT_EQ(ended.status, 3);
  for (const char* name : {"loop", "spin"}) {
    // Which blocks are under way depends on the number of workers; traced, lanes take turns.
    expect_level(ended, name, "hung",
                 {"no thread has finished for 1 s", "runs at isolation_test.cpp:"});
  }
  expect_level(ended, "last", "ok", {});
}

#if !COOKBOOK_TRACED
// It may be right, so it goes on.
TEST(Isolation, HostCodeThatTakesLongSaysWhereItIs) {
  planted_mistake = {"begin_reference()", Mistake::slow};
  const EndedRun ended =
      run_with_json(with_fragile_ladder(), {"--check", "--no-trace", "--time-limit", "1"});
  planted_mistake = {};
  EXPECT_EQ(ended.status, 0);
  EXPECT_CONTAINS(ended.err, "note: begin_reference() has not returned for 1 s, at ");
  EXPECT_CONTAINS(ended.err, kHere);
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
}

// It would hang again, for as long: the traced program, here a script that writes down how it was
// called, is asked for the others.
TEST(Isolation, ALevelThatHungIsNotTraced) {
  Chapter chapter = with_hazards<Hazard::endless_loop, Hazard::none>({"loop", "last"});
  chapter.number = 98;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "chapter-98-traced";
  const Folder folder;
  std::ofstream(program) << "#!/bin/sh\necho \"$@\" > " << (folder / "called") << "\nexit 1\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const EndedRun ended = run_with_json(chapter, {"--check", "--time-limit", "1"});
  std::filesystem::remove(program);
  EXPECT_EQ(level_of(ended, "loop").at("status"), "hung");
  std::string called;
  std::getline(std::ifstream(folder / "called"), called);
  EXPECT_CONTAINS(called, "\"levels\":[\"last\"]");
}

TEST(Isolation, HostCodeThatHangsIsEndedToo) {
  nlohmann::json none;
  const Outcome outcome = run_isolated(
      {false, 1},
      [] {
        for (volatile int i = 0; i == 0;) {
        }
        return nlohmann::json();
      },
      none);
  EXPECT_EQ(outcome.fault, Fault::hang);
  EXPECT_EQ(outcome.reason, "no progress for 4 s");
}

TEST(Isolation, WhatWorkReturnsAndThrowsComesBack) {
  nlohmann::json result;
  EXPECT_EQ(run_isolated(
                {},
                [] {
                  return nlohmann::json{{"x", INFINITY}};
                },
                result)
                .fault,
            Fault::none);
  EXPECT_EQ(result.at("x").get<double>(), INFINITY);
  const auto throws = []() -> nlohmann::json { throw std::invalid_argument("why"); };
  EXPECT_EQ(error_of<std::runtime_error>([&] { run_isolated({}, throws, result); }), "why");
  EXPECT_EQ(run_isolated(
                {}, []() -> nlohmann::json { _exit(0); }, result)
                .reason,
            "the process was ended with status 0");
}

// For a debugger: the kernel runs in its own process.
TEST(Isolation, InProcessIsThisProcess) {
  static int calls = 0;
  nlohmann::json result;
  run_isolated(
      {true, 1}, [] { return nlohmann::json(++calls); }, result);
  EXPECT_EQ(calls, 1);
  run_isolated(
      {false, 1}, [] { return nlohmann::json(++calls); }, result);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(result, 2);
}

TEST(Isolation, AnExerciseThatCrashesOrHangsHasNotPassed) {
  const Chapter chapter =
      with_hazards<Hazard::wild_store, Hazard::endless_loop>({"wild_store", "loop"});
  const EndedRun crashed = run_with_json(chapter, {"--exercise", "1"});
  EXPECT_EQ(crashed.status, 1);
  EXPECT_CONTAINS(crashed.out, "FAIL  4x64: crashed: access to an address");
  EXPECT_EQ(crashed.json.at("passed"), false);
  const EndedRun hung = run_with_json(chapter, {"--exercise", "2", "--time-limit", "1"});
  EXPECT_EQ(hung.status, 1);
  EXPECT_EQ(hung.json.at("checks").size(), 1u) << "each further try would take the time limit";
  EXPECT_CONTAINS(hung.out, "not yet");
}
#else
// A wrong level without a race: the reason is below its report.
TEST(Isolation, ExplainNamesAMismatch) {
  const EndedRun ended = run_with_json(with_hazards<Hazard::mismatch>({"wrong"}), {"--explain"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_CONTAINS(ended.out, "      out[0][0]: got ");
  EXPECT_CONTAINS(ended.err, "Chapter 99: level wrong: out[0][0]: got ");
}
#endif

}  // namespace
}  // namespace cookbook
