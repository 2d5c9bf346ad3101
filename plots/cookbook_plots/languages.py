# SPDX-License-Identifier: MIT
"""The tables of docs/languages.md: the same kernel in five languages, from the sources and from ./run compare."""
import ast
import io
import re
import tokenize
from pathlib import Path

from . import book
from .comparison import measured_with
from .markup import STALE_NOTE, code, mark, significant, table, with_ratio

OURS = "this book"
TRITON = "plots/contestants/triton_kernels.py"
# Softmax: the level whose kernel computes the rows below; the last ones are for short rows.
LEVELS = {"gemm": "library/gemm/any_shape.cuh",
          "softmax": "chapters/09_online_softmax/level_8_in_shared.cuh",
          "attention": "chapters/10_flash_attention/level_12_last_wave.cuh"}
TRITON_FUNCTIONS = {"gemm": {"tile_of", "product_tiles"}, "softmax": {"softmax_rows"},
                    "attention": {"attend", "attention_rows"}}
# Counted by python_lines() and cpp_lines(): language -> problem -> (lines, of what).
COUNTED = {
    "cuTile": {"gemm": (34, "`_matmul_kernel` and the function that orders its tiles"),
               "softmax": (20, "`_softmax_kernel_tma`"),
               "attention": (118, "`_fmha_kernel` and what it calls")},
    "TileLang": {"gemm": (17, "`examples/gemm/example_gemm.py`, `matmul`"),
                 "softmax": (28, "`examples/online_softmax/online_softmax.py`, `softmax_kernel`"),
                 "attention": (77, "`examples/flash_attention/example_mha_fwd_bhsd.py`, `flashattn`")},
    "CUTLASS": {"gemm": (41, "example 48: the types from `ElementA` to `Gemm`"),
                "attention": (1775, "example 88: the ten headers of its forward kernel")},
}
VERSIONS = {"cuTile": "TileGym 1.5.1, `matmul.py`, `softmax.py` and `attention.py`",
            "TileLang": "0.1.13, commit a35008a42", "CUTLASS": "4.7.0, commit 7107b0553"}
PROBLEMS = {"gemm": "GEMM", "softmax": "softmax", "attention": "attention"}
# A language's rows in compare.json are those whose names begin with it.
LANGUAGES = ["CUTLASS", "cuTile", "Triton", "TileLang"]
SHIPPED, LIBRARY = "cuTile, as shipped", "fastest library"
# ladder, size, variant; what compare.json has of them makes the table.
SPEEDS = [("gemm", (4096, 4096, 4096), "NN"), ("gemm", (8192, 8192, 8192), "NN"), ("softmax", (32768, 4096), ""),
          ("softmax", (4096, 32768), ""), ("attention", (4, 16, 16, 4096, 4096, 128), "full"),
          ("attention", (4, 16, 16, 4096, 4096, 128), "causal")]


# --- lines -----------------------------------------------------------------------------------------
def python_lines(text, names):
    """Lines of the functions with these names: no blank ones, comments or docstrings."""
    skip = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    used = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skip:
            used.update(range(token.start[0], token.end[0] + 1))
    lines = set()
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef) and function.name in names:
            first = min([function.lineno] + [decorator.lineno for decorator in function.decorator_list])
            mine = set(range(first, function.end_lineno + 1)) & used
            if ast.get_docstring(function) is not None:
                mine -= set(range(function.body[0].lineno, function.body[0].end_lineno + 1))
            lines |= mine
    return len(lines)


def cpp_lines(text):
    """Lines that are neither blank nor only a comment."""
    text = re.sub(r"/\*.*?\*/", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)
    return sum(1 for line in re.sub(r"//[^\n]*", "", text).split("\n") if line.strip())


def included(file, root):
    """A file and the files of chapters and library that it includes, directly or not."""
    seen, todo = [], [Path(file)]
    while todo:
        path = todo.pop()
        if path.suffix == ".inc":  # recorded times: no code
            continue
        if path in seen or path.parts[0] not in ("chapters", "library") or not (root / path).is_file():
            continue
        seen.append(path)
        if path.parts[0] == "library":  # what it launches is compiled in a file of its own
            todo += (file.relative_to(root) for file in sorted((root / path).parent.glob("kernels_*.cu")))
        todo += map(Path, re.findall(r'^\s*#include "([^"]+)"', (root / path).read_text(), re.MULTILINE))
    return seen


def lines_table(root=book.ROOT):
    triton = (root / TRITON).read_text()
    counted = {"Triton": {problem: (python_lines(triton, names), "") for problem, names in TRITON_FUNCTIONS.items()},
               **COUNTED}
    rows = [[language] + [f"{counted[language][problem][0]:,}" if problem in counted[language] else "-" for problem in PROBLEMS]
            for language in ("cuTile", "Triton", "TileLang", "CUTLASS")]
    cells = []
    for problem in PROBLEMS:
        own = cpp_lines((root / LEVELS[problem]).read_text())
        everything = sum(cpp_lines((root / file).read_text()) for file in included(LEVELS[problem], root))
        cells.append(f"{own:,} of {everything:,}")
    rows.append([OURS] + cells)
    sources = [f"- {language}: {VERSIONS[language]}: "
               + "; ".join(f"{PROBLEMS[problem]} {what}" for problem, (_, what) in COUNTED[language].items()) + "."
               for language in COUNTED]
    sources.append(f"- Triton: `{TRITON}`, which `./run compare` times.")
    sources.append("- " + OURS.capitalize() + ": the last level's own file, of it and the chapters' files that it "
                   "includes: " + ", ".join(f"`{Path(file).name}`" for file in LEVELS.values()) + ".")
    return table(["lines"] + list(PROBLEMS.values()), rows, "lrrr") + "\n\n" + "\n".join(sources)


# --- speed -----------------------------------------------------------------------------------------
def name_of(ladder, size, variant, unit):
    sizes = [f"{extent:,}" for extent in size]
    if ladder == "gemm":
        what = f"{sizes[0]} bf16"
    elif ladder == "softmax":
        what = " x ".join(sizes) + " fp32"
    else:  # of batch, heads of Q and K, queries, keys, dimension of a head
        what = f"{sizes[3]} {variant}"
    return f"{PROBLEMS[ladder]} {what}, {unit}"


def speed_table(document):
    """A column per problem: the book's level, the fastest row of each language, and the best library. Below: what was
    skipped, and why."""
    cases = {(case["ladder"], tuple(case["size"]), case["variant"]): case for case in document.get("comparisons", [])
             if case["dtype"] == ("f32" if case["ladder"] == "softmax" else "bf16")}
    # Of a row's label: which of a case's rows may stand there; the fastest of them does.
    wanted = {OURS: lambda row: row["ours"]}
    for language in LANGUAGES:
        wanted[language] = lambda row, of=language: not row["ours"] and row["name"].startswith(of) and row["name"] != SHIPPED
        if language == "cuTile":
            wanted[SHIPPED] = lambda row: row["name"] == SHIPPED
    wanted[LIBRARY] = lambda row: not row["ours"] and not row["name"].startswith(tuple(LANGUAGES))
    columns, header, levels, reasons, any_stale = [], [], {}, {}, False

    for key in filter(cases.get, SPEEDS):
        case = cases[key]
        speed = "tflops" if case["flops"] else "gbps"
        by_time = sorted(case["rows"], key=lambda row: row["time_ms"]["median"])
        best = {label: next(filter(fits, by_time), None) for label, fits in wanted.items()}
        column = {label: with_ratio(row[speed], row.get("vs_cookbook")) if row else "-" for label, row in best.items()}
        if ours := best[OURS]:
            stale = not book.identities().has_row(ours, document["device"], case)
            column[OURS] += mark(stale)
            any_stale |= stale
            levels[ours["name"]] = code(ours["name"])
        if best[LIBRARY]:
            column[LIBRARY] = f"{best[LIBRARY]['name']} {column[LIBRARY]}"
        for language in LANGUAGES:
            if not best[language] and language in case.get("skipped", {}):
                reasons.setdefault((language, case["skipped"][language]), []).append(PROBLEMS[key[0]])
        columns.append(column)
        header.append(name_of(*key, case["unit"]))
    if not columns:
        return ""
    rows = [[label] + [column[label] for column in columns] for label in wanted]
    below = (f"{measured_with(document)}; median of cold runs, interleaved in one process; in brackets the speed over this "
             "book's in the same rounds. A language's "
             "fastest row counts. Attention: tokens, bf16, heads of 128, no mask or a causal one. "
             f"This book's levels: {', '.join(levels.values())}.")
    if any_stale:
        below += f" {STALE_NOTE}."
    left_out = [f"{language} ({', '.join(dict.fromkeys(problems))}): {shortened(reason)}."
                for (language, reason), problems in reasons.items()]
    if left_out:
        below += " Left out: " + " ".join(left_out)
    return table([""] + header, rows, "l" + "r" * len(header)) + "\n\n" + below


def shortened(reason):
    """Of an exception its name: its text may be cut off, and names folders of the machine that measured."""
    found = re.match(r"(.*?)\b(\w+(?:Error|Exception))\b", reason)
    return f"{found[1]}{found[2]}" if found else reason.rstrip(".")


# --- tiles -----------------------------------------------------------------------------------------
def flops(entry):
    size = entry["size"]
    if entry["ladder"] == "gemm":
        return 2 * size[0] * size[1] * size[2]
    batch, heads, seq, dim = size
    return 4 * dim * batch * heads * (seq * (seq + 1) // 2 if entry["variant"] == "causal" else seq * seq)


def tile_table(document, ladder, least):
    """The configurations of a ladder that cuTile was tried with: a row per tile, CTAs per tile and worker warps, the
    faster of its kernels; fastest first. least: smaller problems are left out."""
    entries = [entry for entry in document.get("cutile") or [] if entry["ladder"] == ladder
               and max(entry["size"]) >= least]
    found, failed = {}, {}
    for column, entry in enumerate(entries):
        for config in entry["configs"]:
            hints = config["hints"]
            key = (tuple(config["tile"]), hints.get("num_ctas", 1), hints.get("num_worker_warps"),
                   hints.get("occupancy") if ladder == "attention" else None, config["shipped"])
            if "ms" in config:
                speed = flops(entry) / config["ms"] / 1e9
                found.setdefault(key, {})[column] = max(speed, found.get(key, {}).get(column, 0))
            else:
                failed.setdefault(key, config["reason"])
    if not found:
        return ""
    rows = []
    for key, speeds in sorted(found.items(), key=lambda item: -max(item[1].values())):
        tile, ctas, warps, occupancy, shipped = key
        rows.append([" x ".join(map(str, tile)), ctas, warps or "compiler's choice"]
                    + ([occupancy or "compiler's choice"] if ladder == "attention" else [])
                    + ["TileGym" if shipped else "added here"]
                    + [significant(speeds[column]) if column in speeds else "-" for column in range(len(entries))])
    names = [entry["variant"] or ("full" if ladder == "attention" else f"{entry['size'][0]:,}") for entry in entries]
    header = ["tile", "CTAs per tile", "worker warps"] + (["blocks per SM"] if ladder == "attention" else []) + ["from"]
    text = table(header + [f"{name}, TFLOP/s" for name in names], rows,
                 "lrr" + ("r" if ladder == "attention" else "") + "l" + "r" * len(names))
    gone = [f"{' x '.join(map(str, key[0]))} with {key[1]} CTAs: {reason}" for key, reason in failed.items()
            if key not in found]
    return text + (f"\n\nDid not run: {'; '.join(gone)}." if gone else "")


def text(results, root=book.ROOT):
    """What stands between the markers of docs/languages.md."""
    parts = ["**Lines**", lines_table(root)]
    document = (results.comparison if results else None) or {}
    if document and (speeds := speed_table(document)):
        parts += ["**Speed** · `./run compare`", speeds]
    for ladder, title, least in (("gemm", "GEMM, bf16", 4096),
                                 ("attention", "attention, bf16, head dimension 128", 8192)):
        if tiles := tile_table(document, ladder, least):
            parts += [f"**Tiles in cuTile: {title}**", tiles]
    return "\n\n".join(parts)
