# SPDX-License-Identifier: MIT
"""A wgmma descriptor: its 64 bits, and which 16-byte chunks of a tile in shared memory they lead to."""
from ..results import ResultError
from .lines import HEIGHT, label
from .svg import COLOURS, INNER, MARGIN, Picture

CHUNK, ROWS, PER_ROW = 16, 8, 8  # bytes; rows of a core matrix; chunks of a row of 64 elements
START, LEADING, STRIDE, LAYOUT = COLOURS[1], COLOURS[3], COLOURS[2], COLOURS[5]
FIRST = COLOURS[4]  # what the first instruction reads
GAP = 34
SPANS = {0: 16, 1: 128, 2: 64, 3: 32}  # bytes, by layout type


def leading(fields):
    """The leading offset as text; with a swizzle, where k runs along the span, there is none."""
    return "unused" if SPANS[fields["layout"]] > CHUNK else f"{fields['leading']:,}"


def draw(document, _words, _root):
    """{"": the picture}"""
    tiles = [(tile, check(tile, document["rows"])) for tile in document["tiles"]]
    said = "; ".join(f"{name(tile)}: leading {leading(f)}, stride {f['stride']:,}" for tile, f in tiles)
    picture = Picture("A wgmma descriptor and its tile",
                      f"{said[0].upper()}{said[1:]} bytes. A tile of A, {document['rows']} rows of 64 bf16. The first instruction reads chunks 0 and 1 of each row.")
    picture.heading(picture.title)
    picture.paragraph(f"A's tile: {document['rows']} rows (m) of 64 elements (k). A chunk is 8 elements, 16 bytes. Byte fields are "
                      "stored without their lowest 4 bits.", style="muted")
    for tile, fields in tiles:
        bits(picture, tile, fields)
    picture.y += 8
    width, top = (INNER - GAP) / 2, picture.y
    for order, ((tile, fields), grid) in enumerate(zip(tiles, (core_matrices, swizzled))):
        picture.y = top
        grid(picture, MARGIN + order * (width + GAP), width, tile, fields)
    picture.y = top + 17 + 9 * HEIGHT + 12
    picture.legend([(FIRST, "read by the first instruction, k 0 to 15"), (STRIDE, "stride"), (LEADING, "leading")])
    (plain, plain_fields), (spans, _) = tiles
    picture.paragraph(f"The next instruction, k 16 to 31, starts {next_step(plain):,} bytes further on without a swizzle (two "
                      f"leading offsets of {plain_fields['leading']:,}), and {next_step(spans)} bytes further on with one.")
    return {"": picture}


def name(tile):
    return "no swizzle" if tile["swizzle"] == "none" else f"swizzle {tile['swizzle']}"


def next_step(tile):
    return (tile["low_of_next_step"] - tile["low"]) * CHUNK


def bits(picture, tile, fields):
    """The fields from bit 63 to bit 0, as wide as they have bits."""
    picture.y += 4
    picture.text(MARGIN, picture.y + 11, name(tile), 11.5, font="bold")
    picture.y += 15
    bit = INNER / 64
    picture.rect(MARGIN, picture.y, INNER, HEIGHT, "off")
    for high, low, fill, what, text in (
            (63, 62, LAYOUT, "layout", str(fields["layout"])), (45, 32, STRIDE, "stride", f"{fields['stride']:,}"),
            (29, 16, None if leading(fields) == "unused" else LEADING, "leading", leading(fields)),
            (13, 0, START, "start", f"{fields['start']:,}")):
        x, wide = MARGIN + (63 - high) * bit, (high - low + 1) * bit
        picture.rect(x, picture.y, wide, HEIGHT, "" if fill else "edge", fill)
        label(picture, x, picture.y, wide, text, fill, "text")
        picture.text(x, picture.y + HEIGHT + 9, f"{high}-{low} {what}", 9, "muted")
    picture.y += HEIGHT + 13


def core_matrices(picture, left, width, tile, fields):
    """Without a swizzle: a cell is a core matrix, with the place of its first byte in the tile."""
    picture.text(left, picture.y + 10, "a cell: 8 rows of one chunk", 10.5)
    top, cell = picture.y + 17, width / PER_ROW
    for group in range(len(tile["places"]) // PER_ROW // ROWS):
        for chunk in range(PER_ROW):
            fill, place = FIRST if chunk < 2 else None, tile["places"][group * ROWS * PER_ROW + chunk] * CHUNK
            x, y = left + chunk * cell, top + group * HEIGHT
            if fill:
                picture.rect(x, y, cell, HEIGHT, fill=fill)
            if group == 0 or chunk == 0:
                label(picture, x, y, cell, str(place), fill)
    picture.grid(left, top, PER_ROW, ROWS, cell, HEIGHT)
    arrow(picture, left - 4, top + 3, left - 4, top + HEIGHT + 6, STRIDE)
    arrow(picture, left + 6, top + ROWS * HEIGHT + 6, left + 6 + cell, top + ROWS * HEIGHT + 6, LEADING)
    picture.text(left + cell + 12, top + ROWS * HEIGHT + 11, f"+ {fields['leading']:,} bytes; down + {fields['stride']}", 10)


def swizzled(picture, left, width, tile, fields):
    """With a swizzle: a row of 128 bytes, a cell a place, with the chunk that is there."""
    picture.text(left, picture.y + 10, "a cell: one chunk, at its place", 10.5)
    top, cell = picture.y + 17, width / PER_ROW
    for number, place in enumerate(tile["places"][:ROWS * PER_ROW]):
        fill = FIRST if number % PER_ROW < 2 else None
        x, y = left + place % PER_ROW * cell, top + place // PER_ROW * HEIGHT
        if fill:
            picture.rect(x, y, cell, HEIGHT, fill=fill)
        label(picture, x, y, cell, str(number % PER_ROW), fill)
    picture.grid(left, top, PER_ROW, ROWS, cell, HEIGHT)
    arrow(picture, left - 5, top + 3, left - 5, top + ROWS * HEIGHT + 8, STRIDE)
    picture.text(left, top + ROWS * HEIGHT + 11, f"next 8 rows: + {fields['stride']:,} bytes", 10)


def arrow(picture, x0, y0, x1, y1, colour):
    """Down or to the right."""
    head = f"M{x1 - 3} {y1 - 4}L{x1} {y1}L{x1 + 3} {y1 - 4}" if x0 == x1 else f"M{x1 - 4} {y1 - 3}L{x1} {y1}L{x1 - 4} {y1 + 3}"
    picture.parts.append(f'<path fill="none" stroke="{colour}" stroke-width="1.6" d="M{x0} {y0}L{x1} {y1}{head}"/>')


def check(tile, rows):
    """The fields. ResultError unless the tensor core, by the PTX ISA's rules, finds each chunk where TMA has put it."""
    fields = {"start": (tile["low"] & 0x3fff) * CHUNK, "leading": (tile["low"] >> 16 & 0x3fff) * CHUNK,
              "stride": (tile["high"] & 0x3fff) * CHUNK, "layout": tile["high"] >> 30}
    span = SPANS[fields["layout"]]
    if len(tile["places"]) != rows * PER_ROW:
        raise ValueError(f"{len(tile['places'])} chunks")

    def found(start, row, chunk):
        """The place, from the tile's start, of a chunk of k counted from `start`."""
        across = chunk * fields["leading"] if span == CHUNK else chunk * CHUNK
        address = start + row // ROWS * fields["stride"] + row % ROWS * span + across
        return (address ^ (address >> 3 & span - CHUNK)) - fields["start"]
    for number, place in enumerate(tile["places"]):
        row, chunk = divmod(number, PER_ROW)
        for start, step in ((fields["start"], 0), ((tile["low_of_next_step"] & 0x3fff) * CHUNK, 2)):
            if chunk >= step and found(start, row, chunk - step) != place * CHUNK:
                raise ResultError(f"{name(tile)}: the descriptor leads to byte {found(start, row, chunk - step)} for row {row}, chunk "
                                  f"{chunk}; TMA has put it at {place * CHUNK}")
    return fields
