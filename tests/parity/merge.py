#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns what run_ncu.sh brought back from a GPU into the golden file that CI compares with.

    merge.py RAW [--golden tests/parity/golden/h200.json]   RAW: run_ncu.sh's output folder
    merge.py --prune CASES.json                             drop measurements of cases that are gone

RAW holds, for every group G of cases:
    manifest.json       `parity --json`: cases, sizes and the kernels each launches, in order
    source_G.csv        `ncu --page source --csv --print-source sass`: counters per instruction
    raw_G.csv           `ncu --page raw --csv`: counters per launch
    report_G.json       the same two read through Nsight Compute's Python module (optional)
    *.sass              `nvdisasm -c -gi` of the executable: the source line of each instruction
    sources/            the kernels' sources as they were (optional; else those of this checkout)

Writes the golden JSON and, beside it, the instructions it was made from as CSV.
"""
import argparse
import collections
import csv
import io
import json
import pathlib
import posixpath
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/parity/golden/h200.json"

# Counters of a whole launch. Those of global loads have the reads of cp.async in them.
HARDWARE = {
    ("global_load", "requests"): "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    ("global_load", "sectors"): "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    ("global_store", "requests"): "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    ("global_store", "sectors"): "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    ("shared_load", "pipe_wavefronts"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    ("shared_load", "pipe_conflicts"): "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    ("shared_store", "pipe_wavefronts"): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    ("shared_store", "pipe_conflicts"): "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
}

# Counters of an instruction: our name, Nsight Compute's, and its label on the source page.
COUNTERS = [
    ("executed", "inst_executed", "Instructions Executed"),
    ("tag_requests", "memory_l1_tag_requests_global", "L1 Tag Requests Global"),
    ("sectors", "memory_l2_theoretical_sectors_global", "L2 Theoretical Sectors Global"),
    ("ideal_sectors", "memory_l2_theoretical_sectors_global_ideal",
     "L2 Theoretical Sectors Global Ideal"),
    ("wavefronts", "memory_l1_wavefronts_shared", "L1 Wavefronts Shared"),
    ("ideal_wavefronts", "memory_l1_wavefronts_shared_ideal", "L1 Wavefronts Shared Ideal"),
]

# Counters of a whole launch that may have another name on another GPU: recorded where
# `ncu --query-metrics` names them. What is compared is the sum over instructions.
OPTIONAL = {
    ("global_async_load", "pipe_sectors"): [
        "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum",
        "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum"],
    ("shared_async_store", "pipe_wavefronts"): [
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"],
    ("shared_async_store", "pipe_conflicts"): [
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"],
    ("shared_load", "ldmatrix_wavefronts"): [
        "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum"],
}

# What an instruction does; cp.async does two things, a read of global and a write of shared memory.
# Not compared: ATOM, ATOMS, RED (atomics), LDL and STL (local memory).
OPS = {"LDG": ("global_load",), "STG": ("global_store",), "LDS": ("shared_load",),
       "LDSM": ("shared_load",), "STS": ("shared_store",), "STSM": ("shared_store",),
       "LDGSTS": ("global_async_load", "shared_async_store")}
ASYNC = OPS["LDGSTS"]
GENERIC = {"LD": "load", "ST": "store"}

Instruction = collections.namedtuple("Instruction", "sass frames")  # innermost frame first


class Unusable(Exception):
    """What was brought back does not fit together."""


def number(text):
    """A counter as the CSV pages write it: '1,234', '12.0', or '' and '-' where nothing was counted.
    Anything else, such as 'n/a' for a counter that could not be read, must not pass for a zero."""
    text = str(text).strip().replace(",", "")
    if text in ("", "-"):
        return 0
    try:
        return int(float(text))
    except (ValueError, OverflowError):  # OverflowError: inf
        raise Unusable(f"'{text}' is no count") from None


def opcode(sass):
    """'@!P0 LDG.E.128 R4, ...' -> 'LDG.E.128'."""
    words = [word for word in sass.split() if not word.startswith("@") and word not in "{}"]
    return words[0].rstrip(";") if words else ""


def access_bytes(code):
    """Bytes per lane of a load or store."""
    base, *parts = code.split(".")
    if base in ("LDSM", "STSM"):  # a register a lane and matrix: LDSM.16.M88, LDSM.16.MT88.4
        return 4 * int(parts[-1]) if parts[-1] in ("2", "4") else 4
    for part in parts:
        if part in ("128", "64"):
            return int(part) // 8
        if part in ("U8", "S8", "8"):
            return 1
        if part in ("U16", "S16", "16"):
            return 2
    return 4


def parse_disassembly(text):
    """Function name -> offset -> Instruction, from `nvdisasm -c -gi`."""
    functions, here, frames, fresh = {}, None, [], True
    for line in text.splitlines():
        section = re.match(r"\s*\.section\s+\.text\.([^,\s]+)", line)
        if section:
            here, frames = functions.setdefault(section.group(1), {}), []
            continue
        place = re.match(r'\s*//## File "([^"]+)", line (\d+)', line)
        if place:
            if fresh:
                frames, fresh = [], False
            frames.append((place.group(1), int(place.group(2))))
            continue
        code = re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", line)
        if code and here is not None:
            here[int(code.group(1), 16)] = Instruction(code.group(2), tuple(frames))
            fresh = True
    return functions


def relative(path, source_dir):
    """`path` below the repository, or None."""
    path, source_dir = posixpath.normpath(path), source_dir.rstrip("/") + "/"
    return path[len(source_dir):] if path.startswith(source_dir) else None


def source_line(frames, source_dir):
    """Where the SIMT backend would say an access is: the innermost line that is neither in the
    backends nor in the device headers."""
    for path, line in frames:
        file = relative(path, source_dir)
        if file and not file.startswith(("common/device/", "common/backend/")):
            return file, line
    return "", 0


def parse_source_page(text):
    """One (kernel, rows) per launch, from the source page. A row: address, sass, counters."""
    launches, columns = [], None
    for row in csv.reader(io.StringIO(text)):
        if len(row) >= 2 and row[0] in ("Kernel Name", "Function Name"):
            launches.append((row[1], []))
            columns = None
            continue
        if "Address" in row and "Source" in row:
            if columns is not None or not launches:  # a launch without a line that names it
                launches.append(("", []))
            columns = {name: i for i, name in reversed(list(enumerate(row)))}
            for _, name, label in COUNTERS:
                if label not in columns and name not in columns:
                    raise Unusable(f"no column '{label}' ({name})")
            continue
        if columns is None or len(row) <= columns["Source"]:
            continue
        address = row[columns["Address"]].strip()
        if not re.fullmatch(r"(0x)?[0-9a-fA-F]+", address):
            continue
        counters = {}
        for ours, name, label in COUNTERS:
            column = columns.get(label, columns.get(name))
            if column >= len(row):
                raise Unusable(f"a line without '{label}'")
            counters[ours] = number(row[column])
        launches[-1][1].append((int(address, 16), row[columns["Source"]].strip(), counters))
    return launches


def parse_raw_page(text):
    """One (kernel, {metric: value}) per launch, from the raw page."""
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    start = next((i for i, row in enumerate(rows) if "Kernel Name" in row), None)
    if start is None:
        return []
    header = rows[start]
    name = header.index("Kernel Name")
    result = []
    for row in rows[start + 1:]:
        if len(row) < len(header) or not row[name].strip():  # the row of units names no kernel
            continue
        result.append((row[name], dict(zip(header, row))))
    return result


def parse_report_json(text):
    """Both of the above from dump_report.py's JSON."""
    source, raw = [], []
    for launch in json.loads(text):
        rows = [(entry["pc"], entry["sass"],
                 {ours: number(entry.get(name, 0)) for ours, name, _ in COUNTERS})
                for entry in launch["instructions"]]
        source.append((launch["kernel"], rows))
        raw.append((launch["kernel"], launch["metrics"]))
    return source, raw


def same_code(rows, function):
    """Whether the loads and stores that ncu saw are those of the disassembly. Modifiers may be
    spelt differently by the two disassemblers."""
    first = min(address for address, _, _ in rows)
    for address, sass, _ in rows:
        base = opcode(sass).split(".")[0]
        at = function.get(address - first)
        if at is None or (base in OPS and opcode(at.sass).split(".")[0] != base):
            return False
    return True


def instructions_of(rows, mangled, disassembly, source_dir):
    """The loads and stores of one launch that were executed, each with its source line."""
    candidates = [one for one in disassembly.get(mangled, []) if same_code(rows, one)]
    if not candidates:
        raise Unusable(f"{mangled}: its instructions are not in any .sass file")
    function = candidates[0]
    first = min(address for address, _, _ in rows)
    for address, sass, counters in rows:
        code = opcode(sass)
        base = code.split(".")[0]
        ops = OPS.get(base, ())
        if base in GENERIC:
            space = "global" if counters["sectors"] else "shared"
            ops = (f"{space}_{GENERIC[base]}",)
        # @!PT LDS RZ, [RZ]: ptxas puts three before the wait for copies. They never read.
        if counters["executed"] == 0 or sass.startswith("@!PT "):
            continue
        file, line = source_line(function[address - first].frames, source_dir)
        for op in ops:
            yield {"offset": address - first, "sass": code, "file": file, "line": line, "op": op,
                   "bytes": access_bytes(code), **counters}


def conflicts(one):
    return max(0, one["wavefronts"] - one["ideal_wavefronts"])


class Sources:
    """Lines of source files below `root`."""

    def __init__(self, root):
        self.root, self.files = root, {}

    def text(self, file, line):
        if file not in self.files:
            path = self.root / file
            self.files[file] = path.read_text().splitlines() if path.is_file() else []
        lines = self.files[file]
        return lines[line - 1].strip() if 1 <= line <= len(lines) else ""


def case_of(case, launches, disassembly, source_dir, sources):
    """The golden entry of a case and its instructions, from its launches in order."""
    instructions, hardware, optional, notes = [], collections.Counter(), collections.Counter(), []
    for mangled, rows, metrics in launches:
        instructions += instructions_of(rows, mangled, disassembly, source_dir)
        for key, name in HARDWARE.items():
            if metrics.get(name, "") == "":
                raise Unusable(f"{case['name']}: no {name}")
            hardware[key] += number(metrics[name])
        for key, names in OPTIONAL.items():
            if all(metrics.get(name, "") != "" for name in names):
                optional[key] += sum(number(metrics[name]) for name in names)

    def sectors_of(op):
        return sum(one["sectors"] for one in instructions if one["op"] == op)

    has_copies = any(one["op"] in ASYNC for one in instructions)
    launch_loads = hardware[("global_load", "sectors")]
    totals = {}
    for op in dict.fromkeys(op for ops in OPS.values() for op in ops):
        mine = [one for one in instructions if one["op"] == op]
        counted = {counter: hardware[(what, counter)] for what, counter in HARDWARE if what == op}
        if op == "global_load" and has_copies:
            counted = {"requests": sum(one["executed"] for one in mine), "sectors": sectors_of(op)}
        if not mine and not any(counted.values()):
            continue
        extra = {counter: value for (what, counter), value in optional.items()
                 if what == op and (value or op in ASYNC)}
        per_instruction = sectors_of(op)
        if op == "global_async_load":
            # What the launch's counter has beyond the loads. Zeros that are not read make no
            # request there, so requests are the instructions'.
            sectors = launch_loads - sectors_of("global_load")
            totals[op] = {"requests": sum(one["executed"] for one in mine), "sectors": sectors,
                          **extra}
            if sectors != per_instruction:
                notes.append(f"global_load and {op}: {launch_loads} sectors in all, but "
                             f"{sectors_of('global_load')} and {per_instruction} over their "
                             "instructions")
            if extra.get("pipe_sectors", per_instruction) != per_instruction:
                notes.append(f"{op}: {per_instruction} sectors over its instructions, but "
                             f"{extra['pipe_sectors']} through the pipe")
        elif op.startswith("global"):
            totals[op] = {"requests": counted["requests"], "sectors": counted["sectors"]}
            if per_instruction != counted["sectors"]:
                notes.append(f"{op}: {counted['sectors']} sectors in all, but {per_instruction} "
                             "over its instructions")
        else:
            totals[op] = {"requests": sum(one["executed"] for one in mine),
                          "wavefronts": sum(one["wavefronts"] for one in mine),
                          "conflicts": sum(conflicts(one) for one in mine), **counted, **extra}

    lines = collections.OrderedDict()
    for one in sorted(instructions, key=lambda one: (one["file"], one["line"], one["op"])):
        key = one["file"], one["line"], one["op"]
        entry = lines.setdefault(key, {
            "file": one["file"], "line": one["line"],
            "text": sources.text(one["file"], one["line"]), "op": one["op"], "bytes": 0,
            "requests": 0})
        entry["bytes"] = max(entry["bytes"], one["bytes"])
        entry["requests"] += one["executed"]
        if one["op"].startswith("global"):
            entry["sectors"] = entry.get("sectors", 0) + one["sectors"]
        else:
            entry["wavefronts"] = entry.get("wavefronts", 0) + one["wavefronts"]
            entry["conflicts"] = entry.get("conflicts", 0) + conflicts(one)
        entry["sass"] = sorted(set(entry.get("sass", [])) | {one["sass"]})
    golden = {"size": case["size"], "totals": totals, "lines": list(lines.values())}
    if notes:
        golden["notes"] = notes
    return golden, instructions


def load_group(raw, group):
    """(kernel, rows, metrics) per launch of a group, from whichever pages are whole."""
    problems = []
    pages = []
    source, page = raw / f"source_{group}.csv", raw / f"raw_{group}.csv"
    if source.exists() and page.exists():
        pages.append((source.name, lambda: (parse_source_page(source.read_text()),
                                            parse_raw_page(page.read_text()))))
    report = raw / f"report_{group}.json"
    if report.exists():
        pages.append((report.name, lambda: parse_report_json(report.read_text())))
    for name, read in pages:
        try:
            per_instruction, per_launch = read()
        except Unusable as error:
            problems.append(f"{name}: {error}")
            continue
        except (ValueError, KeyError) as error:
            problems.append(f"{name}: {error!r}")
            continue
        if not per_launch or len(per_instruction) != len(per_launch):
            problems.append(f"{name}: {len(per_instruction)} launches on the source page, "
                            f"{len(per_launch)} on the raw page")
            continue
        if any(not rows for _, rows in per_instruction):
            problems.append(f"{name}: a launch without instructions")
            continue
        if not any(counters["sectors"] + counters["wavefronts"]
                   for _, rows in per_instruction for _, _, counters in rows):
            problems.append(f"{name}: no counters per instruction")
            continue
        return [(kernel, rows, metrics)
                for (_, rows), (kernel, metrics) in zip(per_instruction, per_launch)]
    raise Unusable(f"{group}: " + ("; ".join(problems) or "nothing was brought back"))


def merge(raw):
    """(golden, rows of the CSV, problems)."""
    manifest = json.loads((raw / "manifest.json").read_text())
    disassembly = collections.defaultdict(list)
    for path in sorted(raw.glob("*.sass")):
        for name, function in parse_disassembly(path.read_text()).items():
            disassembly[name].append(function)
    groups = collections.OrderedDict()
    for case in manifest["cases"]:
        groups.setdefault(case["name"].split("/")[0], []).append(case)

    versions = raw / "versions.json"
    golden = {"schema": 1, "device": manifest["device"],
              "tools": json.loads(versions.read_text()) if versions.exists() else {}, "cases": {}}
    rows, problems = [], []
    sources = Sources(raw / "sources" if (raw / "sources").is_dir() else ROOT)
    for group, cases in groups.items():
        try:
            launches = load_group(raw, group)
            expected = sum(len(case["kernels"]) for case in cases)
            if len(launches) != expected:
                raise Unusable(f"{group}: {len(launches)} launches profiled, {expected} expected")
        except Unusable as error:
            problems.append(str(error))
            continue
        at = 0
        for case in cases:
            mine = launches[at:at + len(case["kernels"])]
            at += len(mine)
            try:
                named = []
                for (kernel, instructions, metrics), mangled in zip(mine, case["kernels"]):
                    # The pages may print names demangled; then the code itself is what is checked.
                    if mangled and kernel.startswith("_Z") and kernel != mangled:
                        raise Unusable(f"{case['name']}: ran {kernel}, expected {mangled}")
                    named.append((mangled or kernel, instructions, metrics))
                entry, instructions = case_of(case, named, disassembly, manifest["source_dir"],
                                              sources)
            except Unusable as error:
                problems.append(str(error))
                continue
            golden["cases"][case["name"]] = entry
            rows += [{"case": case["name"], **one} for one in instructions]
    return golden, rows, problems


def write_golden(path, golden):
    """One line a source line: a diff of two measurements reads well."""
    def compact(value):
        return json.dumps(value, ensure_ascii=False)
    out = ["{"]
    for key in ("schema", "device", "tools"):
        out.append(f" {compact(key)}: {compact(golden[key])},")
    out.append(' "cases": {')
    cases = []
    for name, case in golden["cases"].items():
        text = [f"  {compact(name)}: {{", f'   "size": {compact(case["size"])},']
        totals = [f"    {compact(op)}: {compact(value)}" for op, value in case["totals"].items()]
        text.append('   "totals": {\n' + ",\n".join(totals) + "},")
        if "notes" in case:
            text.append(f'   "notes": {compact(case["notes"])},')
        lines = [f"    {compact(line)}" for line in case["lines"]]
        text.append('   "lines": [\n' + ",\n".join(lines) + "]}")
        cases.append("\n".join(text))
    out.append(",\n".join(cases))
    out.append(" }\n}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(out) + "\n")


def prune(golden_path, cases_path):
    golden = json.loads(golden_path.read_text())
    known = json.loads(pathlib.Path(cases_path).read_text())["cases"]
    names = set(known) if isinstance(known, dict) else {case["name"] for case in known}
    gone = [name for name in golden["cases"] if name not in names]
    for name in gone:
        del golden["cases"][name]
    write_golden(golden_path, golden)
    print(f"{len(gone)} cases removed: {', '.join(gone) or 'none'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("raw", nargs="?", type=pathlib.Path)
    parser.add_argument("--golden", type=pathlib.Path, default=GOLDEN)
    parser.add_argument("--prune", metavar="CASES.json",
                        help="what `parity --json` or `parity-traced --json` wrote")
    options = parser.parse_args()
    if options.prune:
        prune(options.golden, options.prune)
        return 0
    if options.raw is None:
        parser.error("the folder that run_ncu.sh wrote is missing")
    golden, rows, problems = merge(options.raw)
    for problem in problems:
        print(f"merge: {problem}", file=sys.stderr)
    for name, case in golden["cases"].items():
        for note in case.get("notes", ()):
            print(f"merge: note: {name}: {note}", file=sys.stderr)
    if golden["cases"]:
        write_golden(options.golden, golden)
        with open(options.golden.with_suffix(".instructions.csv"), "w", newline="") as out:
            writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    print(f"{len(golden['cases'])} cases, {len(rows)} instructions, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
