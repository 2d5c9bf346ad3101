#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the pages that Doxygen reads: the book's README, the guides and a page per chapter.

A chapter's page is its README, then every level with the difference to the one before, its whole source and,
where the SIMT backend is built, what `--explain` prints. Chapters come from chapters/contents.txt and
levels from docs/levels.

    make_pages.py --out build/docs/generated --html build/docs/html [--explain build/docs/explain]
"""
import argparse
import difflib
import html
import itertools
import json
import re
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "plots"))
from cookbook_plots import book, markup, memories, tables  # noqa: E402
from cookbook_plots.pictures import book as pictures  # noqa: E402
from cookbook_plots.results import Results, gpus  # noqa: E402

# The guides in reading order; any other page in docs/ follows by itself.
GUIDES = ["building", "measuring", "profiling", "simt", "exercises", "adding", "json", "which_tool", "languages", "glossary"]
GUIDES += sorted({file.stem for file in (ROOT / "docs").glob("*.md")} - set(GUIDES))

CONTENTS = "\n\\tableofcontents{HTML:2}\n\n"  # of a long page
LONG = 6  # headings: a page with as many gets one


# --- levels ----------------------------------------------------------------------------------------
@dataclass
class Level:
    ladder: str
    name: str
    file: Path
    changed: str
    expect: str
    cost: str


def ladders(info):
    """{ladder: its levels} of a chapter, as its levels-test has written them (tests/levels_list_test.cpp)."""
    found, listed = {}, ROOT / f"docs/levels/chapter_{info.number}.json"
    for entry in json.loads(listed.read_text()) if listed.exists() else []:
        # The file of a tuned level is its kernel's: what the level adds stands in the file of its name.
        file = next(info.path.glob(f"level_*_{entry['name']}.cuh"), None) if "level_" not in entry["file"] else None
        level = Level(**entry | {"file": file or ROOT / entry["file"]})
        found.setdefault(level.ladder, []).append(level)
    return found


# --- source as HTML --------------------------------------------------------------------------------
TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])')"
    r"|(?P<pre>^[ \t]*#[ \t]*\w+)|(?P<number>\b\d[\w.']*)"
    r"|(?P<cuda>\b(?:__\w+__|__\w+|threadIdx|blockIdx|blockDim|gridDim|dim3|launch)\b)"
    r"|(?P<type>\b(?:void|int|unsigned|float|double|bool|char|auto|size_t|u?int\d+_t|float[1-4]|half2?|bf16|uint[1-4]"
    r"|__half2?|__nv_bfloat16)\b)"
    r"|(?P<keyword>\b(?:template|class|struct|const|constexpr|static|if|else|for|while|do|return|using|namespace|"
    r"typename|inline|extern|sizeof|break|continue|true|false|switch|case|default|operator|public|private)\b)",
    re.MULTILINE | re.DOTALL)


def highlight(source):
    """The lines of C++ source as HTML, each complete in itself."""
    out, at = [], 0
    for match in TOKEN.finditer(source):
        out.append(html.escape(source[at:match.start()], quote=False))
        text = html.escape(match.group(), quote=False)
        # A token over several lines is closed and opened again at each.
        out.append("\n".join(f'<span class="t-{match.lastgroup}">{line}</span>' for line in text.split("\n")))
        at = match.end()
    out.append(html.escape(source[at:], quote=False))
    return "".join(out).split("\n")


def source_line(line, number="", kind=""):
    """A line of source as HTML, with its number."""
    return f'<span class="line{kind}"><span class="no">{number}</span>{line}\n</span>'


def listing(source, marked=frozenset()):
    rows = "".join(source_line(line, i + 1, " added" if i in marked else "")
                   for i, line in enumerate(highlight(source.rstrip("\n"))))
    return f'<pre class="level-source">{rows}</pre>'


def difference(before, after, context=3):
    """(HTML of the difference, lines added, lines removed, numbers of the added lines)."""
    old, new = before.rstrip("\n").split("\n"), after.rstrip("\n").split("\n")
    old_html, new_html = highlight(before.rstrip("\n")), highlight(after.rstrip("\n"))
    rows, removed, marked = [], 0, set()
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        if rows:
            rows.append('<span class="line gap"> \n</span>')
        for tag, a0, a1, b0, b1 in group:
            if tag == "equal":
                rows += [source_line(f"  {new_html[b]}", b + 1) for b in range(b0, b1)]
                continue
            rows += [source_line(f"- {old_html[a]}", kind=" removed") for a in range(a0, a1)]
            rows += [source_line(f"+ {new_html[b]}", b + 1, " added") for b in range(b0, b1)]
            removed += sum(bool(line.strip()) for line in old[a0:a1])
            marked |= set(range(b0, b1))
    return f'<pre class="level-source">{"".join(rows)}</pre>', sum(bool(new[b].strip()) for b in marked), removed, marked


# --- Markdown for Doxygen --------------------------------------------------------------------------
def anchor(text):
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def raw(text, option=""):
    return f"\n\\htmlonly{option}\n{text}\n\\endhtmlonly\n"


def figure(match, base, html_folder):
    """A <picture> of a README as two images, of which the style sheet shows one."""
    dark, light, alt = match[1], match[2], match[3]
    images = []
    for path, shade in ((light, "light"), (dark, "dark")):
        source = (base / path).resolve()
        if not source.exists():
            raise SystemExit(f"make_pages: {base}: no figure {path}")
        target = html_folder / "figures" / source.parent.name / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        name = target.relative_to(html_folder)
        images.append(f'<a href="{name}" class="only-{shade}"><img class="figure" loading="lazy" alt="{alt}" '
                      f'src="{name}"/></a>')
    name = Path(light).stem.removesuffix("-light").replace("-", "_")
    chapter = re.fullmatch(r"chapter_(\d+)_roofline", name)
    data = roofline_data(int(chapter[1])) if chapter else ""
    return raw(f'<div class="figures" id="{name}">{"".join(images)}{data}</div>')


def picture_id(file):
    """The anchor of a picture on its page."""
    return f"picture-{Path(file).stem}"


def image(match, base, html_folder):
    """A picture of a README, which follows the colour scheme by itself; beside it what lanes.js and twins.js draw."""
    shown = re.search(r"!\[([^]\n]*)\]\(([^)\s]+)\)", match[0])
    if not shown:
        raise SystemExit(f"make_pages: {base}: no picture below {match[1].strip()} (./run plots writes it)")
    source = (base / shown[2]).resolve()
    name = Path("figures") / source.parent.name / source.name
    (html_folder / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, html_folder / name)
    live, script = pictures.live_data(match[2], match[3].split()), ""
    if live:
        data = json.dumps(live).replace("</", "<\\/").replace("](", "]\\u0028")  # no link
        script = f'<script type="application/json" class="{"twin" if "kind" in live else "request"}-data">{data}</script>'
    return raw(f'<div class="picture" id="{picture_id(source)}"><a href="{name}"><img class="picture" loading="lazy" alt="{html.escape(shown[1])}" '
               f'src="{name}"/></a>{script}</div>')


@cache
def results():
    """The results whose figures the READMEs show, or None."""
    found = gpus()
    return Results(found[0]) if found else None


@cache
def other_results():
    """Those of other GPUs."""
    return [Results(folder) for folder in gpus()[1:]]


def roofline_data(number):
    """What explore.js draws a chapter's rooflines from: a ladder each, with its roofs and the dots of its levels; those of
    the GPU of the READMEs first."""
    info = next(info for info in book.chapters() if info.number == number)
    sections = level_labels(info)
    every = [results(), *other_results()] if results() else []
    found = [ladder_data(run, sections) for one in every for run in one.of_chapter(number) if len(run.timed) > 1]
    text = json.dumps(found, ensure_ascii=False).replace("</", "<\\/")
    return f'<script type="application/json" class="roofline-data">{text}</script>'


def ladder_data(run, sections):
    problem, roofs = run.json["problem"], run.json.get("roofs") or {}
    work = problem["flops"] if run.counts_flops else problem["bytes"]
    levels = []
    for level in run.timed:
        moved = memories.moved(run, level)
        section = sections.get((run.ladder, level.name))
        levels.append({
            "index": level.index, "name": level.name + (" *" if level.stale else ""), "speed": run.speed(level),
            "time": tables.duration(level.time()), "changed": level.json["changed"],
            "roof": f"{tables.percent(level.fraction)} of {run.json['roof']}" if level.fraction is not None else "",
            "bound": bound.explained if (bound := memories.binding(run, level)) else "", "energy": level.energy, "link": f"#{section}" if section else "",
            "dots": [{"memory": memory, "x": work / amount.bytes, "bytes": amount.bytes, "origin": amount.origin}
                     for memory, amount in moved.items()] or [{"memory": "", "x": work / problem["bytes"]}]})
    ceilings = [{"name": name, "value": value} for name, value in run.ceilings()]
    return {"ladder": run.ladder, "size": tables.size_text(run.size), "unit": run.unit, "flops": run.counts_flops,
            "device": run.json["device"]["name"], "algorithm": work / problem["bytes"], "levels": levels,
            "memories": [{"memory": memory, "name": memories.NAMES[memory], "gbps": gbps}
                         for memory, gbps in memories.memory_roofs(run, roofs).items()],
            "ceilings": ceilings,
            "libraries": [{"name": other["name"], "speed": run.speed_of_time(other["time_us"]["median"]),
                           "time": tables.duration(other["time_us"]["median"])} for other in run.references]}


def slug(heading):
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"<[^>]+>", "", heading).lower().strip()).replace(" ", "-")


def link(match, base, pages, levels, own):
    """Links between files of the repository become links between pages, and those to a level's file lead to its section.
    `own` is the page that has the link."""
    text, target = match[1], match[2]
    if re.match(r"[a-z]+:", target):
        return match[0]
    path, _, fragment = target.partition("#")
    file = (base / path).resolve()
    page = (pages.get(file) or (pages.get(file / "README.md") if file.is_dir() else None)) if path else own
    to = f"{page}.html" + (f"#{page}-{fragment}" if fragment else "") if page else levels.get((own, file)) or levels.get(file)
    if to and (page is None or fragment or "`" in text):
        # Doxygen takes the backquotes of such a link's text as they are.
        text = re.sub(r"`([^`]+)`", lambda m: f"<code>{html.escape(m[1])}</code>", text)
        return f'<a href="{to}">{text}</a>'
    if page:
        return f"[{' '.join(text.split())}](@ref {page})"  # Doxygen loses the rest of a page behind a text of two lines
    if file.exists():
        return text if text.startswith("`") else f"`{text}`"
    raise SystemExit(f"make_pages: {base}: the link {target} leads nowhere")


def convert(text, base, pages, html_folder, levels=None, own=None):
    """A README as Doxygen wants it. `levels`: where the section of a level's file is, by (page, file) and by file;
    `own`: the page that the text becomes."""
    if levels is None:
        levels = {}
    parts = re.split(r"(^```.*?^```[ \t]*$)", text, flags=re.MULTILINE | re.DOTALL)
    for i, part in enumerate(parts):
        if part.startswith("```"):
            first, _, rest = part.partition("\n")
            language = first[3:].strip()
            kind = {"cpp": "{.cpp}", "cuda": "{.cpp}", "c++": "{.cpp}", "python": "{.py}"}.get(language, "{.unparsed}")
            parts[i] = f"```{kind}\n{rest}"
            continue
        part = pictures.MARK.sub(lambda m: image(m, base, html_folder), part)
        part = re.sub(r"(?<!`)<!--.*?-->\n?", "", part, flags=re.DOTALL)
        # Doxygen would close what is folded at the first empty line.
        part = re.sub(r"^(<details>.*|</details>)$", lambda m: raw(m[1], "[block]"), part, flags=re.MULTILINE)
        part = re.sub(r'<picture><source [^>]*srcset="([^"]+)">\s*<img src="([^"]+)"\s+alt="([^"]*)"></picture>',
                      lambda m: figure(m, base, html_folder), part)
        # The sidebar shows headings as they are written, so code in them loses its backquotes.
        part = re.sub(r"^(#{1,4} (.*))$", lambda m: re.sub(r"`([^`*<\\]+)`", r"\1", m[1])
                      + (f" {{#{own}-{slug(m[2])}}}" if own else ""), part, flags=re.MULTILINE)
        part = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", lambda m: link(m, base, pages, levels, own), part)
        parts[i] = part
    return "".join(parts)


def title_of(text, fallback):
    match = re.match(r"\s*(?:<!--.*?-->\s*)*#\s+(.+)", text, re.DOTALL)
    return match[1].split("\n")[0].strip() if match else fallback


def without_title(text):
    return re.sub(r"\A\s*(?:<!--.*?-->\s*)*#\s+[^\n]*\n", "", text, flags=re.DOTALL)


# --- pages -----------------------------------------------------------------------------------------
def read_explain(folder, number):
    """(ladder, level) -> report, from what `chapter-N --explain` printed."""
    file = folder / f"{number}.txt" if folder else None
    if not file or not file.exists():
        return {}
    parts = re.split(r"^(\S+) · (.+?) at \S+\n", file.read_text(), flags=re.MULTILINE)
    return {(parts[i], parts[i + 1]): parts[i + 2].strip("\n") for i in range(1, len(parts) - 2, 3)}


def label_of(info, level):
    """The anchor of a level's section."""
    own = info.path in level.file.parents
    return f"chapter_{info.number}_{anchor(level.file.stem if own else level.name)}"


def level_labels(info):
    """(ladder, level) -> the anchor of its section."""
    of_file = {level.file: label_of(info, level) for _, _, _, level in shown_levels(info)}
    return {(level.ladder, level.name): of_file[level.file] for levels in ladders(info).values() for level in levels}


def link_levels(text, info):
    """In the tables of results, the names of levels lead to their sections."""
    labels = level_labels(info)
    begin, end = text.find(tables.BEGIN), text.find(tables.END)
    ladder, lines = None, []
    for line in text[begin:end].split("\n"):
        if headline := re.match(r"\*\*(\w+)\*\* · ", line):
            ladder = headline[1]
        if row := re.match(r"\| (\d+) \| `([^`]+)`([^|]*?) \|", line):
            if label := labels.get((ladder, row[2])):
                line = (f'| {row[1]} | <a href="#{label}"><code>{row[2]}</code></a>{row[3]} |' + line[row.end():])
        lines.append(line)
    return text[:begin] + "\n".join(lines) + text[end:]


def measured(info, level):
    """What was measured of a level of the headline ladder, with a link to its dot; "" where nothing was."""
    runs = results().of_chapter(info.number) if results() else []
    timed = [other for other in runs[0].timed if other.name == level.name] if runs else []
    if not timed or len(runs[0].timed) < 2:
        return ""
    run = runs[0]
    text = ", ".join(tables.reached(run, timed[0])) + markup.mark(timed[0].stale)
    return (f"<dt>measured</dt><dd>{html.escape(text)}: <a class=\"dot\" href=\"#chapter_{info.number}_roofline\">"
            f"dot {timed[0].index} under the roofs</a></dd>")


def shown_levels(info):
    """(order of its ladder, levels of the ladder, index, level) of what the page of a chapter shows: each file with the
    first level that is in it."""
    shown = set()
    for order, levels in enumerate(ladders(info).values()):
        for index, level in enumerate(levels):
            if level.file not in shown:
                shown.add(level.file)
                yield order, levels, index, level


def wanted(info):
    """{ladder: [level, ...]}: the reports that the page of a chapter shows."""
    found = {}
    for _, _, _, level in shown_levels(info):
        found.setdefault(level.ladder, []).append(level.name)
    return found


@dataclass
class Section:
    """Of a chapter's README or notes."""
    page: str
    heading: str  # without its number signs
    body: str

    @property
    def to(self):
        return f"{self.page}.html#{self.page}-{slug(self.heading)}"

    def pictures(self):
        """[(link, alternative text)]"""
        return [(f"{self.page}.html#{picture_id(image[2])}", image[1]) for mark in pictures.MARK.finditer(self.body)
                if (image := re.search(r"!\[([^\]\n]*)\]\(([^)\s]+)\)", mark[0]))]


@cache
def texts(folder, page):
    """The sections of a chapter's README and then of its notes, without its results."""
    found = []
    for name, of in (("README.md", page), ("notes.md", f"{page}_notes")):
        if (folder / name).exists():
            text = re.sub(f"{tables.BEGIN}.*?{tables.END}", "", (folder / name).read_text(), flags=re.DOTALL)
            parts = re.split(r"^#{2,4} (.*)\n", text, flags=re.MULTILINE)
            found += [Section(of, *part) for part in zip(parts[1::2], parts[2::2])]
    return found


def text_of(info, level, sections):
    """The section that is about a level: the one with its name, or that links to its file, or is about its ladder."""
    def links(section):
        return any((info.path / target).resolve() == level.file for target in re.findall(r"\]\(([^)\s#]+)", section.body))
    ways = (lambda section: re.search(rf"^\d+ · `?{re.escape(level.name)}`?$", section.heading) and links(section), links,
            lambda section: {f"`{level.ladder}`", f"`{level.name}`"} & set(re.findall("`[^`]+`", section.heading)),
            lambda section: f"`{level.ladder}`" in section.body)
    for way in ways:
        if section := next(filter(way, sections), None):
            return section
    raise SystemExit(f"make_pages: chapter {info.number}: no section is about {level.name} of {level.ladder}")


def back_links(info, level):
    """From the code of a level to its text and its picture, or to the nearest one on the way to it."""
    sections = texts(info.path, f"chapter_{info.number}")
    text = text_of(info, level, sections)
    place, what = sections.index(text), "picture"
    shown = text.pictures() or [one for section in sections for one in section.pictures()
                                if re.search(rf"#picture-{level.ladder}-{level.name}-", one[0])]
    if not shown:
        what = "nearest picture"
        before, after = ([one for section in part for one in section.pictures()] for part in (sections[:place], sections[place:]))
        shown = before[-1:] or after[:1]
    name = text.heading.replace("`", "")
    rows = f'<dt>text</dt><dd><a class="text" href="{text.to}">{html.escape(name)}</a></dd>'
    return rows + "".join(f'<dt>{what}</dt><dd><a class="shown" href="{to}">{html.escape(alternative)}</a></dd>' for to, alternative in shown)


def level_sections(info, explained):
    """The code of a chapter, ladder by ladder."""
    out = []
    for order, levels, index, level in shown_levels(info):
        source = level.file.read_text()
        here = level.file.relative_to(ROOT)
        foreign = info.path not in level.file.parents
        label = label_of(info, level)
        title = f"{index} · {level.name}" if order == 0 else f"Another ladder: {index} · {level.name}"
        out.append(f"\n## {title} {{#{label}}}\n")
        facts = [(what, getattr(level, what)) for what in ("changed", "expect", "cost")]
        rows = "".join(f"<dt>{what}</dt><dd>{html.escape(text)}</dd>" for what, text in facts if text)
        rows += measured(info, level) if order == 0 else ""
        rows += back_links(info, level)
        blocks = [f'<dl class="level-facts">{rows}</dl>']
        marked = frozenset()
        previous = levels[index - 1] if index else None
        if previous and previous.file != level.file and info.number > 0:  # chapter 0's are no ladder
            text, added, removed, marked = difference(previous.file.read_text(), source)
            opened = " open" if added + removed <= 80 else ""
            blocks.append(f"<details{opened}><summary>What changed against <code>{previous.file.name}</code>: "
                          f"{added} lines added, {removed} removed</summary>{text}</details>")
        origin = f" (chapter {here.parts[1][:2].lstrip('0') or '0'})" if foreign else ""
        opened = " open" if index == 0 and not foreign else ""
        blocks.append(f"<details{opened}><summary>The whole file, <code>{here}</code>{origin}</summary>"
                      f"{listing(source, marked)}</details>")
        if report := explained.get((level.ladder, level.name)):
            blocks.append(f"<details><summary>What <code>./run {info.number} --explain --level {html.escape(level.name)}"
                          f"</code> prints</summary><pre class=\"report\">{html.escape(report)}</pre></details>")
        out.append(raw("\n".join(blocks)))
    shown = {level.file for *_, level in shown_levels(info)}
    rest = [file for pattern in ("*.hpp", "*.cuh", "kernels_*.cu", "libraries.cu") for file in sorted(info.path.glob(pattern))
            if file not in shown]
    if rest:
        out.append(f"\n## Shared by the levels, and sidebars {{#chapter_{info.number}_shared}}\n")
        out.append(raw("\n".join(f"<details><summary><code>{file.name}</code></summary>{listing(file.read_text())}</details>"
                                 for file in rest)))
    return "".join(out)


def grader_says(number):
    """What the grader says of an exercise as it is shipped (recorded; tests/exercises_test.cpp compares) and of a right one."""
    failures = json.loads((ROOT / "docs/graded.json").read_text()).get(number)
    if not failures:
        raise SystemExit(f"make_pages: docs/graded.json does not say why exercise {number} fails as it is shipped")
    lines = "".join(f"  FAIL  {failure}\n" for failure in failures) + f"exercise {number}: not yet"
    return ("<p>What the grader says of the file as it is, the first failure of each kind:</p>"
            f'<pre class="report said">{html.escape(lines)}</pre><p>Of a right answer, every check says <code>pass</code>, '
            f"and the last line is <code>exercise {number}: passed</code>.</p>")


def exercise_sections(info):
    out = []
    for file in sorted((info.path / "exercises").glob("*.cuh")):
        match = re.match(r"exercise_(\d+)", file.name)
        number = f"{info.number}.{match[1]}"
        comment = itertools.takewhile(lambda line: line.startswith("//"), file.read_text().split("\n")[1:])
        text = re.sub(r"^Exercise [\d.]+:\s*", "", " ".join(line[2:].strip() for line in comment))
        out.append(f"<details><summary>{number} · <code>{file.name}</code> · graded by <code>./run exercise {number}</code>"
                   f"</summary><p>{html.escape(text)}</p>{grader_says(number)}{listing(file.read_text())}</details>")
    return raw("\n".join(out)) if out else ""


def level_links():
    """(page, file) -> the section of a level's file on a chapter's page, and file -> that on its own chapter's page."""
    found = {}
    for info in book.chapters():
        for _, _, _, level in shown_levels(info):
            to = f"chapter_{info.number}.html#{label_of(info, level)}"
            found[f"chapter_{info.number}", level.file] = to
            if info.path in level.file.parents:
                found[level.file] = to
    return found


def chapter_page(info, pages, html_folder, explained, levels):
    readme = info.path / "README.md"
    text = readme.read_text() if readme.exists() else f"# {info.title}\n"
    title = title_of(text, info.title)
    title = re.sub(r"^(?:Chapter\s+)?\d+\s*[·:.\-]\s*", "", title)
    title = f"{info.number} · {title[:1].upper()}{title[1:]}"
    body = convert(link_levels(without_title(text), info), info.path, pages, html_folder, levels, f"chapter_{info.number}")
    code = level_sections(info, explained)
    slides = raw(f'<p>For the lecture hall: <a href="slides_{info.number}.html">slides</a></p>')  # docs/make_slides.py
    out = [f"# {title} {{#chapter_{info.number}}}\n", CONTENTS, slides, body]
    if code:
        out += [f"\n# The code, level by level {{#chapter_{info.number}_code}}\n",
                "Each level with what it changed against the one before: added lines are green, removed ones red.\n",
                code]
    if exercises := exercise_sections(info):
        out += [f"\n# The exercises' files {{#chapter_{info.number}_exercises}}\n", exercises]
    if (info.path / "notes.md").exists():
        out += [f"\n- @subpage chapter_{info.number}_notes\n"]
    return "\n".join(out)


def notes_page(info, pages, html_folder, levels):
    """What was measured and tried beyond the lesson, one level below the chapter's page; "" where there is nothing."""
    file, name = info.path / "notes.md", f"chapter_{info.number}_notes"
    if not file.exists():
        return ""
    text = file.read_text()
    return f"# {title_of(text, name)} {{#{name}}}\n{CONTENTS}" + convert(without_title(text), info.path, pages, html_folder,
                                                                      levels, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--html", type=Path)
    parser.add_argument("--explain", type=Path)
    parser.add_argument("--wanted", type=int, metavar="CHAPTER", help="print only which reports its page shows, a "
                        "line per ladder: its name and those of levels")
    options = parser.parse_args()
    if options.wanted is not None:
        for info in book.chapters():
            if info.number == options.wanted:
                for ladder, levels in wanted(info).items():
                    print(ladder, *levels)
        return 0
    if not options.out or not options.html:
        parser.error("needs --out and --html")
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    options.html.mkdir(parents=True, exist_ok=True)
    chapters = book.chapters()
    pages = {ROOT / "README.md": "index"}
    pages |= {ROOT / f"docs/{name}.md": f"guide_{name}" for name in GUIDES}
    for info in chapters:
        pages |= {info.path / "README.md": f"chapter_{info.number}", info.path / "notes.md": f"chapter_{info.number}_notes"}
    levels = level_links()

    readme = (ROOT / "README.md").read_text()
    front = convert(without_title(readme), ROOT, pages, options.html, levels, "index")
    (options.out / "index.md").write_text(
        f"# {title_of(readme, 'Kernel cookbook')} {{#mainpage}}\n\n{front}\n\n"
        "- @subpage chapters\n- @subpage guide\n")

    for info in chapters:
        text = chapter_page(info, pages, options.html, read_explain(options.explain, info.number), levels)
        (options.out / f"chapter_{info.number:02}.md").write_text(text + "\n")
        if notes := notes_page(info, pages, options.html, levels):
            (options.out / f"chapter_{info.number:02}_notes.md").write_text(notes + "\n")
    (options.out / "chapters.md").write_text("# Chapters {#chapters}\n\nIn the order in which to read them.\n\n"
                                             + "".join(f"- @subpage chapter_{info.number}\n" for info in chapters))
    for name in GUIDES:
        file = ROOT / f"docs/{name}.md"
        text = file.read_text()
        (options.out / f"guide_{name}.md").write_text(
            f"# {title_of(text, name)} {{#guide_{name}}}\n\n" + (CONTENTS if text.count("\n## ") >= LONG else "")
            + convert(without_title(text), file.parent, pages, options.html, levels, f"guide_{name}"))
    (options.out / "guide.md").write_text("# Guide {#guide}\n\n" + "".join(f"- @subpage guide_{name}\n" for name in GUIDES))
    print(f"wrote {len(chapters)} chapter pages and {len(GUIDES)} guides to {options.out}")


if __name__ == "__main__":
    main()
