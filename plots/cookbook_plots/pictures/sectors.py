# SPDX-License-Identifier: MIT
"""Lanes to sectors of one request of global memory: which bytes are used, and which move for nothing."""
from .lines import HEIGHT, asks, begin, even, label, lane_strip, rows_of, rows_text
from .requests import LINE, SECTOR
from .svg import COLOURS, plural

USED = COLOURS[0]


def draw(request):
    used, sectors = request.used(), request.sectors()
    moved = len(sectors) * SECTOR
    ideal = f" (ideal: {request.ideal})" if request.ideal < len(sectors) else ", the ideal"
    title = f"{asks(request)}: {plural(len(sectors), 'sector')}{ideal}"
    uses = f"{len(used):,} of the {moved:,} bytes that move are used"
    picture = begin(request, title, f"One request of a warp touches {plural(len(sectors), 'sector')} of 32 bytes; {uses}.")
    x_of = even(SECTOR, 3.0)
    lane_strip(picture, request, lambda lane: USED, x_of)
    rows = rows_of(used)
    picture.paragraph(rows_text(rows, "global"), style="muted")
    picture.y += 2
    for row in rows:
        for sector in range(LINE // SECTOR):
            left = x_of(sector * SECTOR)
            width = x_of(sector * SECTOR + SECTOR - 1) + (x_of(1) - x_of(0)) - left
            touched = row * (LINE // SECTOR) + sector in sectors
            picture.rect(left, picture.y, width, HEIGHT, "waste" if touched else "faint")
            if touched:
                _used_bytes(picture, request, (row * LINE + sector * SECTOR), x_of, sector * SECTOR)
                picture.rect(left, picture.y, width, HEIGHT, "edge")
        picture.y += HEIGHT + 2
    picture.legend([(USED, "used"), ("waste", "moves for nothing"), ("faint", "does not move")])
    distinct = len(set(request.lanes.values()))
    if distinct < len(request.lanes):
        picture.paragraph(f"Lanes share {'one address' if distinct == 1 else f'{distinct} addresses'}; the first lane is named.")
    picture.paragraph(f"{uses[0].upper()}{uses[1:]}.")
    return picture


def _used_bytes(picture, request, start, x_of, in_row):
    """The lanes' bytes in the sector at `start`. Lanes too narrow for a number are drawn as one run."""
    pieces = []  # [begin, end, first lane, last lane] within the sector
    for lane, address in sorted(request.lanes.items(), key=lambda item: item[1]):
        begin_, end = max(address, start), min(address + request.bytes, start + SECTOR)
        if begin_ >= end:
            continue
        if pieces and request.bytes < 4 and pieces[-1][1] == begin_ and pieces[-1][3] == lane - 1:
            pieces[-1][1:4:2] = end, lane
        elif not pieces or pieces[-1][0] != begin_:  # lanes with one address: the first is named
            pieces.append([begin_, end, lane, lane])
    per_byte = x_of(1) - x_of(0)
    for begin_, end, first, last in pieces:
        x, width = x_of(in_row + begin_ - start), (end - begin_) * per_byte
        lanes = f"{first}" if first == last else f"{first}-{last}"
        picture.rect(x, picture.y, width, HEIGHT, fill=USED, tip=f"lane {lanes}, byte {begin_:,}")
        if end < start + SECTOR:
            picture.line(x + width, picture.y, x + width, picture.y + HEIGHT, "cell")
        label(picture, x, picture.y, width, lanes, USED)
