# SPDX-License-Identifier: MIT
"""The warps of one block on a GPU, from the marks of ./run N --timeline: the tensor cores as one row, consumers below it."""
from ..results import ResultError
from .lines import label
from .svg import COLOURS, INNER, MARGIN, Picture

MULTIPLY, SOFTMAX, STORE = COLOURS[5], COLOURS[2], COLOURS[3]
FILLS = {"softmax": SOFTMAX, "store": STORE}
LABEL, HEIGHT, GAP = 74, 14, 4


def draw(document, _words, _root):
    """{"": the picture}"""
    levels = [level | check(level) for level in document["levels"]]
    short = ", ".join(f"{level['level']} {level['idle']:.0f} of {level['active']:.0f} us" for level in levels)
    said = "; ".join(f"{level['level']}: {idle(level)}" for level in levels)
    picture = Picture("When the tensor cores multiply", f"Tensor cores idle: {short}. Block 0 of each level on an {document['device']}. {said}.")
    picture.heading(picture.title)
    slower = ", ".join(f"{level['overhead']:g}x" for level in levels)
    picture.paragraph(f"Block 0 of each level on an {document['device']}, {size_text(levels[0])}. The marks slow it down "
                      f"({slower}): compare what overlaps, not times.",
                      style="muted")
    longest = max(level["end"] for level in levels)
    scale = (INNER - LABEL) / longest
    for level in levels:
        panel(picture, level, scale)
    ruler(picture, longest, scale)
    picture.legend([(MULTIPLY, "multiply"), (SOFTMAX, "softmax"), (STORE, "pack and store"), ("off", "wait")])
    return {"": picture}


def live(document, _words):
    """What twins.js moves a time over."""
    found = []
    for level in document["levels"]:
        shown = level | check(level)
        rows = [["tensor cores", [["multiply", *span] for span in shown["busy"]]]]
        for name, consumer in shown["consumers"].items():
            multiplies = [["multiply", *span] for span in joined(consumer["multiplies"])]
            rows.append([name, multiplies + [span for span in consumer["own"] if span[0] != "wait"]])
        found.append({"level": level["level"], "idle": f"idle {shown['idle']:.0f} of {shown['active']:.0f} us", "end": shown["end"], "rows": rows})
    return {"kind": "timeline", "levels": found}


def size_text(level):
    return " x ".join(f"{extent:,}" for extent in level["size"])


def idle(level):
    softmax = f", and one in flight during {100 * level['hidden']:.0f} % of the softmax" if level["softmax"] else ""
    return f"no multiplication in flight for {level['idle']:.0f} of {level['active']:.0f} us" + softmax


def panel(picture, level, scale):
    """One level: the row of the tensor cores, and a row per consumer."""
    picture.y += 6
    picture.paragraph(level["level"], font="bold")
    picture.paragraph(idle(level)[0].upper() + idle(level)[1:] + ".", 10.5)
    picture.y += 4
    row(picture, "tensor cores", [("multiply", *span) for span in joined(level["busy"], 0.4 / scale)], scale)
    for order, (name, consumer) in enumerate(level["consumers"].items()):
        own = [span for span in consumer["own"] if span[0] != "wait"]
        picture.rect(MARGIN + LABEL, picture.y, level["end"] * scale, HEIGHT, "off")
        multiplies = joined(consumer["multiplies"], 0.4 / scale)
        row(picture, name, [("multiply", *span) for span in multiplies] + own, scale)
        for number, (begin, end) in enumerate(multiplies if level["gemm"] else ()):
            tile = number if level["shared"] else number * len(level["consumers"]) + order
            label(picture, MARGIN + LABEL + begin * scale, picture.y - HEIGHT - GAP + 1, (end - begin) * scale, f"tile {tile}",
                  MULTIPLY)
    picture.y += 4


def row(picture, name, spans, scale):
    picture.text(MARGIN, picture.y + 10.5, name, 10.5)
    for category, begin, end in spans:
        half = HEIGHT / 2 if category == "softmax" else 0  # a multiplication may be in flight above it
        picture.rect(MARGIN + LABEL + begin * scale, picture.y + half, max((end - begin) * scale, 0.4), HEIGHT - half,
                     fill=FILLS.get(category, MULTIPLY), tip=f"{category}, {begin:.1f} to {end:.1f} us")
    picture.y += HEIGHT + GAP


def ruler(picture, longest, scale):
    step = next(step for step in (5, 10, 20, 50, 100) if longest / step < 8)
    picture.y += 6
    for at in range(0, int(longest) + 1, step):
        picture.line(MARGIN + LABEL + at * scale, picture.y - 8, MARGIN + LABEL + at * scale, picture.y - 4)
        picture.text(MARGIN + LABEL + at * scale, picture.y + 6, f"{at} us" if at == 0 else str(at), 10, "muted", "middle")
    picture.y += 8


def joined(spans, gap=0.0):
    """[[begin, end]] in order, of spans that overlap or that have at most `gap` between them."""
    found = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1] + gap:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([begin, end])
    return found


def common(spans, others):
    """How long both are at work; each is joined()."""
    return sum(max(0.0, min(b, d) - max(a, c)) for a, b in spans for c, d in others)


def check(level):
    """What the picture shows of a level. ResultError unless every tile has as many multiplications, and they are of the
    k-blocks that were copied."""
    tracks, consumers = level["tracks"], {}
    for name, spans in tracks.items():
        if any(begin > end for _, begin, end in spans):
            raise ResultError(f"{level['level']}, {name}: a span ends before it begins")
        if name.endswith(": multiplies in flight"):
            consumers.setdefault(name.split(":")[0], {})["multiplies"] = [span[1:] for span in spans]
    for name, consumer in consumers.items():
        consumer["own"] = tracks[name]
    gemm = len(level["size"]) == 3
    counts = {name: batches(consumer, gemm) for name, consumer in consumers.items()}
    per_tile = {count for of_tiles in counts.values() for count in of_tiles}
    if len(per_tile) != 1:
        raise ResultError(f"{level['level']}: the tiles of its consumers have {list(counts.values())} batches of multiplications; "
                          "all tiles have as many")
    copies, total = len(tracks["copies by TMA"]), sum(map(sum, counts.values()))
    # A GEMM multiplies each k-block once: by both consumers, which share its tile, or by the one whose tile it is.
    if gemm and copies not in (total, total / len(counts)):
        raise ResultError(f"{level['level']}: {copies} k-blocks are copied, and {total} batches multiply")
    busy = joined(span for consumer in consumers.values() for span in consumer["multiplies"])
    softmax = [span[1:] for consumer in consumers.values() for span in consumer["own"] if span[0] == "softmax"]
    active = busy[-1][1] - busy[0][0]
    return {"consumers": consumers, "gemm": gemm, "shared": copies != total, "busy": busy, "active": active, "idle": active - sum(end - begin for begin, end in busy),
            "end": max(end for spans in tracks.values() for _, _, end in spans), "softmax": softmax,
            "hidden": common(softmax, busy) / sum(end - begin for begin, end in softmax) if softmax else 0}


def batches(consumer, gemm):
    """How many batches of multiplications each of its tiles has: a tile ends with a store. Attention may begin the next tile
    before it stores this one, so there it is the mean."""
    begins = [begin for begin, _ in consumer["multiplies"]]
    stores = [begin for category, begin, _ in consumer["own"] if category == "store"]
    if not gemm:
        return [len(begins) / len(stores)]
    ends = [0.0, *sorted(stores)]
    late = sum(begin >= ends[-1] for begin in begins)
    return [sum(low <= begin < high for begin in begins) for low, high in zip(ends, ends[1:])] + ([late] if late else [])
