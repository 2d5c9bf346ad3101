# SPDX-License-Identifier: MIT
"""A ring of stages: a barrier's phases, and the two barriers of a stage, as strips from the order of a traced run; and the
k-blocks of one to four stages in time, from measured speeds."""
import re
from collections import Counter

from ..results import ResultError
from .lines import HEIGHT, label, runs
from .svg import COLOURS, INNER, MARGIN, Picture, plural

LOAD, MULTIPLY, WAITS = COLOURS[4], COLOURS[5], COLOURS[3]
PHASES = [COLOURS[1], COLOURS[2]]  # of parity 0 and 1
LABEL = 92
NEAR = 0.15  # of the measured speed: the drawing has one time for all loads


class Barrier:
    """As the PTX ISA has it: a phase ends when its arrivals and its bytes are complete."""

    def __init__(self, name, count):
        self.name, self.count, self.pending, self.bytes, self.phases = name, count, count, 0, 0

    def change(self, arrivals=0, bytes_=0):
        self.pending -= arrivals
        self.bytes += bytes_
        if self.pending < 0 or self.bytes < 0:
            raise ResultError(f"{self.name}: more arrivals or bytes than its phase has")
        if self.pending == self.bytes == 0:
            self.phases, self.pending = self.phases + 1, self.count


def draw_order(document, words, _root):
    """{"phases": one barrier of the level with the fewest stages, "stage": both of stage 0 of the level with the most}, or the
    one that `words` name."""
    rings = [(level, ring(level)) for level in document["levels"]]
    for level, count in rings:
        follow(level, count)
    found = {"phases": (phases, min(rings, key=lambda item: item[1])), "stage": (stage_0, max(rings, key=lambda item: item[1]))}
    return {name: of(*of_ring) for name, (of, of_ring) in found.items() if not words or words == [name]}


SHOWN_PHASES = 3


def phases(level, _count):
    moments, warps = first_phases(level)
    size = moments[1]["bytes"]
    picture = Picture(f"An mbarrier over {SHOWN_PHASES} phases",
                      f"A phase ends when 1 arrival and {size:,} bytes are complete. Then its parity changes, and "
                      f"{plural(warps, 'warp')} go on. {SHOWN_PHASES} phases, parities "
                      f"{', '.join(str(phase % 2) for phase in range(SHOWN_PHASES))}.")
    picture.heading(picture.title)
    picture.paragraph(f"Level {level['level']}: one stage, one barrier, full. From left to right: events in the order of a traced run, "
                      "not times. Its fourth phase begins at the right end.", style="muted")
    picture.y += 4
    barrier(picture, moments, "full", (INNER - LABEL) / len(moments), "full")
    picture.legend([(PHASES[0], "a phase of parity 0"), (PHASES[1], "of parity 1"), (WAITS, "warps wait for its end")])
    picture.paragraph(f"Thread 0 arrives and says that {size // 1024} KB will come: 0 arrivals and {size // 1024} KB are left. "
                      "TMA writes them, and the phase ends: the counts start again, the parity changes, and the warps go on. A warp "
                      "names the parity of the phase for which it waits: 0, 1, 0 ...")
    return picture


def first_phases(level):
    """What replay() finds, from the new barrier until all warps go on after so many phases."""
    moments, warps = replay(level, 0)
    last = next(place for place, moment in enumerate(moments) if moment["full"][2] == SHOWN_PHASES and not moment["full"][3])
    return [{"what": "new", "full": (1, 0, 0, set())}, *moments[:last + 1]], warps


def stage_0(level, count):
    moments, warps = replay(level, 0)
    size = next(moment["bytes"] for moment in moments if moment["what"] == "expect")
    picture = Picture("The two barriers of a stage",
                      f"A phase of full[0] takes 1 arrival and {size:,} bytes, of empty[0] {warps} arrivals. Stage 0 of {count}: "
                      f"{plural(warps, 'warp')} wait for full[0], thread 0 for empty[0]. Level {level['level']}, in the order of a "
                      "traced run.")
    picture.heading(picture.title)
    picture.paragraph(f"Stage 0 of {count}, level {level['level']}. From left to right: events in the order of a traced run, not "
                      "times.", style="muted")
    picture.y += 4
    width = (INNER - LABEL) / len(moments)
    strip(picture, "stage 0", uses(moments, count), width)
    for name in ("full", "empty"):
        barrier(picture, moments, name, width, f"{name}[0]")
    picture.paragraph("A phase ends when no arrival and no byte is left. Then the counts start again, the parity changes, and the "
                      "warps that wait go on. The first wait for empty[0] names parity 1: it ends at once.")
    return picture


def barrier(picture, moments, name, width, called):
    """The strips of one barrier."""
    picture.y += 5
    picture.text(MARGIN, picture.y + 11, called, 11.5, font="bold")
    picture.y += 16
    states = [moment[name] for moment in moments]
    strip(picture, "arrivals left", runs([str(state[0]) for state in states]), width)
    if name == "full":
        strip(picture, "KB left", runs([f"{state[1] / 1024:.0f}" for state in states]), width)
    strip(picture, "phase's parity", runs([str(state[2] % 2) for state in states]), width, PHASES)
    waiting = runs([str(len(state[3])) for state in states])
    strip(picture, "warps that wait", [(text, *rest) for text, *rest in waiting if text != "0"], width, [WAITS])


def live_order(document, words):
    """What twins.js steps through: the same strips, and a sentence for each event."""
    of, which = {"phases": ("full", min), "stage": ("full[0]", max)}[words[0]]
    level = which(document["levels"], key=ring)
    moments, _ = first_phases(level) if of == "full" else replay(level, 0)
    called = {name: of.replace("full", name) for name in (("full",) if of == "full" else ("full", "empty"))}
    rows = []
    for name in called:
        states = [moment[name] for moment in moments]
        rows += [[f"{called[name]} arrivals", "", [str(state[0]) for state in states]],
                 ["parity", "parity", [str(state[2] % 2) for state in states]],
                 ["warps that wait", "waits", [str(len(state[3])) for state in states]]]
        if name == "full":
            rows[1:1] = [["KB left", "", [f"{state[1] / 1024:.0f}" for state in states]]]
    return {"kind": "order", "title": f"Level {level['level']}, event by event", "rows": rows,
            "events": [event(moment, called) for moment in moments]}


def event(moment, called):
    """What happens, in words, and what each barrier then is."""
    warp, value = moment.get("warp"), moment.get("bytes")
    what = {"new": lambda: "The barrier is new", "expect": lambda: f"Thread 0 arrives at {called['full']} and expects {value:,} bytes",
            "land": lambda: f"TMA has written {value:,} bytes", "arrive": lambda: f"Warp {warp} arrives at {called['empty']}",
            "wait": lambda: f"Warp {warp} waits for {called[value]}", "go": lambda: f"Warp {warp} goes on"}[moment["what"]]()
    states = "; ".join(f"{name}: phase {moment[key][2]}, parity {moment[key][2] % 2}" for key, name in called.items())
    return f"{what}. {states}."


def strip(picture, name, boxes, width, fills=None):
    """A row of boxes: (text, first column, columns, fill if not `fills`)."""
    picture.text(MARGIN, picture.y + 10, name, 10.5)
    for text, first, columns, *own in boxes:
        x = MARGIN + LABEL + first * width
        fill = own[0] if own else fills[int(text) % len(fills)] if fills else None
        picture.rect(x, picture.y, columns * width, HEIGHT, "" if fill else "off", fill)
        picture.rect(x, picture.y, columns * width, HEIGHT, "cell")
        label(picture, x, picture.y, columns * width, text, fill, "text")
    picture.y += HEIGHT + 2


def uses(moments, stages):
    """What stage 0 is used for: a load until it has arrived, then reads until the last arrival at empty[0]."""
    found, block = [], 0
    for place, moment in enumerate(moments):
        if moment["what"] == "expect":
            begin = place
        elif moment["what"] == "land":
            found.append([f"load {block}", begin, place - begin, LOAD])
            begin = place
        elif moment["what"] == "arrive":
            if found[-1][0] != f"read {block}":
                found.append([f"read {block}", begin, 0, MULTIPLY])
            found[-1][2] = place + 1 - begin
            if moment["empty"][0] == len(moment["warps"]):
                block += stages
    return found


def ring(level):
    """The number of stages: what its copies are called."""
    return len({name for name, *_ in level["tracks"]["copies by TMA"]})


def warps_of(level):
    return [(int(found[1]), spans) for name, spans in level["tracks"].items() if (found := re.search(r"warp (\d+)\)?$", name))]


def follow(level, stages):
    """ResultError unless a k-block is loaded only after all warps have read the one before it in its stage, and read only after
    it has arrived; with several stages, loads and reads must overlap."""
    name = level["level"]
    loads = sorted(((begin, end) for _, begin, end, *_ in level["tracks"]["copies by TMA"]))
    reads = [[] for _ in loads]
    for track, spans in level["tracks"].items():
        if track.endswith(": multiplies in flight"):
            for block, (_, begin, end) in enumerate(sorted(spans, key=lambda span: span[1])):
                reads[block].append((begin, end))
    for block, (begin, end) in enumerate(loads):
        if block >= stages and begin < max(done for _, done in reads[block - stages]):
            raise ResultError(f"{name}: k-block {block} is loaded while k-block {block - stages}, of the same stage, is read")
        if min(start for start, _ in reads[block]) < end:
            raise ResultError(f"{name}: k-block {block} is read before it has arrived")
    overlap = any(begin < done and start < end for begin, end in loads for of in reads for start, done in of)
    if overlap != (stages > 1):
        raise ResultError(f"{name}: {plural(stages, 'stage')}, and loads {'do' if overlap else 'do not'} overlap with reads")


def replay(level, stage):
    """The moments of one stage in order, each with the state of both barriers after it, and how many warps read. ResultError
    where a warp goes on before its phase has ended. A level of one stage has no empty barrier, and its names no number."""
    found, one = [], ring(level) == 1
    for name, begin, end, *size in level["tracks"]["copies by TMA"]:
        if one or name == f"copy [{stage}]":
            found += [(begin, 0, "expect", None, size[0]), (end, 0, "land", None, size[0])]
    warps = warps_of(level)
    for warp, spans in warps:
        last = None
        for name, begin, end in sorted(spans, key=lambda span: span[1]):
            if waited := re.fullmatch(r"wait (full|empty)(?:\[(\d+)\])?", name):
                of = int(waited[2] or stage)
                last = last if waited[1] == "empty" else of
                if of == stage:
                    found += [(begin, 1, "wait", warp, waited[1]), (end, 2, "go", warp, waited[1])]
            elif name == "wait wgmma" and last == stage and not one:
                found.append((end, 3, "arrive", warp, None))  # the next statement of the level
    bars = {"full": Barrier(f"full[{stage}]", 1), "empty": Barrier(f"empty[{stage}]", len(warps))}
    waiting, went, moments = {"full": set(), "empty": set()}, Counter(), []
    for _, _, what, warp, value in sorted(found, key=lambda moment: moment[:2]):
        if what == "expect":
            bars["full"].change(1, value)
        elif what == "land":
            bars["full"].change(0, -value)
        elif what == "arrive":
            bars["empty"].change(1)
        elif what == "wait":
            waiting[value].add(warp)
        else:
            waiting[value].discard(warp)
            went[value, warp] += 1
            if bars[value].phases < went[value, warp] - (value == "empty"):  # the first wait for an empty stage is for parity 1
                raise ResultError(f"{level['level']}: warp {warp} goes on before phase {bars[value].phases} of {bars[value].name} has "
                                  "ended")
        moments.append({"what": what, "bytes": value, "warp": warp, "warps": warps} |
                       {name: (bar.pending, bar.bytes, bar.phases, set(waiting[name])) for name, bar in bars.items()})
    for bar in bars.values():
        if (bar.pending, bar.bytes) != (bar.count, 0):
            raise ResultError(f"{level['level']}: at the end a phase of {bar.name} is incomplete")
    return moments, len(warps)


def draw_stages(document, _words, _root):
    """{"": the k-blocks of one to four stages}"""
    tflops = {int(stages): speed for stages, speed in document["tflops"].items()}
    both, multiply = (per_block(document, tflops[stages]) for stages in (1, max(tflops)))
    load = both - multiply
    for stages, speed in tflops.items():
        drawn = tflops[max(tflops)] * multiply / period(stages, load, multiply)
        if abs(drawn - speed) > NEAR * speed:
            raise ResultError(f"{stages} stages: drawn as {drawn:.0f} TFLOP/s, measured {speed:.0f}: loads of {load:.2f} us and "
                              f"multiplications of {multiply:.2f} us do not explain it")
    picture = Picture("One to four stages",
                      "; ".join(f"{plural(stages, 'stage')}: {speed:.0f} TFLOP/s" for stages, speed in tflops.items())
                      + f". A load takes {load:.2f} us, the multiplication of a k-block {multiply:.2f} us.")
    picture.heading(picture.title)
    picture.paragraph(f"{document['device']}, {document['level']}, {' x '.join(f'{extent:,}' for extent in document['size'])}: a k-block "
                      f"takes {both:.2f} us with one stage, {multiply:.2f} us with {max(tflops)}. So a multiplication takes "
                      f"{multiply:.2f} us, and a load {load:.2f} us. A box's number is its k-block.", style="muted")
    shown = 6 * both
    scale = (INNER - LABEL) / shown
    for stages, speed in tflops.items():
        picture.y += 5
        picture.text(MARGIN, picture.y + 11, f"{plural(stages, 'stage')}: measured {speed:.0f} TFLOP/s", 11.5, font="bold")
        picture.y += 17
        steps = schedule(stages, load, multiply, shown)
        lane(picture, "tensor cores", [(block, start, end, MULTIPLY) for block, _, start, end in steps], scale, shown)
        for stage in range(stages):
            own = [step for step in steps if step[0] % stages == stage]
            lane(picture, f"stage {stage}", [(block, begin, begin + load, LOAD) for block, begin, _, _ in own]
                 + [(block, start, end, MULTIPLY) for block, _, start, end in own], scale, shown)
    picture.legend([(LOAD, "load"), (MULTIPLY, "multiply"), ("off", "empty, or full and not yet read")])
    picture.paragraph("Loads do not all take the same time. With two stages the tensor cores wait for a late one, so the measured "
                      "speed is lower than that of the drawing. With three, a load has twice the time.")
    return {"": picture}


def per_block(document, tflops):
    """us per k-block and SM: blocks of the grid in whole waves."""
    (m, n, k), (tile_m, tile_n, tile_k) = document["size"], document["tile"]
    waves = -(-(-(-m // tile_m) * -(-n // tile_n)) // document["sms"])
    return 2e-6 * m * n * k / tflops / (waves * -(-k // tile_k))


def period(stages, load, multiply):
    return max(multiply, (load + multiply) / stages)


def schedule(stages, load, multiply, until):
    """[(k-block, its load begins, its multiplication begins, ends)]: a stage is loaded again as soon as it has been read."""
    steps, ended = [], 0.0
    while True:
        block = len(steps)
        begin = steps[block - stages][3] if block >= stages else 0.0
        if begin >= until:
            return steps
        start = max(begin + load, ended)
        ended = start + multiply
        steps.append((block, begin, start, ended))


def lane(picture, name, boxes, scale, shown):
    left = MARGIN + LABEL
    picture.text(MARGIN, picture.y + 10, name, 10.5)
    picture.rect(left, picture.y, shown * scale, HEIGHT, "off")
    for block, begin, end, fill in boxes:
        width = (min(end, shown) - begin) * scale
        if width > 0:
            picture.rect(left + begin * scale, picture.y, width, HEIGHT, fill=fill)
            picture.rect(left + begin * scale, picture.y, width, HEIGHT, "cell")
            label(picture, left + begin * scale, picture.y, width, str(block), fill)
    picture.y += HEIGHT + 2
