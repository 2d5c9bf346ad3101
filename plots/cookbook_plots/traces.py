# SPDX-License-Identifier: MIT
"""Traces that `./run N --timeline FILE` wrote (docs/profiling.md), and what a picture on a page keeps of them.

    PYTHONPATH=plots python3 -m cookbook_plots.traces TRACE... --data FILE.json

A GPU's traces become the data of a timeline, those of the SIMT backend the data of an order (docs/pictures.md).
"""
import argparse
import json
import re
import sys
from pathlib import Path


class TraceError(ValueError):
    """A file that is not a trace of a level."""


def read(file):
    """The tracks of one trace, (block, name) -> [(name, category, begin, end, bytes of a copy)], and its metadata."""
    try:
        trace = json.loads(Path(file).read_text())
        about, events = trace["otherData"], trace["traceEvents"]
        about["level"], about["program"], about["clock"]
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise TraceError(f"{file}: not a trace of ./run N --timeline: {error}") from error
    names, tracks, open_spans = {}, {}, {}
    for event in events:
        thread = event["pid"], event["tid"]
        if event["ph"] == "M":
            if event["name"] == "thread_name":
                names[thread] = event["args"]["name"]
                tracks[thread] = []
        elif event["ph"] == "B":
            open_spans.setdefault(thread, []).append(event)
        else:
            if not open_spans.get(thread):
                raise TraceError(f"{file}: an end without a begin on '{names.get(thread)}'")
            begin = open_spans[thread].pop()
            tracks[thread].append((begin["name"], begin["cat"], begin["ts"], event["ts"],
                                   begin.get("args", {}).get("bytes", 0)))
    for thread, left in open_spans.items():
        if left:
            raise TraceError(f"{file}: a begin without an end on '{names.get(thread)}'")
    return {(thread[0], names[thread]): spans for thread, spans in tracks.items()}, about


def rows(tracks, block=0):
    """(label, spans) of the tracks of one block: of warps with the same role the first, and overlapping spans together."""
    drawn, chosen = {}, {}
    for (of, name), spans in tracks.items():
        if of != block:
            continue
        name = re.sub(r", \d+$", "", name)  # the second track of spans that overlap
        found = re.match(r"(?:(.*) \()?warp (\d+)\)?", name)
        if found and chosen.setdefault(found[1], found[2]) != found[2]:
            continue
        label = re.sub(r" \(warp \d+\)", "", name)
        drawn.setdefault(label, []).extend(spans)
    return [(label, sorted(spans, key=lambda span: (span[2], -span[3]))) for label, spans in drawn.items()]


def timed(tracks):
    """Of a GPU's trace: consumers and copies of block 0, as pictures/timeline.py reads them."""
    return {label: [[category, round(begin, 3), round(end, 3)] for _, category, begin, end, _ in spans]
            for label, spans in rows(tracks) if label.startswith("copies") or re.fullmatch(r"consumer \d+(: multi.*)?", label)}


def ordered(tracks):
    """Of a trace of the SIMT backend: every warp of block 0 and the copies, as pictures/pipeline.py reads them."""
    found = {}
    for (block, name), spans in tracks.items():
        if block == 0:
            kept = found.setdefault(re.sub(r"TMA, \d+$", "TMA", name), [])
            kept += [[name, int(begin), int(end), *([size] if size else [])] for name, _, begin, end, size in spans]
    return found


def picture_data(traces):
    """A document as text, a line per track."""
    clocks = {about["clock"] for _, about in traces}
    if len(clocks) > 1:
        raise TraceError("some of these traces have times, others have an order")
    kind, keep = ("order", ordered) if clocks == {"order"} else ("timeline", timed)
    levels = []
    for tracks, about in traces:
        lines = ",\n".join(f"  {json.dumps(label)}: {json.dumps(spans)}" for label, spans in keep(tracks).items())
        slower = f'"overhead": {round(about["overhead"], 1)}, ' if "overhead" in about else ""
        levels.append(f'{{"level": {json.dumps(about["level"])}, "size": {json.dumps(list(map(int, about["size"].split("x"))))}, '
                      f'{slower}"tracks": {{\n{lines}}}}}')
    device = json.dumps(traces[0][1]["device"])
    return f'{{"schema": 1, "kind": "{kind}", "device": {device}, "levels": [\n' + ",\n".join(levels) + "]}\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="traces", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--data", required=True, type=Path, help="the file of a picture's data")
    options = parser.parse_args(arguments)
    try:
        options.data.write_text(picture_data([read(file) for file in options.traces]))
    except TraceError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
