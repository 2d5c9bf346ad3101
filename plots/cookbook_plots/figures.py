# SPDX-License-Identifier: MIT
"""The figures: the ladder and the roofline of a chapter, the roofline of the book, size sweeps."""
import math
import textwrap
from collections import Counter

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from . import style
from .comparison import size_and_mask
from .results import DEVICE_MEMORY, REQUESTED, size_text, traffic
from .style import plt
from .tables import against_reference, percent, significant


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
        parts.append("* source changed since")
    return " · ".join(parts)


def label(level):
    return f"{level.index} · {level.name}" + (" *" if level.stale else "")


# --- the ladder ------------------------------------------------------------------------------------
def ladder(run, theme):
    """A bar per level, the library as a line, the roof as another."""
    levels = run.timed
    figure, axes = plt.subplots(figsize=(8.6, 1.75 + 0.40 * len(levels)))
    figure.subplots_adjust(left=0.24, right=0.95, top=1 - 0.85 / figure.get_figheight(),
                           bottom=0.80 / figure.get_figheight())
    widest = max(run.speed(level) for level in levels)
    for y, level in enumerate(levels):
        speed = run.speed(level)
        slow, fast = run.speed(level, "q3"), run.speed(level, "q1")
        axes.barh(y, speed, height=0.68, color=theme.first, alpha=0.55 if level.stale else 1,
                  hatch="//" if level.stale else None, edgecolor=theme.background, linewidth=0)
        axes.errorbar(speed, y, xerr=[[max(speed - slow, 0)], [max(fast - speed, 0)]], color=theme.text,
                      capsize=2.5, linewidth=1)
        ratio = level.json.get("vs_previous")
        text = significant(speed)
        if ratio:
            text += f" · {significant(ratio['ratio'])}x"
        inside = speed > 0.5 * widest
        fill = style.blend(theme.first, theme.background, 0.55 if level.stale else 1)
        axes.annotate(text, (slow if inside else fast, y), xytext=(-7 if inside else 7, 0),
                      textcoords="offset points", va="center", ha="right" if inside else "left", fontsize=9,
                      color=theme.background if inside and not level.stale else theme.text, zorder=4,
                      bbox={"facecolor": fill if inside else theme.background, "edgecolor": "none", "pad": 1})
    top = max([run.speed(level, "q1") for level in levels])
    lines = []
    for index, reference in enumerate(run.references):
        speed = run.speed_of_time(reference["time_us"]["median"])
        lines.append((speed, reference["name"], theme.accent,
                      style.LIBRARY_DASHES[index % len(style.LIBRARY_DASHES)]))
    if run.roof_value:
        lines.append((run.roof_value, f"roof ({run.json['roof']})", theme.roof, "-"))
    for row, (x, name, colour, dashes) in enumerate(sorted(lines)):
        axes.axvline(x, color=theme.background, linewidth=4.5, zorder=2.9)  # a bar may be as dark as the line
        axes.axvline(x, color=colour, linestyle=dashes, linewidth=1.5, zorder=3, label=name)
        axes.annotate(name, (x, 1), xycoords=("data", "axes fraction"), xytext=(0, 3 + 11 * row),
                      textcoords="offset points", color=colour, fontsize=8.5, va="bottom", ha="center")
        top = max(top, x)
    axes.set_xlim(0, top * 1.16)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.set_yticks(range(len(levels)), [label(level) for level in levels], color=theme.text)
    axes.set_ylim(len(levels) - 0.45, -0.55)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"{run.unit}   (bar: median; whisker: quartiles; 1.5x: against the level above)", fontsize=9)
    figure.suptitle(f"{run.heading} · {run.ladder}", x=0.012, y=1 - 0.08 / figure.get_figheight(),
                    ha="left", va="top", fontsize=12, fontweight="bold")
    style.conditions(figure, theme, foot(run))
    return figure


def traffic_bars(run, theme):
    """Bytes that each level's accesses ask for, over the fewest that the problem needs. Needs no GPU."""
    rows = [(level, *traffic(run, level)) for level in run.levels]
    rows = [(level, factor, origin) for level, factor, origin in rows if factor]
    figure, axes = plt.subplots(figsize=(8.6, 1.75 + 0.40 * len(rows)))
    height = figure.get_figheight()
    figure.subplots_adjust(left=0.24, right=0.95, top=1 - 0.62 / height, bottom=0.80 / height)
    for y, (level, factor, _) in enumerate(rows):
        axes.barh(y, factor, height=0.68, color=theme.first, alpha=0.55 if level.stale else 1)
        axes.annotate(significant(factor), (factor, y), xytext=(7, 0), textcoords="offset points", va="center",
                      fontsize=9)
    axes.axvline(1, color=theme.roof, linewidth=1.5)
    axes.set_xlim(0, 1.16 * max(factor for _, factor, _ in rows))
    axes.set_yticks(range(len(rows)), [label(level) for level, _, _ in rows], color=theme.text)
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("bytes asked for, per byte that the problem needs   (line at 1: each byte once)", fontsize=9)
    figure.suptitle(f"{run.heading} · {run.ladder}: traffic", x=0.012, y=1 - 0.08 / height, ha="left", va="top",
                    fontsize=12, fontweight="bold")
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
        """(intensity, traffic factor, its origin); the algorithm's own where nothing was counted."""
        factor, origin = traffic(self.run, level)
        if factor is None:
            return self.algorithmic, None, ""
        return self.algorithmic / factor, factor, origin

    def diagonals(self):
        roofs = self.run.json.get("roofs") or {}
        memory = ("HBM copy" if self.run.json["roof"] == "HBM copy" else "HBM read")
        names = [(memory, roofs.get("hbm_copy_gbps" if memory == "HBM copy" else "hbm_read_gbps")),
                 ("L2", roofs.get("l2_gbps")), ("L1 / shared", roofs.get("shared_gbps"))]
        return [(name, value * self.scale) for name, value in names if value]

    def ceiling(self):
        return self.run.roof_value

    def ceilings(self):
        """The measured ceilings of these cores: on tensor cores both kinds of instruction."""
        roofs = self.run.json.get("roofs") or {}
        names = ([("FP32 FMA", "fp32_tflops")] if self.run.json["roof"] == "FP32 FMA" else
                 [("mma.sync bf16", "mma_bf16_tflops"), ("wgmma bf16", "wgmma_bf16_tflops")])
        return [(name, roofs[key]) for name, key in names if roofs.get(key)]

    def sheet_diagonal(self):
        peak = self.run.sheet.get("hbm")
        return peak * self.scale if peak else None

    def sheet_ceiling(self):
        if not self.flops:
            return None
        return self.run.sheet.get("fp32" if self.run.json["roof"] == "FP32 FMA" else "tensor")


def draw_roofs(axes, chart, theme, x_range, y_range, narrow=False):
    """Measured roofs solid, data-sheet ones dashed; the labels run along the lines, or where the panel is
    narrow stand above them."""
    low, high = x_range
    ceiling = chart.ceiling()
    sheet_ceiling = chart.sheet_ceiling()

    for order, (name, slope) in enumerate(chart.diagonals()):
        top = ceiling if chart.flops else None
        corner = top / slope if top else high
        end = min(corner, high)
        axes.plot([low, end], [slope * low, slope * end], color=theme.roof, linewidth=1.9 - 0.45 * order,
                  alpha=1 - 0.2 * order, zorder=1, label=name if order else "roof")
        # The label where the line enters the panel.
        start = max(low, y_range[0] / slope)
        stop = min(end, y_range[1] / slope)
        if stop <= start:
            continue
        x = start * (stop / start) ** (0.10 if order == 0 else 0.06)
        text = f"{name} {significant(slope / chart.scale)} GB/s"
        if math.log10(stop / x) / chart.decades_per_inch / math.cos(math.radians(chart.angle)) < 0.066 * len(text):
            continue
        below = order == 0 and chart.sheet_diagonal()  # the data sheet's line is just above
        axes.annotate(text, (x, slope * x), xytext=(0, -3 if below else 3),
                      textcoords="offset points", rotation=chart.angle, rotation_mode="anchor", fontsize=7.5,
                      color=theme.muted, va="top" if below else "bottom", ha="left")
    if sheet := chart.sheet_diagonal():
        end = min(sheet_ceiling / sheet, high) if sheet_ceiling else high
        axes.plot([low, end], [sheet * low, sheet * end], color=theme.muted, linewidth=1, linestyle=(0, (4, 3)),
                  zorder=0.9, label="data sheet")
    if ceiling and chart.flops:
        slopes = chart.diagonals()
        for name, value in chart.ceilings():
            start = value / slopes[-1][1] if slopes else low
            mine = value == ceiling
            axes.plot([max(start, low), high], [value, value], color=theme.roof, linewidth=1.9 if mine else 1,
                      zorder=1, label="roof" if mine else name)
            if narrow:
                continue
            # Above the line; the lower of two below, out of the other's way.
            lower = len(chart.ceilings()) > 1 and value == min(v for _, v in chart.ceilings())
            # Of several memories the slowest meets the ceiling last: to the right of it the line is alone.
            ridge = value / slopes[0][1] if slopes else low
            axes.annotate(f"{name} {significant(value)} TFLOP/s", (max(ridge, low), value), xytext=(44 if lower else 9, -2 if lower else 2),
                          textcoords="offset points", fontsize=7.5, color=theme.text if mine else theme.muted,
                          va="top" if lower else "bottom", ha="left", zorder=1.5,
                          bbox={"facecolor": theme.background, "edgecolor": "none", "pad": 0.4, "alpha": 0.75})
        if narrow:
            text = ", ".join(f"{name} {significant(value)}" for name, value in reversed(chart.ceilings()))
            axes.text(0.02, 0.99, text + " TFLOP/s", transform=axes.transAxes, fontsize=7.5, color=theme.text, va="top")
    if sheet_ceiling:
        start = sheet_ceiling / chart.sheet_diagonal() if chart.sheet_diagonal() else low
        axes.plot([max(start, low), high], [sheet_ceiling, sheet_ceiling], color=theme.muted, linewidth=1,
                  linestyle=(0, (4, 3)), zorder=0.9, label="data sheet")


def ranges(points, charts, algorithm=True):
    """Axis ranges that hold every dot, the algorithm's intensity (if `algorithm`) and the corner of the roof."""
    xs = [x for x, _ in points] + [chart.algorithmic for chart in charts if algorithm]
    ys = [y for _, y in points] + [c for chart in charts if (c := chart.ceiling())]
    ys += [value for chart in charts if chart.flops for _, value in chart.ceilings()]
    for chart in charts:
        if chart.flops and chart.ceiling() and chart.diagonals():
            xs.append(chart.ceiling() / chart.diagonals()[0][1])
    spread = 2.0
    return (min(xs) / spread, max(xs) * spread), (min(ys) / 1.8, max(ys) * 2.2)


def set_angles(axes, figure, charts, x_range, y_range):
    """The slope of a diagonal on paper, so that its label can follow it."""
    box = axes.get_position()
    width, height = box.width * figure.get_figwidth(), box.height * figure.get_figheight()
    decades_x = math.log10(x_range[1] / x_range[0]) / width
    decades_y = math.log10(y_range[1] / y_range[0]) / height
    for chart in charts:
        chart.angle = math.degrees(math.atan2(1 / decades_y, 1 / decades_x))
        chart.decades_per_inch = decades_x


def axis_labels(axes, chart):
    if chart.flops:
        axes.set_xlabel("FLOP per byte")
        axes.set_ylabel("TFLOP/s")
    else:
        axes.set_xlabel("bytes the problem needs, per byte moved   (1: each byte once)")
        axes.set_ylabel("GB/s of bytes the problem needs")


def plain_ticks(axes, x_range, y_range):
    """1, 10, 100 ... and where that leaves few, 2 and 5 of each decade as well."""
    for axis, (low, high) in ((axes.xaxis, x_range), (axes.yaxis, y_range)):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 300 else (1,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())


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


def roofline(run, theme):
    """The levels of one ladder as numbered dots under their roofs, and what each changed beside them."""
    chart = Chart(run)
    levels = run.timed
    figure = plt.figure(figsize=(11.2, 5.9))
    axes = figure.add_axes((0.075, 0.135, 0.525, 0.765))
    axes.set_xscale("log")
    axes.set_yscale("log")
    points = {level.index: (chart.x(level)[0], run.speed(level)) for level in levels}
    x_range, y_range = ranges(list(points.values()), [chart])
    axes.set_xlim(x_range)
    axes.set_ylim(y_range)
    set_angles(axes, figure, [chart], x_range, y_range)
    draw_roofs(axes, chart, theme, x_range, y_range)
    axes.axvline(chart.algorithmic, color=theme.accent, linestyle=":", linewidth=1.4, zorder=0.8, label="the algorithm")
    axes.annotate(f"the algorithm: {significant(chart.algorithmic)} FLOP/byte" if chart.flops
                  else "the algorithm: every byte once",
                  (chart.algorithmic, y_range[0]), xytext=(-5, 4), textcoords="offset points", fontsize=7.5,
                  color=theme.accent, ha="right", va="bottom", zorder=6)
    # The libraries first, at the algorithm's own intensity: the levels make room for them.
    stars = {reference["name"]: (chart.algorithmic, run.speed_of_time(reference["time_us"]["median"]))
             for reference in run.references}
    drawn = apart(axes, stars | points, both_sides=chart.flops)
    for before, after in zip(levels, levels[1:]):
        axes.annotate("", drawn[after.index], drawn[before.index],
                      arrowprops={"arrowstyle": "-|>", "color": theme.muted, "shrinkA": 7, "shrinkB": 7,
                                  "linewidth": 1, "mutation_scale": 9}, zorder=2)
    for level in levels:
        x, y = drawn[level.index]
        origin = chart.x(level)[2]
        axes.errorbar(x, y, yerr=[[max(y - run.speed(level, "q3"), 0)], [max(run.speed(level, "q1") - y, 0)]],
                      color=theme.first, capsize=3, linewidth=1.2, zorder=3)
        filled = origin == DEVICE_MEMORY
        axes.plot([x], [y], marker="o" if origin else "D", markersize=14 if origin else 11.5,
                  color=theme.first if filled or not origin else theme.background,
                  markeredgecolor=theme.first, markeredgewidth=1.8, alpha=1, zorder=4)
        axes.text(x, y, str(level.index), ha="center", va="center_baseline", fontsize=8, fontweight="bold",
                  color=theme.background if filled or not origin else theme.text, zorder=5)
    # Names of libraries left of everything that stands beside them.
    pixels = {key: axes.transData.transform(place) for key, place in drawn.items()}
    for name, marker in zip(stars, "*PX"):
        x, y = pixels[name]
        axes.plot(*drawn[name], marker=marker, markersize=13, color=theme.accent, markeredgecolor=theme.background,
                  zorder=4.5, label=name)
        leftmost = min(a for a, b in pixels.values() if abs(b - y) < 14)
        axes.annotate(name, drawn[name], xytext=((leftmost - x) * 72 / figure.dpi - 10, 0), textcoords="offset points",
                      fontsize=8.5, color=theme.accent, va="center", ha="right", zorder=4.6,
                      bbox={"facecolor": theme.background, "edgecolor": "none", "pad": 0.6, "alpha": 0.8})
    plain_ticks(axes, x_range, y_range)
    axis_labels(axes, chart)
    figure.suptitle(f"{run.heading} · {run.ladder} under its roofs", x=0.012, y=0.975, ha="left",
                    fontsize=12, fontweight="bold")

    # The list beside the panel: number, name, fraction of the roof, and what the level changed.
    origins = {chart.x(level)[2] for level in levels}
    y, step = 0.90, min(0.098, 0.76 / max(len(levels), 1))
    wrap_lines = 2 if step > 0.08 else 1
    for level in levels:
        _, factor, _ = chart.x(level)
        tail = f"{percent(level.fraction)} of {run.json['roof']}" if level.fraction is not None else ""
        if factor is not None:
            tail += (f" · {significant(chart.algorithmic / factor)} FLOP/byte" if chart.flops
                     else f" · {significant(factor)}x traffic")
        figure.text(0.620, y, str(level.index), fontsize=9, fontweight="bold", color=theme.first, va="top")
        figure.text(0.642, y, level.name + (" *" if level.stale else ""), fontsize=9, fontweight="bold", va="top")
        figure.text(0.992, y, tail, fontsize=8, color=theme.text, va="top", ha="right")
        idea = textwrap.wrap(level.json["changed"], 68)
        if len(idea) > wrap_lines:
            idea = idea[:wrap_lines]
            idea[-1] = idea[-1][:64].rstrip(" ,;:") + " ..."
        figure.text(0.642, y - 0.030, "\n".join(idea), fontsize=7.5, color=theme.muted, va="top",
                    linespacing=1.15)
        y -= step
    notes = ["solid: measured in the same run; dashed: data sheet"]
    if REQUESTED in origins:
        notes.append("open dots: " + REQUESTED)
    if DEVICE_MEMORY in origins:
        notes.append("full dots: " + DEVICE_MEMORY)
    if "" in origins:
        notes.append("diamonds: bytes not counted, at the algorithm's own intensity")
    notes.append("side by side: one intensity")
    figure.text(0.992, 0.008, "\n".join(notes), fontsize=7, color=theme.muted, va="bottom", ha="right")
    style.conditions(figure, theme, foot(run), width=0.66)
    return figure


PANELS = [("Moving bytes", lambda run: not run.counts_flops), ("FP32 cores", lambda run: run.json["roof"] == "FP32 FMA"),
          ("Tensor cores", lambda run: run.counts_flops and run.json["roof"] != "FP32 FMA")]


def book_runs(results, chapters):
    """The headline run of every chapter that has a ladder of several levels."""
    runs = []
    for info in chapters:
        of_chapter = results.of_chapter(info.number)
        if info.number > 0 and of_chapter and len(of_chapter[0].timed) > 1:
            runs.append((info, of_chapter[0]))
    return runs


def book_roofline(results, chapters, theme):
    """Every chapter from its first level (open) to its last (full), under the roofs of the GPU."""
    runs = book_runs(results, chapters)
    panels = [(title, mine) for title, belongs in PANELS if (mine := [r for r in runs if belongs(r[1])])]
    if not panels:
        return None
    # A panel with many chapters is wider and lists them in two columns.
    columns = [1 if len(mine) <= 3 else 2 for _, mine in panels]
    rows = max(math.ceil(len(mine) / n) for n, (_, mine) in zip(columns, panels))
    height = 5.0 + 0.36 * rows
    figure, all_axes = plt.subplots(1, len(panels), figsize=(1.0 + 3.7 * len(panels), height), squeeze=False,
                                    gridspec_kw={"width_ratios": [1 if n == 1 else 1.95 for n in columns]})
    figure.subplots_adjust(left=0.06 if len(panels) == 3 else 0.11, right=0.985, top=1 - 0.75 / height,
                           bottom=(1.15 + 0.36 * rows) / height, wspace=0.25)
    farthest = 1
    for axes, n, (title, mine) in zip(all_axes[0], columns, panels):
        axes.set_xscale("log")
        axes.set_yscale("log")
        charts = [Chart(run) for _, run in mine]
        # The last levels are placed first; later ones avoid them.
        places = {(order, i): (chart.x(run.timed[i])[0], run.speed(run.timed[i]))
                  for i in (-1, 0) for order, (chart, (_, run)) in enumerate(zip(charts, mine))}
        x_range, y_range = ranges(list(places.values()), charts, algorithm=False)
        if not charts[0].flops:  # room for those that can only be set aside to the right
            x_range = (x_range[0] * 1.4, x_range[1] * 1.05 ** len(mine))
        axes.set_xlim(x_range)
        axes.set_ylim(y_range)
        set_angles(axes, figure, charts, x_range, y_range)
        highest = max(charts, key=lambda chart: chart.ceiling() or 0)
        draw_roofs(axes, highest, theme, x_range, y_range, narrow=True)
        drawn = apart(axes, places, both_sides=charts[0].flops, distance=14, step=1)
        farthest = max([farthest] + [math.exp(abs(math.log(drawn[key][0] / places[key][0]))) for key in places])
        entries = []
        for order, (chart, (info, run)) in enumerate(zip(charts, mine)):
            colour = style.COLOURS[order % len(style.COLOURS)]
            marker = style.MARKERS[order % len(style.MARKERS)]
            first, last = run.timed[0], run.timed[-1]
            start, end = drawn[order, 0], drawn[order, -1]
            axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 5,
                                                      "shrinkB": 8, "linewidth": 1.3, "mutation_scale": 11})
            axes.plot(*start, marker=marker, color=theme.background, markeredgecolor=colour, markersize=8,
                      markeredgewidth=1.6, zorder=4)
            (line,) = axes.plot(*end, marker=marker, color=colour, markeredgecolor=theme.background,
                                markersize=12.5, zorder=5, linestyle="none", label=f"chapter {info.number}")
            axes.annotate(str(info.number), end, xytext=(0, -1.6 if marker == "^" else 0), textcoords="offset points",
                          fontsize=7, fontweight="bold", va="center_baseline", ha="center",
                          color="#000000" if style.lightness(colour) > 55 else "#ffffff", zorder=6)
            text = (f"{info.number} {run.ladder}: {significant(run.speed(first))} to "
                    f"{significant(run.speed(last))} {run.unit}\n{percent(last.fraction)} of {run.json['roof']}")
            if last.json.get("vs_reference"):
                text += f", {against_reference(last)} {last.json['vs_reference']['name']}"
            entries.append((line, text + (" *" if first.stale or last.stale else "")))
        plain_ticks(axes, x_range, y_range)
        axes.set_title(title)
        axes.set_xlabel("FLOP per byte" if charts[0].flops else "needed bytes per byte moved")
        axes.set_ylabel(charts[0].unit, labelpad=1)
        axes.legend([e[0] for e in entries], [e[1] for e in entries], loc="upper left", ncol=n, markerscale=0.8,
                    columnspacing=1.0,
                    bbox_to_anchor=(0, -0.58 / (axes.get_position().height * height)), fontsize=8, handletextpad=0.3, borderaxespad=0)
    run = runs[0][1]
    figure.suptitle("The book: every chapter's first level (open) and last (full)", x=0.012, y=0.975, ha="left",
                    fontsize=13, fontweight="bold")
    dates = sorted(run.json["date"][:10] for _, run in runs)
    commits = sorted({run.json["commit"][:10] for _, run in runs if run.json.get("commit")})
    text = f"{run.json['device']['name']} · {dates[0]}" + (f" to {dates[-1]}" if dates[-1] != dates[0] else "")
    if commits:
        text += " · commit " + ", ".join(commits)
    if any(level.stale for _, run in runs for level in run.levels):
        text += " · * source changed since"
    style.conditions(figure, theme, text + "\nsolid: roofs measured in the same run; dashed: data sheet; "
                     "horizontal: bytes as in the chapter's own figure"
                     + (f"; dots that cover one another: moved sideways, {farthest:.1f}x at most, except the lowest chapter's"
                        if farthest > 1.05 else ""))
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
        values = [next((run.speed(level) for level in run.timed if level.name == name), None) for run in runs]
        curve(values, name, color=style.COLOURS[order], marker=style.MARKERS[order], markersize=5)
    libraries = list(dict.fromkeys(r["name"] for run in runs for r in run.references))
    for order, name in enumerate(libraries):
        values = [next((run.speed_of_time(r["time_us"]["median"]) for r in run.references if r["name"] == name),
                       None) for run in runs]
        curve(values, name, **style.library(theme, order))
    for order, (name, points) in enumerate((beside or {}).items(), len(libraries)):
        curve([points[run.size].speed if run.size in points else None for run in runs], name,
              **style.library(theme, order))
    # Only the extents that change say which size it is.
    sizes = [run.size for run in runs]
    changing = [i for i in range(len(sizes[0])) if len({size[i] for size in sizes}) > 1] or [0]
    equal = all(len({size[i] for i in changing}) == 1 for size in sizes)
    if equal:
        ticks = [f"{size[changing[0]]:,}" for size in sizes]
    else:
        ticks = ["\n".join(f"{size[i]:,}" for i in changing) for size in sizes]
    axes.set_xticks(list(positions), ticks, fontsize=8)
    if not equal and len(changing) > 3:  # room for more lines under the axis, taken from below
        height, more = figure.get_figheight(), 0.17 * (len(changing) - 3)
        figure.set_figheight(height + more)
        figure.subplots_adjust(top=1 - 0.12 * height / (height + more), bottom=(0.20 * height + more) / (height + more))
    dims = runs[0].json["problem"]["dims"]
    axes.set_xlabel(" = ".join(dims[i] for i in changing) if equal else ", ".join(dims[i] for i in changing))
    axes.set_ylabel(runs[0].unit)
    axes.set_ylim(bottom=0)
    axes.set_xlim(-0.2, len(runs) - 0.8)
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
    sources = [lines] + ([newer] if newer else [])
    panels = sorted({size_and_mask(p) for p in lines.points}, key=lambda panel: (-panel[0], panel[1] != "full"))
    lengths = sorted({p.size[3] for p in lines.points})
    names = sorted(dict.fromkeys(p.name for source in sources for p in source.points),
                   key=lambda name: not any(p.ours and p.name == name for p in lines.points))
    looks = {}
    for name in names:
        ours = sum(any(p.ours and p.name == n for p in lines.points) for n in looks)
        if any(p.ours and p.name == name for p in lines.points):
            looks[name] = {"color": style.COLOURS[ours], "marker": style.MARKERS[ours], "markersize": 5.5, "linestyle": "-"}
        else:
            looks[name] = style.library(theme, len(looks) - ours)
    columns = 2 if len(panels) > 1 else 1
    rows = math.ceil(len(panels) / columns)
    height = 1.7 + 2.35 * rows
    figure, grid = plt.subplots(rows, columns, figsize=(8.6, height), sharex=True, sharey=True, squeeze=False)
    figure.subplots_adjust(left=0.085, right=0.985, top=1 - 0.75 / height, bottom=1.3 / height, wspace=0.06,
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
        axes.set_ylim(0, 1.09 * max(p.speed for source in sources for p in source.points))
        axes.set_xlim(-0.2, len(lengths) - 0.8)
    for axes in grid[:, 0]:
        axes.set_ylabel("TFLOP/s")
    for axes in grid[-1]:
        axes.set_xlabel("sequence length")
    figure.suptitle("Chapter 10 · attention over the length of the sequence", x=0.012, y=1 - 0.1 / height, ha="left", va="top",
                    fontsize=12, fontweight="bold")
    figure.legend(handles.values(), handles.keys(), loc="lower center", bbox_to_anchor=(0.53, 0.48 / height),
                  ncol=len(handles), fontsize=9, handlelength=3.2)
    tokens = {p.size[0] * p.size[3] for p in lines.points}
    text = f"{device} · bf16" + (f" · batch x length = {tokens.pop():,}" if len(tokens) == 1 else "")
    text += f" · lines: {lines.file}, {lines.text()}"
    if newer:
        text += f"\nopen marks: the same problems again, {newer.file}, {newer.text()}"
    if any(source.stale for source in sources):
        text += " · * the level's source changed since, or was not recorded"
    style.conditions(figure, theme, text)
    return figure
