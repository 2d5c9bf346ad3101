# SPDX-License-Identifier: MIT
"""What is written into READMEs: the tables between the lines <!-- results --> and <!-- /results -->, the links to the
chapters before and after, quotes of sources (quotes.py), and pictures (pictures)."""
import re

from . import across, autotuning, book, comparison, languages, memories, quotes
from .comparison import measured_with
from .markup import STALE_NOTE, code, duration, energy, mark, percent, picture, significant, table, with_ratio
from .pictures import book as pictures
from .results import size_text

BEGIN, END = "<!-- results -->", "<!-- /results -->"
NEIGHBOURS = "<!-- neighbours -->"  # the line below it is written
MEASURED = re.compile(r"^(<!-- measured (\w+) (\w+) -->\n)(?:\*\*Measured:\*\* .*\n)?", re.MULTILINE)  # so is this one's
NO_GAIN = "§"  # the last level is not faster than the first, at the ladder's own size
ELSEWHERE = "‡"  # against a library on another problem than the ladder's own
ROOFS = [("HBM copy", "hbm_copy_gbps", "GB/s"), ("L2", "l2_gbps", "GB/s"), ("FP32", "fp32_tflops", "TFLOP/s"),
         ("mma.sync bf16", "mma_bf16_tflops", "TFLOP/s"), ("wgmma bf16", "wgmma_bf16_tflops", "TFLOP/s")]


class MarkerError(Exception):
    """A README without its markers."""


def replace_between(text, table, name):
    """`text` with what stands between the markers replaced."""
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise MarkerError(f"{name} lacks the lines {BEGIN} and {END}")
    body = f"\n\n{table.strip()}\n\n" if table.strip() else "\n"
    return text[:begin + len(BEGIN)] + body + text[end:]


def against_previous(level):
    ratio = level.json.get("vs_previous")
    if not ratio:
        return "-"
    verdict = ratio.get("verdict", "")
    return f"{significant(ratio['ratio'])}x" + ("" if verdict == "faster" else f" ({verdict})")


def against_reference(level):
    ratio = level.json.get("vs_reference")
    return f"{ratio['ratio']:.2f}x" if ratio else "-"


def first_reference(run):
    names = [level.json["vs_reference"]["name"] for level in run.levels if level.json.get("vs_reference")]
    return names[0] if names else None


def conditions(run, with_problem=True):
    """One line: on what, how large, when, from which commit."""
    device = run.json["device"]
    problem = run.json["problem"]
    parts = [device["name"]]
    if with_problem:
        parts += [f"{' x '.join(problem['dims'])} = {size_text(run.size)}",
                  problem["dtype"] + (f" {problem['layout']}" if problem.get("layout") else "")]
    if device.get("toolkit"):
        parts.append(f"CUDA {device['toolkit']}")
    if device.get("driver"):
        parts.append(f"driver {device['driver']}")
    parts.append(run.json["date"][:10])
    if run.json.get("commit"):
        parts.append(f"commit {run.json['commit'][:10]}")
    return ", ".join(parts)


def limit(run, level):
    """The roof that a level comes closest to and its share of it; bold where it binds."""
    found = memories.binding(run, level)
    if not found:
        return "-"
    text = f"{found.name} {percent(found.fraction)}"
    return f"**{text}**" if found.reached else text


def limit_text(run):
    """What binds the last level, in words; "" where nothing is known."""
    levels = [level for level in run.timed if memories.binding(run, level)]
    if not levels:
        return ""
    return (f"{code(levels[-1].name)}: {memories.binding(run, levels[-1]).explained}. *limited by* names the roof that a level comes "
            "closest to, in bold where it reaches 80 % of it ([how the bytes are known](../../docs/measuring.md)).")


def above_100(run):
    """Below a table of a ladder: why some of its percentages are above 100."""
    return memories.above_100([level.fraction for level in run.timed],
                              [bound for level in run.timed if (bound := memories.binding(run, level))],
                              [(other["name"], library_fraction(run, other)) for other in run.references], run.json["roof"])


def library_fraction(run, other):
    return run.speed_of_time(other["time_us"]["median"]) / run.roof_value if run.roof_value else None


def reference_cells(run, other):
    """Time, speed and fraction of the roof of a library."""
    speed = run.speed_of_time(other["time_us"]["median"])
    return (duration(other["time_us"]["median"]), significant(speed),
            percent(library_fraction(run, other)))


def note_on_stale(things):
    """A list of what stands below a table in which one of these is stale."""
    return [f"{STALE_NOTE}."] if any(thing.stale for thing in things) else []


def ladder_table(run):
    """The ladder of one run as Markdown."""
    # Header, alignment and what stands in the row of a level that was timed.
    columns = [("time", "r", lambda level: duration(level.time())), (run.unit, "r", lambda level: significant(run.speed(level))),
               ("of roof", "r", lambda level: percent(level.fraction)), ("limited by", "l", lambda level: limit(run, level)),
               ("vs previous", "r", against_previous)]
    if reference := first_reference(run):
        columns.append((f"vs {reference}", "r", against_reference))
    if has_energy := any(level.energy for level in run.timed):
        columns.append(("energy", "r", lambda level: energy(level.energy["joules"]) if level.energy else "-"))
    headers, align, cells = zip(*columns)
    rows = [[level.index, code(level.name) + mark(level.stale), *(cell(level) if level.timed else "-" for cell in cells)]
            for level in run.levels]
    rows += [["", other["name"], *reference_cells(run, other), *[""] * (len(columns) - 3)] for other in run.references]
    below = f"{conditions(run)}; median of cold runs; roof: {run.json['roof']}"
    if run.roof_value:
        below += f", {significant(run.roof_value)} {run.unit} measured in the same run"
    if has_energy:
        below += "; energy: of the whole GPU per launch, back to back, by NVML's counter"
    skipped = [f"{code(level.name)} {level.json['status']}" + (f": {level.json['reason']}" if level.json.get("reason") else "")
               for level in run.levels if not level.timed]
    parts = [table(["", "level", *headers], rows, "rl" + "".join(align)), below + "."]
    if above := above_100(run):
        parts.append(above)
    if skipped:
        parts.append(f"Not timed: {'; '.join(skipped)}.")
    return "\n\n".join(parts + note_on_stale(run.levels))


def roofs_table(runs):
    """Chapter 0: a row per roof, since each of its ladders has one level."""
    rows = []
    for run, level in ((one, level) for one in runs for level in one.levels):
        roof = f"{significant(run.roof_value)} {run.unit}" if run.roof_value else "-"
        cells = [duration(level.time()), f"{significant(run.speed(level))} {run.unit}", roof, percent(level.fraction)] \
            if level.timed else ["-", "-", level.json.get("reason") or level.json["status"], "-"]
        rows.append([code(run.ladder) + mark(level.stale), run.json["title"], *cells])
    return "\n\n".join([table(["ladder", "unit", "time", "cold", "roof", "cold, of roof"], rows, "llrrrr"),
                        f"{conditions(runs[0], with_problem=False)}; median of cold runs; the roof is measured hot where the "
                        "unit is on the chip.", *filter(None, [memories.above_100(level.fraction for run in runs for level in run.timed)]),
                        *note_on_stale(level for run in runs for level in run.levels)])


def contestants_table(cases, key, corner, label, is_ours, text_of, device):
    """What was measured on that device: a row per problem, a column per contestant; whether any of it is stale. `key`: of
    a case's measurements; text_of(case, measurement): a cell."""
    names = dict.fromkeys(one["name"] for case in cases for one in case[key])
    ours = {one["name"] for case in cases for one in case[key] if is_ours(one)}
    rows, any_stale = [], False
    for case in cases:
        cells = dict.fromkeys(names, "-")
        for one in case[key]:
            stale = one["name"] in ours and not book.identities().has_row(one, device, case)
            any_stale |= stale
            cells[one["name"]] = text_of(case, one) + mark(stale)
        rows.append([label(case), *cells.values()])
    header = [corner, *(code(name) if name in ours else name for name in names)]
    return table(header, rows, "l" + "r" * len(names)), any_stale


def comparison_text(info, comparison):
    """The part of a chapter on what a user would pick instead; "" without measurements."""
    cases = [case for case in comparison.get("comparisons", []) if case["chapter"] == info.number and case["rows"]]
    if not cases:
        return ""
    text, any_stale = contestants_table(
        cases, "rows", f"{' x '.join(cases[0]['dims'])}, {cases[0]['unit']}",
        lambda case: " ".join(filter(None, [size_text(case["size"]), case["dtype"], case["variant"]])), lambda row: row["ours"],
        lambda case, row: with_ratio(row["tflops"] if case["flops"] else row["gbps"], row.get("vs_cookbook")),
        comparison["device"])
    absent = [name for name, version in comparison["versions"].items() if not version]
    below = f"{measured_with(comparison)}; median of cold runs, interleaved in one process; in brackets the speed over the book's."
    if absent:
        below += f" Not installed: {', '.join(absent)}."
    if any_stale:
        below += f" {STALE_NOTE}."
    return f"**What a user would pick instead** · `./run compare`\n\n{text}\n\n{below}"


def decode_table(document):
    """What compare_attention.py --decode measured: a row per problem, a column per level and library."""
    cases = document.get("cases", [])
    if not cases:
        return ""
    text, any_stale = contestants_table(
        cases, "levels", "batch x heads_q x heads_kv x seq_q x seq_k x head_dim, GB/s of K and V",
        lambda case: f"{size_text(case['shape'])} {comparison.DTYPES[case['dtype']]}",
        lambda row: row["name"] not in comparison.ATTENTION_LIBRARIES,
        lambda _, row: with_ratio(row["gbps"], row.get("vs_cudnn") if row["name"] != "cuDNN" else None, 3), document["device"])
    unknown = [name for name in ("date", "commit") if not document.get(name)]
    below = (f"{measured_with(document)}; median of cold runs, interleaved in one process; in brackets the speed over cuDNN's "
             "in the same round, the median.")
    if unknown:
        below += f" Its {' and '.join(unknown)} {'was' if len(unknown) == 1 else 'were'} not recorded."
    if any_stale:
        below += f" {STALE_NOTE}, or its source was not recorded."
    title = "**decode, beside the libraries** · `python3 plots/compare_attention.py --decode`"
    return f"{title}\n\n{text}\n\n{below}"


def chapter_text(info, results, figures):
    """What stands between the markers of a chapter's README. `figures` holds the names drawn."""
    runs = results.of_chapter(info.number) if results else []
    own = autotuning.readme_parts(results, figures) if results and info.number == autotuning.CHAPTER else []
    if not runs and not own:
        return ""
    if info.number == 0:
        return roofs_table(runs)
    def shown(name, alt):
        """The figure of that name, where it was drawn."""
        return picture(f"../../plots/figures/{results.gpu}/{name}", f"Chapter {info.number}{alt}") if name in figures else ""

    parts = []
    for index, run in enumerate(runs):
        parts.append(f"**{run.ladder}** · {run.json['title']}")
        if index == 0:
            parts += [shown(f"chapter-{info.number}-ladder", ": speed of every level"),
                      shown(f"chapter-{info.number}-roofline", ": the levels under their roofs"), limit_text(run)]
        parts += [ladder_table(run), shown(f"chapter-{info.number}-sweep-{run.ladder}", f", {run.ladder}: speed over size")]
    parts += [comparison_text(info, document) for document in (results.comparison, results.beside)]
    if info.number == comparison.ATTENTION:
        parts += [shown(comparison.SWEEP, ": speed over the length of the sequence, beside the libraries"),
                  decode_table(results.decode)]
    return "\n\n".join(filter(None, parts + own))


def gain_over_sizes(results, run):
    """(least, most, how many) speed-ups of the last level over the first in the ladder's sweep. None: it has none, or
    at the ladder's own size the last level is faster, and the table shows that."""
    first, last = (run.timed[i].name for i in (0, -1))
    if run.speed(run.timed[-1]) > run.speed(run.timed[0]):
        return None
    times = [{level.name: level.time() for level in one.timed} for one in results.sweeps.get((run.chapter, run.ladder), [])]
    found = [time[first] / time[last] for time in times if first in time and last in time]
    return (min(found), max(found), len(found)) if len(found) > 2 else None


def book_text(chapters, results, figures):
    """What stands between the markers of the README of the book."""
    parts, rows, notes, fractions, any_stale = [], [], [], [], False
    if results and "book-roofline" in figures:
        parts.append(picture(f"plots/figures/{results.gpu}/book-roofline",
                             "Every chapter's first and last level under the roofs of the GPU"))
    for info in chapters:
        title = info.title.split(":")[0] if info.title else info.folder
        link = f"[{title}](chapters/{info.folder}/README.md)"
        runs = results.of_chapter(info.number) if results else []
        if not runs:
            rows.append([info.number, link, "-", "-", "-", "-"])
            continue
        run = runs[0]
        if info.number == 0:  # it has no ladder: it measures what the others are held against
            found = [f"{name} {significant(run.roofs[key])} {unit}" for name, key, unit in ROOFS if run.roofs.get(key)]
            rows.append([info.number, link, "measured roofs", ", ".join(found) or "-", "", ""])
            continue
        first, last = run.timed[0], run.timed[-1]
        fractions.append(last.fraction)
        any_stale |= first.stale or last.stale
        reference = last.json.get("vs_reference")
        versus = f"{reference['ratio']:.2f}x {reference['name']}" if reference else "-"
        compared = None if reference else comparison.against_library(results, run)
        if compared:
            point, points = compared
            any_stale |= point.stale
            versus = f"{point.ratio:.2f}x {point.library} {ELSEWHERE}{mark(point.stale)}"
            text = (f"{ELSEWHERE} Chapter {info.number}: {code(point.name)} and {point.library} on "
                    f"{' '.join(filter(None, [size_text(point.size), point.dtype, point.variant]))}, timed in one process "
                    "by `./run compare`")
            if len(points) > 1:
                least, most = (f(p.ratio for p in points) for f in (min, max))
                text += f"; {least:.2f}x to {most:.2f}x on the {len(points)} problems compared"
            notes.append(text + ".")

        def cell(level):
            return f"{code(level.name)} {significant(run.speed(level))} {run.unit}{mark(level.stale)}"

        gained = gain_over_sizes(results, run)
        if gained:
            least, most, count = gained
            notes.append(f"{NO_GAIN} Chapter {info.number}: at this size {code(first.name)} already has the best settings. Over "
                         f"the {count} sizes of the sweep {code(last.name)} is {least:.2f}x to {most:.2f}x as fast.")
        # Without its name the next chapter's first ladder looks like a continuation of this one's last.
        name = f"{link}, {code(run.ladder)}" if len(runs) > 1 else link
        rows.append([info.number, name, cell(first), cell(last) + (f" {NO_GAIN}" if gained else ""),
                     f"{percent(last.fraction)} of {run.json['roof']}" if last.fraction else "-",
                     versus])
    parts.append(table(["", "chapter", "first level", "last level", "of roof", "vs library"], rows, "rlllrr"))
    measured = [run for info in chapters for run in (results.of_chapter(info.number) if results else [])]
    if measured:
        names = sorted({run.json["device"]["name"] for run in measured})
        dates = sorted({run.json["date"][:10] for run in measured})
        span = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
        parts.append(f"Measured on {', '.join(names)}, {span}; medians of runs with a cold L2; sizes and "
                     "conditions are in each chapter.")
    else:
        parts.append("No results are committed yet: `./run` on a GPU prints them.")
    parts += notes
    if above := memories.above_100(fractions):
        parts.append(above)
    if any_stale:
        parts.append(f"{STALE_NOTE}.")
    return "\n\n".join(parts)


def reached(run, level):
    """Speed and, where it is known, fraction of the roof of a level, in words."""
    speed = f"{significant(run.speed(level))} {run.unit}"
    noise = " (noise)" if memories.above_100([level.fraction]) else ""
    return [speed] + ([f"{percent(level.fraction)} of {run.json['roof']}{noise}"] if level.fraction is not None else [])


def measured_text(results, info, ladder, name):
    """The line below <!-- measured LADDER LEVEL -->; "" without results of the chapter."""
    runs = results.of_chapter(info.number) if results else []
    found = [(run, level) for run in runs if run.ladder == ladder for level in run.timed if level.name == name]
    if not found:
        return "**Measured:** not yet.\n" if runs else ""
    run, level = found[0]
    parts = reached(run, level)
    if against_previous(level) != "-":
        parts.append(f"{against_previous(level).replace('x', ' times the previous level', 1)}")
    return f"**Measured:** {', '.join(parts)}{mark(level.stale)}.\n"


def neighbours_text(info, chapters):
    """Links to the chapters before and after, for the end of a chapter's README."""
    at = chapters.index(info)
    links = [f"{word}: [{other.number} · {other.title.split(':')[0]}](../{other.folder}/README.md)"
             for word, other in (("Previous", chapters[at - 1] if at else None),
                                 ("Next", chapters[at + 1] if at + 1 < len(chapters) else None)) if other]
    return " · ".join(links + ["[all chapters](../../README.md)"])


def with_neighbours(text, line, name):
    """`text` with the line below NEIGHBOURS replaced."""
    if NEIGHBOURS not in text:
        raise MarkerError(f"{name} lacks the line {NEIGHBOURS}")
    return re.sub(rf"{NEIGHBOURS}\n(?:(?:Previous|Next): .*\n)?", lambda _: f"{NEIGHBOURS}\n{line}\n", text)


def targets(chapters, every, names, root=book.ROOT):
    """(file, text between its markers or None, its chapter or None) of every page that is written into. `every`, `names`:
    the Results of each GPU and the names of its figures; the READMEs show those of the first."""
    results, figures = (every[0], names[0]) if every else (None, {})
    others = [f"<details><summary>On {across.short(other)}</summary>\n\n{book_text(chapters, other, drawn)}\n\n</details>"
              for other, drawn in zip(every[1:], names[1:])]
    yield root / "README.md", "\n\n".join([book_text(chapters, results, figures), *others]), None
    for info in chapters:
        folder = root / "chapters" / info.folder
        if (folder / "README.md").exists():
            yield folder / "README.md", chapter_text(info, results, figures), info
        if (folder / "notes.md").exists():
            yield folder / "notes.md", None, None
    for page in sorted((root / "library").glob("*/README.md")):
        yield page, None, None
    for page in ("docs/capstones.md", "docs/pictures.md"):  # these two have pictures
        if (root / page).exists():
            yield root / page, None, None
    for page, text in ((root / "docs/languages.md", lambda: languages.text(results, root)),
                       (root / "docs/gpus.md", lambda: across.text(every, chapters))):
        if page.exists():
            yield page, text(), None


def update(chapters, every, names, check, root, files):
    """Writes tables, links and quotes into `files`, or with `check` only compares. `every`, `names`: as for targets().
    Returns what is wrong, a line each."""
    results = every[0] if every else None
    wrong, quoted, drawn = [], set(), {}
    for file, text, info in targets(chapters, every, names, root):
        name = file.relative_to(root)
        old = file.read_text() if file.exists() else f"{BEGIN}\n{END}\n"
        try:
            new, used = quotes.filled(old, file.parent)
            if check and new != old:
                wrong.append(f"{name}: a quote differs from its source (./run plots writes it)")
            with_pictures = pictures.filled(new, file, root, drawn)
            if check and with_pictures != new:
                wrong.append(f"{name}: a picture differs from its data (./run plots writes it)")
            new = with_pictures
            quoted |= used
            with_quotes = new
            if text is not None:
                new = replace_between(new, text, name)
            if info:
                new = MEASURED.sub(lambda m, of=info: m[1] + measured_text(results, of, m[2], m[3]), new)
                new = with_neighbours(new, neighbours_text(info, chapters), name)
        except (MarkerError, ValueError) as error:
            wrong.append(f"{name}: {error}" if isinstance(error, ValueError) else str(error))
            continue
        if check and new != with_quotes:
            wrong.append(f"{name}: its table differs from the committed results (./run plots writes it)")
        elif not check and new != old:
            files.write_text(file, new)
            print(f"wrote {name}")
    wrong += [*quotes.unused(root, quoted), *pictures.wrong(root, drawn, check)]
    for path, svg in {} if check else drawn.items():
        files.write_text(path, svg)
    return wrong
