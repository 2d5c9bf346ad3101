#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts Doxygen's lists of namespaces, classes and files under one entry of the menu, the last: a reader starts with chapters.

    edit_menu.py build/docs/html
"""
import re
import sys
from pathlib import Path

LISTS = ("Namespaces", "Classes", "Files")


def edited(text):
    """(navtreedata.js with the lists under "Reference", where they began)"""
    entries = re.findall(r'^    \[ "([^"]+)",', text, re.MULTILINE)
    if tuple(entries[-len(LISTS):]) != LISTS:
        sys.exit(f"edit_menu: the menu ends with {entries[-len(LISTS):]}, not with {LISTS}")
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


if __name__ == "__main__":
    main()
