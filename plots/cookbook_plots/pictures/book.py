# SPDX-License-Identifier: MIT
"""Pictures of files and of the book's pages.

In a page the line <!-- picture NAME WORDS --> is followed by a picture of NAME.json in plots/results/simt/pictures or
plots/results/h200/pictures, which `./run plots` draws and puts there. WORDS choose one of its requests, such as `shared load`: the worst of these.
"""
import json
import re
from collections import defaultdict

from .. import book
from ..results import ResultError, of_the_right_form
from . import attention, banks, descriptor, pipeline, promotion, sectors, softmax, sources, start, sums, swizzle, tensor_memory, timeline, waves, zoom
from .requests import LANES, MEMORIES, Request

RECORDED, DRAWN = "plots/results/simt/pictures", "plots/figures/pictures"
TIMED = "plots/results/h200/pictures"  # what only a GPU can record
MOST_LINES = 6  # of a memory in a file: there may be more
MARK = re.compile(r"^(<!-- picture ([\w-]+)((?: \w+)*) -->\n)(?:\n?!\[[^\n]*\]\([^\n]*\)\n)?", re.MULTILINE)


def read(file):
    """The document of a file. ResultError where it is none of ours."""
    try:
        document = json.loads(file.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ResultError(f"{file}: cannot be read: {error}") from error
    with of_the_right_form(f"{file}: not the data of a picture (docs/pictures.md)"):
        if document["schema"] != 1 or document["kind"] not in KINDS:
            raise ValueError(f"schema {document['schema']!r}, kind {document['kind']!r}")
    return document


def recorded(root, name):
    """The file of a page's picture."""
    timed = root / TIMED / f"{name}.json"
    return timed if timed.exists() else root / RECORDED / f"{name}.json"


def of(document, words):
    """The requests of a document whose memory and operation, and buffer, `words` are; of none, all."""
    def named(data):
        return [data["memory"], *data["operation"].split(), data["buffer"]]
    return [data for data in document["requests"] if not words or words in (named(data)[:-1], named(data))]


LIVE = {"order": pipeline.live_order, "timeline": timeline.live}
LIVE |= dict.fromkeys(("attention_schedule", "descriptor", "online_softmax", "stages", "swizzle", "waves", "zoom"),
                      lambda document, words: document | {"shows": " ".join(words)})


def live_data(name, words, root=book.ROOT):
    """What the site's lanes.js draws of a recorded request, and twins.js of the others; None where a picture has no parameter."""
    document = read(recorded(root, name))
    if document["kind"] != "requests":
        return LIVE[document["kind"]](document, words) if document["kind"] in LIVE else None
    request = Request(of(document, words)[0])
    return {"where": request.where, "source": request.source, "memory": request.memory, "bytes": request.bytes,
            "rule": request.rule, "counted": request.counted, "ideal": request.ideal,
            "addresses": [request.lanes.get(lane) for lane in range(LANES)]}


def requests_of(document, words, root):
    """{name: picture} of recorded requests; of all, numbered from the worst, or of the worst that `words` describe."""
    found = {}
    for order, data in enumerate(of(document, words), 1):
        name = [data["memory"], *data["operation"].split()]
        request = Request(data)
        request.line = line_now(root, request)
        picture = (sectors if request.memory == "global" else banks).draw(request)
        found["-".join(words or [str(order), *name])] = picture
        if words:
            break
    return found


def line_now(root, request):
    """The number of the line that was recorded, in the source as it is: lines above it may have come or gone."""
    file = root / request.file
    if not file.is_file():
        return request.line  # of a reader's own project
    text = request.source.removesuffix("...")
    numbers = [number for number, line in enumerate(file.read_text().split("\n"), 1) if line.strip().startswith(text)]
    if not numbers:
        raise ResultError(f"{request.where}: recorded of another source: {request.source}")
    return min(numbers, key=lambda number: abs(number - request.line))


KINDS = {"requests": requests_of, "attention_schedule": attention.draw, "capstone": start.draw, "descriptor": descriptor.draw,
         "online_softmax": softmax.draw, "order": pipeline.draw_order, "promotion": promotion.draw,
         "stages": pipeline.draw_stages, "sums": sums.draw, "swizzle": swizzle.draw, "tensor_memory": tensor_memory.draw,
         "timeline": timeline.draw, "waves": waves.draw, "zoom": zoom.draw}


def pictures(file, words=(), root=book.ROOT):
    """{name: picture} of a file. ResultError where it is malformed, or not what the tracer counted."""
    document = read(file)
    with of_the_right_form(f"{file}: not the data of a picture (docs/pictures.md)"):
        found = KINDS[document["kind"]](document, list(words), root)
        sources.check(document, root)
    if not found:
        raise ResultError(f"{file}: nothing in it is called {' '.join(words)!r}" if words else f"{file}: no request in it")
    return {"-".join(filter(None, (file.stem, name))): picture for name, picture in found.items()}


def wrong(root, drawn, check):
    """A sentence for whatever keeps recorded data, counters and pictures from being equal. `drawn`: what filled() added."""
    for file in sorted([*(root / RECORDED).glob("*.json"), *(root / TIMED).glob("*.json")]):
        if not any(path.stem == file.stem or path.stem.startswith(file.stem + "-") for path in drawn):
            yield f"{file.relative_to(root)}: no page shows a picture of it"
        yield from wrong_counters(root, file)
    for path, svg in drawn.items() if check else ():
        if not path.exists() or path.read_text() != svg:
            yield f"{path.relative_to(root)}: not what its data make (./run plots draws it)"
    yield from (f"{path.relative_to(root)}: no page shows it" for path in sorted((root / DRAWN).glob("*.svg"))
                if path not in drawn)


def wrong_counters(root, file):
    """Where the lines of a file of requests do not add up to what ./run profile counted of the level at that size."""
    document = read(file)
    counted = root / f"plots/results/simt/chapter-{document.get('chapter')}.json"
    if document["kind"] != "requests" or not counted.exists():
        return
    sums = defaultdict(list)
    for data in document["requests"]:
        unit = MEMORIES[data["memory"]]
        sums[f"{data['memory']}_{data['operation']}_{unit}"].append(data["line_total"][unit])
    for run in json.loads(counted.read_text())["runs"]:
        if run["ladder"] != document["ladder"] or run["problem"]["trace_size"] != document["size"]:
            continue
        for level in run["levels"]:
            for key, units in sums.items() if level["name"] == document["level"] else ():
                if key in level["counters"] and len(units) < MOST_LINES and sum(units) != level["counters"][key]:
                    yield (f"{file.relative_to(root)}: its lines have {sum(units)} {key}, the level {level['counters'][key]:.0f} "
                           "(plots/pictures.sh records it again)")


def draw(file, folder):
    """Writes the pictures of a file into a folder; returns their paths."""
    written = []
    for name, picture in pictures(file).items():
        written.append(folder / f"{name}.svg")
        written[-1].write_text(picture.svg())
    return written


def filled(text, page, root, drawn):
    """A page's text with its pictures; adds {path: SVG} to `drawn`."""
    def place(match):
        [(name, picture)] = pictures(recorded(root, match[2]), match[3].split(), root).items()
        path = root / DRAWN / f"{name}.svg"
        drawn[path] = picture.svg()
        up = "../" * len(page.parent.relative_to(root).parts)
        alt = picture.alternative().replace("[", "(").replace("]", ")")
        return f"{match[1]}\n![{alt}]({up}{DRAWN}/{path.name})\n"
    return MARK.sub(place, text)
