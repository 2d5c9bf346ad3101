# SPDX-License-Identifier: MIT
"""Times of the book's last levels and of the libraries, measured from Python: compare.json, of ./run compare, and
attention.json, of compare_attention.py. Both time all contestants interleaved in one process."""
import math
from dataclasses import dataclass, replace

from . import book

ATTENTION = 10  # the chapter
SWEEP = f"chapter-{ATTENTION}-sweep-attention"
# In compare_attention.py's files; all else is the book's.
ATTENTION_LIBRARIES = ("cuDNN", "FlashAttention-2", "FlashAttention-3", "FlashAttention-4", "Triton")
DTYPES = {"bfloat16": "bf16", "float16": "f16"}
QUANTILES = ("median", "q1", "q3")
LEAST = 3  # sizes that make a curve

# (chapter, ladder) -> what the comparison calls the same problem, where the names differ.
SAME_PROBLEM = {(ATTENTION, "prefill"): ("attention", "full")}


@dataclass(frozen=True)
class Point:
    """One contestant on one problem."""

    chapter: int
    ladder: str
    variant: str
    dtype: str
    size: tuple
    name: str
    ours: bool
    stale: bool  # its source has changed since, or was not recorded
    median: float  # milliseconds, as are the quartiles
    q1: float
    q3: float
    speed: float
    unit: str
    ratio: float  # of its speed to the first library's in the same rounds; None: not measured
    library: str


@dataclass(frozen=True)
class Comparison:
    """The points of one file."""

    file: str
    date: str
    commit: str
    points: list

    @property
    def stale(self):
        return any(point.stale for point in self.points)

    def text(self):
        parts = [self.date[:16].replace("T", " ")] + ([f"commit {self.commit[:10]}"] if self.commit else [])
        return ", ".join(parts) + (" *" if self.stale else "")


def comparison_of(file, document, points):
    return Comparison(file, document.get("date") or "", document.get("commit") or "", points) if points else None


def of_compare(document, identities):
    """The points of compare.json; None: there are none."""
    points = []
    for case in (document or {}).get("comparisons", []):
        others = [row for row in case["rows"] if not row["ours"] and row["vs_cookbook"]]
        fastest = max(others, key=lambda row: row["vs_cookbook"]["ratio"], default=None)
        for row in case["rows"]:
            ratio = 1 / fastest["vs_cookbook"]["ratio"] if fastest and row["ours"] else None
            points.append(Point(case["chapter"], case["ladder"], case["variant"], case["dtype"], tuple(case["size"]),
                                row["name"], row["ours"], row["ours"] and not identities.has_row(row, document["device"], case),
                                *(row["time_ms"].get(quantile) for quantile in QUANTILES),
                                row["tflops"] if case["flops"] else row["gbps"], case["unit"], ratio,
                                fastest["name"] if ratio else ""))
    return comparison_of("compare.json", document, points)


def of_attention(document, identities):
    """The points of attention.json; None: there are none."""
    points = []
    for case in (document or {}).get("cases", []):
        for row in case["levels"]:
            ratio = row.get("vs_cudnn") or {}
            ours = row["name"] not in ATTENTION_LIBRARIES
            points.append(Point(ATTENTION, "attention", "causal" if case["causal"] else "full",
                                DTYPES[case["dtype"]], tuple(case["shape"]), row["name"],
                                ours, ours and not identities.has_row(row, document["device"], case),
                                *(row["ms"][quantile] for quantile in QUANTILES), row["tflops"], "TFLOP/s",
                                ratio.get("ratio") if ours else None, "cuDNN" if ours and ratio else ""))
    return comparison_of("attention.json", document, points)


def measured_with(document):
    """Device, date and versions of ./run compare or of compare_attention.py."""
    versions = document.get("versions") or {"torch": document.get("torch"), "cudnn": document.get("cudnn")}
    return ", ".join([document["device"]["name"], *filter(None, [(document.get("date") or "")[:10]]),
                      *(f"{name} {version}" for name, version in versions.items() if version)])


def size_and_mask(point):
    return point.size[-1], point.variant  # head dimension, mask


def attention(results):
    """(the comparison whose points become lines, one whose points lie over them or None), or None.

    Lines come from the file that timed most lengths, of equals from the newer. Points of the other are shown
    where it is newer."""
    last = [run.timed[-1].name for (chapter, ladder), run in results.headline.items()
            if (chapter, ladder) == (ATTENTION, "prefill")]
    found = []
    for comparison in filter(None, (of_compare(results.comparison, book.identities()),
                                    of_attention(results.attention, book.identities()))):
        mine = [p for p in comparison.points if p.chapter == ATTENTION and p.ladder == "attention" and p.dtype == "bf16"
                and p.size[3] == p.size[4] and (not p.ours or p.name in (*last, p.ladder)) and not p.name.endswith("as shipped")]
        lengths = len({p.size[3] for p in mine})
        if any(p.ours for p in mine) and any(not p.ours for p in mine):
            found.append((lengths, replace(comparison, points=mine)))
    found.sort(key=lambda entry: (entry[0], entry[1].date), reverse=True)
    if not found or found[0][0] < LEAST:
        return None
    lines = found[0][1]
    newer = [other for _, other in found[1:] if other.date > lines.date]
    return lines, newer[0] if newer else None


def beside(results, runs):
    """The libraries of compare.json that timed at least LEAST sizes of a sweep whose own runs lack them:
    (comparison, name -> {size: Point}); (None, {}) where there are none."""
    comparison = of_compare(results.comparison, book.identities())
    if not comparison:
        return None, {}
    chapter, ladder = runs[0].chapter, runs[0].ladder
    own = {reference["name"] for run in runs for reference in run.references}
    problems = {(run.size, run.json["problem"]["dtype"]) for run in runs}
    curves = {}
    for point in comparison.points:
        if (point.chapter, point.ladder) == (chapter, ladder) and not point.ours and point.name not in own \
                and (point.size, point.dtype) in problems and point.unit == runs[0].unit:
            curves.setdefault(point.name, {})[point.size] = point
    curves = {name: points for name, points in curves.items() if len(points) >= LEAST}
    return (comparison, curves) if curves else (None, {})


def against_library(results, run):
    """(the point of the run's last level, or of what chooses among the levels: library/ has it under the ladder's name; all
    such points) of ./run compare, for a ladder without a library of its own:
    the compared problem nearest to the ladder's; of equally near ones, the one where the book is slowest. Or None."""
    ladder, variant = SAME_PROBLEM.get((run.chapter, run.ladder), (run.ladder, None))
    for document in (results.beside, results.comparison):  # the later one first
        comparison = of_compare(document, book.identities())
        mine = [p for p in comparison.points if p.chapter == run.chapter and p.ladder == ladder and p.ratio
                and p.name in (run.timed[-1].name, ladder) and len(p.size) == len(run.size)] if comparison else []
        same = [p for p in mine if variant in (None, p.variant) and p.dtype == run.json["problem"]["dtype"]]
        if same:
            break
    else:
        return None

    def distance(point):
        return round(sum(abs(math.log2(a / b)) for a, b in zip(point.size, run.size)), 3), point.ratio

    return min(same, key=distance), mine
