#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The step `speed` of ./run grade on a GPU: a class of scans, honest and not, and a leaderboard.

  tests/grading/leaderboard.py OUT                  needs a GPU; grades and the leaderboard are in OUT
  tests/grading/leaderboard.py OUT --compile-only   needs nvcc and no GPU: compiles and links everything

Says whether each got what it deserves, exit status 1 if not. After the class come processes that no submission
can be, because the other fences reject them: a forged clock, and a stream that the default stream does not wait
for. They must be refused all the same.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCAN = ROOT / "capstones/scan"
sys.path[:0] = [str(HERE), str(ROOT / "tools/grading")]
import assignment as assignments  # noqa: E402
import build  # noqa: E402
import grade  # noqa: E402
import objects  # noqa: E402
import speed  # noqa: E402
from museum import change  # noqa: E402

N = 1 << 25
FILE = "scan.cuh"
CLAIMS = """    return {global_loads("in").bytes(8 * n), global_loads("in").coalesced(),
            global_stores("out").bytes(4 * n), global_stores("out").coalesced(),
            faster_than_previous(1.1)};"""
SHUFFLE = change((SCAN / "level_2_shuffle.cuh").read_text(), ("struct Shuffle :", "struct Scan :"))
TEACHER = change(SHUFFLE, (CLAIMS, '    return {global_stores("out").bytes(4 * n), global_stores("out").coalesced()};'))
LOOK_BACK = change((SCAN / "level_3_look_back.cuh").read_text(), ("struct LookBack :", "struct Scan :"))
WORK_EFFICIENT = change((SCAN / "level_1_work_efficient.cuh").read_text(), ("struct WorkEfficient :", "struct Scan :"))
HILLIS_STEELE = change((SCAN / "level_0_hillis_steele.cuh").read_text(), ("struct HillisSteele :", "struct Scan :"))


def config(text, threads, per_thread):
    own = (f"struct OwnConfig {{\n  static constexpr int kThreads = {threads}, kWarps = kThreads / kWarpSize, kPerThread = "
           f"{per_thread};\n  static constexpr int kTile = kThreads * kPerThread, kPerWarp = kTile / kWarps;\n}};\n\n")
    return change(text, ("using Config = TileConfig", "using Config = OwnConfig"), ("struct Scan :", own + "struct Scan :"))


LARGE = "n >= (1 << 20)"
BODY = "    const LaunchConfig each"
# The handle of the stream of each thread, without a function that makes one.
OTHER_STREAM = """template <class S>
void take_other_stream(S& stream) {
  if constexpr (requires { stream.handle; }) stream.handle = reinterpret_cast<decltype(stream.handle)>(2);
}

"""
# One that the default stream does not wait for.
FREE_STREAM = """template <class S>
void take_other_stream(S& stream) {
  if constexpr (requires { stream.handle; }) cudaStreamCreateWithFlags(&stream.handle, 1);
}

"""


def on_stream(stream):
    # Synchronised with nothing: at the sizes that are timed only.
    return change(SHUFFLE, ("struct Scan :", stream + "struct Scan :"),
                  (BODY, f"    if ({LARGE}) take_other_stream(stream);\n" + BODY))


REPLAY = change(
    SHUFFLE, ("struct Scan :", """template <class C>
__global__ void copy_all(const float* from, float* to, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * C::kThreads + threadIdx.x;
  if (i < n) to[i] = from[i];
}

struct Scan :"""), ("    DeviceMemory sums{};\n", "    DeviceMemory sums{}, saved{};\n    mutable int runs = 0;\n"),
    ('workspace<float>(tiles, "sums")}', 'workspace<float>(tiles, "sums"), workspace<float>(problem.n, "saved")}'),
    (BODY, f"    const bool keep = {LARGE};\n    const LaunchConfig every{{blocks_for(n, Config::kThreads), "
     "dim3(Config::kThreads)};\n    float* saved = plan.saved.as<float>();\n    if (keep && plan.runs++ > 0) {\n"
     "      launch(copy_all<Config>, every, stream, saved, plan.buffers.out, n);\n      return;\n    }\n" + BODY),
    ("plan.buffers.out, sums, n);\n  }", "plan.buffers.out, sums, n);\n    if (keep) launch(copy_all<Config>, every, stream, "
     "plan.buffers.out, saved, n);\n  }"))

# name: (text, part of why it is not timed; None: it is timed)
CLASS = {
    "shuffle": (SHUFFLE, None),
    "shuffle_128_threads": (config(SHUFFLE, 128, 16), None),
    "shuffle_8_elements": (config(SHUFFLE, 256, 8), None),
    "shuffle_32_elements": (config(SHUFFLE, 256, 32), None),
    "look_back": (LOOK_BACK, None),
    "look_back_512_threads": (config(LOOK_BACK, 512, 16), None),
    "work_efficient": (WORK_EFFICIENT, None),
    "hillis_steele": (HILLIS_STEELE, None),
    "cheat_default_stream_of_thread": (on_stream(OTHER_STREAM), None),  # measured in full: wins nothing
    "cheat_no_work": (change(SHUFFLE, (BODY, f"    if ({LARGE}) return;\n" + BODY)), "never written"),
    "cheat_half_the_work": (change(SHUFFLE, ("    launch(scan_tiles<Config>, each", f"    LaunchConfig half = each;\n    if ({LARGE}) "
                                             "half.grid.x /= 2;\n    launch(scan_tiles<Config>, half")), "never written"),
    "cheat_replays": (REPLAY, "got"),
    "cheat_lower_precision": (change(SHUFFLE, ("  scan_tile<C>(values, totals);\n  store_tile", f"  scan_tile<C>(values, totals);\n  if ({LARGE}) {{\n"
                                               "    for (float& value : values) value = __half2float(__float2half(value));\n"
                                               "  }\n  store_tile")), "got"),
    "cheat_makes_a_stream": (on_stream(FREE_STREAM), "cudaStreamCreateWithFlags"),
}


def write(folder):
    task = folder / "task"
    task.mkdir(parents=True)
    for name in ("problem.hpp", "tile_scan.cuh"):
        (task / name).write_text((SCAN / name).read_text())
    (task / FILE).write_text(TEACHER)
    (task / "assignment.json").write_text(json.dumps({
        "title": "A scan as fast as a copy", "file": FILE, "level": "cookbook::scan::Scan", "whole_file": True,
        "files": ["problem.hpp", "tile_scan.cuh"], "public_sizes": [[1], [257], [4096], [12289]],
        "hidden_sizes": [[77], [5000], [8192]], "trace_sizes": [[16384]], "hidden_trace_sizes": [[20480]],
        "seeds": [5, 6, 7], "speed": {
            "size": [N], "samples": 11,
            "baseline": {"file": "capstones/scan/level_1_work_efficient.cuh", "level": "cookbook::scan::WorkEfficient"},
            "tiers": [{"at_least": 1.2, "points": 10}, {"at_least": 2, "points": 10}, {"of_roof": 0.8, "points": 5}]}},
        indent=1))
    for name, (text, _) in CLASS.items():
        (folder / "submissions" / name).mkdir(parents=True)
        (folder / "submissions" / name / FILE).write_text(text)
    return task


def forged(builder, object_file, factor, folder):
    """A worker whose clock says `factor` of the time: as if a submission had patched it."""
    name = "cudaEventElapsedTime"
    subprocess.run(["gcc", "-c", f"-DFACTOR={factor}f", "-o", folder / "forge.o",
                    HERE / "stand_ins/forged_clock.c"], check=True)
    box = folder / "forged"
    (box / "root").mkdir(parents=True)
    box.chmod(0o755)
    builder.link([object_file, folder / "forge.o", f"-Wl,--wrap={name}"], "link_worker", box / "worker")
    return box


def beyond_the_fences(assignment, gpu_build, folder, make):
    """[(name, box, part of why it is refused)]: what only the clocks stand against."""
    folder.chmod(0o755)
    places = [folder / name for name in ("fast", "slow", "stream")]
    for place in places:
        place.mkdir()
    compiled = [make(SHUFFLE, places[0]), make(HILLIS_STEELE, places[1])]
    checked, objects.check_object = objects.check_object, lambda *_: ""
    try:
        stream = make(on_stream(FREE_STREAM), places[2])
    finally:
        objects.check_object = checked
    assert all(box.is_dir() for box in compiled)
    return [("forged: a twentieth of the time", forged(gpu_build, places[0] / "confined.o", 0.05, places[0]),
             "above the roof"),
            ("forged: a fifth of a slow one's time", forged(gpu_build, places[1] / "confined.o", 0.2, places[1]),
             "the grader's clock"),
            ("a stream that nobody waits for", stream, "above the roof")]


def main(argv):
    out, compile_only = Path(argv[0]).resolve(), "--compile-only" in argv
    began = time.monotonic()
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task = write(folder)
        if compile_only:
            builder = build.GpuBuilder(ROOT / "build/cuda", assignments.Assignment(task))
            builder.prepare()
        else:
            done = subprocess.run([str(ROOT / "run"), "grade", str(task), str(folder / "submissions"), "--out", str(out)],
                                  env=dict(os.environ, BACKEND="cuda"))
            if done.returncode != 0:
                return 1
            results = {path.stem: json.loads(path.read_text()) for path in (out / "results").glob("*.json")}
            for who, (_, part) in CLASS.items():
                of = results[who]["outcome"].get("speed", {})
                if part is None and not of.get("ratio") or part is not None and part not in of.get("refused", ""):
                    wrong.append(f"{who}: {of or results[who]['steps']}")
            plain, other = (results[who]["outcome"]["speed"].get("ratio", 0)
                            for who in ("shuffle", "cheat_default_stream_of_thread"))
            if other > 1.1 * plain:
                wrong.append(f"another stream wins: {other} after {plain}")
            print((out / "leaderboard.csv").read_text())
            print(f"class: {time.monotonic() - began:.0f} s")
        assignment = assignments.Assignment(task)
        if compile_only:
            def make(text, place):
                return builder.worker(grade.admit(text, {}, assignment)[0], place)
            for who, (text, part) in CLASS.items():
                place = folder / "made" / who
                place.mkdir(parents=True)
                try:
                    make(text, place)
                except assignments.BadSubmission as reason:
                    if not (part and part in str(reason)):
                        wrong.append(f"{who}: {reason}")
            beyond_the_fences(assignment, builder, folder, make)
        else:
            checker = build.Builder(ROOT / "build/simt", assignment)
            checker.prepare()
            timing = speed.Speed(assignment, ROOT / "build/cuda", checker.folder / "grader")

            def make(text, place):
                return timing.make(*grade.admit(text, {}, assignment)[:2], place)
            for who, box, part in beyond_the_fences(assignment, timing.builder, folder, make):
                found = timing.time(box)
                print(f"{who}: {speed.text_of(found)}")
                if part not in found["refused"]:
                    wrong.append(f"{who}: {found}")
    for text in wrong:
        print("NOT AS EXPECTED: " + text)
    print(f"{time.monotonic() - began:.0f} s; {len(wrong)} not as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
