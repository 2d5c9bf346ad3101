# SPDX-License-Identifier: MIT
"""The swizzles of TMA and wgmma: which bits of an address change, and where chunks of 16 bytes go."""
from ..results import ResultError
from .lines import HEIGHT, label
from .requests import BANKS, LINE, WORD
from .svg import INNER, MARGIN, Picture, colours, plural

CHUNK, ROWS = 16, 8
GAP = 14


def draw(document, _words, _root):
    """{"": the picture}"""
    spans = {span["bytes"]: span["places"] for span in document["spans"]}
    for span, places in spans.items():
        check(span, places)
    counts = {span: wavefronts(span, places) for span, places in spans.items()}
    said = ", ".join(f"{name(span)}: {plural(count, 'wavefront')}" for span, count in counts.items())
    picture = Picture("A swizzle XORs two parts of the address",
                      f"Chunk 0 of eight rows, which ldmatrix reads together, takes: {said}. Bits 4 to 6, the chunk of 16 bytes, are "
                      "XORed with bits 7 to 9, the line of 128 bytes.")
    picture.heading(picture.title)
    bits(picture)
    picture.paragraph("Places in eight lines of 128 bytes, and the chunk that each holds. Chunk 0 of eight rows is coloured, a "
                      "colour per wavefront. A row is as long as the span.", style="muted")
    picture.y += 4
    top, width = picture.y, (INNER - GAP) / 2
    for order, (span, places) in enumerate(spans.items()):
        picture.y = top + order // 2 * (ROWS * HEIGHT + 34)
        grid(picture, MARGIN + order % 2 * (width + GAP), width, span, places, counts[span])
    picture.paragraph("XOR with a fixed line is its own inverse, carries into no other bit, and moves whole chunks: 16-byte "
                      "accesses stay possible.")
    return {"": picture}


def name(span):
    return "no swizzle" if span == CHUNK else f"span {span}"


def row_bytes(span):
    return LINE if span == CHUNK else span


def bits(picture):
    """The bits of an address before and after, for the span of 128 bytes."""
    width = 40
    left = MARGIN + INNER - 7 * width
    picture.y += 8
    changed = colours(3)
    for text, names in (("address", ["9", "8", "7", "6", "5", "4", "3-0"]),
                        ("swizzled", ["9", "8", "7", "6^9", "5^8", "4^7", "3-0"])):
        picture.text(MARGIN, picture.y + 11, text, 11)
        for order, bit in enumerate(names):
            fill = changed[order % 3] if order < 3 or "^" in bit else None
            picture.rect(left + order * width, picture.y, width - 2, HEIGHT + 3, "" if fill else "off", fill)
            label(picture, left + order * width, picture.y + 1.5, width - 2, bit, fill)
        picture.y += HEIGHT + 6
    picture.paragraph("9-7: the line. 6-4: the chunk in its line. A span of 64 bytes changes bits 5 and 4, one of 32 bit 4.",
                      style="muted")


def of_chunk_0(span, places):
    """The places of chunk 0 of eight rows, in order of the rows."""
    return [places[row * row_bytes(span) // CHUNK] for row in range(ROWS)]


def orders(span, places):
    """{place: the wavefront in which it is read}: a place of a line has four banks of its own."""
    found, of_banks = {}, {}
    for place in of_chunk_0(span, places):
        banks = place % (BANKS * WORD // CHUNK)
        found[place] = of_banks[banks] = of_banks.get(banks, -1) + 1
    return found


def wavefronts(span, places):
    return 1 + max(orders(span, places).values())


def grid(picture, left, width, span, places, count):
    picture.text(left, picture.y + 11, f"{name(span)}: {plural(count, 'wavefront')}", 11.5, font="bold")
    picture.y += 17
    cell, fills, coloured = width / ROWS, colours(count), orders(span, places)
    picture.grid(left, picture.y, ROWS, ROWS, cell, HEIGHT)
    for chunk, place in enumerate(places):
        x, y = left + place % ROWS * cell, picture.y + place // ROWS * HEIGHT
        fill = fills[coloured[place]] if place in coloured else None
        below, picture.y = picture.y, y
        if fill:
            picture.rect(x, y, cell, HEIGHT, fill=fill)
        label(picture, x, y, cell, str(chunk * CHUNK % row_bytes(span) // CHUNK), fill)
        picture.y = below
    picture.y += ROWS * HEIGHT + 6


def check(span, places):
    """ResultError unless the places are those of the XOR, by the rule of the PTX ISA."""
    for chunk, place in enumerate(places):
        address = chunk * CHUNK
        if place * CHUNK != address ^ (address >> 3 & span - CHUNK):
            raise ResultError(f"span of {span} bytes: chunk {chunk} belongs at place {(address ^ (address >> 3 & span - CHUNK)) // CHUNK}"
                              f"; the program has it at {place}")
    if sorted(places) != list(range(ROWS * LINE // CHUNK)):
        raise ValueError(f"span of {span} bytes: not the places of eight lines")
