#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a page per chapter for the lecture hall: slides_3.html has chapter 3's pictures, the kernel lines that its
README quotes, and what was measured, one after the other.

A level is predicted before its result is shown: what it changes and its lines come first, then the pictures, then what
was expected and what was measured. The arrow keys turn the pages. Without scripts, and in print, all are there.

    make_slides.py build/docs/html
"""
import html
import re
import shutil
import sys
from pathlib import Path

import make_pages
from cookbook_plots import book

HEADING = re.compile(r"^#{2,3} (.*)\n", re.MULTILINE)
PARTS = re.compile(
    r"^```cuda\n(?P<code>.*?)^```"
    r"|^<!-- picture [^\n]*-->\n\n?(?P<picture>[^\n]*)"
    r'|^<picture><source [^>]*srcset="(?P<dark>[^"]+)">\s*<img src="(?P<light>[^"]+)"\s+alt="(?P<alt>[^"]*)"></picture>'
    r"|^<!-- measured (?P<level>\w+ \w+) -->\n\*\*Measured:\*\* (?P<measured>.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
IMAGE = re.compile(r"!\[([^\]\n]*)\]\(([^)\s]+)\)")
LINES = 12  # of code on a slide that holds several quotes
LEVEL = re.compile(r"(\d+) · `?(\w+)`?$")


def inline(text):
    """A line of Markdown as HTML: code and bold; of a link its text."""
    text = html.escape(re.sub(r"\[([^\]]+)\]\([^)\s]+\)", r"\1", " ".join(text.split())), quote=False)
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", re.sub(r"`([^`]+)`", r"<code>\1</code>", text))


def copied(source, folder):
    """Where the site has a figure; it is copied if no page has it yet."""
    source = source.resolve()
    if not source.exists():
        raise SystemExit(f"make_slides: no figure {source}")
    name = Path("figures") / source.parent.name / source.name
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    if not (folder / name).exists():
        shutil.copyfile(source, folder / name)
    return name


def code(text):
    lines = text.rstrip("\n").split("\n")
    longest = max(map(len, lines))
    return (f'<pre style="--columns:{max(longest, 40)};--lines:{max(len(lines), 6)}">'
            + "\n".join(make_pages.highlight("\n".join(lines))) + "</pre>")


def image(alt, light, dark, base, folder):
    """A figure. `alt` is HTML; `dark`: the same for dark pages, or None."""
    other = f'<source media="(prefers-color-scheme: dark)" srcset="{copied(base / dark, folder)}">' if dark else ""
    return f'<picture>{other}<img alt="{alt}" src="{copied(base / light, folder)}"></picture>'


def packed(lines):
    """Quotes [(HTML, lines)] in order, as many on a slide as fit; at least one slide."""
    slides, height = [[]], 0
    for text, count in lines:
        if slides[-1] and height + count > LINES:
            slides.append([])
            height = 0
        slides[-1].append(text)
        height += count
    return slides


def slides_of(heading, body, levels, base, folder):
    """[(heading, content)] of a section, as HTML. `levels`: by "ladder name"."""
    title = inline(heading)
    found = LEVEL.match(heading)
    level = next((level for name, level in levels.items() if found and name.split()[1] == found[2]), None)
    lines, shown, results = [], [], []
    for part in PARTS.finditer(body):
        if part["code"]:
            lines.append((code(part["code"]), part["code"].count("\n")))
        elif part["measured"]:
            of = levels[part["level"]]
            results.append((title if of == level else f"{title}: {html.escape(of.name)}",
                            f"<dl><dt>expected</dt><dd>{inline(of.expect)}</dd><dt>measured</dt><dd>{inline(part['measured'])}</dd></dl>"))
        elif part["light"]:
            shown.append(image(part["alt"], part["light"], part["dark"], base, folder))
        else:
            picture = IMAGE.fullmatch(part["picture"])
            if not picture:
                raise SystemExit(f"make_slides: {base}: no picture below {part[0].strip()} (./run plots writes it)")
            shown.append(image(html.escape(picture[1]), picture[2], None, base, folder))
    slides = []
    if level or lines:
        changed = f"<p>{inline(level.changed)}</p>" if level else ""
        slides += [(title, changed + "".join(together)) for together in packed(lines)]
    return slides + [(title, picture) for picture in shown] + results


def slides(info, folder):
    text = (info.path / "README.md").read_text()
    levels = {}
    for ladder in make_pages.ladders(info).values():
        for level in ladder:
            levels[f"{level.ladder} {level.name}"] = level
    parts = HEADING.split(text)
    title = inline(make_pages.title_of(text, info.title))
    found = []
    for heading, body in zip(parts[1::2], parts[2::2]):
        if heading == "What you will learn":
            items = re.findall(r"^- (.+?)(?=\n- |\Z)", body.strip().split("\n\n")[0], re.MULTILINE | re.DOTALL)
            found.append((title, "<ul>" + "".join(f"<li>{inline(item)}</li>" for item in items) + "</ul>"))
        else:
            found += slides_of(heading, body, levels, info.path, folder)
    return title, found


def page(number, title, found):
    sections = "\n".join(f'<section id="{i}"><h1>{heading}</h1>\n{content}\n</section>'
                         for i, (heading, content) in enumerate(found, 1))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}: slides</title><link rel="stylesheet" href="slides.css"><script defer src="slides.js"></script></head><body>
{sections}
<nav><a href="chapter_{number}.html">the chapter</a> <button id="back">&larr;</button> <output></output> <button id="on">&rarr;</button></nav>
</body></html>
"""


def main():
    folder = Path(sys.argv[1])
    count = 0
    for info in book.chapters():
        title, found = slides(info, folder)
        (folder / f"slides_{info.number}.html").write_text(page(info.number, title, found), encoding="utf-8")
        count += len(found)
    for name in ("slides.css", "slides.js"):
        shutil.copyfile(make_pages.ROOT / "docs" / name, folder / name)
    print(f"{count} slides of {len(book.chapters())} chapters")


if __name__ == "__main__":
    main()
