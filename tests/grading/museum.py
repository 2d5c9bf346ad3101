#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A class of synthetic submissions to a transpose like exercise 3.1: right, wrong, racy, slow, and cheats.

  tests/grading/museum.py BUILD              grades all and says whether each got what it deserves
  tests/grading/museum.py --write FOLDER     only writes them

Every cheat is bounded: on a machine without any sandbox it does no harm, either.
"""
import json
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tools/grading"))
import assignment as assignments  # noqa: E402
import report  # noqa: E402
import sandbox  # noqa: E402



def change(text, *pairs):
    """The text with each (old, new); one that is not found would test nothing."""
    for old, new in pairs:
        if old not in text:
            raise ValueError(f"nothing to change: {old}")
        text = text.replace(old, new)
    return text


def given():
    """What the class gets: exercise 3.1 with more of it to write, all but the level's text and its claims."""
    text = (ROOT / "chapters/03_bank_conflicts/exercises/exercise_1_conflict_free.cuh").read_text()
    text = change(text, (assignments.BEGIN + "\n", ""), (assignments.END + "\n", ""))
    text = change(text, ("struct ConflictFreeConfig {", assignments.BEGIN + "\nstruct ConflictFreeConfig {"),
                  ("\nstruct ConflictFree :", assignments.END + "\n\nstruct ConflictFree :"),
                  ("  static void run(", f"  {assignments.BEGIN}\n  static void run("))
    end = text.rindex("};\n\n}  // namespace")
    return f"{text[:end]}  {assignments.END}\n{text[end:]}"


GIVEN = given()
# The assignment's folder: transpose.cuh is made, assignment.json is not.
MADE = tempfile.TemporaryDirectory()
TASK = Path(MADE.name) / "transpose"
TASK.mkdir()
(TASK / "transpose.cuh").write_text(GIVEN)
shutil.copy(HERE / "transpose.json", TASK / "assignment.json")


class InFolder(unittest.TestCase):
    """Tests with a folder of their own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


def task_with(folder, **changes):
    """The assignment, in a folder of `folder`, with other fields; None: without the field."""
    task = shutil.copytree(TASK, folder / "task")
    path = task / "assignment.json"
    data = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in data.items() if value is not None}))
    return task


BOUNDS = "if (row < shape.rows && col < shape.cols)"
KERNEL_BODY = "  const unsigned tiles_across"
RUN_BODY = "    const Shape& shape = plan.problem.shape;"
RUN = GIVEN[GIVEN.index("  static void run("):GIVEN.rindex("  // <<< your part")]


RIGHT = change(GIVEN, ("int /*row*/, int col", "int row, int col"), ("return col;", "return (col + row) % C::kTile;"))
HOST_LOOP = """    for (std::int64_t r = 0; r < shape.rows; ++r) {
      for (std::int64_t c = 0; c < shape.cols; ++c) {
        plan.buffers.out[c * shape.out_pitch + r] = plan.buffers.in[r * shape.in_pitch + c];
      }
    }
"""


def with_run(body, text=RIGHT, before=""):
    """`body` at the start of run(), `before` in front of the function."""
    return change(text, ("  static void run(", before + "  static void run("), (RUN_BODY, RUN_BODY + "\n" + body))


def with_kernel(body, text=RIGHT):
    """`body` at the start of the kernel."""
    return change(text, (KERNEL_BODY, body + "\n" + KERNEL_BODY))


def with_front(text, of=RIGHT):
    """`text` at the start of the first part."""
    return change(of, ("struct ConflictFreeConfig", text + "\nstruct ConflictFreeConfig"))


LOAD = "= tile[x][slot<C>(x, y)]"
X = "  const int x = threadIdx.x;"
FRONT = "template <class C>\n__global__"
ONLY = "if (!({})) return;\n"  # a run() that launches only there
PLAN = "  struct Plan {\n    Problem problem;\n    Buffers buffers;\n    %s\n  };\n"

# name: (text or {file: text}, least points, most points, part of what is said first)
HONEST = {
    "right": (RIGHT, 100, 100, ""),
    "right_xor": (change(GIVEN, ("int /*row*/, int col", "int row, int col"), ("return col;", "return col ^ row;")),
                  100, 100, ""),
    "right_padded": (change(GIVEN, ("tile[C::kTile][C::kTile];", "tile[C::kTile][C::kTile + 1];")), 100, 100, ""),
    "right_four_rows": (change(RIGHT, ("kThreadsY = 8", "kThreadsY = 4")), 100, 100, ""),
    "right_sixteen_rows": (change(RIGHT, ("kThreadsY = 8", "kThreadsY = 16")), 100, 100, ""),
    "right_commented": (change(RIGHT, ("__syncthreads();", "__syncthreads();  // schön: hier \"exit(0)\" und asm")),
                        100, 100, ""),
    # More arguments, names of functions of the C library, and what is a trigraph only outside of comments.
    "right_with_arguments": (change(RIGHT, ("struct ConflictFreeConfig", "struct Turn {\n  int by;\n};\nstruct ConflictFreeConfig"),
                                    (" out, Shape shape)", " out, Shape shape, Turn turn, int free)"), (".out, shape);", ".out, shape, Turn{0}, 0);"),
                                    (X, X + "\n  const int module = turn.by, exit = free;\n  if (module + exit == 1) return;  // (really??)")),
                             100, 100, ""),
    "right_in_other_words": (change(RIGHT, ("struct ConflictFreeConfig", """/* schön: 日本語
   \u00bd */
enum class Way { kRow, kCol };
template <class T>
concept Whole = std::is_integral_v<T>;
namespace {
[[nodiscard]] constexpr int plus(int a, int b = 0) noexcept { return a + b; }
}  // namespace
namespace helper {
template <Way W, Whole T>
__device__ __forceinline__ constexpr T pick(T row, T col) {
\tif constexpr (W == Way::kRow) return row;
\telse return col;
}
template <int... Is>
__device__ constexpr int sum(std::integer_sequence<int, Is...>) { return (Is + ... + 0); }
struct Place {
  int row, col;
  __device__ explicit Place(int r, int c) : row(r), col(c) {}
  __device__ Place operator+(const Place& o) const { return Place(row + o.row, col + o.col); }
};
}  // namespace helper
static_assert(plus(1) == 1, "one");
struct ConflictFreeConfig"""), (X, """  const auto pick = [=](auto a, auto b) { return helper::pick<Way::kRow>(a, b); };
  const int x = pick(int{threadIdx.x}, 0) + helper::sum(std::make_integer_sequence<int, 1>{});
  const helper::Place here = helper::Place(x, 0) + helper::Place(0, 0);
  auto [r, c] = std::pair(here.row, here.col);
  static constexpr int kOdd[] = {1, 3, 5, 7};
  union {
    float f;
    unsigned u;
  } both{};
  for (const int one : kOdd) both.f += one;
  switch (x & 3) {
    case 0: both.u -= kOdd[x & 3]; break;
    case 1: [[fallthrough]];
    default: ++both.u;
  }
  assert(both.u != 0);
  if (r + c < 0) [[unlikely]] return;"""), ("= in[row * shape.in_pitch + col];", "= __ldg(&in[row * shape.in_pitch + col]);")), 100, 100, ""),
    # Calls by pointer, by table and of itself.
    "right_by_pointers": (change(RIGHT, ("template <class C>\n__global__", """__device__ int one(int a, int b) { return (a + b) % 32; }
__device__ int other(int a, int b) { return b == 0 ? a : 1 + other(a, b - 1); }
using Turn = int (*)(int, int);
struct Any {
  virtual __device__ int of(int a) const = 0;
};
struct Mine : Any {
  __device__ int of(int a) const override { return a; }
};
template <class C>
__global__"""), (X, X + "\n  const Mine mine;\n  const Any* volatile where = &mine;\n  const Any* any = where;\n  const Turn turns[2] = {one, other};"),
                                 (LOAD, "= tile[any->of(x)][turns[shape.rows < 0](x, y) + other(0, y & 3) - (y & 3)]")), 100, 100, ""),
    "right_in_a_folder": ({"transpose.cuh": change(RIGHT, ("% C::kTile", "& (C::kTile - 1)")), "notes.txt": "hello"},
                          100, 100, ""),
    "right_windows": (RIGHT.replace("\n", "\r\n"), 100, 100, ""),
    # What is handed out earns nothing, and so does what is no better at any size or claim: it may not earn more than the
    # part that it began with. (Before that rule, still_conflicts had 44 points and uncoalesced, which does less, 39.)
    "as_handed_out": (GIVEN, 0, 0, "as it was handed out"),
    "still_conflicts": (change(GIVEN, ("return col;", "return (col + 1) % C::kTile;")), 0, 0, "no more than the part"),
    "half_the_conflicts": (change(GIVEN, ("int /*row*/, int col", "int row, int col"),
                                  ("return col;", "return (col + row / 2) % C::kTile;")), 30, 60, "measured 2"),
    "no_bounds": (change(RIGHT, (BOUNDS, "if (row >= 0)")), 0, 40, "1x1"),
    "wrong_index": (change(RIGHT, ("out[col * shape.out_pitch + row]", "out[row * shape.out_pitch + col]")), 0, 40,
                    "never written"),
    "tail_unwritten": (change(RIGHT, ("row < shape.rows && col < shape.cols) {\n      out",
                                      "row + 1 < shape.rows && col < shape.cols) {\n      out")), 0, 0, "never written"),
    "no_barrier": (change(RIGHT, ("__syncthreads();", "")), 0, 40, ""),
    "warp_barrier": (change(RIGHT, ("__syncthreads();", "__syncwarp();")), 0, 40, ""),
    "ignores_pitch": (change(RIGHT, ("row * shape.in_pitch", "row * shape.cols")), 60, 99, "rows 1 elements longer"),
    "uncoalesced": (change(GIVEN, ("tile[x][slot<C>(x, y)]", "in[row * shape.in_pitch + col]")), 0, 0, "global loads of `in`: sectors = ideal"),
    "early_return": (change(RIGHT, ("const int x = threadIdx.x;", "const int x = threadIdx.x;\n  "
                                     "if (row0 + threadIdx.y >= shape.rows || col0 + x >= shape.cols) return;")), 0, 40,
                     "was never written"),
    "one_thread": (change(RIGHT, ("const int x = threadIdx.x;", "const int x = threadIdx.x;\n  if (x > 0) return;")),
                   0, 20, ""),
    "missing_semicolon": (change(RIGHT, ("% C::kTile;", "% C::kTile")), 0, 0, "expected"),
    "empty": ("", 0, 0, "0 parts"),
    "one_part_only": (GIVEN[:GIVEN.index("  // >>> your part")], 0, 0, "1 parts"),
    "unbalanced": (change(RIGHT, ("__syncthreads();", "__syncthreads(); }")), 0, 0, "closes what was not opened"),
}
# Two elements per thread and step; odd ones at an edge one by one.
PAIRS = change(GIVEN, ("tile[C::kTile][C::kTile];", "tile[C::kTile][C::kTile + 1];"),
               ("template <class C>\n__global__", "struct Two {\n  float a, b;\n};\ntemplate <class C>\n__global__"),
               ("#pragma unroll\n  for (int j = 0; j < C::kTile; j += C::kThreadsY) {\n    const int y = threadIdx.y + j;\n"
                "    const std::int64_t row = row0 + y, col = col0 + x;\n    if (row < shape.rows && col < shape.cols) {\n"
                "      tile[y][slot<C>(y, x)] = in[row * shape.in_pitch + col];\n    }\n  }\n",
                """  for (int j = 0; j < C::kTile; j += 2 * C::kThreadsY) {
    const int y = 2 * threadIdx.y + x / 16 + j, x2 = x % 16 * 2;
    const std::int64_t row = row0 + y, col = col0 + x2, from = row * shape.in_pitch + col;
    if (row < shape.rows && col + 1 < shape.cols) {
      COPY;
    } else if (row < shape.rows && col < shape.cols) {
      tile[y][x2] = in[from];
    }
  }
"""))
CHEATS = {
    "precomputed_in_prepare": (with_run("", before="""  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    Plan plan{problem, buffers};
    run(plan, Stream{});
    return plan;
  }
""", text=change(RIGHT, (RUN_BODY, RUN_BODY + "\n    if (plan.buffers.out[0] == plan.buffers.out[0]) return;"))), 0, 0,
                               "host code"),
    "computed_only_in_prepare": (change(RIGHT, (RUN, """  static void run(const Plan&, Stream) {}
  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    const Shape& shape = problem.shape;
    launch(conflict_free_transpose<Config>,
           {tile_grid(shape, Config::kTile, Config::kTile), dim3(Config::kTile, Config::kThreadsY)},
           Stream{}, buffers.in, buffers.out, shape);
    return {problem, buffers};
  }
""")), 0, 0, "never written"),
    "runs_once": (with_run("    if (*plan.done) return;\n    *plan.done = true;", before=(PLAN % "bool* done;") + """
  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    static bool done;
    done = false;
    return {problem, buffers, &done};
  }
"""), 0, 0, "keeps a value"),
    "replays_its_output": (with_run("    static int runs = 0;\n    if (runs++ > 0) return;"), 0, 0, "keeps a value"),
    "keeps_in_shared": (with_kernel("  __shared__ int runs;\n  if (runs++ > 0 && threadIdx.x > 900) return;"), 0, 40,
                        "no race"),
    "public_sizes_only": (with_run("    const std::int64_t n = shape.rows * 10000 + shape.cols;\n    " + ONLY.format(
        " || ".join(f"n == {r * 10000 + c}" for r, c in [(1, 1), (1, 32), (31, 33), (32, 32), (33, 65), (64, 64),
                                                         (97, 101), (3, 1021), (256, 192)]))), 0, 0, "no other size"),
    "traced_size_only": (change(GIVEN, ("int /*row*/, int col", "int row, int col, bool well"),
                                ("return col;", "return well ? (col + row) % C::kTile : col;"),
                                ("slot<C>(y, x)", "slot<C>(y, x, shape.rows == 256 && shape.cols == 192)"),
                                ("slot<C>(x, y)", "slot<C>(x, y, shape.rows == 256 && shape.cols == 192)")), 0, 0,
                         "no more than the part"),
    "one_constant_changed": (change(GIVEN, ("kThreadsY = 8", "kThreadsY = 16")), 0, 0, "no more than the part"),
    # What moves data where no claim looks. The dummy load is one of what the thread itself has just written.
    "loads_by_atomics": (change(GIVEN, ("in[row * shape.in_pitch + col];", """in[row * shape.in_pitch + col];
      if (tile[y][slot<C>(y, x)] == 0.12345f) tile[y][slot<C>(y, x)] = 0.12345f;"""),
                                ("= tile[x][slot<C>(x, y)]", "= __int_as_float(atomicAdd(reinterpret_cast<int*>("
                                 "&tile[x][slot<C>(x, y)]), 0))")), 0, 0, "no more than the part"),
    "loads_by_bit_cast": (change(GIVEN, (FRONT, "struct Bytes {\n  unsigned char b[4];\n};\n" + FRONT), (
        LOAD, "= std::bit_cast<float>(*reinterpret_cast<const Bytes*>(&tile[x][slot<C>(x, y)]))")), 0, 0, "no more than the part"),
    "loads_of_bit_fields": (change(GIVEN, (FRONT, "struct Bits {\n  unsigned low : 9, high : 23;\n};\n" + FRONT), (
        LOAD, "= __uint_as_float(reinterpret_cast<const Bits&>(tile[x][slot<C>(x, y)]).low | reinterpret_cast<const Bits&>(tile[x][slot<C>"
        "(x, y)]).high << 9)")), 0, 0, "no more than the part"),
    "struct_by_value": (change(with_kernel("", text=GIVEN), ("template <class C>\n__global__", """struct Four {
  float x[4];
};
struct Reader {
  virtual float first(Four four) const { return four.x[0]; }
};
template <class C>
__global__"""), ("= tile[x][slot<C>(x, y)]", "= reader->first(*reinterpret_cast<const Four*>(&tile[x][slot<C>(x, y)]))"),
                               ("const int x = threadIdx.x;", "const int x = threadIdx.x;\n  const Reader one;\n"
                                "  const Reader* volatile where = &one;\n  const Reader* reader = where;")), 0, 0,
                        "a struct in memory is an argument"),
    "constant_in_shared": (change(GIVEN, ("__shared__ float tile[C::kTile][C::kTile];", "__shared__ const float tile[C::kTile]"
                                          "[C::kTile] = {};"), ("tile[y][slot<C>(y, x)] =", "const_cast<float&>(tile[y][slot<C>"
                                                                "(y, x)]) =")), 0, 0, "is const"),
    # nvcc makes two loads of a struct of two floats, and a load per byte of memcpy.
    "copies_a_struct": (change(PAIRS, ("COPY", "reinterpret_cast<Two&>(tile[y][x2]) = reinterpret_cast<const Two&>(in[from])")), 80, 99,
                        "global loads of `in`: sectors = ideal: measured 2"),
    "copies_bytes": (change(PAIRS, ("COPY", "memcpy(&tile[y][x2], &in[from], 8)")), 30, 99,
                     "global loads of `in`: sectors = ideal: measured"),
    # What moves data where g++ instruments nothing, and what belongs to no kernel.
    "works_in_a_copy_constructor": (change(GIVEN, ("template <class C>\n__global__", """struct Held {
  const float* in;
  __forceinline__ Held(const float* from) : in(from) {}
  __forceinline__ Held(const Held& other) : in(other.in) {
    if (blockDim.x > 0) const_cast<float*>(in)[threadIdx.x] += 0;
  }
};
template <class C>
__global__"""), ("const float* __restrict__ in, float*", "Held held, float*"), ("= in[row", "= held.in[row"),
                                           ("plan.buffers.in, plan", "Held(plan.buffers.in), plan")), 0, 0,
                                    "must be trivially copyable"),
    "writes_by_mathematics": (change(GIVEN, ("tile[y][slot<C>(y, x)] = in[row * shape.in_pitch + col];",
                                             "modff(in[row * shape.in_pitch + col], &tile[y][slot<C>(y, x)]);")), 0, 0,
                              "`modf` writes to memory"),
    "length_of_a_string": (with_kernel("  if (std::string_view(reinterpret_cast<const char*>(in)).size() == 1) return;"), 0, 0,
                           "calls `strlen`"),
    "writes_the_backend": (with_kernel("  const_cast<unsigned&>(threadIdx.z) = 0;"), 0, 0, "`threadIdx` is written"),
    "reads_beyond_a_local": (change(GIVEN, ("  __syncthreads();", "  float local[2] = {};\n  const std::int64_t to = &tile[0][0] "
                                            "- local;\n  __syncthreads();"),
                                    ("= tile[x][slot<C>(x, y)]", "= local[to + x * C::kTile + slot<C>(x, y)]")), 0, 0,
                             "out of bounds: index"),
    "casts_a_local": (change(GIVEN, ("  __syncthreads();", "  float local[2] = {};\n  local[x & 1] = in[0];\n  const std::int64_t to = "
                                     "&tile[0][0] - local;\n  __syncthreads();"),
                             (LOAD, "= (*reinterpret_cast<float(*)[1 << 28]>(&local))[to + x * C::kTile + slot<C>(x, y)]")), 0, 0,
                      "51: `local` is indexed as a larger array"),
    "large_local": (with_kernel("  float far[1 << 24];\n  if (blockDim.x == 99) out[0] = far[threadIdx.x];"), 0, 0, "a thread has 512 KB"),
    "jumps_into_a_statement": (with_kernel("  const void* there = &&next;\n  goto *there;\nnext:"), 0, 0, "28: `goto` is not allowed"),
    "reads_its_output_back": (change(RIGHT, (RIGHT[RIGHT.index("= tile[x][slot<C>(x, y)];"):RIGHT.index("// <<< your part\n\nstruct")],
                                             """= tile[x][slot<C>(x, y)];
    }
  }
  for (int j = 0; j < 4; ++j) {
    const std::int64_t row = row0 + x, col = col0 + threadIdx.y + (j + x) % 4 * 8;
    if (row < shape.rows && col < shape.cols && out[col * shape.out_pitch + row] == 0.12345f) __trap();
  }
}
""")), 90, 99, "global loads of `in`: sectors = ideal: measured 2.5 at line"),
    "reads_which_build": (change(RIGHT, ("__syncthreads();", "\n#if COOKBOOK_TRACED\n  __syncthreads();\n#endif")), 0, 0,
                          "`#if` is not allowed"),
    "weaker_claims": (change(GIVEN, ("shared_loads().conflict_free(), ", "")), 0, 0, "as it was handed out"),
    "no_claims": (change(GIVEN, ("static Claims claims(const Problem&) {", "static Claims claims(const Problem&) {\n"
                                 "    if (true) return {};")), 0, 0, "as it was handed out"),
    "claims_in_the_part": (with_run("", before="  static Claims claims(const Problem&) { return {}; }\n"), 0, 0,
                           "overloaded"),
    "other_claims_type": (with_run("", text=GIVEN, before="  template <int> static Claims claims(int) { return {}; }\n"),
                          0, 0, "no more than the part"),
    "host_computation": (change(RIGHT, (RUN_BODY, RUN_BODY + "\n" + HOST_LOOP + "    if (true) return;")), 0, 0,
                         "host code"),
    "own_launch": (change(RIGHT, ("struct ConflictFreeConfig", """template <class K, class G>
void launch(K, G, Stream, const float* in, float* out, const Shape& shape) {
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    for (std::int64_t c = 0; c < shape.cols; ++c) out[c * shape.out_pitch + r] = in[r * shape.in_pitch + c];
  }
}
struct ConflictFreeConfig"""), ("    launch(", "    transpose::launch(")), 0, 0, ""),
    "lower_precision": (change(RIGHT, ("out[col * shape.out_pitch + row] = tile[x][slot<C>(x, y)]",
                                       "out[col * shape.out_pitch + row] = __half2float(__float2half("
                                       "tile[x][slot<C>(x, y)]))")), 0, 0, "got"),
    "ends_in_a_kernel": (with_kernel("  std::exit(0);"), 0, 0, "ending the process"),
    "ends_in_run": (with_run("    quick_exit(0);"), 0, 0, "ending the process"),
    "traps": (with_kernel("  __builtin_trap();"), 0, 0, "builtin"),
    "prints_passed": (with_run('    printf("passed\\n100 of 100\\n");'), 0, 0, "output"),
    "writes_a_result": (with_run('    if (auto* f = fopen("out.json", "w")) fclose(f);'), 0, 0, "a file"),
    "static_initialiser": (change(RIGHT, ("struct ConflictFreeConfig", "inline const int begun = [] { return "
                                          "threadIdx.x > 99 ? 1 : 2; }();\nstruct ConflictFreeConfig")), 0, 0,
                           "static initialiser"),
    "constructor": (change(RIGHT, ("struct ConflictFreeConfig", "__attribute__((constructor)) void begin() {}\n"
                                   "struct ConflictFreeConfig")), 0, 0, "attribute"),
    "assembly": (with_kernel('  asm volatile("nop");'), 0, 0, "inline assembly"),
    "declares_exit": (change(RIGHT, ("struct ConflictFreeConfig", 'extern "C" void leave(int);\n'
                                     "struct ConflictFreeConfig")), 0, 0, "extern"),
    "endless_loop": (with_kernel("  for (volatile int i = 0; i < 1; i = 0) {\n  }"), 0, 0, ""),
    "endless_run": (with_run("    for (volatile int i = 0; i < 1; i = 0) {\n    }"), 0, 0, ""),
    "endless_compilation": (change(RIGHT, ("struct ConflictFreeConfig", "constexpr long slow(long n) { long s = 0; for "
                                           "(long i = 0; i < n; ++i) s += i; return s; }\n"
                                           "static_assert(slow(1L << 60) != 1);\nstruct ConflictFreeConfig")), 0, 0,
                            "constexpr"),
    "many_processes": (with_run("    for (int i = 0; i < 200; ++i) fork();"), 0, 0, "a process"),
    "huge_allocation": (with_run("    new char[1L << 40]();"), 0, 0, "allocation"),
    "huge_shared": (change(RIGHT, ("tile[C::kTile][C::kTile];", "tile[C::kTile][C::kTile * 4096];")), 0, 0,
                    "shared memory"),
    "deletes_files": (with_run('    std::remove("grades.csv");'), 0, 0, "`std::remove`"),
    "writes_past_the_buffer": (with_kernel("  if (threadIdx.x == 0 && threadIdx.y == 0) out[shape.cols * shape.out_pitch "
                                           "+ 8] = 1;"), 0, 0, "1x1"),
    "writes_everywhere": (with_kernel("  for (long i = 0; i < 1 << 22; ++i) out[i * 1024] = 1;"), 0, 0, ""),
    "changes_the_input": (with_kernel("  const_cast<float*>(in)[0] = 0;"), 0, 0, ""),
    "includes_the_solution": (change(RIGHT, ("struct ConflictFreeConfig", '#include "tests/solutions/03/'
                                             'exercise_1_conflict_free.diff"\nstruct ConflictFreeConfig')), 0, 0,
                              "#include"),
    "brings_a_ladder": ({"transpose.cuh": change(GIVEN, ("return col;", "return (col + 2) % C::kTile;")),
                         "ladder.hpp": "#error not taken\n", "level.hpp": "#error not taken\n"}, 0, 0,
                        "no more than the part"),
    "says_unsupported": (with_run("", before="  static Support supports(const Problem& p, const DeviceInfo&) {\n    return "
                                  'p.shape.rows % 32 ? Support::no("no") : Support::yes();\n  }\n'), 0, 60,
                         "unsupported"),
    "says_megabytes": (with_run("", before="  static Support supports(const Problem& p, const DeviceInfo&) {\n    return "
                                "p.shape.rows % 32 ? Support::no(std::string(4 << 20, '\\xff')) : Support::yes();\n  }\n"),
                       0, 60, ""),
    "prepare_throws": (with_run("", before="""  static Plan prepare(const Problem& problem, const Buffers& buffers) {
    if (problem.shape.in_pitch != problem.shape.cols) throw std::invalid_argument("rows");
    return {problem, buffers};
  }
"""), 0, 0, "invalid_argument"),
    "unsupported_layouts": (with_run("", before="  static Support supports(const Problem& p, const DeviceInfo&) {\n    return "
                                     'p.shape.in_pitch != p.shape.cols ? Support::no("no") : Support::yes();\n  }\n'), 60,
                            99, "unsupported: no"),
    "closes_the_scope": (change(RIGHT, ("struct ConflictFreeConfig", "}\nnamespace cookbook::simt { int mine; }\n"
                                        "namespace cookbook::transpose {\nstruct ConflictFreeConfig")), 0, 0,
                         "closes what was not opened"),
    "hides_a_directive": (change(RIGHT, ("struct ConflictFreeConfig", "/**/ %: define C_ 1\n"
                                         "struct ConflictFreeConfig")), 0, 0, "digraphs"),
    "opens_a_comment": (change(RIGHT, ("// <<< your part\n\nstruct", "/*\n// <<< your part\n\nstruct")), 0, 0,
                        "not closed"),
    "hides_in_a_number": (with_kernel("  int a = 1'0;\n  const char* b = \"' // \"; asm(\"nop\");"), 0, 0,
                          "inline assembly"),
    # What the compiler reads otherwise than an editor shows it.
    "return_as_a_line": (change(RIGHT, ("struct ConflictFreeConfig", "// a\r#include \"/etc/passwd\"\r"
                                        "struct ConflictFreeConfig")), 0, 0, "13: control characters"),
    "spliced_directive": (change(RIGHT, ("struct ConflictFreeConfig", "#def\\\nine A 1\nstruct ConflictFreeConfig")), 0, 0,
                          "backslash"),
    "digraphs_close": (change(RIGHT, ("struct ConflictFreeConfig", "%> namespace cookbook::simt <% int a; %>\n"
                                      "namespace cookbook::transpose <%\nstruct ConflictFreeConfig")), 0, 0, "13: digraphs"),
    "second_attribute": (change(RIGHT, ("struct ConflictFreeConfig", "[[maybe_unused, gnu::constructor]] inline void begin() "
                                        "{}\nstruct ConflictFreeConfig")), 0, 0, "`gnu` is not allowed: an attribute"),
    "attribute_on_the_next_row": (change(RIGHT, ("struct ConflictFreeConfig", "[\n[gnu::constructor]\n] inline void begin() "
                                                 "{}\nstruct ConflictFreeConfig")), 0, 0, "an attribute"),
    "pasted_assembly": (with_kernel("  __CONCAT(as, m)(\"nop\");"), 0, 0, "`__CONCAT` is not allowed: a reserved name"),
    "macro_of_the_library": (with_kernel("  assert(_POSIX_VERSION > 0);"), 0, 0, "`_POSIX_VERSION` is not allowed"),
    "character_hides_a_comment": (with_kernel("  const char a = '\"'; /* \" */ asm(\"nop\"); // \""), 0, 0,
                                  "inline assembly"),
    "names_a_file": (change(RIGHT, ("struct ConflictFreeConfig", "# 1 \"/etc/passwd\"\nstruct ConflictFreeConfig")), 0, 0,
                     "`#1` is not allowed"),
    "copies_by_the_library": (with_kernel("  float a[3];\n  std::copy(in, in + 3, a);"), 0, 0, "`std::copy` is not allowed"),
    "own_problem": (with_run("", before="  struct Problem : transpose::Problem {};\n"), 0, 0, "must keep its problem"),
    "adds_a_mark": (change(RIGHT, ("= tile[x][slot<C>(x, y)];", "= tile[x][slot<C>(x, y)];  // [tile]")), 0, 0,
                    "do not add"),
    # Memory and counts that are not a kernel's, or not a plan's.
    "allocates_in_a_kernel": (with_kernel("  std::string kept;\n  kept.resize(99 + threadIdx.x);"), 0, 0,
                              "a kernel calls operator new"),
    "exceptions_carry_data": (with_kernel("  try {\n    if (threadIdx.x < 99) throw std::invalid_argument(\"a\");\n  } catch (const "
                                          "std::invalid_argument& e) {\n    if (e.what()[0] == 'b') return;\n  }"), 0, 0,
                              "28: the code calls `std::invalid_argument"),
    "guards_as_memory": (change(GIVEN, (X, "  __shared__ float guarded = in[0];\n" + X + "\n  if (guarded == 0.123f) return;")), 0, 0,
                         "`guarded` has an initialiser"),
    "guard_without_its_variable": (with_run("    bool first = false;\n    static const auto unused = [&] {\n      first = true;\n      "
                                            "return 0;\n    }();\n    if (!first) return;"), 0, 0, "keeps a value"),
    "static_member": (change(with_front("struct Keeps {\n  static inline int runs = 0;\n};"),
                             (RUN_BODY, RUN_BODY + "\n    if (Keeps::runs++ > 0) return;")), 0, 0, "`runs` keeps a value"),
    "destructor_of_a_thread": (change(RIGHT, (X, "  struct End {\n    float a;\n    ~End() {\n      if (blockDim.x > 99) a = 1;\n    }\n  };\n"
                                              "  __shared__ End end;\n  end.a = 1;\n" + X)), 0, 0, "calls `__cxa_thread_atexit`"),
    "remembers_in_its_plan": (with_run("    if (plan.runs++ > 0) return;", before=(PLAN % "mutable int runs = 0;") +
                                       "  static Plan prepare(const Problem& problem, const Buffers& buffers) { return {problem, "
                                       "buffers}; }\n"), 0, 0, "right on the first inputs only"),
    "kernel_forges_counts": (with_kernel("  char* of_backend = const_cast<char*>(reinterpret_cast<const char*>(&threadIdx));\n"
                                         "  for (int i = -64; i < 64; i += 4) reinterpret_cast<volatile int&>(of_backend[i]) = 0;"),
                             0, 0, "out of bounds"),
    "plan_forges_counts": (with_run("    char* of_backend = const_cast<char*>(reinterpret_cast<const char*>(&threadIdx));\n"
                                    "    for (int i = -64; i < 64; i += 4) reinterpret_cast<volatile int&>(of_backend[i]) = 0;"), 0, 0,
                           "a store to memory that is not its own in host code at transpose.cuh:72"),
    "plan_copies_over_counts": (with_run("    std::size_t some = shape.rows > 0;\n    memcpy(const_cast<DeviceInfo*>(&device_info()), "
                                         "&some, 4 * some);"), 0, 0, "a store to memory that is not its own"),
    "plan_forges_at_its_end": (with_run("", before=PLAN.replace("%s", "~Plan() { const_cast<DeviceInfo&>(device_info()).sm_count += 1; }") +
                                        "  static Plan prepare(const Problem& problem, const Buffers& buffers) { return {problem, "
                                        "buffers}; }\n"), 0, 0, "a store to memory that is not its own"),
    "exception_forges_counts": (change(with_run("    if (shape.rows > 0) throw Mine(\"a\");", before="  struct Mine : std::invalid_argument {\n"
                                                "    using std::invalid_argument::invalid_argument;\n    const char* what() const noexcept "
                                                "override {\n      const_cast<DeviceInfo&>(device_info()).sm_count += 1;\n      return "
                                                "\"a\";\n    }\n  };\n")), 0, 0, "cannot be counted"),
    "plan_looks_for_inputs": (with_run("    long sum = 0;\n    for (int i = 0; i < 4096; i += 8) sum += *reinterpret_cast<const long*>("
                                       "reinterpret_cast<const char*>(&sum) + i);\n    if (sum == 7) return;"), 0, 0,
                              "a load from memory that is not its own"),
    "plan_uses_atomics": (with_run("    atomicAdd(reinterpret_cast<float*>(const_cast<DeviceInfo*>(&device_info())), 0.0f);"), 0, 0,
                          "which only kernels may"),
    "launches_in_a_kernel": (with_kernel("  if (gridDim.z == 1) launch(conflict_free_transpose<C>, {dim3(1, 1, 2), dim3(32, 8)}, "
                                         "Stream{}, in, out, shape);"), 0, 0, "cannot launch a kernel"),
    # Jumps to code behind a hook, or of the program that counts.
    "calls_behind_a_hook": (change(GIVEN, ("template <class C>\n__global__", "__device__ __noinline__ float value_of(const float* p) { return *p; "
                                           "}\ntemplate <class C>\n__global__"),
                                   (LOAD, "= reinterpret_cast<float (*)(const float*)>(reinterpret_cast<std::uintptr_t>(&value_of) + 24)(&tile"
                                    "[x][slot<C>(x, y)])")), 0, 0, "a call of what is no function of the submission in a kernel"),
    "plan_calls_the_backend": (with_run("    reinterpret_cast<void (*)(bool)>(reinterpret_cast<std::uintptr_t>(&device_info) + 64)(true);"),
                               0, 0, "a call of what is no function of the submission in host code"),
    "returns_elsewhere": (with_kernel("  std::uintptr_t one = threadIdx.x;\n  std::uintptr_t* stack = &one;\n  for (int i = 1; i < 12; ++i) "
                                      "stack[i] += 5;\n  if (one == 77) return;"), 0, 0, "a return to where no call came from"),
    # Accesses that do nothing bring a ratio closer; blocks that do nothing change none.
    "dilutes_a_ratio": (change(GIVEN, ("  __syncthreads();", """  __syncthreads();
  float more = 0;
  const bool inner = row0 + C::kTile <= shape.rows && col0 + C::kTile <= shape.cols;
  for (int i = 0; i < 64 && inner; ++i) more += tile[(threadIdx.y + i) % C::kTile][x] * 0;
  if (more == 1) return;""")), 0, 0, "no more than the part"),
    "lanes_take_turns": (change(GIVEN, ("      out[col * shape.out_pitch + row] = tile[x][slot<C>(x, y)];", """      float v = 0;
      for (int lane = 0; lane < C::kTile; ++lane) {
        if (x == lane) v = tile[x][slot<C>(x, y)];
      }
      out[col * shape.out_pitch + row] = v;""")), 0, 0, "few lanes of a warp access memory at a time, so the ratio says nothing, at line 50"),
    # Each bank has eight lanes, and these take turns: all requests are ideal, and there are eight times as many.
    "eight_take_turns": (change(GIVEN, ("int /*row*/, int col", "int row, int col"), ("return col;", "return (col + row / 8) % C::kTile;"),
                                ("      out[col * shape.out_pitch + row] = tile[x][slot<C>(x, y)];", """      float v = 0;
      for (int turn = 0; turn < 8; ++turn) {
        if (x % 8 == turn) v = tile[x][slot<C>(x, y)];
      }
      out[col * shape.out_pitch + row] = v;""")), 0, 0, "few lanes of a warp access memory at a time, so the ratio says nothing, at line 50"),
    "two_take_turns": (change(GIVEN, ("int /*row*/, int col", "int row, int col"), ("return col;", "return (col + row / 2) % C::kTile;"),
                              ("      out[col * shape.out_pitch + row] = tile[x][slot<C>(x, y)];", """      float v = 0;
      if (x % 2 == 0) {
        v = tile[x][slot<C>(x, y)];
      } else {
        v = tile[x][slot<C>(x, y)];
      }
      out[col * shape.out_pitch + row] = v;""")), 0, 0, "few lanes of a warp"),
    "empty_blocks": (change(with_kernel("  if (blockIdx.y > 0) return;", text=GIVEN),
                            ("{tile_grid(shape, Config::kTile, Config::kTile), dim3", "{dim3(tile_grid(shape, Config::kTile, "
                             "Config::kTile).x, 9), dim3")), 0, 0, "no more than the part"),
    # Other names and other rules for what the teacher's file says.
    "shadows_a_barrier": (with_front("__device__ __forceinline__ void __syncthreads() {}"), 0, 0, "no barrier between"),
    "specialises_std": (with_front("struct Held {\n  int a;\n};\ntemplate <>\ninline constexpr bool "
                                   "std::is_trivially_copyable_v<Held> = true;"), 0, 0, "namespace"),
    "address_operator": (change(with_front("struct Sly {\n  float value;\n  float* operator&() const { return nullptr; }\n  operator "
                                           "float() const { return value; }\n};", of=GIVEN), ("__shared__ float tile", "__shared__ Sly tile"),
                                ("tile[y][slot<C>(y, x)] =", "tile[y][slot<C>(y, x)].value =")), 0, 0, "no more than the part"),
    "jumps": (with_kernel("  jmp_buf there;\n  if (setjmp(there) == 0) longjmp(there, 1);"), 0, 0, "transpose.cuh:27: error"),
    "handles_signals": (with_kernel("  std::signal(11, nullptr);"), 0, 0, "27: `std::signal` is not allowed: of `std`, only"),
    "switches_contexts": (with_kernel("  ucontext_t there;\n  getcontext(&there);"), 0, 0, "transpose.cuh:27: error"),
    "attribute_of_a_lambda": (with_kernel("  const auto one = [](int a) [[gnu::no_sanitize(\"thread\")]] { return a; };\n"
                                          "  if (one(1) == 2) return;"), 0, 0, "27: `gnu` is not allowed: an attribute"),
    "pragma_of_functions": (with_front("#pragma GCC optimize(\"O0\")"), 0, 0, "13: `#pragma GCC optimize"),
    "letters_beyond_ascii": (with_kernel("  int \u00e4 = 1;"), 0, 0, "27: characters other than ASCII"),
    "letters_as_numbers": (with_kernel("  int \\u00e4 = 1;"), 0, 0, "27: the character \\ is not allowed"),
    "splice_in_a_comment": (with_kernel("  // a comment \\\n  int a = 1;"), 0, 0, "27: a line that ends in a backslash"),
    # What takes long, or grows without end, where a submission is read.
    "quotes_without_end": (with_front("\\\"" * 100000), 0, 0, "13: the character"),
    "long_name": (with_front("int " + "a" * 100000 + ";"), 0, 0, "13: a name or a number has 100,000 characters"),
    "blank_lines": (change(RIGHT, ("// <<< your part\n\nstruct", "\n" * 150000 + "// <<< your part\n\nstruct")), 100, 100, ""),
    "deep_templates": (with_front("template <int N>\nstruct Deep {\n  static constexpr int value = Deep<N + 1>::value;\n};\n"
                                  "constexpr int deep = Deep<0>::value;"), 0, 0, "template instantiation depth"),
    "template_bomb": (with_front("template <int N, class... T>\nstruct Bomb : Bomb<N - 1, T..., int>, Bomb<N - 1, T..., char> {};\ntemplate <class... T>\n"
                                 "struct Bomb<0, T...> {};\nconstexpr Bomb<30> bomb;"), 0, 0, "compil"),
    "large_constant": (with_front("inline constexpr struct Large {\n  int x[1 << 26] = {1};\n} large;").replace(
        "  __syncthreads();", "  if (blockDim.x > 99) out[0] = large.x[blockDim.x];\n  __syncthreads();"), 0, 0,
        "more time, memory or space than it gets"),
    "long_type": (with_front("template <class T>\n__global__ void named(float* out) { out[0] = sizeof(T*); }\ntemplate <int N, class T>\n"
                             "void launch_named(float* out, T*) {\n  if constexpr (N == 0) {\n    launch(named<T>, {dim3(1), dim3(1)}, Stream{}, "
                             "out);\n  } else {\n    launch_named<N - 1>(out, static_cast<std::pair<T, T>*>(nullptr));\n  }\n}").replace(
        RUN_BODY, RUN_BODY + "\n    if (shape.rows > 99999) launch_named<22>(plan.buffers.out, static_cast<int*>(nullptr));"), 0, 0,
        "too long when it is compiled"),
    "too_large": (RIGHT + "//" + "x" * (300 << 10), 0, 0, "KiB"),
}
MUSEUM = {**HONEST, **{f"cheat_{name}": row for name, row in CHEATS.items()}}


def write(folder, names=None):
    for name in names or MUSEUM:
        text = MUSEUM[name][0]
        files = text if isinstance(text, dict) else {f"{name}.cuh": text}
        place = folder / name if isinstance(text, dict) else folder
        place.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (place / file).write_bytes(content.encode())


def unlike_expected(results):
    """[(name, what is wrong)] of results that are not what the table says."""
    wrong = []
    for result in results:
        _, least, most, part = MUSEUM[result["name"]]
        text = report.feedback(result)
        if not least <= result["score"] <= most:
            wrong.append((result["name"], f"{result['score']} points, not {least} to {most}\n{text}"))
        elif part not in text:
            wrong.append((result["name"], f"says nothing of '{part}':\n{text}"))
    return wrong


def command(build, submissions, out):
    """Grades `submissions`, two at a time."""
    return [sys.executable, "-B", str(ROOT / "tools/grading/grade.py"), "--build", str(build), str(TASK),
            str(submissions), "--out", str(out), "--jobs", "2",
            *["--no-sandbox"] * (sandbox.kind_of_sandbox() == "limits")]


def results_in(out):
    return [json.loads(path.read_text()) for path in sorted((out / "results").glob("*.json"))]


def main(argv):
    if argv[:1] == ["--write"]:
        write(Path(argv[1]))
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "submissions", argv[1:])
        subprocess.run(command(argv[0], folder / "submissions", folder / "grades"))
        results = results_in(folder / "grades")
    wrong = unlike_expected(results)
    for name, text in wrong:
        print(f"\n{name}: {text}")
    print(f"{len(results)} submissions in {time.monotonic() - began:.0f} s; {len(wrong)} not as expected")
    return 1 if wrong or len(results) != len(argv[1:] or MUSEUM) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
