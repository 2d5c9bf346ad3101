# SPDX-License-Identifier: MIT
"""The bank grid of one request of shared memory: which lane is in which bank, one colour per wavefront."""
from collections import Counter

from .lines import HEIGHT, SMALL, asks, begin, even, label, lane_strip, rows_of, rows_text
from .requests import BANKS, LINE, WORD
from .svg import MARGIN, WIDTH, colours, plural, spans


def draw(request):
    count, ideal = request.counted, request.ideal
    title = f"{asks(request)}: {plural(count, 'wavefront')}" + (f" (ideal: {ideal})" if ideal < count else ", no conflict")
    picture = begin(request, title, description(request, title))
    fills, x_of = colours(count), even()
    first = {}  # lane -> its first wavefront
    for delivery in sorted(request.deliveries, key=lambda d: d.wavefront):
        for lane in delivery.lanes:
            first.setdefault(lane, delivery.wavefront)
    lane_strip(picture, request, lambda lane: fills[first[lane]], x_of)
    rows = rows_of(request.used())
    picture.paragraph(rows_text(rows, "shared"), style="muted")
    banks_scale(picture, x_of)
    picture.grid(x_of(0), picture.y, BANKS, len(rows), x_of(WORD) - x_of(0), HEIGHT)
    for row in rows:
        for x, width, deliveries in cells(request, row, x_of):
            fill, lanes = fills[deliveries[0].wavefront], deliveries[0].lanes
            tip = f"lane {spans(lanes)}, bank {spans(d.bank for d in deliveries)}, wavefront {deliveries[0].wavefront + 1}"
            picture.rect(x, picture.y, width, HEIGHT, fill=fill, tip=tip)
            picture.rect(x, picture.y, width, HEIGHT, "cell" if len(lanes) == 1 else "several")
            label(picture, x, picture.y, width, str(lanes[0]), fill)
        picture.y += HEIGHT
    scale(picture, fills)
    for text in remarks(request):
        picture.paragraph(text)
    return picture


def cells(request, row, x_of):
    """(x, width, deliveries) of a row: neighbouring banks that serve the same lanes in one wavefront are one cell."""
    found = []
    for delivery in sorted((d for d in request.deliveries if d.word // BANKS == row), key=lambda d: (d.word, d.wavefront)):
        before = found[-1][-1] if found else None
        if before and (before.word + 1, before.wavefront, before.lanes) == (delivery.word, delivery.wavefront, delivery.lanes):
            found[-1].append(delivery)
        elif not before or before.word != delivery.word:  # atomics on one word lie over each other
            found.append([delivery])
    for deliveries in found:
        x = x_of(deliveries[0].word * WORD % LINE)
        yield x, x_of(deliveries[-1].word * WORD % LINE + WORD) - x, deliveries


def banks_scale(picture, x_of):
    picture.y += 12
    width = x_of(WORD) - x_of(0)
    for bank in (0, 4, 8, 12, 16, 20, 24, 28, 31):
        picture.text(x_of(bank * WORD) + width / 2, picture.y, str(bank), 10, style="muted", anchor="middle")
    picture.y += 3


def scale(picture, fills):
    """Which colour is which wavefront."""
    picture.y += 16
    picture.text(MARGIN, picture.y + 10, "wavefront", 11.5)
    left = MARGIN + 62
    width = min((WIDTH - MARGIN - left) / len(fills), 24)
    for i, fill in enumerate(fills):
        picture.rect(left + i * width, picture.y, width, HEIGHT, fill=fill)
        if width >= 2 * SMALL * 0.62 or i in (0, len(fills) - 1):
            label(picture, left + i * width, picture.y, max(width, 2 * SMALL * 0.62), str(i + 1), fill)
    picture.y += HEIGHT + 2


def busiest(request):
    """(bank, how many words or atomics it serves in one phase), where that is most."""
    phase_of = {lane: number for number, phase in enumerate(request.phases()) for lane in phase}
    served = Counter((phase_of[delivery.lanes[0]], delivery.bank) for delivery in request.deliveries)
    (_, bank), most = min(served.items(), key=lambda item: (-item[1], item[0]))
    return bank, most


def remarks(request):
    """Sentences below the grid."""
    phases, lanes = len(request.phases()), len(request.lanes)
    if request.bytes > 4 and phases > 1:
        size, share = (8, "a quarter warp, 8 lanes") if request.bytes > 8 else (16, "half a warp, 16 lanes")
        merged = phases < len({lane // size for lane in request.lanes})
        more = " Where pairs of lanes read the same address, two such parts are served together" if merged else ""
        yield f"A wavefront delivers 128 bytes at most, so {share}, is served at a time{'.' if merged else ''}{more}: {phases} phases."
    if request.counted > request.ideal:
        bank, words = busiest(request)
        deliveries = "lanes" if request.rule == "atomic" else "words"
        where = f"bank {bank} has {words} {deliveries} to serve, one per wavefront."
        yield f"In one phase {where}" if phases > 1 else where[0].upper() + where[1:]
    shared = sum(len(delivery.lanes) > 1 for delivery in request.deliveries)
    if shared:
        yield f"Outlined cells serve several lanes at once: {plural(shared, 'word')} for {plural(lanes, 'lane')}."


def description(request, title):
    banks = {delivery.bank for delivery in request.deliveries}
    return (f"Bank grid of one request, {title}. The words are in {plural(len(banks), 'bank')}: {spans(banks)}. "
            + " ".join(remarks(request)))
