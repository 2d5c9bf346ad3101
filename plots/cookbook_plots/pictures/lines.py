# SPDX-License-Identifier: MIT
"""What the pictures of one request share: rows of 128 bytes, the strip of lanes, and the words around them."""
from .requests import LANES, LINE
from .svg import INNER, MARGIN, Picture, on, plural, spans

HEIGHT = 12.5  # of a row
SMALL = 8.2  # a lane's number in a cell of four bytes


def block_text(block):
    return f"block {block[0]}" if not any(block[1:]) else f"block ({', '.join(map(str, block))})"


def begin(request, title, description):
    """A picture with its title and where the request comes from."""
    picture = Picture(title, f"{description} {idle_text(request)}".strip())
    picture.heading(title)
    picture.code(request.source)
    name = f"'{request.buffer}'" if request.buffer else "dynamic shared memory"
    picture.paragraph(f"{request.file.split('/')[-1]}:{request.line} · {request.operation}, {name} · "
                      f"{block_text(request.block)}, warp {request.warp}", style="muted")
    return picture


def asks(request):
    return f"{plural(len(request.lanes), 'lane')} x {plural(request.bytes, 'byte')}"


def idle_text(request):
    idle = request.idle
    return f"Lane{'s' * (len(idle) > 1)} {spans(idle)} {'are' if len(idle) > 1 else 'is'} inactive." if idle else ""


def rows_of(bytes_, most=40):
    """The rows of 128 bytes to draw: those with these bytes, and up to `most` in all those between."""
    rows = sorted({byte // LINE for byte in bytes_})
    return list(range(rows[0], rows[-1] + 1)) if rows[-1] - rows[0] < most else rows


def rows_text(rows, memory):
    """Where the rows lie that are drawn."""
    what = "Columns: the 32 banks. Rows: 128 bytes" if memory == "shared" else "Rows: 128 bytes of global memory"
    text = f"{what}, from byte {rows[0] * LINE:,}"
    gaps = {b - a for a, b in zip(rows, rows[1:])}
    if gaps <= {1}:
        return text + "."
    apart = f", {gaps.pop() * LINE:,} bytes apart" if len(gaps) == 1 else ""
    return f"{text}{apart}; rows that no lane touches are left out."


def lane_strip(picture, request, colour_of, x_of):
    """The 32 lanes: active ones in the colour of what serves them. `x_of` is where a byte of a row is drawn."""
    picture.y += 4
    picture.paragraph("Lanes of the warp" + (" (dashed: inactive)" if request.idle else ""), style="muted")
    picture.y += 2
    width = x_of(4) - x_of(0)
    for lane in range(LANES):
        x, active = x_of(4 * lane), lane in request.lanes
        if active:
            picture.rect(x, picture.y, width, HEIGHT, fill=colour_of(lane))
            picture.rect(x, picture.y, width, HEIGHT, "cell")
        else:
            picture.rect(x, picture.y, width, HEIGHT, "faint dash")
        label(picture, x, picture.y, width, str(lane), colour_of(lane) if active else None)
    picture.y += HEIGHT + 4


def label(picture, x, y, width, text, fill, style="muted"):
    """Text in the middle of a cell, if it fits. `fill`: of the cell; None: no colour."""
    size = min(SMALL if width < 20 else 10.5, 1.06 * width)
    if len(text) * size * 0.62 > width + 1:
        return
    picture.text(x + width / 2, y + HEIGHT / 2 + 0.36 * size, text, size, style=style, anchor="middle",
                 fill=on(fill) if fill else None)


def even(gap_every=0, gap=0.0):
    """byte of a row -> x, with a gap after every so many bytes."""
    gaps = LINE // gap_every - 1 if gap_every else 0
    per_byte = (INNER - gaps * gap) / LINE
    return lambda byte: MARGIN + byte * per_byte + (byte // gap_every * gap if gap_every else 0)


def runs(values):
    """[(value, first, how many)] of equal neighbours."""
    found = []
    for place, value in enumerate(values):
        if found and found[-1][0] == value:
            found[-1][2] += 1
        else:
            found.append([value, place, 1])
    return [tuple(run) for run in found]
