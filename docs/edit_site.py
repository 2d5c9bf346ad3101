#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Changes what Doxygen has written: its lists of namespaces, classes and files become one entry of the menu, the last,
and only pages with formulas load MathJax.

    edit_site.py build/docs/html
"""
import re
import sys
from pathlib import Path

MATHJAX = re.compile(r'<script type="text/x-mathjax-config">.*?</script>\s*<script[^>]*src="[^"]*MathJax.js"[^>]*></script>\s*',
                     re.DOTALL)
LISTS = ("Namespaces", "Classes", "Files")


def edited(text):
    """(navtreedata.js with the lists under "Reference", where they began)"""
    entries = re.findall(r'^    \[ "([^"]+)",', text, re.MULTILINE)
    if tuple(entries[-len(LISTS):]) != LISTS:
        sys.exit(f"edit_site: the menu ends with {entries[-len(LISTS):]}, not with {LISTS}")
    first = text.index(f'    [ "{LISTS[0]}",')
    end = text.index("\n  ] ]\n];", first)
    return f'{text[:first]}    [ "Reference", "files.html", [\n{text[first:end]}\n    ] ]{text[end:]}', len(entries) - len(LISTS)


def main():
    folder = Path(sys.argv[1])
    file = folder / "navtreedata.js"
    text, first = edited(file.read_text())
    file.write_text(text)
    # Where a page is in the menu: "page.html":[5,0,1].
    for index in folder.glob("navtreeindex*.js"):
        index.write_text(re.sub(r'(?<=":\[)(\d+)', lambda m: f"{first},{int(m[1]) - first}" if int(m[1]) >= first else m[1],
                                index.read_text()))
    for page in folder.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        if r"\(" not in text and r"\[" not in text:
            page.write_text(MATHJAX.sub("", text), encoding="utf-8")


if __name__ == "__main__":
    main()
