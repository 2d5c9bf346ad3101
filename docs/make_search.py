#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the index of the site's search: every section of every page of the book, and the names of the API.

Doxygen's own search knows names only; this one finds words. It is a script that sets a variable, because a
page opened from disk may load a script but not read a file.

    make_search.py build/docs/html build/docs/names.xml"""
import json
import re
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

LONGEST = 4000  # characters kept of a section
SKIPPED = {"script", "style", "head"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Sections(HTMLParser):
    """The sections of a page: [anchor, heading, text, words in bold]. Listings of source and reports are left out."""

    def __init__(self):
        super().__init__()
        self.sections, self.heading, self.depth, self.inside, self.bold = [["", "", "", ""]], False, 0, 0, False

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        classes = (attributes.get("class") or "").split()
        if self.depth:
            self.depth += tag not in VOID
            return
        if tag in SKIPPED or "level-source" in classes or "toc" in classes:
            self.depth = 1
            return
        if tag == "div" and "contents" in classes:
            self.inside = 1
        if not self.inside:
            return
        if tag in ("h1", "h2", "h3"):
            self.sections.append(["", "", "", ""])
            self.heading = True
        self.bold = tag in ("b", "strong")
        if self.heading and attributes.get("id"):
            self.sections[-1][0] = attributes["id"]
        self.sections[-1][1 if self.heading else 2] += " "

    def handle_endtag(self, tag):
        if self.depth:
            self.depth -= tag not in VOID
        elif tag in ("h1", "h2", "h3"):
            self.heading = False
        self.bold = False

    def handle_data(self, data):
        if self.inside and not self.depth:
            self.sections[-1][1 if self.heading else 2] += data
            if self.bold:
                self.sections[-1][3] += data + " "


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


def title_of(text):
    match = re.search(r'<div class="title">(.*?)</div>', text, re.DOTALL)
    return squeeze(re.sub(r"<[^>]+>|&#160;", " ", match[1])).replace("&amp;", "&") if match else ""


def pages(folder):
    """Sections of the pages that are written for reading."""
    for file in sorted(folder.glob("*.html")):
        if not re.fullmatch(r"index|chapter_\d+(_notes)?|guide_\w+", file.stem) or file.stem.endswith("_8md"):
            continue
        text = file.read_text(encoding="utf-8")
        page = Sections()
        page.feed(text)
        title = title_of(text)
        for anchor, heading, body, bold in page.sections:
            if squeeze(heading + body):
                yield [file.name + (f"#{anchor}" if anchor else ""), squeeze(heading) or title, title,
                       squeeze(body)[:LONGEST], squeeze(bold)]


def names(tags):
    """Names of the API, from Doxygen's tag file."""
    compounds = [one for one in ET.parse(tags).getroot() if one.get("kind") not in ("page", "dir")]
    scopes = {one.findtext("filename"): one.findtext("name") for one in compounds if one.get("kind") != "file"}
    found = {one.findtext("filename"): [one.findtext("name"), one.get("kind")] for one in compounds
             if not one.findtext("name").endswith(".md")}
    for member in ET.parse(tags).getroot().iter("member"):
        file = member.findtext("anchorfile")
        found[f"{file}#{member.findtext('anchor')}"] = [member.findtext("name"), scopes.get(file, "file")]
    return [[url, *what, ""] for url, what in found.items()]  # one shorter than a page's


def main():
    folder = Path(sys.argv[1])
    entries = [*pages(folder), *names(sys.argv[2])]
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    (folder / "search_index.js").write_text(f"window.cookbookIndex={text};\n", encoding="utf-8")
    print(f"search: {len(entries)} entries, {len(text) // 1024} KiB")
    return 0 if entries else 1


if __name__ == "__main__":
    sys.exit(main())
