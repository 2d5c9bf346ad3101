# SPDX-License-Identifier: MIT
"""Tensor memory of Blackwell: which warp reaches which lanes, what each block of a pair holds, where scales go; and from the
order of a traced run who writes and reads which columns, and which warp does what."""
import json

from ..results import ResultError
from .lines import HEIGHT, label
from .svg import COLOURS, INNER, MARGIN, Picture, plural, spans

LANES, COLUMNS, QUARTER, ATOM = 128, 512, 32, 512
CHAPTER = "plots/results/simt/chapter-14.json"
OF_BLOCK = [COLOURS[0], COLOURS[1]]
OF_TILE = [COLOURS[0], COLOURS[1], COLOURS[2]]
LOAD, READS = COLOURS[4], COLOURS[3]


def draw(document, words, root):
    """{"lanes", "pair", "scales", "columns", "roles"}, or the one that `words` name."""
    found = {"lanes": lanes, "pair": pair, "scales": scales, "columns": columns, "roles": roles}
    return {name: of(document, root) for name, of in found.items() if not words or words == [name]}


def counters(root, name):
    """(what ./run profile counted of a level of the bf16 ladder, at which size)"""
    for run in json.loads((root / CHAPTER).read_text())["runs"]:
        for level in run["levels"]:
            if run["ladder"] == "gemm" and level["name"] == name:
                return level["counters"], run["problem"]["trace_size"]
    raise ResultError(f"{CHAPTER}: no level {name}")


def box(picture, x, y, width, height, fill, text="", tip=""):
    picture.rect(x, y, width, height, "" if fill.startswith("#") else fill, fill if fill.startswith("#") else None, tip)
    picture.rect(x, y, width, height, "cell")
    if text:
        label(picture, x, y + (height - HEIGHT) / 2, width, text, fill if fill.startswith("#") else None, "text")


# ---- what is where ----


def lanes(document, _root):
    warps, alone = check_lanes(document)
    block = alone["blocks"][0]
    width = len(block["column_of_column"])
    said = "; ".join(f"warps {spans(of)} lanes {first} to {first + QUARTER - 1}" for first, of in warps.items())
    picture = Picture("Which warp reaches which lanes",
                      f"W{said[1:].replace(' lanes', ' reach lanes', 1)}. {COLUMNS // width} accumulators of {LANES} x {width} fill {COLUMNS} columns. Row m of an accumulator "
                      "is lane m, column n is column n.")
    picture.heading(picture.title)
    picture.paragraph("The model was asked: each of 8 warps tried to read each quarter of the lanes.", style="muted")
    picture.y += 16
    left, right, high = 62, 62, 30
    wide = (INNER - left - right) / (COLUMNS // width)
    for half in range(COLUMNS // width):
        picture.text(MARGIN + left + half * wide + wide / 2, picture.y - 3, f"columns {half * width} to {(half + 1) * width - 1}", 10,
                     "muted", "middle")
    for order, (first, of) in enumerate(warps.items()):
        fill = COLOURS[order]
        picture.text(MARGIN, picture.y + 13, f"lanes {first}", 10.5)
        picture.text(MARGIN, picture.y + 25, f"to {first + QUARTER - 1}", 10.5)
        for half in range(COLUMNS // width):
            rows = block["row_of_lane"][first:first + QUARTER]
            box(picture, MARGIN + left + half * wide, picture.y, wide, high, fill, f"rows {rows[0]} to {rows[-1]}")
        picture.text(MARGIN + INNER - right + 6, picture.y + 18, f"warps {', '.join(map(str, of))}", 10.5)
        picture.y += high
    picture.paragraph(f"A box is {QUARTER} rows of an accumulator. One load gives thread t of a warp 32 columns of the warp's lane t: "
                      "of one row, one column per register.")
    return picture


def check_lanes(document):
    """{first lane: warps}, and the tile of one block. ResultError unless warp w reaches lanes 32 (w % 4) on and no others, and
    the tensor core has put row m into lane m, column n into column n (PTX ISA, "Tensor Memory", "Data path layout organization")."""
    found = {first: [] for first in range(0, LANES, QUARTER)}
    for warp, of in enumerate(document["warps"]):
        if of["lanes"] != [QUARTER * (warp % 4)]:
            raise ResultError(f"warp {warp} reaches lanes from {of['lanes']} on; by the PTX ISA from {QUARTER * (warp % 4)}")
        found[of["lanes"][0]].append(warp)
    for tile in document["tiles"]:
        for order, block in enumerate(tile["blocks"]):
            if block["row_of_lane"] != list(range(LANES * order, LANES * (order + 1))):
                raise ResultError(f"{tile['level']}, block {order}: its lanes do not hold rows {LANES * order} on in order")
            if block["column_of_column"] != list(range(len(block["column_of_column"]))):
                raise ResultError(f"{tile['level']}, block {order}: its columns do not hold the columns of C in order")
    return found, document["tiles"][0]


def pair(document, root):
    tiles = document["tiles"]
    check_lanes(document)
    held = [check_tile(tile, root) for tile in tiles]
    (alone_a, alone_b), (pair_a, pair_b) = held
    picture = Picture("The two halves of a pair",
                      f"B per block and k-block: alone {alone_b} KB, in a pair {pair_b} KB. A: {alone_a} and {pair_a} KB. Each block of "
                      f"the pair holds {tiles[1]['blocks'][0]['rows_of_a'][1]} rows of A, {tiles[1]['blocks'][0]['columns_of_b'][1]} columns "
                      "of B and its rows of C.")
    picture.heading(picture.title)
    picture.paragraph("What each block's memories hold after one k-block: A and B in shared memory, C in tensor memory.", style="muted")
    for tile, (a, b) in zip(tiles, held):
        panel(picture, tile, a, b)
    picture.legend([(OF_BLOCK[0], "block 0"), (OF_BLOCK[1], "block 1 of the pair")])
    picture.paragraph(f"Each block computes {LANES} x {tiles[0]['blocks'][0]['columns_of_c'][1]} of C, alone and in a pair. Alone it "
                      f"loads {alone_a + alone_b} KB for that, in a pair {pair_a + pair_b} KB.")
    return picture


def panel(picture, tile, a, b):
    """A at the left, B on top, C between, to scale."""
    across, down, side, top = 0.95, 0.34, 62, 20
    many = len(tile["blocks"]) > 1
    picture.y += 5
    picture.text(MARGIN, picture.y + 11, f"{tile['level']}: {plural(len(tile['blocks']), 'block')}", 11.5, font="bold")
    picture.y += 18
    x0, y0 = MARGIN + side + 4, picture.y + top + 4
    for order, block in enumerate(tile["blocks"]):
        fill = OF_BLOCK[order]
        first, count = block["columns_of_b"]
        box(picture, x0 + first * across, picture.y, count * across, top, fill, f"B: {b} KB")
        first, count = block["rows_of_a"]
        box(picture, MARGIN, y0 + first * down, side, count * down, fill, f"A: {a} KB")
        (row, rows), (column, wide) = block["rows_of_c"], block["columns_of_c"]
        box(picture, x0 + column * across, y0 + row * down, wide * across, rows * down, fill,
            f"C: {rows} x {wide}" + (f" of block {order}" if many else ""))
    picture.y = y0 + sum(block["rows_of_c"][1] for block in tile["blocks"]) * down + 4


def check_tile(tile, root):
    """KB of A and of B per block and k-block. ResultError unless the blocks' rows and columns make up the tile, and the bytes are
    what TMA was counted to load."""
    name, size = tile["level"], 2 * tile["block_k"]  # bytes of bf16 per row or column
    counts = {key: [block[key][1] for block in tile["blocks"]] for key in ("rows_of_a", "columns_of_b")}
    at = 0
    for order, block in enumerate(tile["blocks"]):
        if block["rows_of_a"] != block["rows_of_c"]:
            raise ResultError(f"{name}, block {order}: rows {block['rows_of_a']} of A, and {block['rows_of_c']} of C")
        if block["columns_of_b"][0] != at:
            raise ResultError(f"{name}, block {order}: its columns of B begin at {block['columns_of_b'][0]}, not at {at}")
        at += block["columns_of_b"][1]
        if (bytes_ := size * (block["rows_of_a"][1] + block["columns_of_b"][1])) != tile["stage_bytes"]:
            raise ResultError(f"{name}: a stage has {tile['stage_bytes']} bytes, its rows and columns {bytes_}")
    if at != tile["blocks"][0]["columns_of_c"][1]:
        raise ResultError(f"{name}: the blocks hold {at} columns of B for {tile['blocks'][0]['columns_of_c'][1]} of C")
    counted, (m, n, k) = counters(root, name)
    blocks = -(-m // sum(counts["rows_of_a"])) * -(-n // at)
    loaded = blocks * -(-k // tile["block_k"]) * size * sum(counts["rows_of_a"] + counts["columns_of_b"])
    if loaded != counted["async_load_bytes"]:
        raise ResultError(f"{name}: {loaded:,} bytes at {m} x {n} x {k}; TMA was counted to load {counted['async_load_bytes']:,.0f}")
    return counts["rows_of_a"][0] * size // 1024, counts["columns_of_b"][0] * size // 1024


ROW = 37  # the one that is followed


def scales(document, _root):
    check_scales(document)
    line, place = ROW % QUARTER, 16 * (ROW % QUARTER) + 4 * (ROW // QUARTER)
    picture = Picture("An atom of scales",
                      f"An atom is {ATOM} bytes: 4 scales of each of {LANES} rows. Row {ROW}: bytes {place} to {place + 3}, then lane {line}, "
                      f"column {ROW // QUARTER}. Lanes {QUARTER} to {LANES - 1} hold the same as lanes 0 to {QUARTER - 1}, three times.")
    picture.heading(picture.title)
    picture.paragraph(f"A box is the four scales of one row, 4 bytes; its number is the row. Row {ROW} is outlined.", style="muted")
    picture.y += 16
    cell, left, right = 24, MARGIN + 22, MARGIN + 170
    for x, text in ((left, "global and shared"), (right, "tensor memory")):
        picture.text(x, picture.y - 4, text, 10, "muted")
    shown = [*range(8), *range(QUARTER - 2, QUARTER)]  # lines of 16 bytes, and lanes
    outlined = []
    for order, line_of in enumerate(shown):
        y = picture.y + (order + (order >= 8)) * HEIGHT
        picture.text(MARGIN, y + 9.5, f"{16 * line_of}", 9, "muted")
        picture.text(right - 5, y + 9.5, f"lane {line_of}", 9, "muted", "end")
        for column in range(4):
            byte = document["byte_of_atom"][16 * line_of + 4 * column]
            for x, row in ((left, column * QUARTER + line_of), (right, byte // 4 % 4 * QUARTER + byte // 16)):
                box(picture, x + column * cell, y, cell, HEIGHT, COLOURS[row // QUARTER], str(row))
                outlined += [(x + column * cell, y)] if row == ROW else []
    for x, y in outlined:
        picture.rect(x, y, cell, HEIGHT, "several")
    picture.text(left, picture.y + 8.8 * HEIGHT, "...", 10, "muted")
    x, y = right + 4 * cell + 12, picture.y + 2 * HEIGHT
    for quarter in range(4):
        for column in range(4):
            picture.rect(x + column * 8, y + quarter * 20, 8, 18, fill=COLOURS[column])
        picture.text(x + 37, y + 12 + quarter * 20, f"{quarter * QUARTER} to {quarter * QUARTER + QUARTER - 1}", 9, "muted")
    picture.text(x, y - 5, "in all lanes", 9, "muted")
    picture.y += (len(shown) + 1) * HEIGHT
    picture.paragraph(f"Bulk copies leave the bytes in their order. tcgen05.cp brings line r of 16 bytes to lane r, and to lanes r + "
                      f"{QUARTER}, r + {2 * QUARTER}, r + {3 * QUARTER}. So column q holds the scales of rows {QUARTER}q to {QUARTER}q + {QUARTER - 1}.")
    return picture


def check_scales(document):
    """ResultError unless lane l, byte j holds byte 16 (l % 32) + j (PTX ISA, "tcgen05.cp", .32x128b.warpx4): column q then has the
    bytes of row 32 q + l % 32, whose place in the atom is 16 (row % 32) + 4 (row / 32)."""
    places = document["byte_of_atom"]
    if len(places) != LANES * 16:
        raise ValueError(f"{len(places)} bytes")
    for lane in range(LANES):
        for byte in range(16):
            row = byte // 4 * QUARTER + lane % QUARTER
            expected = 16 * (row % QUARTER) + 4 * (row // QUARTER) + byte % 4
            if places[16 * lane + byte] != expected:
                raise ResultError(f"lane {lane}, column {byte // 4}: byte {places[16 * lane + byte]} of the atom; scale {byte % 4} of row "
                                  f"{row} is byte {expected}")


# ---- the order of a run ----

TILE_M, TILE_N, BLOCK_K, STEP, READ = 128, 256, 64, 16, 32  # of the level
LEVEL, HALVES, READERS = "two_accumulators", 2, 4


def columns(document, root):
    events, _, k_blocks = follow(document, root)
    tiles = 1 + max(event["tile"] for event in events if "tile" in event)
    mma = [place for place, event in enumerate(events) if event["what"] == "mma"]
    first = next(place for place, event in enumerate(events) if event["what"] == "read")
    picture = Picture("Tensor memory over a block's life",
                      f"{tiles} tiles in {HALVES} halves of {TILE_N} columns: {sum(place > first for place in mma)} of {len(mma)} "
                      f"mma start after the first read of a tile. The tensor core writes a tile in {k_blocks} k-blocks, four warps read "
                      f"it {READ} columns at a time. Level {LEVEL}, in the order of a traced run.")
    picture.heading(picture.title)
    picture.paragraph(f"Level {LEVEL}, {size_text(document)}, one block. From left to right: events in order, not times. Down: the "
                      f"{COLUMNS} columns.", style="muted")
    picture.y += 6
    left, row, top = 34, 8, picture.y
    width = (INNER - left) / len(events)
    picture.rect(MARGIN + left, top, INNER - left, COLUMNS // READ * row, "off")
    for column in range(0, COLUMNS, TILE_N // 2):
        picture.text(MARGIN + left - 5, top + column // READ * row + 9, str(column), 9.5, "muted", "end")
    for place, event in enumerate(events):
        if "tile" in event:
            start, count = event["columns"]
            picture.rect(MARGIN + left + place * width, top + start / READ * row, width, count / READ * row,
                         fill=OF_TILE[event["tile"] % 3] if event["what"] == "mma" else READS,
                         tip=f"{event['what']} of tile {event['tile']}, columns {start} to {start + count - 1}")
    picture.y = top + COLUMNS // READ * row
    picture.legend([*((OF_TILE[tile], f"tile {tile} is multiplied") for tile in range(tiles)), (READS, "a warp reads 32 columns")])
    picture.paragraph(f"The block allocates {COLUMNS} columns first and frees them last. Tile 2 is multiplied into the columns of tile 0, "
                      "after all four warps have read them.")
    return picture


def roles(document, root):
    events, copies, k_blocks = follow(document, root)
    tiles, stages = len(copies) // k_blocks, 1 + max(stage for stage, *_ in copies)
    ahead = max(sum(begin < event["when"] for _, begin, _ in copies) - event["block"] for event in events if event["what"] == "mma")
    picture = Picture("Who does what, in order",
                      f"{tiles} tiles of {k_blocks} k-blocks: TMA is up to {ahead} k-blocks ahead, and {READERS} warps read a tile while the "
                      f"next one is multiplied. Level {LEVEL}, in the order of a traced run.")
    picture.heading(picture.title)
    picture.paragraph("From left to right: events in order, not times. A number is a k-block, or a tile where a warp reads it.",
                      style="muted")
    picture.y += 6
    order = {when: place for place, when in enumerate(sorted({*(event["when"] for event in events),
                                                              *(when for _, *span in copies for when in span)}))}
    left = 66
    scale = (INNER - left) / len(order)

    def spans_of(what, key, **only):
        """(first, last, value) of the events with each value of `key`."""
        found = {}
        for event in events:
            if event["what"] == what and all(event[name] == value for name, value in only.items()):
                found.setdefault(event[key], []).append(order[event["when"]])
        return [(places[0], places[-1] + 1, value) for value, places in found.items()]
    for stage in range(stages):
        strip(picture, f"stage {stage}", [(order[begin], order[end], str(number), LOAD) for number, (of, begin, end) in enumerate(copies)
                                          if of == stage], scale, left)
    strip(picture, "multiply", [(begin, end, str(block), OF_TILE[block // k_blocks % 3]) for begin, end, block in
                                spans_of("mma", "block")], scale, left)
    for warp in range(READERS):
        strip(picture, f"warp {warp}", [(begin, end, str(tile), OF_TILE[tile % 3]) for begin, end, tile in
                                        spans_of("read", "tile", warp=warp)], scale, left)
    picture.legend([(LOAD, "loaded, and not yet waited for"), *((OF_TILE[tile], f"tile {tile}") for tile in range(tiles))])
    return picture


def size_text(document):
    return " x ".join(map(str, document["size"]))


def strip(picture, name, boxes, scale, left):
    picture.text(MARGIN, picture.y + 10, name, 10.5)
    picture.rect(MARGIN + left, picture.y, INNER - left, HEIGHT, "off")
    for begin, end, text, fill in boxes:
        box(picture, MARGIN + left + begin * scale, picture.y, (end - begin) * scale, HEIGHT, fill, text)
    picture.y += HEIGHT + 2


def follow(document, root):
    """The events in order, with the `tile` of each and the k-`block` of a multiplication; the copies, (stage, begin, end); k-blocks
    of a tile. ResultError unless each k-block is multiplied after it has arrived and before its stage is loaded again, each tile
    read after it is multiplied and before it is overwritten, by each of four warps, each column once, and in columns that are
    allocated, as many as were counted."""
    (m, n, k), copies = document["size"], sorted((of["copy"] for of in document["copies"]), key=lambda copy: copy[1])
    events = [dict(event) for event in sorted(document["events"], key=lambda event: event["when"])]
    tiles, k_blocks = -(-m // TILE_M) * -(-n // TILE_N), -(-k // BLOCK_K)
    stages, steps, reads = 1 + max(stage for stage, *_ in copies), BLOCK_K // STEP, TILE_N // READ
    multiplied = [event for event in events if event["what"] == "mma"]
    if len(copies) != tiles * k_blocks or len(multiplied) != len(copies) * steps:
        raise ResultError(f"{len(copies)} k-blocks and {len(multiplied)} instructions of {tiles} tiles of {k_blocks} k-blocks")
    for number, event in enumerate(multiplied):
        block = event["block"] = number // steps
        tile = event["tile"] = block // k_blocks
        if event["columns"] != [tile % HALVES * TILE_N, TILE_N]:
            raise ResultError(f"tile {tile} is multiplied into columns from {event['columns'][0]} on")
        if event["when"] < copies[block][2]:
            raise ResultError(f"k-block {block} is multiplied before it has arrived")
        if block + stages < len(copies) and copies[block + stages][1] < event["when"]:
            raise ResultError(f"k-block {block + stages} is loaded before k-block {block}, of the same stage, is multiplied")
    per_warp = {warp: [event for event in events if event["what"] == "read" and event["warp"] == warp] for warp in range(READERS)}
    for warp, of in per_warp.items():
        if len(of) != tiles * reads:
            raise ResultError(f"warp {warp} reads {len(of)} times, not {tiles * reads}")
        for number, event in enumerate(of):
            tile = event["tile"] = number // reads
            if event["columns"] != [tile % HALVES * TILE_N + number % reads * READ, READ]:
                raise ResultError(f"warp {warp} reads columns from {event['columns'][0]} on of tile {tile}")
            if event["when"] < multiplied[(tile + 1) * k_blocks * steps - 1]["when"]:
                raise ResultError(f"warp {warp} reads tile {tile} before it is multiplied")
            if tile + HALVES < tiles and multiplied[(tile + HALVES) * k_blocks * steps]["when"] < event["when"]:
                raise ResultError(f"tile {tile + HALVES} overwrites tile {tile} before warp {warp} has read it")
    counted, _ = counters(root, LEVEL)
    per_block = counted["tensor_alloc_bytes"] / counted["tensor_alloc_requests"] / (LANES * 4)
    ends = [(events[place]["what"], events[place]["columns"]) for place in (0, -1)]
    if ends != [("allocate", [0, per_block]), ("free", [0, per_block])] or per_block != COLUMNS:
        raise ResultError(f"begins with {ends[0]}, ends with {ends[1]}; {per_block:.0f} columns per block were counted")
    return events, copies, k_blocks
