# SPDX-License-Identifier: MIT
"""Waves over C: which tile is computed when, and which panels of A and B the first wave reads, for several raster orders."""
from ..results import ResultError
from .svg import COLOURS, INNER, MARGIN, Picture

PANEL, GAP = 6, 14


def draw(document, _words, _root):
    """{"": the picture}"""
    m, n, k = document["size"]
    tile_m, tile_n = document["tile"]
    rows, cols, orders = m // tile_m, n // tile_n, document["orders"]
    for order in orders:
        for wave in order["waves"]:
            wave["tiles"] = [divmod(tile, cols) for tile in wave["tiles"]]
        check(order, rows, cols)
    reads = {order["name"]: panels(order["waves"][0]["tiles"]) for order in orders}
    said = "; ".join(f"{name}: {megabytes(read, document):.1f} MB" for name, read in reads.items())
    waves = len(orders[0]["waves"])
    picture = Picture(f"The first {waves} waves over C, in {len(orders)} orders",
                      f"The first wave of {document['sms']} tiles reads of A and B: {said}. C of {m:,} x {n:,} in tiles of {tile_m} x "
                      f"{tile_n}.")
    picture.heading(picture.title)
    picture.paragraph(f"C of {m:,} x {n:,}, K {k:,}, in tiles of {tile_m} x {tile_n}; {document['sms']} SMs compute a wave of "
                      "tiles at a time.", style="muted")
    picture.y += 6
    width = (INNER - (len(orders) - 1) * GAP) / len(orders)
    cell = (width - PANEL - 2) / cols
    for order, (name, (of_a, of_b)) in enumerate(reads.items()):
        left = MARGIN + order * (width + GAP)
        grid(picture, orders[order], left, cell, of_a, of_b, rows, cols)
        top = picture.y + 14 + PANEL + 2 + rows * cell * tile_m / tile_n
        picture.text(left, picture.y + 8, name, 11.5, font="bold")
        for line, text in enumerate((f"A {len(of_a)} rows", f"B {len(of_b)} columns", f"{megabytes(reads[name], document):.1f} MB")):
            picture.text(left, top + 14 * (line + 1), text, 11)
    picture.y = top + 3 * 14 + 6
    picture.legend([(colour, f"wave {wave + 1}") for wave, colour in enumerate(COLOURS[:waves])])
    picture.paragraph("At the left of C and above it, in the colour of wave 1: the panels of A and B that this wave reads.")
    return {"": picture}


def grid(picture, order, left, cell, of_a, of_b, rows, cols):
    """C's tiles in the colours of their waves; at its left and top the panels that the first wave reads."""
    high = cell / 2  # tiles are twice as wide as high
    left, top = left + PANEL + 2, picture.y + 14 + PANEL + 2
    for row in of_a:
        picture.rect(left - PANEL - 2, top + row * high, PANEL, high + 0.2, fill=COLOURS[0])
    for col in of_b:
        picture.rect(left + col * cell, top - PANEL - 2, cell, PANEL, fill=COLOURS[0])
    picture.rect(left, top, cell * cols, rows * high, "off")
    for number, wave in enumerate(order["waves"]):
        for (row, first), last in runs(wave["tiles"]):
            picture.rect(left + first * cell, top + row * high, (last + 1 - first) * cell + 0.2, high + 0.2, fill=COLOURS[number])
    picture.rect(left, top, cell * cols, rows * high, "edge")


def runs(tiles):
    """((row, first column), last column) of tiles that lie side by side."""
    found = []
    for row, col in sorted(tiles):
        if found and found[-1][0][0] == row and found[-1][1] == col - 1:
            found[-1][1] = col
        else:
            found.append([(row, col), col])
    return found


def panels(tiles):
    """(rows of tiles, columns of tiles)"""
    return sorted({row for row, _ in tiles}), sorted({col for _, col in tiles})


def megabytes(read, document):
    """Of bf16 operands."""
    (of_a, of_b), (tile_m, tile_n) = read, document["tile"]
    return 2e-6 * document["size"][2] * (len(of_a) * tile_m + len(of_b) * tile_n)


def check(order, rows, cols):
    """ResultError unless each tile is computed once, and each wave reads as many panels as the program counted."""
    tiles = [tile for wave in order["waves"] for tile in wave["tiles"]]
    if len(set(tiles)) < len(tiles) or not set(tiles) <= {(row, col) for row in range(rows) for col in range(cols)}:
        raise ResultError(f"{order['name']}: its waves compute a tile twice, or one that is none of {rows} x {cols}")
    for number, wave in enumerate(order["waves"], 1):
        found = tuple(map(len, panels(wave["tiles"])))
        if found != (wave["rows"], wave["cols"]):
            raise ResultError(f"{order['name']}, wave {number}: its tiles read {found[0]} and {found[1]} panels; the program "
                              f"counted {wave['rows']} and {wave['cols']}")
