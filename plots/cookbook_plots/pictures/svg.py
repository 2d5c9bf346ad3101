# SPDX-License-Identifier: MIT
"""A stand-alone SVG: follows the reader's colour scheme, says in words what it shows, and is readable on a phone.

Coordinates are in units of which WIDTH make the picture's width. At 360 pixels a unit is about a pixel.
"""
import re
import textwrap
from xml.sax.saxutils import escape, quoteattr

WIDTH, MARGIN = 380, 8
INNER = WIDTH - 2 * MARGIN
SHOWN = 570  # pixels on a page that is wide enough
SANS, MONO = "DejaVu Sans,Verdana,Segoe UI,sans-serif", "DejaVu Sans Mono,Consolas,Menlo,monospace"
SEEN = 0.1  # units: what is narrower is rounding
FILLED = ("waste", "off")  # classes that hide what is below them
# Widest mean width of a character, in ems: text is wrapped and cut by it.
EM = {"sans": 0.56, "bold": 0.6, "mono": 0.61}

# Okabe and Ito's palette, as in style.py, which needs matplotlib.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"]
RAMP = ["#3F6FB5", "#21918C", "#5EC962", "#F3D02F", "#E98A15", "#C2461B"]

STYLE = """
.paper{fill:#ffffff}.text{fill:#1b1f24}.muted{fill:#57606a}.off{fill:#f0f2f5}.edge{fill:none;stroke:#8b949e}
.faint{fill:none;stroke:#c8ced5}.waste{fill:#f5c9a6}.wire{stroke:#57606a;fill:none}.dash{stroke-dasharray:2 2}.cell{fill:none;stroke:#ffffff}.several{fill:none;stroke:#1b1f24;stroke-width:1.3}
@media (prefers-color-scheme:dark){.paper{fill:#0d1117}.text{fill:#e6edf3}.muted{fill:#9da7b3}.off{fill:#1c2129}
.edge{stroke:#6e7681}.faint{stroke:#343b44}.waste{fill:#7a4a24}.wire{stroke:#9da7b3}.cell{stroke:#0d1117}.several{stroke:#e6edf3}}
""".replace("\n", "")


def number(value):
    return f"{value:.2f}".rstrip("0").rstrip(".")


def plural(count, what):
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def spans(numbers):
    """"0 to 3, 7" of 0, 1, 2, 3, 7."""
    runs = []
    for value in sorted(numbers):
        if runs and runs[-1][1] == value - 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return ", ".join(f"{a}" if a == b else f"{a}, {b}" if b == a + 1 else f"{a} to {b}" for a, b in runs)


def colours(count):
    """As many fills that differ, for `count` things in an order."""
    if count <= len(COLOURS):
        return COLOURS[:count]
    found = []
    for i in range(count):
        at = i / (count - 1) * (len(RAMP) - 1)
        low = min(int(at), len(RAMP) - 2)
        parts = [[int(colour[k:k + 2], 16) for k in (1, 3, 5)] for colour in RAMP[low:low + 2]]
        found.append("#" + "".join(f"{round(a + (at - low) * (b - a)):02x}" for a, b in zip(*parts)))
    return found


def on(fill):
    """The colour of text on a fill: that of the higher contrast."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
              for c in (int(fill[k:k + 2], 16) / 255 for k in (1, 3, 5))]
    return "#000000" if sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear)) > 0.179 else "#ffffff"


def uncovered(rect, above):
    """What is left of (left, top, right, bottom) below others, in parts."""
    parts = [rect]
    for a, b, c, d in above:
        left_over = []
        for left, top, right, bottom in parts:
            x0, x1, y0, y1 = max(left, a), min(right, c), max(top, b), min(bottom, d)
            if x0 >= x1 or y0 >= y1:
                left_over.append((left, top, right, bottom))
                continue
            left_over += [part for part in ((left, top, x0, bottom), (x1, top, right, bottom), (x0, top, x1, y0), (x0, y1, x1, bottom))
                          if min(part[2] - part[0], part[3] - part[1]) > SEEN]
        parts = left_over
    return parts


class Picture:
    """Grows downwards: `y` is where the next thing goes."""

    def __init__(self, title, description):
        self.title, self.description, self.parts, self.y = title, description, [], MARGIN
        self.rects = []  # (class or fill, (left, top, right, bottom)) in order: later ones lie above

    def alternative(self, most=15):
        """The first sentences of the description, as a page's alternative text: the page says the rest."""
        first, *more = re.split(r"(?<=\.) ", self.description)
        for sentence in more:
            if len(f"{first} {sentence}".split()) > most:
                break
            first += f" {sentence}"
        return first

    def rect(self, x, y, width, height, style="", fill=None, tip=""):
        look = (f' class="{style}"' if style else "") + (f' fill="{fill}"' if fill else "")
        end = f"><title>{escape(tip)}</title></rect>" if tip else "/>"
        self.rects.append((fill or style, (x, y, x + width, y + height)))
        self.parts.append(f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"{look}{end}')

    def line(self, x0, y0, x1, y1, style="wire"):
        self.parts.append(f'<path class="{style}" d="M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}"/>')

    def stroke(self, x0, y0, x1, y1, colour):
        self.parts.append(f'<path fill="none" stroke="{colour}" stroke-width="1.6" '
                          f'd="M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}"/>')

    def grid(self, x, y, columns, rows, width, height):
        """Empty cells, as one path."""
        right, below = number(x + columns * width), number(y + rows * height)
        lines = [f"M{number(x + i * width)} {number(y)}V{below}" for i in range(columns + 1)]
        lines += [f"M{number(x)} {number(y + i * height)}H{right}" for i in range(rows + 1)]
        self.parts.append(f'<path class="faint" d="{"".join(lines)}"/>')

    def text(self, x, y, text, size=11.5, style="text", anchor="start", font="sans", fill=None):
        """`y` is the base line."""
        look = f'fill="{fill}"' if fill else f'class="{style}"'
        weight = ' font-weight="bold"' if font == "bold" else ""
        family = f' font-family="{MONO}"' if font == "mono" else ""
        align = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self.parts.append(f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}" {look}{weight}{family}{align}'
                          f' xml:space="preserve">{escape(text)}</text>')

    def paragraph(self, text, size=11.5, style="text", font="sans", x=MARGIN):
        """Wrapped into the width; moves `y`."""
        room = int((WIDTH - MARGIN - x) / (size * EM[font]))
        for line in textwrap.wrap(text, room, break_on_hyphens=False) or [""]:
            self.y += size * 1.25
            self.text(x, self.y, line, size, style, font=font)
        self.y += 2

    def heading(self, text):
        self.paragraph(text, 13, font="bold")

    def code(self, text, size=10.5):
        """A line of source, on as many lines as it needs."""
        room = int(INNER / (size * EM["mono"]))
        for at in range(0, len(text), room):
            self.y += size * 1.4
            self.text(MARGIN, self.y, text[at:at + room], size, font="mono")
        self.y += 3

    def shows(self, look):
        """Whether a part of a rectangle with this class or fill can be seen so far."""
        return any(uncovered(rect, (above for fill, above in self.rects[place + 1:] if fill.startswith("#") or fill in FILLED))
                   for place, (of, rect) in enumerate(self.rects) if of == look)

    def legend(self, entries):
        """(class or fill, text) side by side, wrapped. Below what it explains: an entry for what cannot be seen is left out."""
        x, size = MARGIN, 11.5
        self.y += 6
        for look, text in [entry for entry in entries if self.shows(entry[0])]:
            width = 17 + len(text) * size * EM["sans"] + 10
            if x > MARGIN and x + width > WIDTH:
                x = MARGIN
                self.y += 16
            if look.startswith("#"):
                self.rect(x, self.y, 11, 11, fill=look)
            else:
                self.rect(x, self.y, 11, 11, look)
            self.rect(x, self.y, 11, 11, "edge")
            self.text(x + 16, self.y + 9.5, text, size)
            x += width
        self.y += 16

    def svg(self):
        height = number(self.y + MARGIN)
        shown = round(float(height) * SHOWN / WIDTH)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{SHOWN}" height="{shown}" '
                f'role="img" aria-label={quoteattr(self.title)} font-family="{SANS}">\n<title>{escape(self.title)}</title>\n'
                f"<desc>{escape(self.description)}</desc>\n<style>{STYLE}</style>\n"
                f'<rect class="paper" width="{WIDTH}" height="{height}"/>\n' + "\n".join(self.parts) + "\n</svg>\n")
