#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""./run check: an ordinary CUDA program on the SIMT backend, without a GPU (docs/check.md).

Usage: check.py --build BUILD PROGRAM.cu [MORE.cu ...] [-I DIR] [-D NAME[=VALUE]] [options] [-- ARGUMENTS]
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import passes
from rewrite import HERE, NOTES, OWN, PROGRAM, Unsupported, foreign_header, rewrite, source_line

ROOT = Path(__file__).resolve().parents[2]
QUIET = 20  # seconds of a traced run of which nothing is said
MOST_RUNS = 4  # to see whether undefined values matter
# Beside all ones, what a shuffle of an absent lane returns: a minimum shows zero, a maximum a large number of every type.
ABSENT_VALUES = ("0", "7f7f7f7f7f7f7f7f")
CLEAN, FOUND, CANNOT, CRASHED = 0, 1, 2, 3
RUNNING = {}  # processes, each in a session of its own, and the signal that ends it


class CannotCheck(Exception):
    """The message is one line, or g++'s."""


def short(path):
    """A path as the reader would type it."""
    try:
        # Whichever is shorter: nobody types ../../../tmp/prog.cu.
        return min(os.path.relpath(path, os.environ.get("COOKBOOK_CALLER", os.getcwd())), str(path), key=len)
    except ValueError:
        return str(path)


# ---- compiling ----

# Of the C library, which counts nothing: the tracer's functions of these names do.
COPIES = ("memcpy", "memmove", "memset", "memcmp")


def is_host_source(source):
    """nvcc compiles a .cpp without CUDA's words; with them it was meant for -x cu."""
    return source.suffix != ".cu" and not re.search(r"<<<|__global__|__device__", source.read_text(errors="replace"))


class Compiler:
    def __init__(self, build, options, openmp):
        self.build = Path(build)
        flags = json.loads((self.build / "check.json").read_text())
        self.command = [flags["compiler"]]
        self.common = flags["common"]
        self.modes = {"plain": flags["plain"], "traced": flags["traced"]}
        if openmp:
            self.common.append("-fopenmp")
        self.link = {mode: flags[f"link_{mode}"] + ["-fopenmp"] * openmp for mode in self.modes}
        self.options = options
        self.environment = dict(os.environ, LC_ALL="C")
        self.host_sides = set()  # (file, line) where a __host__ __device__ function asks __CUDA_ARCH__

    def run(self, arguments):
        process = subprocess.Popen(self.command + arguments, env=self.environment, stdin=subprocess.DEVNULL, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace", start_new_session=True)
        RUNNING[process] = signal.SIGTERM  # g++ then removes its temporary files
        try:
            out, err = process.communicate()
        finally:
            process.wait()  # nothing waits for it if this thread was told to end
            RUNNING.pop(process)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def preprocess(self, source):
        """The source with headers and macros expanded, as both passes of nvcc see it."""
        host = self.expand(source)
        if not passes.asks(host):
            return host
        text, sides = passes.merge(host, self.expand(source, passes.architecture(os.environ)))
        self.host_sides |= set(sides)
        return text

    def expand(self, source, macros=()):
        include = PROGRAM / "include"
        # What nvcc gives to the host compiler knows of CUDA what it includes.
        first = ["-DCOOKBOOK_HOST_SOURCE"] if is_host_source(source) else ["-include", str(include / "cuda_runtime.h")]
        done = self.run(["-E", "-x", "c++", *self.common, "-isystem", str(include), "-isystem", str(ROOT), *first, *macros,
                         *self.options, str(source)])
        if done.returncode != 0:
            raise CannotCheck(self.explain_preprocessor(done.stderr))
        return done.stdout

    @staticmethod
    def explain_preprocessor(stderr):
        missing = re.search(r"^(.*?):(\d+):\d+: fatal error: (\S+): No such file", stderr, re.MULTILINE)
        if not missing:
            return stderr.rstrip()
        file, line, header = missing.groups()
        what = foreign_header(header)
        if what:
            return f"{short(file)}:{line}: {what} is not supported (it includes <{header}>)"
        return f"{short(file)}:{line}: there is no header '{header}' (-I names a folder to look in)"

    def compile(self, text, mode, target):
        """Compiles the rewritten text if it is new. Returns the lines that ignore an error code."""
        arguments = [*self.common, *self.modes[mode]]
        digest = hashlib.sha256(json.dumps([self.command, arguments, text]).encode()).hexdigest()
        stamp, warned = target.with_suffix(".sha"), target.with_suffix(".warned")
        if target.exists() and stamp.exists() and stamp.read_text() == digest:
            return json.loads(warned.read_text())
        stamp.unlink(missing_ok=True)
        preprocessed = target.with_suffix(".ii")
        preprocessed.write_text(text)
        done = self.run(["-fpreprocessed", "-x", "c++", *arguments, "-fdiagnostics-format=json", "-c",
                         str(preprocessed), "-o", str(target)])
        diagnostics = parse_diagnostics(done.stderr)
        if done.returncode != 0:
            raise CannotCheck(explain_errors(diagnostics) or done.stderr.strip())
        if mode == "traced":
            subprocess.run(["objcopy", *(f"--redefine-sym={name}=__tsan_{name}" for name in COPIES), str(target)], check=True)
        ignored = sorted({(d["file"], d["line"], d["function"]) for d in diagnostics if d["function"]})
        warned.write_text(json.dumps(ignored))
        stamp.write_text(digest)
        return ignored

    def link_program(self, objects, mode, target):
        libraries = self.link[mode]
        inputs = [*objects, *(Path(name) for name in libraries if name.endswith(".a"))]
        if target.exists() and all(target.stat().st_mtime_ns > path.stat().st_mtime_ns for path in inputs):
            return
        linked = target.with_name(f"{target.name}.{os.getpid()}")  # an interrupted link leaves no half of a program
        try:
            done = self.run([*map(str, objects), "-o", str(linked), *libraries])
            if done.returncode == 0:
                linked.replace(target)
        finally:
            linked.unlink(missing_ok=True)
        if done.returncode != 0:
            wanted = sorted(set(re.findall(r"undefined reference to `([^']+)'", done.stderr)))
            if wanted:
                raise CannotCheck("nothing defines " + ", ".join(wanted) + " (name every source file of the program)")
            raise CannotCheck(done.stderr.strip())


def parse_diagnostics(text):
    """g++'s errors, and its warnings about error codes that nobody looks at."""
    found = []
    for row in text.splitlines():
        if not row.startswith("["):
            continue
        try:
            entries = json.loads(row)
        except json.JSONDecodeError:
            continue
        for entry in entries:
            caret = entry["locations"][0]["caret"] if entry["locations"] else {"file": "", "line": 0}
            ignored = re.match(r"ignoring return value of '.*?(\w+)\(.*declared with attribute 'nodiscard'",
                               entry["message"])
            if entry["kind"] not in ("error", "fatal error") and not ignored:
                continue
            found.append({"kind": entry["kind"], "file": caret["file"], "line": caret["line"],
                          "message": entry["message"], "function": ignored[1] if ignored else "",
                          "notes": [(c["locations"][0]["caret"], c["message"])
                                    for c in entry.get("children", []) if c.get("locations")]})
    return found


def explain_errors(diagnostics):
    """What g++ said; in one line what the backend does not have."""
    rows, unsupported = [], []
    for entry in diagnostics:
        if not entry["kind"].endswith("error"):
            continue
        # In a header of the backend: the program's line is where it came from.
        callers = [caret for caret, _ in entry["notes"] if not caret["file"].startswith(OWN)]
        if entry["file"].startswith(OWN) and callers:
            entry = dict(entry, file=callers[0]["file"], line=callers[0]["line"])
        place = f"{short(entry['file'])}:{entry['line']}"
        refused = re.search(r"declared with attribute error: (inline PTX: .*)", entry["message"])
        if refused:
            unsupported.append(f"{place}: {refused[1]}")
            continue
        of_library = re.match(r"(?:no (?:type|template) named )?'(?:\w+ )?(\w+)' (?:is not a member of|has not been declared in|in namespace) "
                              r"'(cg|cooperative_groups|cub|thrust|cuda|nvcuda)(?:::\w+)*'", entry["message"])
        if of_library:
            unsupported.append(f"{place}: {of_library[2]}::{of_library[1]} is not supported")
            continue
        unknown = re.match(r"'(\w+)' (?:was not declared|is not a member|has not been declared|does not name a type)",
                           entry["message"])
        if unknown and re.match(r"cu|__|tex|surf|nv|atomic|make_|h2?[a-z]+\d*$", unknown[1]):
            unsupported.append(f"{place}: {unknown[1]} is not supported")
            continue
        rows.append(f"{place}: error: {entry['message']}")
        text = source_line(entry["file"], entry["line"]).strip()
        if text:
            rows.append(f"    {text}")
    return "\n".join(dict.fromkeys(unsupported or rows[:12]))


def build_program(compiler, sources, folder, jobs):
    """The plain and the traced executable, and the calls whose error codes nobody looks at."""
    folder.mkdir(parents=True, exist_ok=True)
    programs, ignored = {}, set()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        texts = list(pool.map(compiler.preprocess, sources))
        work = []
        for mode in ("plain", "traced"):
            for number, text in enumerate(texts):
                target = folder / f"{number}-{mode}.o"
                work.append((mode, target, pool.submit(compiler.compile, rewrite(text, mode == "traced"), mode,
                                                       target)))
        try:
            for _, _, future in work:
                ignored |= {tuple(entry) for entry in future.result()}
        finally:
            for _, _, future in work:
                future.cancel()
        for mode in ("plain", "traced"):
            programs[mode] = folder / f"program-{mode}"
            compiler.link_program([target for m, target, _ in work if m == mode], mode, programs[mode])
    return programs, sorted(ignored)


# ---- running ----

def run_program(program, arguments, report, limit, quiet, stdin, caller, budget):
    """(exit status or minus the signal, the last lines of standard error, the report or None, whether it hung, seconds)"""
    environment = dict(os.environ, COOKBOOK_CHECK_REPORT=str(report), COOKBOOK_TIME_LIMIT=str(limit), **budget)
    report.unlink(missing_ok=True)
    sys.stdout.flush()
    process = subprocess.Popen([str(program), *arguments], env=environment, cwd=caller,
                               stdin=subprocess.PIPE if stdin is not None else None,
                               stdout=subprocess.DEVNULL if quiet else None, stderr=subprocess.PIPE,
                               start_new_session=True)
    RUNNING[process] = signal.SIGKILL
    last, begin = [], time.monotonic()

    def forward():
        for row in process.stderr:
            last.append(row.decode(errors="replace").rstrip("\n"))
            del last[:-50]
            if not quiet and not last[-1].startswith("error: "):
                sys.stderr.write(last[-1] + "\n")

    thread = threading.Thread(target=forward, daemon=True)
    thread.start()
    hung = False
    try:
        if stdin is not None:
            try:
                process.stdin.write(stdin)
                process.stdin.close()
            except BrokenPipeError:
                pass
        # The watchdog of the backend ends a kernel that hangs; this ends a host that does.
        process.wait(timeout=10 * limit if limit else None)
    except subprocess.TimeoutExpired:
        hung = True
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        RUNNING.pop(process)
    thread.join(timeout=5)
    result = None
    if report.exists():
        result = json.loads(report.read_text(errors="replace"))
    return process.returncode, last, result, hung, time.monotonic() - begin


def progress_of(report):
    """(launches that have ended, seconds of those that are traced, of others): of a run that may be under way"""
    file, form = Path(f"{report}.progress"), "=Qdd"
    data = file.read_bytes() if file.exists() else b""
    return struct.unpack(form, data) if len(data) == struct.calcsize(form) else (0, 0.0, 0.0)


TYPICAL, UNTRACED = 100, 3  # times as long as in the plain run: a traced launch, and another one of the traced run


def estimate(times, progress):
    """Seconds of CPU time that the kernels of the traced run take in all, from the plain run's and what the traced one has done."""
    done, traced, other = progress
    parts = lambda rows, of: sum(seconds * of(part) for seconds, part in rows)
    other_plain = parts(times[:done], lambda part: part == 0)
    slower = other / other_plain if other_plain > 1e-3 else UNTRACED
    looked_at = parts(times[:done], lambda part: part)
    rest = parts(times[:done], lambda part: (1 - part) if part else 0)
    factor = max(1, (traced - slower * rest) / looked_at) if looked_at > 1e-3 else TYPICAL
    return traced + other + parts(times[done:], lambda part: part * factor + (1 - part) * slower)


def sizes_of(arguments):
    """The numbers among the program's arguments and macros that may be its size."""
    number = lambda text: text.isdigit() and int(text) >= 32
    return [f"-D {macro}" for macro in arguments.D if number(macro.partition("=")[2])] + \
        [f"the argument {text}" for text in arguments.given if number(text)]


def estimate_text(times, progress, sizes):
    """What to do about a traced run that is too slow; it should take about ten seconds."""
    done, all_launches = progress[0], len(times)
    if done >= all_launches:
        return "All launches had ended: it is host code that takes the time"
    seconds = estimate(times, progress)
    text = f"{done} of {all_launches} launches had ended, and all would take about {seconds:.0f} s of a CPU. "
    text += f"Make the work {max(2, round(seconds / 10))} times smaller"
    return text + (f" ({sizes[0]})" if len(sizes) == 1 else "")


# ---- the report ----

def ideal(site):
    return (site["ideal_sectors"], "sectors") if site["space"] == "global" else (site["ideal_wavefronts"], "wavefronts")


def costly_lines(sites):
    """(file, line, text) of accesses that take at least twice what their bytes need, worst first."""
    found = []
    for site in sites:
        least, unit = ideal(site)
        taken = site[unit]
        if site["op"] == "atomic" or least == 0 or taken < 2 * least or site["buffer"].startswith("array "):
            continue  # how an array lies in memory, nobody knows
        per, needed = taken / site["requests"], least / site["requests"]
        name = f" of '{site['buffer']}'" if site["buffer"] else ""
        why = "uncoalesced" if unit == "sectors" else "bank conflict"
        found.append((taken - least, site["file"], site["line"],
                      f"{why}: a {site['op']}{name} takes {per:.1f} {unit} per request where {needed:.1f} would do"))
    found.sort(key=lambda entry: (-entry[0], entry[1:]))
    rows, seen = [], set()
    for _, file, line, text in found:
        if (file, line, text) not in seen:
            seen.add((file, line, text))
            rows.append((file, line, text))
    return rows


def worst_requests(sites):
    """The requests of the lines that cost most above their ideal, at most six of each memory (docs/pictures.md)."""
    found = {"global": [], "shared": []}
    for site in sorted(sites, key=lambda site: ideal(site)[0] - site[ideal(site)[1]]):
        if site["worst"] is None or len(found[site["space"]]) == 6:
            continue
        worst, (least, unit), of = site["worst"], ideal(site), found[site["space"]]
        is_global = site["space"] == "global"
        of.append({"file": site["file"], "line": site["line"], "memory": site["space"], "operation": site["op"],
                   "source": source_line(site["file"], site["line"]).strip(), "bytes": site["bytes"],
                   "buffer": site["buffer"] if is_global else worst["start"], "rule": None if is_global else worst["rule"],
                   "block": worst["block"], "warp": worst["warp"], "addresses": worst["addresses"],
                   "counted": {unit: worst["units"], "ideal": worst["ideal"]},
                   "line_total": {"requests": site["requests"], unit: site[unit], "ideal": least}})
    return found["global"] + found["shared"]


def accesses(sites):
    """What each line of the program asks of memory, over all kernels."""
    found = {}
    for site in sites:
        least, unit = ideal(site)
        key = (site["file"], site["line"], site["space"], site["op"], site["buffer"])
        row = found.setdefault(key, {"file": site["file"], "line": site["line"], "memory": site["space"],
                                     "operation": site["op"], "buffer": site["buffer"], "requests": 0, unit: 0, "ideal": 0})
        for name, count in (("requests", site["requests"]), (unit, site[unit]), ("ideal", least)):
            row[name] += count
    return [found[key] for key in sorted(found)]


def unlooked_errors(report, ignored):
    """Failed calls whose error the program did not look at."""
    lines = {(os.path.realpath(file), line) for file, line, _ in ignored}
    rows = []
    for call in report["failed_calls"]:
        if call["looked_at"]:
            continue
        if call["is_launch"] or (os.path.realpath(call["file"]), call["line"]) in lines:
            place = f"{os.path.basename(call['file'])}:{call['line']}"
            text = f"{place}: {call['function']} failed and the program does not look: {call['message']}"
            rows.append(finding_of("unchecked error", text, "compare the call's result, or cudaGetLastError() after a "
                                   "launch, with cudaSuccess"))
    return rows


def crash_line(last, status, hung, limit):
    errors = [row[len("error: "):] for row in last if row.startswith("error: ")]
    if errors:
        return errors[-1]
    if hung:
        return f"still running after {10 * limit} s"
    if status < 0:
        return f"ended by signal {-status} ({signal.Signals(-status).name})"
    return f"ended with status {status} without returning from main"


def is_crash(status, result, hung):
    return hung or status < 0 or result is None or result["crash"] != ""


def kernel_and_kind(finding):
    """Of a finding in a kernel its name and the kind, of others only the kind."""
    kernel, is_of_kernel, _ = finding["cause"].partition(f"|{finding['kind']}|")
    return kernel if is_of_kernel else "", finding["kind"]


WAITS = ("a loop that waits for another thread must read by volatile, an atomic or cuda::atomic_ref, or the compiler may "
         "read once; and the one it waits for must not wait for it")
# Few programs look at what these return: only that they fail is worth a line.
RARELY_FAIL = {"cudaFree", "cudaFreeHost", "cudaFreeAsync", "cudaEventElapsedTime"}
FAILS_BY = (("out-of-bounds", "out of bounds"), ("out-of-bounds", "not mapped"), ("misaligned", "misaligned"),
            ("stack-overflow", "stack overflow"))


def one_per_cause(findings):
    """The findings without what merely follows from another one, and one for each kernel, kind and variable."""
    found = {kernel_and_kind(finding) for finding in findings}
    races = {finding["cause"].replace("|race|", "|uninitialised|") for finding in findings if finding["kind"] == "race"}
    kept = {}
    for finding in findings:
        kind, message = finding["kind"], finding["message"]
        # The access that made this kernel fail: itself, or by what it gave as an index.
        if kind == "failed kernel" and any((kernel_and_kind(finding)[0], why) in found and text in message
                                           for why, text in FAILS_BY):
            continue
        if kind == "uninitialised" and finding["cause"] in races:
            continue
        first = kept.setdefault(finding["cause"] or message, dict(finding, also=[]))
        if first["message"] != message:
            first["count"] += finding["count"]
            if finding["places"] not in (first["places"], *first["also"]):
                first["also"].append(finding["places"])
    for finding in kept.values():
        if finding["also"]:
            finding["message"] += "; likewise at " + ", ".join(finding["also"][:8]) + \
                (", ..." if len(finding["also"]) > 8 else "")
    return sorted(kept.values(), key=lambda finding: finding["kind"] == "leak")


def finding_of(kind, message, remedy=""):
    return {"kind": kind, "message": f"{kind}: {message}", "count": 1, "cause": "", "places": "", "remedy": remedy}


def collect(plain, traced, reverse, ignored, limit, leaks_count, hint):
    """What is printed and written as JSON."""
    out = {"status": None, "crashed": None, "findings": [], "notes": [], "costly": [], "accesses": [], "requests": [],
           "explanation": ""}
    status, last, result, hung, _ = plain
    crashed = is_crash(status, result, hung)
    found = []
    if traced:
        traced_status, traced_last, traced_result, traced_hung, traced_seconds = traced
        if is_crash(traced_status, traced_result, traced_hung) and not crashed:
            text = crash_line(traced_last, traced_status, traced_hung, limit)
            if traced_hung or "no thread has finished" in text:
                out["notes"].append(f"the traced run was cut short after {traced_seconds:.0f} s: what it had not reached is not "
                                    f"checked. {hint}, or choose a longer --time-limit")
            else:
                found.append(finding_of("crash", f"the traced run ended early: {text}"))
        if traced_result:
            found += traced_result["findings"]
            for kind in ("nan", "infinity"):
                if not traced_result[f"{kind}_copied"]:
                    out["notes"] += [f["message"] for f in found if f["kind"] == kind]
                    found = [f for f in found if f["kind"] != kind]
            out["notes"] += traced_result["advice"]
            out["explanation"] = traced_result["explanation"]
            out["costly"] = costly_lines(traced_result["sites"])
            out["accesses"] = accesses(traced_result["sites"])
            out["requests"] = worst_requests(traced_result["sites"])
    traced_kinds = {kernel_and_kind(finding) for finding in found}
    if crashed:
        out["crashed"] = crash_line(last, status, hung, limit)
        found.append(finding_of("crash", out["crashed"], WAITS if "no thread has finished" in out["crashed"] else ""))
    else:
        out["status"] = status
        seen = {finding["message"] for finding in found}
        for finding in result["findings"]:
            # The traced run names the line of what the plain one only sees afterwards. But a kernel that failed there
            # keeps it from the next ones.
            if finding["message"] in seen or (kernel_and_kind(finding) in traced_kinds and finding["kind"] != "leak"):
                continue
            found.append(finding)
        found += unlooked_errors(result, ignored)
        for call in result["failed_calls"]:
            if call["looked_at"] or not call["is_launch"]:
                out["notes"].append(f"{os.path.basename(call['file'])}:{call['line']}: {call['function']} failed: "
                                    f"{call['message']}")
        if status != 0:
            if found:
                out["notes"].append(f"the program ended with status {status}")
            else:
                found.append(finding_of("exit status", f"the program ended with status {status}"))
    if reverse and not crashed:
        reverse_status, reverse_last, reverse_result, reverse_hung, _ = reverse
        said = [f["message"] for f in reverse_result["findings"]] if reverse_result else \
            [crash_line(reverse_last, reverse_status, reverse_hung, limit)]
        text = next((row for row in said if "no progress" in row or "no thread has finished" in row), "")
        if reverse_hung or text:
            found.append(finding_of("hang", "with the blocks started in reversed order, which CUDA permits, the "
                                    f"program does not end: {text}",
                                    "a block may wait only for one that has started: let each take its number by "
                                    "atomicAdd() on a counter instead of blockIdx"))
        elif reverse_result and reverse_result["copied"] != result["copied"]:
            out["notes"].append("with the blocks started in reversed order the host gets other results, as sums of "
                                "floats by atomics may be")
    out["findings"] = one_per_cause(found)
    out["mistakes"] = sum(finding["kind"] != "leak" or leaks_count for finding in out["findings"])
    ignored = [entry for entry in ignored if entry[2] not in RARELY_FAIL]
    if ignored:
        places = sorted({(os.path.basename(file), line) for file, line, _ in ignored})
        text = ", ".join(f"{file}:{line}" for file, line in places[:12]) + (", ..." if len(places) > 12 else "")
        out["notes"].append(f"calls whose error code is ignored: {text}")
    return out


def architecture_notes(places):
    """Lines of __host__ __device__ functions that depend on __CUDA_ARCH__."""
    return [f"{os.path.basename(file)}:{line}: depends on __CUDA_ARCH__ in a __host__ __device__ function: the host's side "
            "is compiled" for file, line in sorted(places)]


def exit_status(out):
    if out["crashed"]:
        return CRASHED
    return FOUND if out["mistakes"] else CLEAN


def print_report(out, quiet):
    print()
    if out["explanation"] and not quiet:
        body = out["explanation"].split("\nno races, uninitialised")[0]
        print(body.rstrip() + "\n")
    if out["costly"]:
        print("Memory accesses that take at least twice what they need:")
        for file, line, text in out["costly"][:20]:
            print(f"  {os.path.basename(file)}:{line}: {text}")
        print()
    for note in dict.fromkeys(out["notes"]):
        print(f"note: {note}")
    if not out["findings"]:
        print("No mistakes found.")
        return
    print(f"Found {len(out['findings'])}:")
    for finding in out["findings"]:
        times = f" [{finding['count']} times]" if finding["count"] > 1 else ""
        print(f"  {finding['message']}{times}")
        if finding["remedy"]:
            print(f"    remedy: {finding['remedy']}")


# Options of nvcc that say nothing about what a program does, and those whose value is an argument of its own.
NVCC = re.compile(r"-O\d|-g|-G|-w|-l.+|-L.+|-std=.+|--?(gpu-)?(arch|code|gencode|generate-code|threads|rdc|relocatable-device-code"
                  r"|maxrregcount|std)=.+|-arch=.+|--?(lineinfo|generate-line-info|extended-lambda|expt-.+|use_fast_math|fmad=.+"
                  r"|ptxas-options=.+)|-X(ptxas|linker|nvlink)=.+|-diag-suppress=.+")
NVCC_PAIRS = {"-arch", "-code", "-gencode", "-std", "-Xptxas", "-Xlinker", "-maxrregcount", "--ptxas-options", "-L", "-l",
              "-diag-suppress", "--diag-suppress"}


def without_nvcc(options):
    """The options without those that only nvcc needs."""
    kept, options = [], iter(options)
    for option in options:
        if option in NVCC_PAIRS:
            next(options, None)
        elif not NVCC.fullmatch(option):
            kept.append(option)
    return kept


def parse_arguments(argv):
    own, given = (argv[:argv.index("--")], argv[argv.index("--") + 1:]) if "--" in argv else (argv, [])
    own = without_nvcc(own)
    parser = argparse.ArgumentParser(prog="./run check", description="Runs a CUDA program on the CPU and says what is "
                                     "wrong with it. What follows -- are the program's arguments.")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("sources", nargs="+", metavar="PROGRAM.cu", help="every source file of the program")
    parser.add_argument("-I", action="append", default=[], metavar="DIR", help="folder with headers (repeatable)")
    parser.add_argument("-D", action="append", default=[], metavar="NAME[=VALUE]", help="macro (repeatable)")
    parser.add_argument("--time-limit", type=int, default=60, metavar="S",
                        help="seconds without a finished thread that count as a hang; 0: none (default: 60)")
    parser.add_argument("--full", action="store_true", help="look at every access of every launch: by default of a "
                        "kernel's first 4 launches, and of each the blocks with 16,384 threads")
    parser.add_argument("--quiet", action="store_true", help="no table of memory accesses")
    parser.add_argument("--leaks", action="store_true", help="memory that is never freed counts as a mistake")
    parser.add_argument("-Xcompiler", "--compiler-options", action="append", default=[], metavar="-fopenmp",
                        help="as for nvcc; of the host compiler's options only -fopenmp has a meaning here")
    parser.add_argument("--json", metavar="FILE", help="also write the findings as JSON")
    parser.add_argument("--cutlass", action="store_true", help=argparse.SUPPRESS)  # adapted copies of its headers
    parser.add_argument("--html", metavar="FILE", help="also write a page: the sources with what each line costs, the "
                        "findings, and pictures of the worst requests")
    arguments = parser.parse_args(own)
    arguments.given = given
    return arguments


def main(argv):
    arguments = parse_arguments(argv)
    caller = Path(os.environ.get("COOKBOOK_CALLER", os.getcwd()))
    sources = [(caller / name).resolve() for name in arguments.sources]
    for name, source in zip(arguments.sources, sources):
        if not source.is_file():
            print(f"check: there is no file {name}", file=sys.stderr)
            return CANNOT
    openmp = any("-fopenmp" in text.split(",") for text in arguments.compiler_options)
    if openmp:
        HERE.add("omp.h")
    if arguments.cutlass:
        HERE.update(("cute/", "cutlass/"))
    options = [f"-I{caller / folder}" for folder in arguments.I] + [f"-D{macro}" for macro in arguments.D]
    key = hashlib.sha256(json.dumps([list(map(str, sources)), options, openmp]).encode()).hexdigest()[:16]
    folder = Path(arguments.build).resolve().parent / "check" / key  # the program runs in the caller's folder
    jobs = int(os.environ.get("JOBS") or os.cpu_count() or 1)
    compiler = Compiler(arguments.build, options, openmp)
    try:
        programs, ignored = build_program(compiler, sources, folder, jobs)
    except (Unsupported, CannotCheck) as reason:
        place = f"{short(reason.file)}:{reason.line}: {reason.what}" if isinstance(reason, Unsupported) else reason
        print(f"check: {place}", file=sys.stderr)
        return CANNOT
    budget = {} if arguments.full else {"COOKBOOK_CHECK_THREADS": "16384", "COOKBOOK_CHECK_LAUNCHES": "4"}
    if arguments.html:
        budget["COOKBOOK_CHECK_REQUESTS"] = "1"
    stdin = None if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(2) as pool:
        def run(mode, name, limit, **more):
            return run_program(programs[mode], arguments.given, Path(temporary) / name, limit, name != "plain", stdin,
                               caller, more)

        limit = arguments.time_limit
        plain = run("plain", "plain", limit, **budget)
        if plain[2] and plain[2]["unsupported"]:
            print(f"check: {plain[2]['unsupported']}", file=sys.stderr)
            return CANNOT
        traced = reverse = None
        if not any(" no thread has finished " in row for row in plain[1]) and not plain[3]:
            # One worker: the same program gives the same findings.
            traced = pool.submit(run, "traced", "traced", limit, COOKBOOK_SIMT_WORKERS="1", **budget)
            if plain[2] and plain[2]["large_grid"]:
                most = min(limit or 60, int(3 + plain[4]))
                reverse = pool.submit(run, "plain", "reverse", most, COOKBOOK_SIMT_ORDER="reverse")
        times = plain[2]["times"] if plain[2] else []
        hint = lambda: estimate_text(times, progress_of(Path(temporary) / "traced"), sizes_of(arguments))
        if traced and not concurrent.futures.wait([traced], timeout=QUIET).done:
            print(f"check: the traced run is under way. {hint()}.", file=sys.stderr)
        traced, reverse = (future and future.result() for future in (traced, reverse))
        hint = hint()
        absent = [f for f in traced[2]["findings"] if f["kind"] == "absent-lane"] if traced and traced[2] else []
        for finding in absent[:MOST_RUNS] if plain[2] and plain[2]["copies"] else []:
            others = (run("plain", "absent", limit, COOKBOOK_CHECK_ABSENT_AT=finding["places"],
                          COOKBOOK_CHECK_ABSENT_VALUE=value) for value in ABSENT_VALUES)
            # Nothing that the host sees depends on this undefined value.
            if all(other[2] and (other[0], other[2]["copied"]) == (plain[0], plain[2]["copied"]) for other in others):
                traced[2]["findings"].remove(finding)
    out = collect(plain, traced, reverse, ignored, arguments.time_limit, arguments.leaks, hint)
    out["notes"] += [*architecture_notes(compiler.host_sides), *sorted(NOTES)]
    print_report(out, arguments.quiet)
    document = json.dumps(dict(out, sources=list(map(str, sources)), exit_status=exit_status(out)), indent=1) + "\n"
    if arguments.json:
        (caller / arguments.json).write_text(document)
    if arguments.html and not write_page(document, caller / arguments.html):
        return CANNOT
    return exit_status(out)


def write_page(document, file):
    """Whether it could be written."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "plots"))
    return subprocess.run([sys.executable, "-B", "-m", "cookbook_plots.checked", "--out", str(file)], input=document, text=True,
                          env=environment).returncode == 0


def end(number, _):
    for process, how in list(RUNNING.items()):
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            pass  # it has just ended
    raise SystemExit(128 + number)


if __name__ == "__main__":
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, end)
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as error:
        print(f"check: {error}", file=sys.stderr)
        sys.exit(CANNOT)
