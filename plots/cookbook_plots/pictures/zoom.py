# SPDX-License-Identifier: MIT
"""Zoom into C: block tile, warp tile, one instruction, and the registers of one lane."""
from ..results import ResultError
from .lines import HEIGHT, label
from .svg import COLOURS, INNER, MARGIN, Picture

LANE = 13  # the one whose registers are coloured
HERE, OTHER = COLOURS[0], COLOURS[1]
GAP = 24


def draw(document, _words, _root):
    """{"": the picture}"""
    areas = [("C", document["size"]), ("block tile", document["block"]), ("warp tile", document["warp"]),
             ("mma.sync", document["instruction"])]
    elements = check(document, areas)
    said = ", ".join(f"{name} {size_text(size)}" for name, size in areas)
    rows, cols = document["instruction"]
    own = [element for element, (lane, _) in elements.items() if lane == LANE]
    picture = Picture("From C to the registers of one lane",
                      f"Each holds the next: {said}. Of the {rows} x {cols} accumulators of an instruction, lane {LANE} has "
                      + ", ".join(f"row {e // cols} column {e % cols}" for e in own) + f". Over the warp tile a lane has "
                      f"{document['accumulators']} accumulators.")
    picture.heading(picture.title)
    strip(picture, areas[:3], [size for _, size in areas[1:]])
    registers(picture, elements, rows, cols)
    per_lane = len(own)
    count = document["accumulators"] // per_lane
    picture.paragraph(f"Lane {LANE} is coloured: {per_lane} accumulators of each mma.sync. {count} of these fill a warp tile of "
                      f"{size_text(document['warp'])}: {document['accumulators']} accumulators per lane.")
    return {"": picture}


def size_text(size):
    return f"{size[0]:,} x {size[1]:,}"


def strip(picture, areas, inside):
    """Side by side: an area, divided into what is inside of it, of which the first is coloured and drawn again larger."""
    width = (INNER - (len(areas) - 1) * GAP) / len(areas)
    picture.y += 8
    top = picture.y + 32
    for order, ((name, size), tile) in enumerate(zip(areas, inside)):
        left = MARGIN + order * (width + GAP)
        high = width * min(size[0] / size[1], 1)
        picture.text(left, picture.y + 8, name, 11.5, font="bold")
        picture.text(left, picture.y + 23, size_text(size), 11, style="muted")
        cell_w, cell_h = width * tile[1] / size[1], high * tile[0] / size[0]
        if order:  # of C the tiles would be too small
            picture.grid(left, top, size[1] // tile[1], size[0] // tile[0], cell_w, cell_h)
        picture.rect(left, top, max(cell_w, 4), max(cell_h, 4), fill=HERE)
        picture.rect(left, top, width, high, "edge")
        if order + 1 < len(areas):
            to = MARGIN + (order + 1) * (width + GAP)
            below = width * min(areas[order + 1][1][0] / areas[order + 1][1][1], 1)
            picture.line(left + cell_w, top, to, top, "faint")
            picture.line(left + cell_w, top + cell_h, to, top + below, "edge")
    picture.y = top + width + 8


def registers(picture, elements, rows, cols):
    """The accumulators of one instruction: lane and register."""
    picture.paragraph(f"The {rows} x {cols} of one instruction, the small blue part of the warp tile: lane.register",
                      style="muted")
    picture.y += 4
    width = INNER / cols
    picture.grid(MARGIN, picture.y, cols, rows, width, HEIGHT)
    for row in range(rows):
        for col in range(cols):
            lane, register = elements[row * cols + col]
            fill = OTHER if lane == LANE else None
            if fill:
                picture.rect(MARGIN + col * width, picture.y, width, HEIGHT, fill=fill)
            label(picture, MARGIN + col * width, picture.y, width, f"{lane}.d{register}", fill, "text")
        picture.y += HEIGHT
    picture.y += 4


def check(document, areas):
    """{element of D: (lane, register)}. ResultError unless they are as the PTX ISA has them, and the tiles fit."""
    for (outer, size), (inner, tile) in zip(areas, areas[1:]):
        if size[0] % tile[0] or size[1] % tile[1]:
            raise ResultError(f"{outer} {size_text(size)} is not made of {inner} {size_text(tile)}")
    (rows, cols), (warp_m, warp_n) = document["instruction"], document["warp"]
    if document["accumulators"] != warp_m * warp_n // 32:
        raise ResultError(f"a warp tile {size_text(document['warp'])} has {warp_m * warp_n // 32} accumulators per lane; the "
                          f"Config has {document['accumulators']}")
    found = {}
    for place, element in enumerate(document["elements"]):
        lane, register = divmod(place, 4)
        expected = (lane // 4 + register // 2 * 8) * cols + 2 * (lane % 4) + register % 2
        if element != expected:
            raise ResultError(f"d{register} of lane {lane} holds element {element}; by the PTX ISA it holds {expected}")
        found[element] = lane, register
    if len(found) != rows * cols:
        raise ValueError(f"{len(found)} elements of {rows * cols}")
    return found
