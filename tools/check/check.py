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
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from rewrite import OWN, PROGRAM, Unsupported, foreign_header, rewrite, source_line

ROOT = Path(__file__).resolve().parents[2]
CLEAN, FOUND, CANNOT, CRASHED = 0, 1, 2, 3

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

class Compiler:
    def __init__(self, build, options):
        self.build = Path(build)
        flags = json.loads((self.build / "check.json").read_text())
        self.command = [flags["compiler"]]
        self.common = flags["common"]
        self.modes = {"plain": flags["plain"], "traced": flags["traced"]}
        self.link = {mode: flags[f"link_{mode}"] for mode in self.modes}
        self.options = options
        self.environment = dict(os.environ, LC_ALL="C")

    def run(self, arguments, **more):
        return subprocess.run(self.command + arguments, env=self.environment, capture_output=True, text=True,
                              errors="replace", **more)

    def preprocess(self, source):
        """The source with headers and macros expanded."""
        include = PROGRAM / "include"
        done = self.run(["-E", "-x", "c++", *self.common, "-isystem", str(include), "-isystem", str(ROOT),
                         "-include", str(include / "cuda_runtime.h"), *self.options, str(source)])
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
        ignored = sorted({(d["file"], d["line"], d["function"]) for d in diagnostics if d["function"]})
        warned.write_text(json.dumps(ignored))
        stamp.write_text(digest)
        return ignored

    def link_program(self, objects, mode, target):
        libraries = self.link[mode]
        inputs = [*objects, *(Path(name) for name in libraries if name.endswith(".a"))]
        if target.exists() and all(target.stat().st_mtime_ns > path.stat().st_mtime_ns for path in inputs):
            return
        done = self.run([*map(str, objects), "-o", str(target), *libraries])
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
    """(exit status or minus the signal, the last lines of standard error, the report or None, whether it hung)"""
    environment = dict(os.environ, COOKBOOK_CHECK_REPORT=str(report), COOKBOOK_TIME_LIMIT=str(limit), **budget)
    report.unlink(missing_ok=True)
    sys.stdout.flush()
    process = subprocess.Popen([str(program), *arguments], env=environment, cwd=caller,
                               stdin=subprocess.PIPE if stdin is not None else None,
                               stdout=subprocess.DEVNULL if quiet else None, stderr=subprocess.PIPE,
                               start_new_session=True)
    last = []

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
    thread.join(timeout=5)
    result = None
    if report.exists():
        result = json.loads(report.read_text(errors="replace"))
    return process.returncode, last, result, hung


# ---- the report ----

def ideal(site):
    return (site["ideal_sectors"], "sectors") if site["space"] == "global" else (site["ideal_wavefronts"], "wavefronts")


def costly_lines(sites):
    """(file, line, text) of accesses that take at least twice what their bytes need, worst first."""
    found = []
    for site in sites:
        least, unit = ideal(site)
        taken = site[unit]
        if site["op"] == "atomic" or least == 0 or taken < 2 * least:
            continue
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


def unlooked_errors(report, ignored):
    """Failed calls whose error the program did not look at."""
    lines = {(os.path.realpath(file), line) for file, line, _ in ignored}
    rows = []
    for call in report["failed_calls"]:
        if call["looked_at"]:
            continue
        if call["is_launch"] or (os.path.realpath(call["file"]), call["line"]) in lines:
            rows.append(f"unchecked error: {os.path.basename(call['file'])}:{call['line']}: {call['function']} failed "
                        f"and the program does not look: {call['message']}")
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


def collect(plain, traced, ignored, limit):
    """What is printed and written as JSON."""
    out = {"status": None, "crashed": None, "findings": [], "notes": [], "costly": [], "explanation": ""}
    status, last, result, hung = plain
    kinds = set()
    if traced:
        traced_status, traced_last, traced_result, traced_hung = traced
        if is_crash(traced_status, traced_result, traced_hung):
            text = crash_line(traced_last, traced_status, traced_hung, limit)
            if not is_crash(status, result, hung):
                out["findings"].append({"kind": "crash", "message": f"the traced run ended early: {text}", "count": 1})
        if traced_result:
            for finding in traced_result["findings"]:
                kinds.add(finding["kind"])
                out["findings"].append(finding)
            out["explanation"] = traced_result["explanation"]
            out["costly"] = costly_lines(traced_result["sites"])
    if is_crash(status, result, hung):
        out["crashed"] = crash_line(last, status, hung, limit)
        out["findings"].append({"kind": "crash", "message": out["crashed"], "count": 1})
    else:
        out["status"] = status
        seen = {finding["message"] for finding in out["findings"]}
        for finding in result["findings"]:
            # The traced run names the line of what the plain one only sees afterwards.
            if finding["message"] in seen or (finding["kind"] in kinds and finding["kind"] != "leak"):
                continue
            out["findings"].append(finding)
        for row in unlooked_errors(result, ignored):
            out["findings"].append({"kind": "unchecked error", "message": row, "count": 1})
        for call in result["failed_calls"]:
            if call["looked_at"] or not call["is_launch"]:
                out["notes"].append(f"{os.path.basename(call['file'])}:{call['line']}: {call['function']} failed: "
                                    f"{call['message']}")
        if status != 0:
            out["findings"].append({"kind": "exit status", "message": f"the program ended with status {status}",
                                    "count": 1})
    if ignored:
        places = sorted({(os.path.basename(file), line) for file, line, _ in ignored})
        text = ", ".join(f"{file}:{line}" for file, line in places[:12]) + (", ..." if len(places) > 12 else "")
        out["notes"].append(f"calls whose error code is ignored: {text}")
    return out


def architecture_notes(sources):
    """Lines that ask for __CUDA_ARCH__, which is not defined: host and device are compiled together."""
    rows = []
    for source in sources:
        for number, line in enumerate(source.read_text(errors="replace").split("\n"), 1):
            if re.match(r"\s*#\s*(if|ifdef|ifndef|elif)\b.*__CUDA_ARCH__", line):
                rows.append(f"{source.name}:{number}: tests __CUDA_ARCH__, which is not defined here: the host's side "
                            "is compiled")
    return rows


def exit_status(out):
    if out["crashed"]:
        return CRASHED
    return FOUND if out["findings"] else CLEAN


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


def parse_arguments(argv):
    own, given = (argv[:argv.index("--")], argv[argv.index("--") + 1:]) if "--" in argv else (argv, [])
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
    parser.add_argument("--json", metavar="FILE", help="also write the findings as JSON")
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
    options = [f"-I{caller / folder}" for folder in arguments.I] + [f"-D{macro}" for macro in arguments.D]
    key = hashlib.sha256(json.dumps([list(map(str, sources)), options]).encode()).hexdigest()[:16]
    folder = Path(arguments.build).parent / "check" / key
    jobs = int(os.environ.get("JOBS") or os.cpu_count() or 1)
    try:
        programs, ignored = build_program(Compiler(arguments.build, options), sources, folder, jobs)
    except (Unsupported, CannotCheck) as reason:
        place = f"{short(reason.file)}:{reason.line}: {reason.what}" if isinstance(reason, Unsupported) else reason
        print(f"check: {place}", file=sys.stderr)
        return CANNOT
    budget = {} if arguments.full else {"COOKBOOK_CHECK_THREADS": "16384", "COOKBOOK_CHECK_LAUNCHES": "4"}
    stdin = None if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "report.json"
        run = lambda mode, quiet: run_program(programs[mode], arguments.given, report, arguments.time_limit, quiet,
                                              stdin, caller, budget)
        plain = run("plain", False)
        hung = any(" no thread has finished " in row for row in plain[1]) or plain[3]
        traced = None if hung else run("traced", True)
    out = collect(plain, traced, ignored, arguments.time_limit)
    out["notes"] += architecture_notes(sources)
    print_report(out, arguments.quiet)
    if arguments.json:
        (caller / arguments.json).write_text(json.dumps(dict(out, exit_status=exit_status(out)), indent=1) + "\n")
    return exit_status(out)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
