# SPDX-License-Identifier: MIT
"""Draws one block of traces that `./run N --timeline FILE` wrote (docs/profiling.md).

    plots/run.sh --timeline before.json after.json --out FOLDER/NAME

One panel per trace, one row per track: NAME-light.svg and NAME-dark.svg. Of four warps that do the same, the first is
drawn. A trace of the SIMT backend shows an order, and the figure says so.
"""
import argparse
import sys
from pathlib import Path

from matplotlib.patches import PathPatch
from matplotlib.path import Path as Path2D

from . import style
from .style import plt
from .traces import TraceError, read, rows

CATEGORIES = {"wait": None, "copy": "#0072B2", "multiply": "#D55E00", "softmax": "#009E73", "store": "#CC79A7"}
ORDER = "order of events in one schedule of the SIMT backend: no times"


def figure(traces, theme):
    """One panel per trace; a wait is an outline."""
    panels = [(rows(tracks), about) for tracks, about in traces]
    heights = [max(len(of), 1) for of, _ in panels]
    fig, axes = plt.subplots(len(panels), 1, squeeze=False, height_ratios=heights,
                             figsize=(10, 1.1 + sum(0.34 * height + 0.62 for height in heights)))
    total = fig.get_figheight()
    fig.subplots_adjust(left=0.23, right=0.985, top=1 - 0.42 / total, bottom=0.85 / total, hspace=0.5)
    for axis, (of, about) in zip(axes[:, 0], panels):
        ends, boxes = [0.0], {}  # colour -> rectangles; one path per colour keeps the file small
        for row, (label, spans) in enumerate(of):
            # Asynchronous spans overlap, such as several copies in flight, and are drawn side by side.
            asynchronous = label.endswith("in flight") or label.startswith("copies")
            layers, placed = [], []
            for span in spans:
                ends.append(span[3])
                free = next((i for i, end in enumerate(layers) if end <= span[2] or not asynchronous), len(layers))
                layers[free:free + 1] = [span[3]]
                placed.append((free, span))
            height = 0.72 / max(len(layers), 1)
            for layer, (_, category, begin, end, _) in placed:
                low = row - 0.36 + layer * height
                boxes.setdefault(CATEGORIES.get(category), []).append((begin, low, end, low + height))
        for colour, of_colour in sorted(boxes.items(), key=lambda item: item[0] is None):  # waits within a store lie above it
            path = Path2D.make_compound_path(*(Path2D([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)], closed=True)
                                               for x0, y0, x1, y1 in of_colour))
            axis.add_patch(PathPatch(path, linewidth=0.5, facecolor=colour or theme.background,
                                     edgecolor=theme.background if colour else theme.muted))
        axis.set_xlim(0, max(ends))
        axis.set_ylim(len(of) - 0.5, -0.5)
        axis.set_yticks(range(len(of)), [label for label, _ in of], fontsize=8.5)
        axis.grid(axis="y", visible=False)
        axis.set_title(f"{about['level']}, block 0, {about['size']}", fontsize=10)
        axis.tick_params(axis="x", labelsize=7.5)
        axis.set_xlabel("events, in order" if about["clock"] == "order" else "us", fontsize=8, labelpad=1)
    found = {span[1] for of, _ in panels for _, spans in of for span in spans}
    shown = {category: colour for category, colour in CATEGORIES.items() if category in found}
    patches = [plt.Rectangle((0, 0), 1, 1, facecolor=colour or theme.background,
                             edgecolor=theme.background if colour else theme.muted) for colour in shown.values()]
    fig.legend(patches, list(shown), loc="lower right", ncol=max(len(shown), 1), fontsize=8.5, frameon=False,
               bbox_to_anchor=(0.99, 0.005))
    clocks = {about["clock"] for _, about in traces}
    style.conditions(fig, theme, ORDER if clocks == {"order"} else times_of([about for _, about in traces]), width=0.6)
    return fig


def times_of(traces):
    """Where the times come from, and what the marks cost."""
    slower = [f"{about['level']} {about['overhead']:.1f}x" for about in traces if about.get("overhead")]
    return f"times on {traces[0]['device']}" + (f" · the marks cost time, so everything takes longer: {', '.join(slower)}"
                                                  if slower else "")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="plots --timeline", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path, help="the figures' path without -light.svg and -dark.svg")
    options = parser.parse_args(arguments)
    try:
        traces = [read(file) for file in options.traces]
    except TraceError as error:
        print(error, file=sys.stderr)
        return 2
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for name in style.THEMES:
        with style.Theme(name) as theme:
            file = options.out.with_name(f"{options.out.name}-{name}.svg")
            figure(traces, theme).savefig(file, metadata={"Date": None})
            print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
