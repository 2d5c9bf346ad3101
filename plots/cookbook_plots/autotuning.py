# SPDX-License-Identifier: MIT
"""Chapter 11's figures: how the library chooses, searchers compared on recorded spaces, and tuning against one fixed
configuration over sizes.

chapters/11_autotuning/searchers.json comes from the committed recordings, without a GPU:

    build/simt/chapter-11 replay --json chapters/11_autotuning/searchers.json

and chapters/11_autotuning/choices.json from the shapes by which the library's choice is judged:

    build/simt/library-choices --json chapters/11_autotuning/choices.json
"""
import json
import math

from . import book
from .markup import duration, picture, table
from .results import size_text

CHAPTER = 11
FIGURE = "chapter-11-searchers"
CHOICES = "chapter-11-choices"
# How a kernel can be chosen: the key in choices.json, and its name in figure and table.
WAYS = {"one_kernel": "one kernel for all shapes", "recording": "what was fastest at the nearest recorded shape",
        "arithmetic": "arithmetic", "both": "arithmetic, corrected by the recording"}
# Candidates by how they divide the work.
FAMILIES = {"a tile per block": ("whole", "transposed"),
            "persistent blocks": ("persistent", "ping_pong", "any_pitch"),
            "blocks divide K": ("split_k", "cluster_k", "stream_k"),
            "few rows or columns": ("gemv", "short_k", "skinny")}
LEVELS = ("untuned", "best_fixed", "tuned")


def searchers(gpu, root=book.ROOT):
    """What searchers.json says of the kernels recorded on `gpu` ("h200"); empty where there is nothing."""
    file = root / "chapters/11_autotuning/searchers.json"
    if not file.exists():
        return []
    return [kernel for kernel in json.loads(file.read_text()) if gpu.lower() in kernel["device"].lower()]


def searchers_table(kernels):
    """Looks until the best stays within 2 % of the best there is, as Markdown."""
    def cell(score):
        looks = "never" if score["median_looks"] is None else f"{score['median_looks']:.0f}"
        return f"{looks} ({100 * score['arrived']:.0f} %)"

    rows = [[name, *(cell(kernel["searchers"][name]) for kernel in kernels)] for name in kernels[0]["searchers"]]
    return table(["searcher", *(kernel["kernel"] for kernel in kernels)], rows, "l" + "r" * len(kernels))


def choices(gpu, root=book.ROOT):
    """What choices.json says of the shapes that were measured on `gpu` ("h200"); None where there is nothing."""
    file = root / "chapters/11_autotuning/choices.json"
    known = json.loads(file.read_text()) if file.exists() else {"device": ""}
    return known if gpu.lower() in known["device"].lower() else None


def family(candidate):
    """The key in FAMILIES."""
    return next(name for name, kernels in FAMILIES.items() if candidate.startswith(kernels))


def losses(judged, way):
    """How much slower than the fastest candidate each choice is, 0.02: 2 %, for the shapes that `way` has a choice for."""
    return [shape[way]["us"] / shape["fastest"]["us"] - 1 for shape in judged["shapes"] if way in shape]


def choices_table(judged):
    """What each way of choosing costs, as Markdown."""
    rows = []
    for way, name in WAYS.items():
        loss = losses(judged, way)
        rows.append([name, len(loss), f"{geometric_mean([1 + each for each in loss]):.3f}x",
                     sum(each <= 0.02 for each in loss), f"{1 + max(loss):.2f}x"])
    return table(["chosen by", "shapes", "time over the fastest, geometric mean", "within 2 %", "worst"], rows, "lrrrr")


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def proof_table(runs):
    """Tuned against the best fixed configuration and the library, a row per size; "" for fewer than two sizes."""
    rows, over_fixed, references = [], [], []
    for run in runs:
        level = {level.name: level for level in run.timed}
        if any(name not in level for name in LEVELS) or not level["tuned"].json.get("vs_previous"):
            continue
        tuned = level["tuned"].json
        fixed, reference = tuned["vs_previous"], tuned.get("vs_reference")
        over_fixed.append(fixed["ratio"])
        references += filter(None, [reference])
        rows.append([size_text(run.size), *(duration(level[name].time()) for name in LEVELS),
                     f"{fixed['ratio']:.3f}x ({fixed.get('verdict', '')})", f"{reference['ratio']:.3f}x" if reference else "-"])
    if len(rows) < 2:
        return ""
    library = references[-1]["name"] if references else ""
    lines = [table(["size", "untuned", "best fixed", "tuned", "tuned over best fixed", f"over {library or 'library'}"],
                   rows, "lrrrrr"), "",
             f"Over {len(rows)} sizes, every level of a size timed interleaved after the searches had ended: tuned is "
             f"{geometric_mean(over_fixed):.3f}x the best fixed configuration (geometric mean; worst "
             f"{min(over_fixed):.3f}x)"
             + (f" and {geometric_mean([one['ratio'] for one in references]):.3f}x {library}." if references else ".")]
    return "\n".join(lines)


def readme_parts(results, figures, root=book.ROOT):
    """What the README of the chapter shows beyond every chapter's ladders: a list of Markdown blocks."""
    parts = []
    for (chapter, ladder), runs in sorted(results.sweeps.items()):
        text = proof_table(sorted(runs, key=lambda run: math.prod(run.size))) if chapter == CHAPTER else ""
        if text:
            parts += [f"**{ladder}** · was it worth it?", text]
    judged = choices(results.gpu, root)
    if judged and CHOICES in figures:
        over_cublas = geometric_mean([shape["cublas_us"] / shape["both"]["us"] for shape in judged["shapes"]])
        parts += [f"**Choosing without a search** · {len(judged['shapes'])} shapes of `{judged['operator']}` that are not "
                  f"recorded; the library's choice is {over_cublas:.2f}x cuBLAS (geometric mean)", choices_table(judged),
                  picture(f"../../plots/figures/{results.gpu}/{CHOICES}",
                          "Chapter 11: which kernel is chosen for which shape, and what each way of choosing costs")]
    kernels = searchers(results.gpu, root)
    if kernels and FIGURE in figures:
        parts += ["**Searchers** · median looks until the best so far stays within 2 % of the best there is, and the "
                  "share of searches that get there", searchers_table(kernels),
                  picture(f"../../plots/figures/{results.gpu}/{FIGURE}",
                          "Chapter 11: how fast each searcher comes close to the best, by kernel")]
    return parts
