#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""./run check on suites whose answers are known (docs/check.md, "Known answers"). Fetches nothing: each suite is a local
checkout, and what is run is that or an edited copy.

    known_answers.py --build build/simt --indigo DIR --scor DIR --every 10 --from 1 --json OUT.json --table OUT.md

Draws each N-th program of a suite in the order of the names, beginning with the K-th (--every N --from K). What is in
the JSON file is not run again. answers/programs.json holds what no rule says: arguments, sizes, and what is known of
single findings.
"""
import argparse
import json
import math
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent / "answers"
RACES = ("race", "divergence")
NO_MISTAKES = ("leak",)  # listed by ./run check, but no mistake
CANNOT = 2
TEXTS = (".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".c")
FAILS = re.compile(r"\b(FAIL(ED|URE|S)?|[Ff]ailed|[Mm]ismatch(es)?|[Ii]ncorrect|WRONG|does not match|differs)\b")
PASSES = re.compile(r"\b(PASS(ED)?|[Pp]assed|SUCCESS(FUL)?|[Ss]uccess(ful(ly)?)?|[Cc]orrect|[Vv]erified|matches|OK)\b")


@dataclass
class Program:
    suite: str
    name: str
    sources: list
    truth: str  # "bug"; "clean": without one; "own": the program itself says whether its result is right
    options: list = field(default_factory=list)
    runs: list = field(default_factory=lambda: [[]])  # arguments; a bug need show in one run only
    given: str = ""    # standard input
    wanted: tuple = ()  # (kind, ...) of each planted bug
    judged: tuple = ()  # kinds that the suite's answers speak of; () for all
    lines: tuple = ()   # of the planted bug
    right: str = ""     # what the output of a right program has
    edits: tuple = ()   # (pattern, replacement) in the sources
    true: tuple = ()    # (pattern, why): findings that are bugs of the program
    skip: str = ""      # why it is not run
    files: dict = field(default_factory=dict)  # small inputs in place of those that are not in the checkout: name -> bytes
    home: Path = None   # its folder, if that is not the first source's


@dataclass
class Outcome:
    """Of one run of ./run check."""
    status: int  # None: it took too long
    output: str = ""
    errors: str = ""
    findings: tuple = ()  # {"kind", "message"}
    notes: tuple = ()


# ---- judging ----

def refusal(errors):
    """(whether it names what is missing, the reason)"""
    rows = [row for row in errors.strip().split("\n") if row]
    text = re.sub(r"^check: ", "", rows[0]) if rows else "no message"
    text = re.sub(r"\S*/(?=[\w.-]+:)", "", text)  # a place is a file and a line
    return bool(re.search(r"not supported|there is no header|nothing defines|is not modelled|inline PTX", text)), text[:160]


def own_verdict(program, output):
    """What a program says of its own result; None if nothing."""
    if program.right:
        return re.search(program.right, output, re.MULTILINE) is not None
    if FAILS.search(re.sub(r"\b0 (mismatch(es)?|failed|FAILED)\b|(mismatch(es)?|failed): *0\b", "", output)):
        return False
    return True if PASSES.search(output) else None


def judge(program, outcomes):
    """built, ran, right (None: nothing says so), found, false, verdict, reason"""
    record = {"truth": program.truth, "built": False, "ran": False, "right": None, "bugs": {}, "at_line": None, "false": [],
              "also": [], "verdict": "", "reason": ""}
    record["bugs"] = {"/".join(kinds): False for kinds in program.wanted}
    if program.skip:
        return dict(record, verdict="not run", reason=program.skip)
    outcomes = [one for one in outcomes if "a precondition is not met" not in one.output]
    if not outcomes:
        return dict(record, built=True, verdict="not run", reason="no run meets the preconditions of its kernel")
    cannot = next((one for one in outcomes if one.status == CANNOT), None)
    if cannot:
        named, reason = refusal(cannot.errors)
        return dict(record, verdict="refused" if named else "does not compile" if "error: " in reason else "cannot be checked",
                    reason=reason)
    record["built"] = True
    record["ran"] = all(one.status is not None for one in outcomes)
    found = [dict(one) for outcome in outcomes for one in outcome.findings if one["kind"] not in NO_MISTAKES
             or any(one["kind"] in kinds for kinds in program.wanted)]
    counted = [one for one in found if not program.judged or one["kind"] in program.judged]
    record["also"] = sorted({one["message"][:200] for one in found if one not in counted})
    if program.truth == "bug":
        of_bug = [[one for one in found if one["kind"] in kinds] for kinds in program.wanted]
        record["bugs"] = {"/".join(kinds): bool(ones) for kinds, ones in zip(program.wanted, of_bug)}
        at = {int(n) for ones in of_bug for one in ones for n in re.findall(r":(\d+)\b", one["message"])}
        record["at_line"] = bool(at & set(program.lines)) if program.lines else None
        missing = [kinds for kinds, there in record["bugs"].items() if not there]
        if missing:
            slow = "" if record["ran"] else "cut short; "
            return dict(record, verdict="missed", reason=f"{slow}no {', no '.join(missing)}")
        return dict(record, verdict="found")
    judged_true = [one for one in counted if any(re.search(part, one["message"]) for part, _ in program.true)]
    why = "; ".join(why for part, why in program.true if any(re.search(part, one["message"]) for one in judged_true))
    record["false"] = sorted({one["message"][:300] for one in counted if one not in judged_true})
    record["right"] = None if program.truth == "clean" else \
        next((said for said in (own_verdict(program, one.output) for one in outcomes) if said is not None), None)
    crash = next((one["message"] for one in found if one["kind"] == "crash"), "")
    if crash and not judged_true:
        return dict(record, ran=False, verdict="crashed", reason=crash[:200])
    ended = next((one["message"] for one in found if one["kind"] == "exit status"), "")
    if ended and program.truth == "own" and not judged_true:
        said = [row for one in outcomes for row in (one.output + one.errors).strip().split("\n") if row]
        return dict(record, right=False, verdict="wrong result", reason=f"{ended}; {said[0] if said else ''}"[:200])
    if record["false"]:
        return dict(record, verdict="false alarm" if program.truth == "clean" else "findings nobody has judged",
                    reason=record["false"][0])
    if not record["ran"]:
        return dict(record, verdict="too slow", reason="not finished within the limit")
    if why and record["right"] is not True:
        return dict(record, verdict="a bug of the program", reason=why)
    if record["right"] is False:
        said = next((row for one in outcomes for row in one.output.split("\n") if FAILS.search(row)), "")
        return dict(record, verdict="wrong result", reason=said.strip()[:160])
    return dict(record, verdict="clean" if program.truth == "clean" else "right")


AS_IT_SHOULD_BE = ("found", "clean", "right")


# ---- running ----

RUNNING = set()


def end(number, _):
    for process in list(RUNNING):
        stop(process)
    raise SystemExit(128 + number)


def stop(process):
    """SIGTERM first: check.py ends the program that it runs."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def folder_like(program, build):
    """A folder beside links to what the sources lie beside: what a program writes stays out of the checkout. With edits
    the texts are copies. Returns it and the sources."""
    home = program.home or program.sources[0].parent
    top = Path(build).resolve().parent / "known_answers" / re.sub(r"\W", "_", f"{program.suite}_{program.name}")
    shutil.rmtree(top, ignore_errors=True)
    if home == HERE:
        top.mkdir(parents=True)
        return top, program.sources
    at = top / home.parent.name / home.name
    edited = {home, *(one.parent for one in program.sources)} if program.edits else {home}
    for folder in home.parent.iterdir():
        if folder not in edited:
            at.parent.mkdir(parents=True, exist_ok=True)
            (at.parent / folder.name).symlink_to(folder)
            continue
        (at.parent / folder.name).mkdir(parents=True)
        for entry in folder.iterdir():
            copy = at.parent / folder.name / entry.name
            if program.edits and entry.is_file() and entry.suffix in TEXTS:
                text = entry.read_text(errors="replace")
                for pattern, by in program.edits:
                    text = re.sub(pattern, by, text)
                copy.write_text(text)
            else:
                copy.symlink_to(entry)
    for name, content in program.files.items():
        (at / name).write_bytes(content)
    beside = lambda one: program.edits and one.parent.parent == home.parent
    return at, [at.parent / one.parent.name / one.name if beside(one) else one for one in program.sources]


def check(program, place, build, limit, arguments):
    at, sources = place
    result = at / "found.json"
    result.unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tools/check/check.py"), "--build", build, *map(str, sources), "--quiet", "--json",
         str(result), "--time-limit", str(max(5, limit // 4)), *program.options, "--", *arguments], cwd=at, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace", start_new_session=True)
    RUNNING.add(process)
    try:
        output, errors = process.communicate(program.given, timeout=limit)
    except subprocess.TimeoutExpired:
        stop(process)
        return Outcome(None)
    finally:
        RUNNING.discard(process)
    found = json.loads(result.read_text()) if result.exists() else {"findings": [], "notes": []}
    return Outcome(process.returncode, output[-20000:], errors[-4000:], tuple(found["findings"]), tuple(found["notes"]))


def run(program, build, limit):
    begin, outcomes = time.monotonic(), []
    place = None if program.skip else folder_like(program, build)
    for arguments in [] if program.skip else program.runs:
        outcomes.append(check(program, place, build, limit, arguments))
        if outcomes[-1].status in (None, CANNOT):
            break
        if program.truth == "bug" and judge(program, outcomes)["verdict"] == "found":
            break  # the bug is found
    if place:
        shutil.rmtree(place[0], ignore_errors=True)
    return dict(judge(program, outcomes), seconds=round(time.monotonic() - begin, 1))


# ---- the suites ----

def table(suite, name, data):
    return data.get(suite, {}).get(name, {})


def with_table(program, data):
    """What programs.json says of it, instead of what the rules say."""
    own = table(program.suite, program.name, data)
    program.skip = own.get("skip", program.skip)
    program.right = own.get("right", program.right)
    program.given = own.get("input", program.given)
    program.edits = tuple(map(tuple, own.get("edits", program.edits)))
    program.true = tuple((one["finding"], one["why"]) for one in own.get("true", []))
    program.options += [part for macro in own.get("define", []) for part in ("-D", macro)]
    if "arguments" in own:
        program.runs = [shlex.split(text) for text in own["arguments"]]
    return program


INDIGO_BUGS = {"boundsBug": ("out-of-bounds", "uninitialised", "crash"), "syncBug": (*RACES, "uninitialised")}


def indigo_grid(name, nodes, threads=256):
    """As many blocks as give each vertex its thread, warp or block, and some more."""
    per_block = 1 if "_block" in name else threads // 32 if "_warp" in name else threads
    return threads, nodes // per_block + 2


def indigo(checkout, data):
    """Indigo's generated codes: the file's name has the planted bugs, a comment their lines."""
    header = min(checkout.rglob("indigo_cuda.h"), key=lambda file: "include" not in file.parent.name)
    graphs = {}  # of each kind the smallest with at least 50 vertices; in one kind the last vertex has no neighbour
    for file in sorted(checkout.rglob("*.egr")):
        nodes, = struct.unpack("i", file.read_bytes()[:4])
        kind = file.name.split("_")[0]
        if nodes >= 50 and (kind not in graphs or graphs[kind][0] > nodes):
            graphs[kind] = nodes, file
    chosen = [graphs[kind] for kind in sorted(graphs)]
    # HiRace's artifact has a second, instrumented copy of each.
    for source in sorted(file for file in checkout.rglob("*.cu") if "test_kernel" in (text := file.read_text())
                         and "_hirace" not in file.name and "verify_result" in text):
        bugs = re.findall(r"_((?:atomic|guard|race|sync|bounds)Bug)", source.stem)
        rows = source.read_text().split("\n")
        lines = {number + more for number, row in enumerate(rows, 1) if re.search(r"// \w+Bug here", row)
                 and "boundsBug" not in row for more in (1, 2, 3)}
        runs = [[str(file), *map(str, indigo_grid(source.stem, nodes))] for nodes, file in chosen]
        # Which of two racing pairs is reported says nothing of the two planted ones: one race is enough for them.
        wanted = {INDIGO_BUGS.get(bug, ("race",)) for bug in bugs}
        yield Program("indigo", source.stem, [source], "bug" if bugs else "clean", ["-I", str(header.parent)], runs,
                      wanted=tuple(sorted(wanted)), lines=tuple(lines))


def scor(checkout, data):
    """ScoR: a microbenchmark's name says whether it races, a benchmark does with -D RACEY."""
    for source in sorted(checkout.glob("microbenchmarks/src/*.cu")):
        race = source.stem.startswith("race")
        yield Program("scor", source.stem, [source], "bug" if race else "clean", wanted=(("race",),) if race else (),
                      judged=RACES)
    for folder in sorted(path.parent for path in checkout.glob("benchmarks/*/Makefile")):
        # The main file of some includes the kernels, of others it does not.
        text = (folder / "Makefile").read_text()
        names = re.search(r"FILES\s*:=(.*)", text)[1].split()
        for racey in ("", " RACEY"):
            given = scor_input(folder.name)
            yield Program("scor", folder.name + racey, [folder / name for name in names], "bug" if racey else "clean",
                          ["-D", "NBLOCKS=4", "-D", "NTHREADS=64", *(["-D", "RACEY"] if racey else [])],
                          given=given, wanted=(("race",),) if racey else (), judged=RACES)


def scor_input(name):
    """A small input in the format that the program reads."""
    pairs = lambda n: " ".join(f"{i % 60} {(7 * i + 1) % 60}" for i in range(n))
    numbers = lambda n: " ".join(str(i % 5) for i in range(n))
    return {"1dconv": f"9 600 {numbers(609)}", "graph-coloring": f"60 300 {pairs(300)}",
            "graph-connectivity": f"60 300 {pairs(300)}", "matrix-multiplication": f"4 40 4 {numbers(320)}",
            "reduction": f"1024 {numbers(1024)}", "rule-110": f"512 4 {' '.join(str(i % 2) for i in range(512))}",
            "uts": "4 3 7"}.get(name, "") + "\n"


MOST_THREADS = 1 << 16  # of a grid


def at_most(most, shape):
    """The three extents that a text such as [64,2] names, the largest halved until their product is small enough."""
    extents = ([int(n) for n in re.findall(r"\d+", shape)] + [1, 1])[:3]
    while math.prod(extents) > most:
        extents[extents.index(max(extents))] //= 2
    return extents


def gpuverify(checkout, data):
    """GPUVerify's CUDA tests: kernels without a host, whose first lines say what is expected and for which grid."""
    for source in sorted(checkout.glob("testsuite/CUDA/**/*.cu")):
        text = source.read_text(errors="replace")
        name = str(source.parent.relative_to(checkout / "testsuite/CUDA"))
        if source.stem != "kernel":
            name += "/" + source.stem
        expected = text.split("\n")[0].lstrip("/").strip().lower()
        block, grid = (re.search(rf"--{what}=(\[[\d,]+\]|\d+)", text) for what in ("blockDim", "gridDim"))
        kernels = re.findall(r"__global__\s+(?:\w+\s+)*?void\s+(?:\w+\s+)*?(\w+)\s*\(([^)]*)\)", text)
        program = Program("gpuverify", name, [HERE / "bare_kernel.cu"], "clean" if expected == "pass" else "bug",
                          wanted=((*RACES, "failed kernel", "out-of-bounds", "crash"),) if expected != "pass" else (),
                          judged=(*RACES, "failed kernel", "out-of-bounds", "crash"))
        if expected not in ("pass", "xfail:not_all_verified"):
            program.skip = f"tests GPUVerify's front end ({expected})"
        elif not kernels or not block or not grid:
            program.skip = "no kernel"
        else:
            kernel, parameters = kernels[-1]
            # An expectation may name the values that show the bug.
            values = dict([*re.findall(r"__requires\((\w+) == (\w+)\b", text)[::-1],
                           *re.findall(r"^//\s*(\w+) = (\d+)\s*$", text, re.MULTILINE)])
            names = [re.findall(r"\w+", re.sub(r"\[.*", "", one))[-1] for one in parameters.split(",") if one.strip(" \n")]
            threads = at_most(1024, block[1])  # more than CUDA has
            blocks = at_most(max(16, MOST_THREADS // math.prod(threads)), grid[1])
            values = {one: str(threads[0]) if value == "blockDim" else value for one, value in values.items() if value != "tid"}
            given = "".join(", " + values.get(one, "bare::any") for one in names)
            macros = {"KERNEL_FILE": f'"{source}"', "KERNEL": kernel, "KERNEL_GIVEN": given,
                      "KERNEL_BLOCK": ",".join(map(str, threads)), "KERNEL_GRID": ",".join(map(str, blocks))}
            # GPUVerify includes these itself.
            macros.update({macro: "1" for word, macro in (("cooperative_groups", "KERNEL_GROUPS"), ("grid_group", "KERNEL_GRID_GROUP"),
                                                    ("curand", "KERNEL_CURAND"))
                           if word in text})
            extra = re.findall(r"-D\s?(\w+=\w+)", text.split("\n")[1])
            program.options = [part for key, value in macros.items() for part in ("-D", f"{key}={value}")]
            program.options += [part for one in extra for part in ("-D", one)]
            # With a pointer, or derived from one that has it.
            structures = re.findall(r"(?:struct|class)\s*(\w*)[^{;]*\{[^}]*\*[^}]*\}\s*(\w*)", text)
            bad = {word for pair in structures for word in pair if word}
            bad |= {derived for derived, base in re.findall(r"(?:struct|class)\s+(\w+)\s*:\s*(?:public\s+)?(\w+)", text)
                    if base in bad}
            types = {word for one in parameters.split(",") if "*" not in one for word in re.findall(r"\w+", one)}
            if re.search(r"__axiom\((block|thread)Idx", text):
                program.skip = "an axiom leaves out blocks that run"
            if types & bad:
                program.skip = "a parameter is a structure with a pointer, which no rule fills"
            open_ones = [one for one, text in zip(names, parameters.split(",")) if one not in values and "*" not in text]
            program.runs = [["64"], ["1"], ["0"]] if open_ones else [["1"]]
            # All the same, and in turn where no precondition speaks of them.
            if len(open_ones) > 1 and not re.search(rf"__requires\([^;]*\b({'|'.join(open_ones)})\b", text):
                program.runs.append(["64", "0"])
        yield program


def sanitizer(checkout, data):
    """compute-sanitizer's samples: what each has is in programs.json."""
    for name, own in sorted(data.get("sanitizer", {}).items()):
        source = checkout / f"{name}.cu"
        if not source.exists():
            raise SystemExit(f"{checkout} has no {name}.cu")
        yield Program("sanitizer", name, [source], "bug", wanted=tuple(map(tuple, own["wanted"])))


def makefile(text):
    """The variables of a Makefile without continued lines, as far as a list of sources and flags needs them."""
    values, taken = {}, [True]
    expand = lambda text: re.sub(r"\$[({](\w+)[)}]", lambda match: values.get(match[1], ""), text)
    for row in text.split("\n"):
        row = re.sub(r"(^|\s)#.*", "", row)
        equal = re.match(r"\s*(ifn?eq) \((.*),(.*)\)", row)
        if equal:
            same = expand(equal[2]).strip() == expand(equal[3]).strip()
            taken.append(taken[-1] and same == (equal[1] == "ifeq"))
        elif re.match(r"\s*ifn?def", row):
            taken.append(taken[-1] and row.strip().startswith("ifndef"))
        elif re.match(r"\s*else", row) and len(taken) > 1:
            taken[-1] = taken[-2] and not taken[-1]
        elif re.match(r"\s*endif", row) and len(taken) > 1:
            taken.pop()
        elif taken[-1] and (match := re.match(r"(\w+)\s*([:?+]?)=\s*(.*)", row)):
            value = expand(match[3]).strip()
            values[match[1]] = f"{values.get(match[1], '')} {value}" if match[2] == "+" else value
    return values


def small(arguments):
    """The arguments of a Makefile's run made small: the last number counts repetitions; sizes are halved."""
    at = [i for i, one in enumerate(arguments) if re.fullmatch(r"\d+", one)]
    most = 64 if sum(int(arguments[i]) > 64 for i in at[:-1]) > 2 else 256
    out = list(arguments)
    for i in at:
        value = int(arguments[i])
        while value > most and value % 2 == 0:
            value //= 2
        out[i] = str(value if value <= 4 * most else most)
    if at:
        out[at[-1]] = "1"
    return out


def hecbench_files(name):
    """Small inputs in the formats of those that are not in the repository."""
    noise = lambda i: (7919 * i + 104729) % 997 / 997
    rows = lambda n, row: "".join(row(i) + "\n" for i in range(n)).encode()
    return {
        "d2q9-bgk": lambda: {"parameters": b"128\n32\n4\n10\n0.1\n0.005\n1.7\n", "obstacles": rows(128, lambda i: f"{i} 0 1")},
        "deredundancy": lambda: {"reads": rows(60, lambda i: f">{i}\n" + "".join(
            "ACGT"[int(4 * noise(97 * (i % 40) + j))] for j in range(80 + i)))},
        "gd": lambda: {"points": rows(200, lambda i: f"{1 if noise(i) > 0.5 else -1} " + " ".join(
            f"{j + 1}:{noise(31 * i + j):.4f}" for j in range(i % 3, 40, 3)))},
        "geodesic": lambda: {"cities": rows(512, lambda i: f"{180 * noise(i) - 90:.4f} {360 * noise(3 * i + 1) - 180:.4f}")},
        "henry": lambda: {"crystal": b"25.8 25.8 25.8\n-\n48\n-\n" + rows(48, lambda i: f"{i} {'Zn O C H'.split()[i % 4]} " + " ".join(
            f"{noise(3 * i + axis):.4f}" for axis in range(3)))},
        "kmeans": lambda: {"points": rows(200, lambda i: f"{i} " + " ".join(
            f"{noise(5 * i + j) + 2 * (i % 4 == j % 4):.4f}" for j in range(8)))},
        "mpc": lambda: {"trace": struct.pack("<4096d", *(100 + math.sin(i / 50) + noise(i) / 1000 for i in range(4096)))},
        "nn": lambda: {"list": b"records\n", "records": rows(200, lambda i: f"{i:<28}{60 * noise(i):5.1f}{150 * noise(3 * i):5.1f}{'':10}")},
        "recursiveGaussian": lambda: {"image.ppm": b"P6\n64 48\n255\n" + bytes(int(255 * noise(i)) for i in range(64 * 48 * 3))},
    }.get(name, dict)()


def hecbench(checkout, data):
    """HeCBench: sources, flags and the run from each Makefile, which may lie in a folder of the program if there is but one;
    the programs check their results themselves."""
    for folder in sorted(checkout.glob("src/*-cuda")):
        name = folder.name[:-len("-cuda")]
        makefiles = [folder / "Makefile"] if (folder / "Makefile").exists() else list(folder.rglob("Makefile"))
        file = makefiles[0] if len(makefiles) == 1 else folder / "Makefile"
        folder = file.parent
        program = Program("hecbench", name, [], "own", home=folder, files=hecbench_files(name))
        text = re.sub(r"\\\n", " ", file.read_text(errors="replace")) if file.exists() else ""
        values = makefile(text)
        named = next((values[key] for key in ("source", "SOURCE", "SOURCES", "sources", "SRC", "SRCS", "src") if key in values), "")
        listed = [(folder / one).resolve() for one in named.split() if re.search(r"\.(cu|cpp|cc|cxx|c)$", one)]
        paths = [folder, *((folder / one[2:]).resolve() for one in " ".join(values.values()).split() if one.startswith("-I"))]
        places = lambda one: [at / f"{one}.{kind}" for at in paths for kind in ("cu", "cpp", "cc", "c") if (at / f"{one}.{kind}").is_file()]
        listed = listed or [place for one in re.findall(r"(\w+)\.o\b", values.get("obj", "")) for place in places(one)[:1]]
        every = [one for kind in ("cu", "cpp", "cc", "c") for one in sorted(folder.glob(f"*.{kind}"))]
        program.sources = listed or every or sorted(folder.glob("src/*.cu"))
        flags = " ".join(values.values()).split()
        program.options = [part for one in dict.fromkeys(flags) if (match := re.fullmatch(r"-([DI])(.+)", one))
                           for part in (f"-{match[1]}", str((folder / match[2]).resolve()) if match[1] == "I" else match[2])]
        program.options += ["-Xcompiler=-fopenmp"] if "-fopenmp" in text else []
        called = re.search(r"^run:.*\n(?:\t.*\n)*?\t.*?(?:\$\(program\)|(?<!\.)\./\w+)(.*)", text + "\n", re.MULTILINE)
        program.runs = [small(re.split(r"[>|;&]", called[1])[0].replace('"', "").split())] if called else [[]]
        missing = [one.name for one in program.sources if not one.is_file()]
        if not text:
            program.skip = "has no Makefile of its own"
        elif not program.sources or missing:
            program.skip = f"no such source in the checkout: {', '.join(missing) or 'none named'}"
        yield program


def cuda_samples(checkout, data):
    """cuda-samples: sources from each CMakeLists.txt; a sample ends with 0 if its result is right."""
    for file in sorted(checkout.glob("Samples/*/*/CMakeLists.txt")):
        folder, text = file.parent, re.sub(r"#.*", "", file.read_text(errors="replace"))
        target = re.search(r"add_executable\(\s*\S+([^)]*)\)", text)
        names = [one for one in target[1].split() if re.search(r"\.(cu|cpp|c|cc)$", one)] if target else []
        program = Program("cuda-samples", folder.name, [folder / one for one in names], "own",
                          ["-I", str(checkout / "Common"), *["-Xcompiler=-fopenmp"] * ("OpenMP" in text)])
        if not names:
            program.skip = "no program: " + ("for another platform" if "7_" not in str(folder) else "libNVVM")
        yield program


SUITES = {"indigo": indigo, "gpuverify": gpuverify, "scor": scor, "sanitizer": sanitizer, "hecbench": hecbench,
          "cuda-samples": cuda_samples}
TITLES = {"indigo": "Indigo", "gpuverify": "GPUVerify's tests", "scor": "ScoR", "sanitizer": "compute-sanitizer's samples",
          "hecbench": "HeCBench", "cuda-samples": "cuda-samples"}


def drawn(programs, every, first):
    """Each `every`-th program in the order of the names, from number `first` on, which counts from 1."""
    return list(programs)[first - 1::every]


# ---- the table ----

def of(ones, test):
    return f"{sum(map(bool, map(test, ones)))} of {len(ones)}" if ones else "-"


def row_of(suite, text, records):
    ran = [one for one in records.values() if one["verdict"] != "not run"]
    bugs = [(kinds, found) for one in ran for kinds, found in one["bugs"].items()]
    by_kind = {}
    for kinds, found in bugs:
        by_kind.setdefault(kinds.split("/")[0], []).append(found)
    more = ", ".join(f"{kind} {of(by_kind[kind], bool)}" for kind in sorted(by_kind))
    own = [one for one in ran if one["truth"] == "own"]
    silent = sum(one["verdict"] == "right" and one["right"] is None for one in own)
    seconds = sorted(one["seconds"] for one in ran)
    return [TITLES[suite], text, of(ran, lambda one: one["built"]), of(ran, lambda one: one["ran"]),
            of(own, lambda one: one["verdict"] == "right") + (f" ({silent} say nothing)" if silent else ""),
            of(bugs, lambda one: one[1]) + (f" ({more})" if len(by_kind) > 1 else ""),
            of([one for one in ran if one["truth"] == "clean"], lambda one: one["verdict"] == "false alarm"),
            str(sum(one["verdict"] == "refused" for one in ran)), f"{seconds[len(seconds) // 2]:.0f} s" if seconds else "-"]


HEAD = ["suite", "drawn", "built", "ran", "right", "bugs found", "false alarms", "refused by name", "median"]


def drawn_text(rules, records):
    """The rules without those that another one covers, and how many programs they draw."""
    numbers = {rule: tuple(map(int, rule.split("/"))) for rule in rules}
    covers = lambda a, b: a != b and b[0] % a[0] == 0 and (b[1] - a[1]) % a[0] == 0
    kept = [rule for rule in rules if not any(covers(other, numbers[rule]) for other in numbers.values())]
    names = {name for rule in rules for name in rules[rule]}
    text = "; ".join("all" if rule == "1/1" else "1 in {} from number {}".format(*numbers[rule]) for rule in kept)
    done = sum(name in records for name in names)
    return f"{text}: {done}" + (f" of {len(names)} so far" if done < len(names) else "")


def write_table(document, out, data):
    rows = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    for suite in SUITES:
        records = document["results"].get(suite, {})
        if records:
            rows.append("| " + " | ".join(row_of(suite, drawn_text(document["rules"].get(suite, {}), records), records)) + " |")
    rows += ["", "| not as it should be | |", "|---|---|"]
    for suite in SUITES:
        for name, one in sorted(document["results"].get(suite, {}).items()):
            if one["verdict"] not in AS_IT_SHOULD_BE:
                reason = table(suite, name, data).get("reason") or one["reason"]
                text = re.sub(r"[|\n]", " ", reason)
                rows.append(f"| {TITLES[suite]}: {name} | {one['verdict']}: {text} |")
    out.write_text("\n".join(rows) + "\n")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    for name, what in (("indigo", "HiRace's artifact or a generated IndigoSuite"), ("gpuverify", "mc-imperial/gpuverify"),
                       ("scor", "csl-iisc/ScoR"), ("hecbench", "zjin-lcf/HeCBench"), ("cuda-samples", "NVIDIA/cuda-samples"),
                       ("sanitizer-samples", "NVIDIA/compute-sanitizer-samples")):
        parser.add_argument(f"--{name}", type=Path, metavar="DIR", help=f"checkout of {what}")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--from", type=int, default=1, metavar="K", dest="first")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=int, default=180, metavar="SECONDS", help="of one run of ./run check; more on a busy machine")
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="results; those in it are not run again")
    parser.add_argument("--table", type=Path, metavar="FILE", help="Markdown")
    parser.add_argument("--again", metavar="PATTERN", help="run these again whose suite/name matches")
    options = parser.parse_args(argv)
    options.build = str(Path(options.build).resolve())
    data = json.loads((HERE / "programs.json").read_text())
    # A tree without .git is named by COOKBOOK_COMMIT, as for tests/gpu.sh.
    commit = os.environ.get("COOKBOOK_COMMIT") or subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"],
                                                                 capture_output=True, text=True).stdout
    document = json.loads(options.json.read_text()) if options.json.exists() else {"results": {}, "rules": {}}
    os.environ.setdefault("JOBS", str(max(1, (os.cpu_count() or 1) // options.jobs)))
    for suite, programs_of in SUITES.items():
        checkout = getattr(options, {"sanitizer": "sanitizer_samples"}.get(suite, suite).replace("-", "_"))
        if checkout is None:
            continue
        programs = [with_table(one, data) for one in drawn(programs_of(checkout.resolve(), data), options.every, options.first)]
        records = document["results"].setdefault(suite, {})
        document["rules"].setdefault(suite, {})[f"{options.every}/{options.first}"] = [one.name for one in programs]
        todo = [one for one in programs if one.name not in records
                or options.again and re.search(options.again, f"{suite}/{one.name}")]
        with ThreadPoolExecutor(options.jobs) as pool:
            for program, record in zip(todo, pool.map(lambda one: run(one, options.build, options.limit), todo)):
                records[program.name], document["commit"] = record, commit[:8]
                options.json.write_text(json.dumps(document, indent=1) + "\n")
                print(f"{suite}/{program.name}: {record['verdict']}; {record['seconds']} s  {record['reason'][:160]}", flush=True)
    if options.table:
        write_table(document, options.table, data)
    return 0


if __name__ == "__main__":
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, end)
    sys.exit(main())
