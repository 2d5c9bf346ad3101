# SPDX-License-Identifier: MIT
"""The figures: the ladder and the roofline of a chapter, the roofline of the book, size sweeps."""
import functools
import itertools
import math
import textwrap
from collections import Counter

from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from . import autotuning, memories, style
from .comparison import size_and_mask
from .devices import sheet_of
from .markup import percent, significant
from .results import CORES, KINDS, size_text, traffic
from .style import plt
from .tables import against_reference


def foot(run):
    device, problem = run.json["device"], run.json["problem"]
    clocks = [sample["sm_mhz"] for sample in run.json.get("clocks") or [] if sample.get("sm_mhz")]
    parts = [device["name"]]
    if clocks:
        low, high = min(clocks), max(clocks)
        parts.append(f"SM clock {low:.0f} MHz" if low == high else f"SM clock {low:.0f}-{high:.0f} MHz")
    dims = f"{' x '.join(problem['dims'])} = " if len(problem["dims"]) <= 3 else ""  # the chapter's table names them
    parts.append(f"{dims}{size_text(run.size)} {problem['dtype']}")
    parts.append(run.json["date"][:10])
    if run.json.get("commit"):
        parts.append(f"commit {run.json['commit'][:10]}")
    if any(level.stale for level in run.levels):
        parts.append("* code changed since")
    return " · ".join(parts)


def panel(width, height, left, right, top, bottom):
    """A figure of one panel, `top` and `bottom` inches from its edges, `left` and `right` as fractions of its width."""
    figure, axes = plt.subplots(figsize=(width, height))
    figure.subplots_adjust(left=left, right=right, top=1 - top / height, bottom=bottom / height)
    return figure, axes


def beside(axes, text, at, points, **look):
    """A text so many points beside a place."""
    axes.annotate(text, at, xytext=points, textcoords="offset points", **look)


def whiskers(run, level):
    """How far the quartiles of a level's speed are from its median, as error bars want it."""
    speed = run.speed(level)
    return [[max(speed - run.speed(level, "q3"), 0)], [max(run.speed(level, "q1") - speed, 0)]]


def label(level):
    return f"{level.index} · {level.name}" + (" *" if level.stale else "")


def clear_of(axes, lines, end, text, inside):
    """Where the label of a bar that ends at `end` begins, or `inside` the bar ends, so that no line crosses it."""
    scale = axes.figure.dpi / 72
    width, gap = 5.9 * len(text) * scale, 7 * scale
    side = -1 if inside else 1
    at = axes.transData.transform((end, 0))[0] + side * gap
    for x in sorted((axes.transData.transform((line, 0))[0] for line in lines), reverse=inside):
        low, high = (at - width, at) if inside else (at, at + width)
        if low - gap / 2 < x < high + gap / 2:
            at = x + side * gap
    return axes.transData.inverted().transform((at, 0))[0]


def title(figure, text, inches=0.08):
    """Its title, so far below the upper edge."""
    figure.suptitle(text, x=0.012, y=1 - inches / figure.get_figheight(), ha="left", va="top", fontsize=12, fontweight="bold")


def plain_numbers(value, _=None):
    """1,000 instead of 10³ beside an axis."""
    return f"{value:,g}"


def named_rows(axes, places, names, limits, theme):
    """Names at the left of bars, in place of an axis."""
    axes.set_yticks(places, names, color=theme.text)
    axes.set_ylim(limits)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


# --- the ladder ------------------------------------------------------------------------------------
def ladder(run, theme):
    """A bar per level, the library as a line, the roof as another."""
    levels = run.timed
    figure, axes = panel(8.6, 1.75 + 0.40 * len(levels), 0.24, 0.95, top=0.85, bottom=0.80)
    for y, level in enumerate(levels):
        axes.barh(y, run.speed(level), height=0.68, color=theme.first, alpha=0.55 if level.stale else 1,
                  hatch="//" if level.stale else None, edgecolor=theme.background, linewidth=0)
        axes.errorbar(run.speed(level), y, xerr=whiskers(run, level), color=theme.text, capsize=2.5, linewidth=1)
    top = max([run.speed(level, "q1") for level in levels])
    lines = [(speed, name, theme.accent, dashes)
             for (name, speed), dashes in zip(run.library_speeds().items(), itertools.cycle(style.LIBRARY_DASHES))]
    if run.roof_value:
        lines.append((run.roof_value, f"roof ({run.json['roof']})", theme.roof, "-"))
    for row, (x, name, colour, dashes) in enumerate(sorted(lines)):
        axes.axvline(x, color=theme.background, linewidth=4.5, zorder=2.9)  # a bar may be as dark as the line
        axes.axvline(x, color=colour, linestyle=dashes, linewidth=1.5, zorder=3, label=name)
        beside(axes, name, (x, 1), (0, 3 + 11 * row), xycoords=("data", "axes fraction"), color=colour, fontsize=8.5,
               va="bottom", ha="center")
        top = max(top, x)
    axes.set_xlim(0, top * 1.16)
    widest = max(run.speed(level) for level in levels)
    for y, level in enumerate(levels):
        speed = run.speed(level)
        ratio = level.json.get("vs_previous")
        text = significant(speed)
        if ratio:
            text += f" · {significant(ratio['ratio'])}x"
        inside = speed > 0.5 * widest
        fill = style.blend(theme.first, theme.background, 0.55 if level.stale else 1)
        at = clear_of(axes, [line[0] for line in lines], run.speed(level, "q3" if inside else "q1"), text, inside)
        axes.annotate(text, (at, y), va="center", ha="right" if inside else "left", fontsize=9,
                      color=theme.background if inside and not level.stale else theme.text, zorder=4,
                      bbox={"facecolor": fill if inside else theme.background, "edgecolor": "none", "pad": 1})
    axes.xaxis.set_major_formatter(plain_numbers)
    named_rows(axes, range(len(levels)), [label(level) for level in levels], (len(levels) - 0.45, -0.55), theme)
    axes.set_xlabel(f"{run.unit}   (bar: median; whisker: quartiles; 1.5x: against the level above)", fontsize=9)
    title(figure, f"{run.heading} · {run.ladder}")
    style.conditions(figure, theme, foot(run))
    return figure


def traffic_bars(run, theme):
    """Bytes of the sectors that each level's accesses touch, over the fewest that the problem needs. Needs no GPU."""
    rows = [(level, *traffic(run, level)) for level in run.levels]
    rows = [(level, factor, origin) for level, factor, origin in rows if factor]
    figure, axes = panel(8.6, 1.75 + 0.40 * len(rows), 0.24, 0.95, top=0.62, bottom=0.80)
    for y, (level, factor, _) in enumerate(rows):
        axes.barh(y, factor, height=0.68, color=theme.first, alpha=0.55 if level.stale else 1)
        beside(axes, significant(factor), (factor, y), (7, 0), va="center", fontsize=9)
    axes.axvline(1, color=theme.roof, linewidth=1.5)
    axes.set_xlim(0, 1.16 * max(factor for _, factor, _ in rows))
    named_rows(axes, range(len(rows)), [label(level) for level, _, _ in rows], (len(rows) - 0.45, -0.55), theme)
    axes.set_xlabel("bytes of all sectors requested, per byte that the problem needs   (line at 1: each byte once)", fontsize=9)
    title(figure, f"{run.heading} · {run.ladder}: traffic")
    style.conditions(figure, theme, f"{rows[0][2]} at {size_text(rows[0][0].counted.trace_size)} · "
                     f"{run.json['date'][:10]}")
    return figure


# --- rooflines -------------------------------------------------------------------------------------
class Chart:
    """The two kinds of roofline. GEMM and attention: FLOP per byte against TFLOP/s. What only
    moves bytes: needed bytes per byte moved against needed GB/s, where moving every byte once is 1."""

    def __init__(self, run):
        self.run = run
        problem = run.json["problem"]
        self.flops = run.counts_flops
        self.algorithmic = problem["flops"] / problem["bytes"] if self.flops else 1.0
        self.unit = run.unit
        self.scale = 1e-3 if self.flops else 1.0  # GB/s times FLOP/byte -> TFLOP/s

    def x(self, level):
        """The intensity by the bytes that the level asks for or, where only those are known, that it moves through
        device memory; the algorithm's own where nothing was counted."""
        factor, _ = traffic(self.run, level)
        if factor is None:
            known = memories.moved(self.run, level).get("dram")
            factor = known.bytes / self.run.json["problem"]["bytes"] if known else 1
        return self.algorithmic / factor

    def diagonals(self):
        names = memories.NAMES | {"dram": "HBM copy" if self.run.json["roof"] == "HBM copy" else "HBM read"}
        return [(names[memory], gbps * self.scale, memory)
                for memory, gbps in memories.memory_roofs(self.run, self.run.roofs).items()]

    def ceiling(self):
        return self.run.roof_value

    def ceilings(self):
        """The measured ceilings of these cores: on tensor cores both kinds of instruction."""
        return self.run.ceilings()

    def sheet_diagonal(self):
        return self.run.sheet.dram_gbps * self.scale if self.run.sheet else None

    def sheet_ceiling(self):
        if not self.flops or not self.run.sheet:
            return None
        return self.run.sheet.peak(KINDS[self.run.json["roof"]])


def draw_roofs(axes, chart, theme, x_range, y_range, narrow=False):
    """Measured roofs solid, data-sheet ones dashed; the labels run along the lines, or where the panel is
    narrow stand above them."""
    low, high = x_range
    ceiling, ceilings, diagonals = chart.ceiling(), chart.ceilings(), chart.diagonals()
    sheet, sheet_ceiling = (chart.sheet_diagonal(), chart.sheet_ceiling()) if chart.run.roofs_measured else (None, None)
    dashes = "-" if chart.run.roofs_measured else (0, (4, 3))
    of_sheet = {"color": theme.muted, "linewidth": 1, "linestyle": (0, (4, 3)), "zorder": 0.9, "label": "data sheet"}

    for order, (name, slope, memory) in enumerate(diagonals):
        end = min(ceiling / slope, high) if chart.flops and ceiling else high
        axes.plot([low, end], [slope * low, slope * end], color=theme.memories[memory], linewidth=1.9 - 0.3 * order,
                  linestyle=dashes, zorder=1, label=name if order else "roof")
        # The label where the line enters the panel.
        start = max(low, y_range[0] / slope)
        stop = min(end, y_range[1] / slope)
        if stop <= start:
            continue
        x = start * (stop / start) ** (0.10 if order == 0 else 0.06)
        text = f"{name} {significant(slope / chart.scale)} GB/s"
        if math.log10(stop / x) / chart.decades_per_inch / math.cos(math.radians(chart.angle)) < 0.066 * len(text):
            continue
        below = order == 0 and sheet  # the data sheet's line is just above
        beside(axes, text, (x, slope * x), (0, -3 if below else 3), rotation=chart.angle, rotation_mode="anchor",
               fontsize=7.5, color=theme.muted, va="top" if below else "bottom", ha="left")
    if sheet:
        end = min(sheet_ceiling / sheet, high) if sheet_ceiling else high
        axes.plot([low, end], [sheet * low, sheet * end], **of_sheet)
    for name, value in ceilings if ceiling else ():
        start = value / diagonals[-1][1] if diagonals else low
        mine = value == ceiling
        axes.plot([max(start, low), high], [value, value], color=theme.roof, linewidth=1.9 if mine else 1,
                  linestyle=dashes, zorder=1, label="roof" if mine else name)
        if narrow:
            continue
        # Above the line; the lower of two below, out of the other's way.
        lower = len(ceilings) > 1 and value == min(v for _, v in ceilings)
        # Of several memories the slowest meets the ceiling last: to the right of it the line is alone.
        ridge = value / diagonals[0][1] if diagonals else low
        beside(axes, f"{name} {significant(value)} {chart.unit}", (max(ridge, low), value), (44, -2) if lower else (9, 2),
               fontsize=7.5, color=theme.text if mine else theme.muted, va="top" if lower else "bottom", ha="left",
               zorder=1.5, bbox={"facecolor": theme.background, "edgecolor": "none", "pad": 0.4, "alpha": 0.75})
    if narrow and ceilings and ceiling:
        text = ", ".join(f"{name} {significant(value)}" for name, value in reversed(ceilings))
        axes.text(0.02, 0.99, f"{text} {chart.unit}", transform=axes.transAxes, fontsize=7.5, color=theme.text, va="top")
    if sheet_ceiling:
        start = sheet_ceiling / sheet if sheet else low
        axes.plot([max(start, low), high], [sheet_ceiling, sheet_ceiling], **of_sheet)


def ranges(points, charts, algorithm=True):
    """Axis ranges that hold every dot, the algorithm's intensity (if `algorithm`) and the corner of the roof."""
    xs = [x for x, _ in points] + [chart.algorithmic for chart in charts if algorithm]
    ys = [y for _, y in points] + [c for chart in charts if (c := chart.ceiling())]
    ys += [value for chart in charts for _, value in chart.ceilings()]
    for chart in charts:
        if chart.flops and chart.ceiling() and chart.diagonals():
            xs.append(chart.ceiling() / chart.diagonals()[0][1])
    spread = 2.0
    return (min(xs) / spread, max(xs) * 1.4 * spread), (min(ys) / 1.8, max(ys) * 2.2)


def set_angles(axes, figure, charts, x_range, y_range):
    """The slope of a diagonal on paper, so that its label can follow it."""
    box = axes.get_position()
    width, height = box.width * figure.get_figwidth(), box.height * figure.get_figheight()
    decades_x = math.log10(x_range[1] / x_range[0]) / width
    decades_y = math.log10(y_range[1] / y_range[0]) / height
    for chart in charts:
        chart.angle = math.degrees(math.atan2(1 / decades_y, 1 / decades_x))
        chart.decades_per_inch = decades_x


def roof_axes(figure, axes, theme, charts, drawn, x_range, y_range, narrow=False):
    """Logarithmic axes with the roofs of one of `charts`. Ticks at 1, 10, 100 ... and where that leaves few, at 2 and 5
    of each decade as well."""
    axes.set(xscale="log", yscale="log", xlim=x_range, ylim=y_range)
    set_angles(axes, figure, charts, x_range, y_range)
    draw_roofs(axes, drawn, theme, x_range, y_range, narrow)
    for axis, (low, high) in ((axes.xaxis, x_range), (axes.yaxis, y_range)):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 300 else (1,)))
        axis.set_major_formatter(FuncFormatter(plain_numbers))
        axis.set_minor_formatter(NullFormatter())
    axes.set(xlabel="FLOP per byte" if drawn.flops else "bytes the problem needs, per byte moved   (1: each byte once)",
             ylabel=drawn.unit if drawn.flops else "GB/s of bytes the problem needs")


def apart(axes, points, both_sides=True, distance=17, step=None):
    """Moves dots that would cover one another sideways, in steps: index -> (x, y) to draw at. Under a slope only to
    the right, where no dot comes to lie above it."""
    placed, step = {}, step or distance
    left, right = (axes.transData.transform((x, 1))[0] for x in axes.get_xlim())
    for index, point in points.items():
        start, y = axes.transData.transform(point)
        for tries in range(math.ceil((2 * len(points) + 2) * distance / step)):
            x = start + step * (((tries + 1) // 2) * (1 if tries % 2 else -1) if both_sides else tries)
            inside = left + 0.6 * distance < x < right - 0.6 * distance
            if (inside or tries == 0) and all((x - a) ** 2 + (y - b) ** 2 >= (0.97 * distance) ** 2
                                              for a, b in placed.values()):
                break
        else:
            x = start  # no room: covered is better than outside
        placed[index] = (x, y)
    return {index: tuple(axes.transData.inverted().transform(pixel)) for index, pixel in placed.items()}


MARKS = {"dram": "o", "l2": "s", "shared": "^"}
ROOM = 12  # points between two numbers beside dots


def spread(wanted, room):
    """Positions near the wanted ones, in their order, at least `room` apart: key -> position."""
    groups = []  # [keys, sum of (wanted - offset within the group)]
    for key, value in sorted(wanted.items(), key=lambda item: item[1]):
        groups.append([[key], value])
        while len(groups) > 1:
            (before, low), (after, high) = groups[-2:]
            if low / len(before) + len(before) * room <= high / len(after):
                break
            groups[-2:] = [[before + after, low + high - len(before) * room * len(after)]]
    return {key: total / len(keys) + i * room for keys, total in groups for i, key in enumerate(keys)}


def marks_of(chart, level):
    """(memory, intensity, where its bytes come from) of a level; the algorithm's own where no bytes are known."""
    found = [(memory, chart.algorithmic * chart.run.json["problem"]["bytes"] / amount.bytes, amount.origin)
             for memory, amount in memories.moved(chart.run, level).items()]
    return found or [(None, chart.algorithmic, "")]


def draw_marks(axes, theme, marks, y, colour=None, zorder=4):
    """The dots of one level, at their true intensities, and a line that holds them together."""
    axes.plot([x for _, x, _ in marks], [y] * len(marks), color=theme.muted, linewidth=0.7, alpha=0.6, zorder=2)
    for memory, x, origin in marks:
        own = colour or theme.memories.get(memory, theme.first)
        faint = origin == memories.AT_MOST
        axes.plot([x], [y], marker=MARKS.get(memory, "D"), markersize=7, linestyle="none", markeredgewidth=1.4,
                  color=own if origin in (memories.NCU, "") else theme.background,
                  markeredgecolor=theme.muted if faint and not colour else own, zorder=zorder)


def number_dots(axes, figure, theme, places):
    """Numbers and names right of dots, pulled apart, each with a line to its dot. places: key -> (x, y, text, look)."""
    scale = figure.dpi / 72
    pixels = {key: axes.transData.transform(place[:2]) for key, place in places.items()}
    heights = spread({key: y for key, (_, y) in pixels.items()}, ROOM * scale)
    for key, (x, y, text, look) in places.items():
        beside(axes, text, (x, y), (16, (heights[key] - pixels[key][1]) / scale), fontsize=8, zorder=6,
               va="center_baseline", ha="left", **look,
               bbox={"facecolor": theme.background, "edgecolor": "none", "pad": 0.3, "alpha": 0.75},
               arrowprops={"arrowstyle": "-", "color": theme.muted, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4})


def anchor_x(marks):
    """The intensity that a level's number stands beside: of device memory where that is known."""
    return next((x for memory, x, _ in marks if memory == "dram"), marks[0][1])


def roof_panel(figure, axes, theme, chart, xs, ys):
    """Axes, roofs and the algorithm's intensity, for dots at xs and ys."""
    x_range, y_range = ranges([(x, ys[0]) for x in xs] + [(xs[0], y) for y in ys], [chart])
    roof_axes(figure, axes, theme, [chart], chart, x_range, y_range)
    axes.axvline(chart.algorithmic, color=theme.accent, linestyle=":", linewidth=1.4, zorder=0.8, label="the algorithm")
    what = f"{significant(chart.algorithmic)} FLOP/byte" if chart.flops else "every byte once"
    beside(axes, f"the algorithm: {what}", (chart.algorithmic, y_range[0]), (-5, 4), fontsize=7.5, color=theme.accent,
           ha="right", va="bottom", zorder=6)


def roofs_note(run):
    if run.roofs_measured:
        return f"solid: {run.roofs_from}" + ("; dashed: data sheet" if run.sheet else "")
    return f"roofs: {run.roofs_from}, not measured"


def legend_of_marks(origins, known):
    """What the marks mean, for the foot of a roofline."""
    names = {"dram": "circle: device memory", "l2": "square: L2", "shared": "triangle: L1 / shared"}
    grey = "; grey: at most, L1 may deliver a part" if memories.AT_MOST in origins else ""
    return [note for holds, note in (
        (known - {None}, "; ".join(text for memory, text in names.items() if memory in known)),
        (memories.NCU in origins, "full: bytes measured by ncu"),
        (origins & {memories.COUNTED, memories.AT_MOST, memories.ONCE}, f"open: bytes counted by the SIMT backend{grey}"),
        (memories.ONCE in origins, "open circle: each byte that the level touches, once"),
        (None in known, "diamond: bytes not counted, at the algorithm's own intensity")) if holds]


def roofline(run, theme):
    """The levels of one ladder under their roofs, a dot per memory whose bytes are known, and beside them what each
    changed and what binds it."""
    chart = Chart(run)
    levels = run.timed
    two_lines = len(levels) <= 8
    block = 0.66 if two_lines else 0.53  # inches of a level in the list
    height = max(5.9, 1.35 + block * len(levels))
    figure = plt.figure(figsize=(11.2, height))
    axes = figure.add_axes((0.075, 0.80 / height, 0.525, 1 - 1.38 / height))
    marks = {level.index: marks_of(chart, level) for level in levels}
    stars = run.library_speeds()
    roof_panel(figure, axes, theme, chart, [x for found in marks.values() for _, x, _ in found],
               [run.speed(level) for level in levels] + list(stars.values()))
    places = {}
    for level in levels:
        x, y = anchor_x(marks[level.index]), run.speed(level)
        axes.errorbar(x, y, yerr=whiskers(run, level), color=theme.first, capsize=3, linewidth=1.2, zorder=3)
        draw_marks(axes, theme, marks[level.index], y)
        places[level.index] = (x, y, str(level.index), {"color": theme.text, "fontweight": "bold"})
    for (name, y), marker in zip(stars.items(), "*PX"):
        axes.plot([chart.algorithmic], [y], marker=marker, markersize=10, color=theme.accent,
                  markeredgecolor=theme.background, zorder=4.5, label=name, linestyle="none")
        places[name] = (chart.algorithmic, y, name, {"color": theme.accent})
    number_dots(axes, figure, theme, places)
    title(figure, f"{run.heading} · {run.ladder} under its roofs", 0.15)

    # The list beside the panel: number, name, fraction of the roof, what binds, and what the level changed.
    y = 1 - 0.59 / height
    write = functools.partial(figure.text, va="top")
    for level in levels:
        tail = f"{percent(level.fraction)} of {run.json['roof']}" if level.fraction is not None else ""
        write(0.620, y, str(level.index), fontsize=9, fontweight="bold", color=theme.first)
        write(0.642, y, level.name + (" *" if level.stale else ""), fontsize=9, fontweight="bold")
        write(0.992, y, tail, fontsize=8, color=theme.text, ha="right")
        below = y - 0.175 / height
        if bound := memories.binding(run, level):
            colour, weight = (theme.text, "bold") if bound.reached else (theme.muted, "normal")
            write(0.642, below, str(bound), fontsize=7.5, color=colour, fontweight=weight)
            below -= 0.135 / height
        idea = textwrap.wrap(level.json["changed"], 68)
        if len(idea) > 1 + two_lines:
            idea = idea[:1 + two_lines]
            idea[-1] = idea[-1][:64].rstrip(" ,;:") + " ..."
        write(0.642, below, "\n".join(idea), fontsize=7.5, color=theme.muted, linespacing=1.15)
        y -= block / height
    origins = {origin for found in marks.values() for _, _, origin in found}
    notes = [roofs_note(run)]
    notes += legend_of_marks(origins, {memory for found in marks.values() for memory, _, _ in found})
    if missing := memories.not_measured(run, run.roofs):
        notes.append(f"roof not measured: {', '.join(missing)}")
    figure.text(0.992, 0.05 / height, "\n".join(notes), fontsize=7, color=theme.muted, va="bottom", ha="right")
    style.conditions(figure, theme, foot(run), width=0.6)
    return figure


PANELS = [("Moving bytes", lambda run: not run.counts_flops), ("FP32 cores", lambda run: run.json["roof"] in CORES),
          ("Tensor cores", lambda run: run.counts_flops and run.json["roof"] not in CORES)]


def book_runs(results, chapters):
    """The headline run of every chapter that has a ladder of several levels."""
    return [(info, run) for info in chapters if info.number > 0 for run in results.of_chapter(info.number)[:1]
            if len(run.timed) > 1]


def book_roofline(results, chapters, theme):
    """Every chapter from its first level (open) to its last (full), under the roofs of the GPU."""
    runs = book_runs(results, chapters)
    panels = [(title, mine) for title, belongs in PANELS if (mine := [r for r in runs if belongs(r[1])])]
    if not panels:
        return None
    # A panel with many chapters is wider and lists them in two columns.
    columns = [1 if len(mine) <= 3 else 2 for _, mine in panels]
    rows = max(math.ceil(len(mine) / n) for n, (_, mine) in zip(columns, panels))
    height = 5.15 + 0.36 * rows
    figure, all_axes = plt.subplots(1, len(panels), figsize=(max(8.6, 1.0 + 3.7 * len(panels)), height), squeeze=False,
                                    gridspec_kw={"width_ratios": [1 if n == 1 else 1.95 for n in columns]})
    figure.subplots_adjust(left=0.06 if len(panels) == 3 else 0.11, right=0.985, top=1 - 0.75 / height,
                           bottom=(1.30 + 0.36 * rows) / height, wspace=0.25)
    farthest = 1
    for axes, n, (title, mine) in zip(all_axes[0], columns, panels):
        charts = [Chart(run) for _, run in mine]
        # The last levels are placed first; later ones avoid them.
        places = {(order, i): (chart.x(run.timed[i]), run.speed(run.timed[i]))
                  for i in (-1, 0) for order, (chart, (_, run)) in enumerate(zip(charts, mine))}
        x_range, y_range = ranges(list(places.values()), charts, algorithm=False)
        if not charts[0].flops:  # room for those that can only be set aside to the right
            x_range = (x_range[0] * 1.4, x_range[1] * 1.05 ** len(mine))
        highest = max(charts, key=lambda chart: chart.ceiling() or 0)
        roof_axes(figure, axes, theme, charts, highest, x_range, y_range, narrow=True)
        drawn = apart(axes, places, both_sides=charts[0].flops, distance=14, step=1)
        farthest = max([farthest] + [math.exp(abs(math.log(drawn[key][0] / places[key][0]))) for key in places])
        entries = []
        for order, (info, run) in enumerate(mine):
            colour, marker = style.of_series(order)
            first, last = run.timed[0], run.timed[-1]
            start, end = drawn[order, 0], drawn[order, -1]
            axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 5,
                                                      "shrinkB": 8, "linewidth": 1.3, "mutation_scale": 11})
            axes.plot(*start, marker=marker, color=theme.background, markeredgecolor=colour, markersize=8,
                      markeredgewidth=1.6, zorder=4)
            (line,) = axes.plot(*end, marker=marker, color=colour, markeredgecolor=theme.background,
                                markersize=12.5, zorder=5, linestyle="none", label=f"chapter {info.number}")
            beside(axes, str(info.number), end, (0, -1.6 if marker == "^" else 0), fontsize=7, fontweight="bold",
                   va="center_baseline", ha="center", color="#000000" if style.lightness(colour) > 55 else "#ffffff", zorder=6)
            text = (f"{info.number} {run.ladder}: {significant(run.speed(first))} to "
                    f"{significant(run.speed(last))} {run.unit}\n{percent(last.fraction)} of {run.json['roof']}")
            if last.json.get("vs_reference"):
                text += f", {against_reference(last)} {last.json['vs_reference']['name']}"
            entries.append((line, text + (" *" if first.stale or last.stale else "")))
        axes.set_title(title)
        axes.set_xlabel("FLOP per byte" if charts[0].flops else "needed bytes per byte moved")
        axes.set_ylabel(charts[0].unit, labelpad=1)
        axes.legend([e[0] for e in entries], [e[1] for e in entries], loc="upper left", ncol=n, markerscale=0.8,
                    columnspacing=0.6, bbox_to_anchor=(0, -0.58 / (axes.get_position().height * height)), fontsize=7.5,
                    handletextpad=0.2, borderaxespad=0)
    run = runs[0][1]
    figure.suptitle("The book: every chapter's first level (open) and last (full)", x=0.012, y=0.975, ha="left",
                    fontsize=13, fontweight="bold")
    dates = sorted(run.json["date"][:10] for _, run in runs)
    commits = sorted({run.json["commit"][:10] for _, run in runs if run.json.get("commit")})
    text = f"{run.json['device']['name']} · {dates[0]}" + (f" to {dates[-1]}" if dates[-1] != dates[0] else "")
    if commits:
        text += " · commit " + ", ".join(commits)
    if any(level.stale for _, run in runs for level in run.levels):
        text += " · * code changed since"
    style.conditions(figure, theme, text + "\nsolid: roofs measured in the same run · dashed: data sheet · "
                     "horizontal: bytes asked for, or of device memory where ncu measured them or only those are counted"
                     + (f" · dots that cover one another: moved sideways, {farthest:.1f}x at most, except the lowest chapter's"
                        if farthest > 1.05 else ""))
    return figure


# --- one's own results -----------------------------------------------------------------------------
def compared(named, theme):
    """Several runs of one ladder, as a pair of lists, the runs and their names: the bars of a level under one another,
    each over the first run's."""
    runs, labels = named
    names = list(dict.fromkeys(level.name for run in runs for level in run.timed))
    height = 1.9 + 0.20 * len(names) * (len(runs) + 0.8) + 0.16 * len(runs)
    figure, axes = panel(8.6, height, 0.24, 0.95, top=0.62, bottom=0.85 + 0.16 * len(runs))
    speeds = [{level.name: level for level in run.timed} for run in runs]
    widest = max(run.speed(level) for run in runs for level in run.timed)
    for row, name in enumerate(names):
        for order, (run, mine) in enumerate(zip(runs, speeds)):
            if name not in mine:
                continue
            y = row * (len(runs) + 0.8) + order
            speed = run.speed(mine[name])
            axes.barh(y, speed, height=0.86, color=style.of_series(order)[0], label=labels[order] if row == 0 else None)
            axes.errorbar(speed, y, xerr=whiskers(run, mine[name]), color=theme.text, capsize=2, linewidth=0.9)
            text = significant(speed)
            if order and name in speeds[0]:
                text += f" · {speed / runs[0].speed(speeds[0][name]):.2f}x"
            beside(axes, text, (run.speed(mine[name], "q1"), y), (6, 0), va="center", fontsize=8)
    axes.set_xlim(0, 1.22 * widest)
    places = [row * (len(runs) + 0.8) + (len(runs) - 1) / 2 for row in range(len(names))]
    named_rows(axes, places, names, (len(names) * (len(runs) + 0.8) - 0.6, -0.8), theme)
    axes.xaxis.set_major_formatter(plain_numbers)
    axes.set_xlabel(f"{runs[0].unit}   (bar: median; whisker: quartiles; 1.5x: against the first run)", fontsize=9)
    title(figure, f"{runs[0].heading} · {runs[0].ladder}: {len(runs)} runs")
    own_legend(figure, theme, runs, labels)
    return figure


def own_legend(figure, theme, runs, labels):
    """A line per run at the foot, in its colour."""
    height = figure.get_figheight()
    for order, (run, text) in enumerate(zip(runs, labels)):
        y = (0.08 + 0.16 * (len(runs) - 1 - order)) / height
        figure.text(0.008, y, f"{text}:", color=style.of_series(order)[0], fontsize=8, fontweight="bold")
        figure.text(0.992, y, foot(run), color=theme.muted, fontsize=7, ha="right")


def overlay(named, theme):
    """The same in one roofline, a colour and a line of roofs for each run."""
    runs, labels = named
    height = 5.6 + 0.16 * len(runs)
    figure = plt.figure(figsize=(9.6, height))
    axes = figure.add_axes((0.085, (0.75 + 0.16 * len(runs)) / height, 0.895, 1 - (1.25 + 0.16 * len(runs)) / height))
    charts = [Chart(run) for run in runs]
    marks = [{level.index: marks_of(chart, level) for level in run.timed} for chart, run in zip(charts, runs)]
    order = max(range(len(runs)), key=lambda i: charts[i].ceiling() or 0)  # whose roofs are highest
    roof_panel(figure, axes, theme, charts[order], [x for found in marks for one in found.values() for _, x, _ in one],
               [run.speed(level) for run in runs for level in run.timed])
    low, high = axes.get_xlim()
    places = {}
    for i, (run, chart) in enumerate(zip(runs, charts)):
        colour, marker = style.of_series(i)
        if i != order:
            ceiling = chart.ceiling() if chart.flops else None
            thin = functools.partial(axes.plot, color=colour, linewidth=0.8, zorder=0.9)
            for _, slope, _ in chart.diagonals():
                end = min(high, ceiling / slope) if ceiling else high
                thin([low, end], [slope * low, slope * end])
            if ceiling:
                thin([low, high], [ceiling] * 2)
        for level in run.timed:
            # One dot per level and run: the memories of each are in its own figure.
            x, y = anchor_x(marks[i][level.index]), run.speed(level)
            axes.plot([x], [y], marker=marker, color=colour, linestyle="none", markersize=7,
                      markeredgecolor=theme.background, zorder=4)
            places[i, level.index] = (x, y, f"{level.index}", {"color": colour, "fontweight": "bold"})
    number_dots(axes, figure, theme, places)
    title(figure, f"{runs[0].heading} · {runs[0].ladder}: {len(runs)} runs under the roofs of {labels[order]}", 0.15)
    figure.text(0.992, (0.12 + 0.16 * len(runs)) / height, f"{roofs_note(runs[order])}; thin: roofs of the other runs",
                fontsize=7, color=theme.muted, ha="right")
    own_legend(figure, theme, runs, labels)
    return figure


def ceilings(run, theme):
    """What the SIMT backend counted, under roofs: the highest speed that each level's bytes allow, and that which its
    requests allow if all of them go to L2. No dot: no time."""
    limits, sheet = memories.memory_roofs(run, run.roofs), sheet_of(run.model)
    estimated = {memory: gbps for memory, gbps in (sheet.on_chip if sheet else {}).items() if memory not in limits}
    limits |= estimated
    found = []
    for level in run.levels:
        amounts = memories.moved(run, level)
        work = run.json["problem"]["flops"] / 1e12 if run.counts_flops else run.json["problem"]["bytes"] / 1e9
        # Of seconds that each memory needs at least; a request of few bytes takes L1 as long as one of a wavefront.
        speeds = {memory: work / (a.bytes * (memories.request_factor(level) if memory == "shared" else 1) / 1e9
                                  / limits[memory]) for memory, a in amounts.items() if memory in limits}
        by_requests = math.inf
        if "l2" in speeds and (requested := memories.requested_of_l2(level, amounts)):
            by_requests = speeds.pop("l2") * amounts["l2"].bytes / requested
        speeds = {memories.NAMES[memory]: speed for memory, speed in speeds.items()}
        if run.counts_flops and run.roof_value:
            speeds[run.json["roof"]] = run.roof_value
        if amounts and speeds:
            name = min(speeds, key=speeds.get)
            found.append((level, name, speeds[name], min(speeds[name], by_requests)))
    figure, axes = panel(8.6, 2.1 + 0.36 * len(found), 0.24, 0.95, top=0.85, bottom=1.05)
    top = max([speed for _, _, speed, _ in found], default=1)
    for y, (_, name, speed, low) in enumerate(found):
        axes.plot([0, low], [y, y], color=theme.muted, linewidth=0.8, linestyle=(0, (1.5, 2)))
        axes.plot([low, speed], [y, y], color=theme.muted, linewidth=3, solid_capstyle="butt")
        for end in {low, speed}:
            axes.plot([end], [y], marker="|", markersize=15, markeredgewidth=2.2, color=theme.first, linestyle="none")
        align, points = ("right", -7) if low > 0.5 * top else ("left", 7)
        text = f"at most {significant(speed)}, by {name}"
        if low < speed:
            text = f"{significant(low)} by requests to L2, {text}"
        beside(axes, text, (low, y), (points, 1), fontsize=8.5, va="bottom", ha=align)
    axes.set_xlim(0, 1.08 * top)
    named_rows(axes, range(len(found)), [label(level) for level, *_ in found], (len(found) - 0.45, -0.65), theme)
    axes.set_xlabel(f"{run.unit} that the counted bytes allow: ceilings, not speeds", fontsize=9)
    title(figure, f"{run.heading} · {run.ladder}: ceilings on {run.model}")
    missing = [name for memory, name in memories.NAMES.items() if memory not in limits]
    by_requests = any(low < speed for _, _, speed, low in found)
    notes = [f"Counted by the SIMT backend, which has no times · {size_text(run.size)} {run.json['problem']['dtype']}"
             f" · {run.json['date'][:10]}",
             f"roofs: {run.roofs_from}" + (f" · estimated, by clocks: {', '.join(memories.NAMES[m] for m in estimated)}"
                                           if estimated else "") + (f" · not measured: {', '.join(missing)}" if missing else "")]
    if by_requests:
        notes[0] += f"\nby requests to L2: L1 keeps nothing, and a sector used in parts takes {memories.PARTIAL} times as long"
    style.conditions(figure, theme, "\n".join(notes))
    return figure


# --- sweeps ----------------------------------------------------------------------------------------
def at_ends(axes, ends):
    """Names and marks at the ends of curves, at least a line apart. ends: (y, name, how the curve looks)."""
    room, at = 0.045 * axes.get_ylim()[1], -math.inf
    for y, text, look in sorted(ends, key=lambda end: end[:2]):
        at = max(y, at + room)
        axes.plot([1.022], [at], transform=axes.get_yaxis_transform(), clip_on=False, **look | {"linestyle": "none"})
        axes.annotate(text, (1.04, at), xycoords=("axes fraction", "data"), color=look["color"], fontsize=8.5,
                      va="center")


def sweep(runs, theme, compared=None, beside=None):
    """Speed over size: first, middle and last levels and the libraries. `beside`: name -> {size: point} of libraries
    that were timed in another run, `compared`."""
    names = [level.name for level in max(runs, key=lambda run: len(run.timed)).timed]
    # A level timed at one size only is no curve.
    times = Counter(level.name for run in runs for level in run.timed)
    names = [name for name in names if times[name] > 1]
    chosen = names if len(names) <= 4 else [names[0], names[len(names) // 2], names[-2], names[-1]]
    figure, axes = plt.subplots(figsize=(8.6, 4.6))
    figure.subplots_adjust(left=0.10, right=0.80, top=0.88, bottom=0.20)
    positions = range(len(runs))

    ends = []

    def curve(values, text, **look):
        found = [(x, y) for x, y in zip(positions, values) if y is not None]
        if found:
            axes.plot(*zip(*found), **look, label=text)
            ends.append((found[-1][1], text, look))

    for order, name in enumerate(chosen):
        colour, marker = style.of_series(order)
        curve([run.speed_of(name) for run in runs], name, color=colour, marker=marker, markersize=5)
    libraries = list(dict.fromkeys(name for run in runs for name in run.library_speeds()))
    for order, name in enumerate(libraries):
        curve([run.library_speeds().get(name) for run in runs], name, **style.library(theme, order))
    for order, (name, points) in enumerate((beside or {}).items(), len(libraries)):
        curve([points[run.size].speed if run.size in points else None for run in runs], name,
              **style.library(theme, order))
    # Only the extents that change say which size it is.
    sizes = [run.size for run in runs]
    changing = [i for i in range(len(sizes[0])) if len({size[i] for size in sizes}) > 1] or [0]
    equal = all(len({size[i] for i in changing}) == 1 for size in sizes)
    ticks = ["\n".join(f"{size[i]:,}" for i in (changing[:1] if equal else changing)) for size in sizes]
    axes.set_xticks(list(positions), ticks, fontsize=8)
    if not equal and len(changing) > 3:  # room for more lines under the axis, taken from below
        height, more = figure.get_figheight(), 0.17 * (len(changing) - 3)
        figure.set_figheight(height + more)
        figure.subplots_adjust(top=1 - 0.12 * height / (height + more), bottom=(0.20 * height + more) / (height + more))
    dims = runs[0].json["problem"]["dims"]
    axes.set(xlabel=(" = " if equal else ", ").join(dims[i] for i in changing), ylabel=runs[0].unit,
             xlim=(-0.2, len(runs) - 0.8))
    axes.set_ylim(bottom=0)
    at_ends(axes, ends)
    axes.set_title(f"{runs[0].heading} · {runs[0].ladder} over size")
    text = f"{runs[0].json['device']['name']} · {runs[-1].json['date'][:10]}"
    if beside:
        text += f" · {', '.join(beside)}: another run, ./run compare, {compared.text()}"
    style.conditions(figure, theme, text)
    return figure


def attention_sweep(lines, newer, device, theme):
    """Attention over the length of the sequence, a panel for each head dimension and mask: the book's last level and the
    libraries. lines, newer: see comparison.attention."""
    sources = list(filter(None, (lines, newer)))
    ours = {p.name for p in lines.points if p.ours}
    panels = sorted({size_and_mask(p) for p in lines.points}, key=lambda panel: (-panel[0], panel[1] != "full"))
    lengths = sorted({p.size[3] for p in lines.points})
    names = sorted(dict.fromkeys(p.name for source in sources for p in source.points), key=lambda name: name not in ours)
    looks = {}
    for order, name in enumerate(names):
        colour, marker = style.of_series(order)
        looks[name] = {"color": colour, "marker": marker, "markersize": 5.5, "linestyle": "-"} if name in ours else \
            style.library(theme, order - len(ours))
    columns = 2 if len(panels) > 1 else 1
    rows = math.ceil(len(panels) / columns)
    per_row = len(names) if len(names) <= 5 else math.ceil(len(names) / 2)  # of the legend
    legend_rows = math.ceil(len(names) / per_row)
    height = 1.45 + 2.35 * rows + 0.25 * legend_rows
    figure, grid = plt.subplots(rows, columns, figsize=(8.6, height), sharex=True, sharey=True, squeeze=False)
    figure.subplots_adjust(left=0.085, right=0.985, top=1 - 0.75 / height,
                           bottom=(1.05 + 0.25 * legend_rows) / height, wspace=0.06,
                           hspace=0.22)
    for axes in grid.flat[len(panels):]:
        axes.set_visible(False)
    handles = {}
    for axes, panel in zip(grid.flat, panels):
        for source in sources:
            for name, look in looks.items():
                found = sorted((lengths.index(p.size[3]), p.speed) for p in source.points
                               if size_and_mask(p) == panel and p.name == name and p.size[3] in lengths)
                if not found:
                    continue
                if source is lines:
                    (handles[name],) = axes.plot(*zip(*found), **look, label=name, zorder=3)
                else:  # points alone, open
                    open_look = look | {"linestyle": "none", "markerfacecolor": "none", "markersize": 8,
                                        "markeredgecolor": look["color"], "markeredgewidth": 1.3}
                    (handle,) = axes.plot(*zip(*found), **open_look, zorder=4)
                    handles.setdefault(name, handle)
        batches = {p.size[:3] for p in lines.points if size_and_mask(p) == panel}
        heads = sorted({size[1] for size in batches})
        axes.set_title(f"d = {panel[0]}, {panel[1]} · {', '.join(map(str, heads))} heads", fontsize=10.5)
        axes.set_xticks(range(len(lengths)), [f"{length:,}" for length in lengths], fontsize=8.5)
        axes.set(xlim=(-0.2, len(lengths) - 0.8), ylim=(0, 1.09 * max(p.speed for source in sources for p in source.points)))
    for axes in grid[:, 0]:
        axes.set_ylabel("TFLOP/s")
    for axes in grid[-1]:
        axes.set_xlabel("sequence length")
    title(figure, "Chapter 10 · attention over the length of the sequence", 0.1)
    figure.legend(handles.values(), handles.keys(), loc="lower center", bbox_to_anchor=(0.53, 0.48 / height),
                  ncol=per_row, fontsize=9, handlelength=3.2)
    tokens = {p.size[0] * p.size[3] for p in lines.points}
    text = f"{device} · bf16" + (f" · batch x length = {tokens.pop():,}" if len(tokens) == 1 else "")
    text += f" · lines: {lines.file}, {lines.text()}"
    if newer:
        text += f"\nopen marks: the same problems again, {newer.file}, {newer.text()}"
    if any(source.stale for source in sources):
        text += " · * the level's code changed since, or was not recorded"
    style.conditions(figure, theme, text)
    return figure


def legend_below(figure, axes, at, **look):
    """What the lines and marks of a panel mean, at the foot of the figure."""
    figure.legend(*axes.get_legend_handles_labels(), loc="lower center", bbox_to_anchor=at, frameon=False, **look)


SEARCHER_DASHES = ["-", (0, (5, 2)), (0, (4, 1.5, 1, 1.5)), (0, (1, 1.2)), "-"]


def searchers_figure(kernels, theme):
    """One panel per kernel: how far the best found so far is from the best of all, over looks."""
    figure, panels = plt.subplots(1, len(kernels), figsize=(3.4 * len(kernels) + 0.4, 4.2), squeeze=False)
    figure.subplots_adjust(left=0.075, right=0.985, top=0.83, bottom=0.29, wspace=0.2)
    colours = [*style.COLOURS[:4], theme.text]
    for axes, kernel in zip(panels[0], kernels):
        for (name, score), colour, dashes in zip(kernel["searchers"].items(), colours, SEARCHER_DASHES):
            loss = [100 * (slowdown - 1) for slowdown in score["slowdown"]]
            looks = range(1, len(loss) + 1)
            # The first pass of an elimination is the exhaustive search: both lines have to show.
            wide = {"linewidth": 4, "alpha": 0.45} if name == "exhaustive" else {}
            axes.plot(looks, loss, drawstyle="steps-post", color=colour, linestyle=dashes, label=name, **wide)
        axes.axhline(2, color=theme.muted, linewidth=0.9, label="2 %: as good as the best")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=1)
        axes.set_title(f"{kernel['kernel']}, {kernel['shapes']} shapes", fontsize=10.5)
        axes.set_xlabel("looks")
    first = panels[0][0]
    first.set_ylabel("mean loss against the best, %")
    title(figure, f"Chapter {autotuning.CHAPTER} · searchers on recorded spaces", 0.02 * figure.get_figheight())
    legend_below(figure, first, (0.5, 0.065), ncol=len(first.lines), fontsize=9, handlelength=2.6)
    style.conditions(figure, theme, f"{kernels[0]['device']} · recorded {kernels[0]['date'][:10]} · searched on the "
                                    "odd rounds, scored on the even ones · a look is 3 samples · mean of 25 seeds")
    return figure


def choices_figure(judged, theme):
    """Which kernel is chosen for which shape, and what each way of choosing costs."""
    figure, (map_axes, loss_axes) = plt.subplots(1, 2, figsize=(9.6, 4.6))
    figure.subplots_adjust(left=0.075, right=0.985, top=0.84, bottom=0.31, wspace=0.2)
    for (name, _), colour, marker in zip(autotuning.FAMILIES.items(), style.COLOURS, style.MARKERS):
        for chosen_well in (True, False):
            shapes = [shape for shape in judged["shapes"] if autotuning.family(shape["both"]["candidate"]) == name
                      and (shape["both"]["us"] <= 1.02 * shape["fastest"]["us"]) == chosen_well]
            map_axes.scatter([math.ceil(shape["extents"][0] / 128) * math.ceil(shape["extents"][1] / 128) for shape in shapes],
                             [shape["extents"][2] for shape in shapes], s=26, marker=marker, linewidths=1.2,
                             edgecolors=colour, facecolors=colour if chosen_well else "none",
                             label=name if chosen_well else None)
    map_axes.axvline(132, color=theme.muted, linewidth=0.9)
    map_axes.annotate("a tile per SM", (132, 1), (3, -11), xycoords=("data", "axes fraction"), textcoords="offset points",
                      color=theme.muted, fontsize=8.5)
    map_axes.set(xscale="log", yscale="log", xlabel="tiles of 128 x 128", ylabel="K")
    map_axes.set_title("chosen kernel; hollow: over 2 % behind", fontsize=10.5)
    for (way, name), colour, dashes in zip(autotuning.WAYS.items(), style.COLOURS, SEARCHER_DASHES[1:]):
        loss = sorted((100 * each for each in autotuning.losses(judged, way)), reverse=True)
        loss_axes.plot(range(1, len(loss) + 1), loss, color=colour, linestyle=dashes, label=name)
    loss_axes.set(ylim=(0, 60), xlim=(1, len(judged["shapes"])), xlabel="shapes, worst first",
                  ylabel="slower than the fastest candidate, %")
    loss_axes.set_title("what choosing costs", fontsize=10.5)
    title(figure, f"Chapter {autotuning.CHAPTER} · one GEMM kernel of 28 for each shape", 0.02 * figure.get_figheight())
    for axes, x, columns in ((map_axes, 0.25, 2), (loss_axes, 0.76, 1)):
        legend_below(figure, axes, (x, 0.05), ncol=columns, fontsize=8.5, handlelength=2.2, labelspacing=0.3)
    style.conditions(figure, theme, f"{judged['device']} · bf16, cold L2, medians of interleaved runs · "
                                    f"{len(judged['shapes'])} shapes, none of them recorded")
    return figure


# Kind -> what draws it, from the second value of a plan's (kind, what) and the theme.
DRAWN = {"ladder": ladder, "roofline": roofline, "sweep": sweep, "traffic": traffic_bars, "ceilings": ceilings,
         "compared": compared, "overlay": overlay, "searchers": searchers_figure, "choices": choices_figure}


def draw(planned, theme):
    """One figure of a plan: (kind, what)."""
    kind, what = planned
    return DRAWN[kind](what, theme)
