#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Changes what Doxygen has written: every page gets the menu, which needs no script, and only pages with formulas load
MathJax. Doxygen's own scripts, and its lists of members, which the search replaces, are removed.

    edit_site.py build/docs/html
"""
import re
import sys
from pathlib import Path

MATHJAX = re.compile(r'<script type="text/x-mathjax-config">.*?</script>\s*<script[^>]*src="[^"]*MathJax.js"[^>]*></script>\s*',
                     re.DOTALL)
REFERENCE = [("namespaces.html", "Namespaces"), ("annotated.html", "Classes"), ("files.html", "Files")]
UNUSED = ("jquery.js", "dynsections.js", "doxygen.svg", "functions*.html", "namespacemembers*.html", "globals*.html",
          "classes.html", "hierarchy.html")
PLACE = '<nav id="menu"></nav>'
TOP_ENDS = re.compile(r'(<div id="nav-path".*?</div>\s*)?</div><!-- top -->', re.DOTALL)


def links(text):
    """[(file, title as HTML)] of the pages that a page lists."""
    return re.findall(r'<li><a class="el" href="([^"#]+)">(.*?)</a>', text)


def sections(text):
    """[(link, title as HTML)] of a page's largest headings."""
    return [("#" + name, title) for name, title in re.findall(r'<h1[^>]*><a class="anchor" id="([^"]+)"></a>\s*(.*?)</h1>', text)]


def menu(groups, name, own):
    """The menu of page `name`. `groups`: [(title, its pages)]; `own`: what stands below the page itself."""
    def item(file, title):
        here = file == name
        below = "".join(f'<li><a href="{link}">{text}</a></li>' for link, text in own) if here else ""
        return (f'<li><a href="{file}"{" class=at aria-current=page" if here else ""}>{title}</a>'
                + (f"<ul>{below}</ul>" if below else "") + "</li>")

    parts = []
    for place, (title, pages) in enumerate(groups):
        is_open = place == 0 or any(file == name for file, _ in pages)
        parts.append(f'<details{" open" if is_open else ""}><summary>{title}</summary>'
                     f'<ul>{"".join(item(*page) for page in pages)}</ul></details>')
    return f'<nav id="menu">{"".join(parts)}</nav>'


def edited(text, groups, name, own):
    """A page with its menu, the path to it above its title, and MathJax only where there is a formula."""
    if text.count(PLACE) != 1 or len(TOP_ENDS.findall(text)) != 1:
        sys.exit(f"edit_site: {name} does not begin as the pages of Doxygen 1.9 do")
    text = TOP_ENDS.sub(lambda m: f'</div><!-- top -->\n<div id="doc-content">\n{m[1] or ""}', text)
    text = text.replace(PLACE, menu(groups, name, own))
    return text if r"\(" in text or r"\[" in text else MATHJAX.sub("", text)


def main():
    folder = Path(sys.argv[1])
    for pattern in UNUSED:
        for file in folder.glob(pattern):
            file.unlink()
    chapters, guide = (links((folder / name).read_text(encoding="utf-8")) for name in ("chapters.html", "guide.html"))
    if not chapters or not guide:
        sys.exit("edit_site: chapters.html or guide.html lists no page")
    groups = [("Chapters", [("index.html", "Kernel cookbook"), *chapters]), ("Guide", guide), ("Reference", REFERENCE)]
    for page in folder.glob("*.html"):
        text, name = page.read_text(encoding="utf-8"), page.name.replace("_notes.html", ".html")  # notes are below their chapter
        notes = name.replace(".html", "_notes.html")
        own = sections(text) + ([(notes, "Notes")] if (folder / notes).exists() else [])
        page.write_text(edited(text, groups, name, own), encoding="utf-8")


if __name__ == "__main__":
    main()
