# SPDX-License-Identifier: MIT
"""How a capstone starts: what `./run new` writes, and what the next commands say of its two levels."""
import re

from .. import book
from ..results import ResultError
from .lines import HEIGHT
from .requests import SECTOR, Request
from .svg import COLOURS, MARGIN, WIDTH, Picture, plural

TEMPLATES = book.ROOT / "tools/capstone/templates"
USED = COLOURS[0]
HOLDS = {"problem.hpp": "buffers, result in fp64", "ladder.hpp": "sizes, list of levels"}
LEFT = MARGIN + 20  # of what belongs to a step
RIGHT = WIDTH - 14  # where the way back goes up


def draw(document, _words, _root):
    """{"": the picture}"""
    folder = TEMPLATES / document["from"]
    texts = {file.name: file.read_text() for file in folder.iterdir()}
    levels = [(level["level"], Request(level["request"])) for level in document["levels"]]
    check(levels, texts)
    sizes = re.findall(r"\{[\d, ]+\}", re.search(r"test_sizes = \{(.*?)\};", texts["ladder.hpp"], re.DOTALL)[1])
    said = ", ".join(f"{name} {plural(request.counted, 'sector')}" for name, request in levels)
    picture = Picture("A capstone's first hour",
                      f"Make it, test it at {len(sizes)} sizes, count ({said} per request), then change one thing. --from "
                      f"{document['from']}; each change is tested and counted again.")
    picture.heading(picture.title)
    step(picture, 1, f"./run new ~/my_{document['from']} --from {document['from']}", "It has two levels, which are right:")
    for name, text in sorted(texts.items(), key=lambda item: (list(HOLDS).index(item[0]) if item[0] in HOLDS else 0.5, item[0])):
        picture.y += 14
        picture.text(LEFT, picture.y, name, 9.5, font="mono")
        picture.text(LEFT + 150, picture.y, f"{text.count(chr(10))} lines: {HOLDS.get(name, 'a level')}", 10)
    back = step(picture, 2, f"./run test ~/my_{document['from']}", f"Is each level right, at {len(sizes)} sizes?")
    step(picture, 3, f"./run ~/my_{document['from']} --explain",
         f"What does a request cost? Each box is a sector of {SECTOR} bytes that moves; the used bytes are filled:")
    for name, request in levels:
        row(picture, name, request)
    last = step(picture, 4, "level_2_mine.cuh", "Copy the last level and change one thing. Write what you expect, and a claim.")
    picture.parts.append(f'<path class="wire" d="M{RIGHT - 150} {last}H{RIGHT}V{back}H{RIGHT - 6}m4 -4l-4 4l4 4"/>')
    return {"": picture}


def step(picture, number, command, says):
    """A numbered command and what it is for; the height of the command's line."""
    picture.y += 12
    at = picture.y + 8
    picture.rect(MARGIN, picture.y, 14, 15, fill=USED)
    picture.text(MARGIN + 7, picture.y + 11.5, str(number), 11, anchor="middle", fill="#ffffff")
    picture.text(LEFT, picture.y + 11.5, command, 10.5, font="mono")
    picture.y += 15
    picture.paragraph(says, 11, x=LEFT)
    return at


def row(picture, name, request):
    """The sectors of a request, each with its used bytes."""
    ideal = f", ideal {request.ideal}" if request.counted > request.ideal else ", the ideal"
    picture.y += 14
    picture.text(LEFT, picture.y, f"{name}: {plural(request.counted, 'sector')} per request{ideal}", 10.5, font="bold")
    picture.y += 5
    width = (RIGHT - 8 - LEFT) / 32
    for place, sector in enumerate(sorted(request.sectors())):
        used = sum(byte // SECTOR == sector for byte in request.used())
        picture.rect(LEFT + place * width, picture.y, width - 1, HEIGHT, "waste")
        picture.rect(LEFT + place * width, picture.y, (width - 1) * used / SECTOR, HEIGHT, fill=USED)
    picture.y += HEIGHT


def check(levels, texts):
    """ResultError unless the template's claims are what was counted."""
    for number, (name, request) in enumerate(levels):
        file = f"level_{number}_{name}.cuh"
        if file not in texts:
            raise ResultError(f"the template has no {file}")
        claimed = int(re.search(r"sectors_per_request\((\d+)\)", texts[file])[1])
        if claimed != request.counted:
            raise ResultError(f"{file} claims {claimed} sectors per request; the tracer counted {request.counted}")
