#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every link and image of the built site must lead to a file that is there, nothing may be fetched, the first page with all
that it loads has at most 300 KB, and a level's text, code and picture are one click apart."""
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

FIRST_PAGE = 300_000  # bytes


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.loads, self.ids = [], [], set()
        self.folded, self.later = [], set()  # open or closed <details> around; images that are loaded when one is opened

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "details":
            self.folded.append("open" not in attributes)
        for key in ("id", "name"):
            if attributes.get(key):
                self.ids.add(attributes[key])
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag in ("img", "script", "iframe", "source") and attributes.get("src"):
            self.loads.append(attributes["src"])
            if tag == "img" and attributes.get("loading") == "lazy" and any(self.folded):
                self.later.add(attributes["src"])
        if tag == "link" and attributes.get("href"):
            self.loads.append(attributes["href"])

    def handle_endtag(self, tag):
        if tag == "details" and self.folded:
            self.folded.pop()


HEADING = re.compile(r'<h\d[^>]*><a class="anchor" id="([^"]+)">')


def one_click(name, text):
    """A sentence for every level of a chapter's page whose code does not lead to its text and, where the page has pictures, to
    one; and for every section about a level that does not lead to code on this page."""
    page, parts = name.removesuffix(".html"), HEADING.split(text)
    sections = list(zip(parts[1::2], parts[2::2]))
    for anchor, body in sections:
        if '<dl class="level-facts">' in body:
            for kind, needed in (("text", True), ("shown", '<div class="picture"' in text)):
                if needed and f'<a class="{kind}" href=' not in body:
                    yield f"{name}: the code at #{anchor} has no link to its {'text' if kind == 'text' else 'picture'}"
    code = [anchor for anchor, body in sections if '<dl class="level-facts">' in body]
    for anchor, body in sections:
        if code and re.match(rf"{page}-\d+--\w+$", anchor) and not any(f'{page}.html#{of}"' in body for of in code):
            yield f"{name}: the section #{anchor} has no link to code on this page"


def check(folder):
    pages, problems = {}, []
    for file in sorted(folder.glob("*.html")):
        page, text = Page(), file.read_text(encoding="utf-8")
        page.feed(text)
        pages[file.name] = page
        if re.fullmatch(r"chapter_\d+\.html", file.name):
            problems += one_click(file.name, text)
    for name, page in pages.items():
        for target in page.loads + page.links:
            if re.match(r"(https?:)?//", target):
                if target in page.loads:
                    problems.append(f"{name}: loads {target} from the network")
                continue
            if re.match(r"(mailto|javascript|data):", target):
                continue
            path, _, fragment = target.partition("#")
            path = unquote(path.split("?")[0])
            if path and not (folder / path).exists():
                problems.append(f"{name}: {target} is not there")
            other = pages.get(path or name)
            if fragment and other and unquote(fragment) not in other.ids:
                problems.append(f"{name}: {target}: no such anchor")
    if (size := weight(folder, pages)) > FIRST_PAGE:
        problems.append(f"index.html: {size:,} bytes with what it loads, of at most {FIRST_PAGE:,}")
    return pages, problems


def weight(folder, pages):
    """Bytes of the first page and of what it loads; of a figure for light and dark, one is loaded."""
    page = pages["index.html"]
    loaded = {unquote(target.split("?")[0]) for target in page.loads if "-dark." not in target and target not in page.later}
    return sum((folder / name).stat().st_size for name in {"index.html", *loaded} if (folder / name).is_file())


def main():
    pages, problems = check(Path(sys.argv[1]))
    for problem in problems[:50]:
        print(problem, file=sys.stderr)
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, {len(problems)} problems")
    return 1 if problems or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
