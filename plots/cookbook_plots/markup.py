# SPDX-License-Identifier: MIT
"""Pieces of Markdown, and numbers as people read them."""

STALE = "†"  # beside a figure that was measured before its source last changed
STALE_NOTE = f"{STALE} measured before its code last changed"


def mark(stale):
    """What stands behind a figure."""
    return f" {STALE}" if stale else ""


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(header, rows, align):
    rule = {"l": "---", "r": "---:"}
    return "\n".join([row(header), row(rule[a] for a in align), *map(row, rows)])


def percent(fraction):
    return "-" if fraction is None else f"{100 * fraction:.1f} %" if fraction < 0.1 else f"{100 * fraction:.0f} %"


def duration(microseconds):
    if microseconds >= 1000:
        return f"{microseconds / 1000:,.2f} ms"
    return f"{microseconds:,.1f} us"


def energy(joules):
    for unit, size in (("J", 1), ("mJ", 1e-3)):
        if joules >= size:
            return f"{significant(joules / size)} {unit}"
    return f"{significant(joules * 1e6)} µJ"


def significant(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def with_ratio(speed, ratio, digits=2):
    """A speed, and in brackets its ratio ({"ratio": ...} or None) to another."""
    return significant(speed) + (f" ({ratio['ratio']:.{digits}f}x)" if ratio else "")


def code(name):
    return f"`{name}`"


def picture(path, alt):
    """A figure that follows the reader's colour scheme. `path` has no ending."""
    return (f'<picture><source media="(prefers-color-scheme: dark)" srcset="{path}-dark.svg">'
            f'<img src="{path}-light.svg" alt="{alt}"></picture>')
