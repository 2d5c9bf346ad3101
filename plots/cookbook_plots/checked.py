# SPDX-License-Identifier: MIT
"""The page of ./run check --html: the sources of a program with what each line costs, what was found, and pictures.

    python3 -m cookbook_plots.checked --out FILE.html <check.json

Reads check's JSON, which has requests if --html was given. The page needs no other file and no network.
"""
import argparse
import html
import json
import re
import sys
from pathlib import Path

from .pictures import banks, sectors
from .pictures.requests import MEMORIES, Request
from .pictures.svg import plural
from .results import of_the_right_form
from .staging import Staging, ended

STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--bad:#b3261e;--mark:#fff3d6}
@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--soft:#9da7b3;--line:#343b44;--bad:#ff8a80;--mark:#33291a}}
body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:1.5rem auto;padding:0 1rem;background:var(--paper);color:var(--ink)}
h1,h2{line-height:1.2}a{color:inherit}li{margin:.4rem 0}.small,.cost{color:var(--soft);font-size:.85rem}
.source{border:1px solid var(--line);border-radius:6px;overflow-x:auto;padding:.5rem 0}
.row{display:flex;font:13px/1.5 ui-monospace,Consolas,Menlo,monospace;white-space:pre;min-width:max-content;padding:0 .7rem}
.row>a{flex:none;width:2.6rem;color:var(--soft);text-decoration:none}.row:target,.row.hit{background:var(--mark)}
.below{position:sticky;left:0;padding:0 .7rem 0 3.3rem;max-width:min(100vw - 4rem,58rem);box-sizing:border-box}
.bad{color:var(--bad)}.finding{border-left:3px solid var(--bad);padding-left:.6rem;margin:.2rem 0}
@media (max-width:40rem){.below{padding-left:.7rem;max-width:calc(100vw - 2.2rem)}}
figure{margin:.4rem 0 1rem}figure svg{max-width:100%;height:auto}summary{cursor:pointer}
"""


def text(value):
    return html.escape(str(value))


def anchor(names, file, line):
    return f"f{names.index(file)}-{line}"


def linked(message, names, has_line):
    """A message as HTML: places such as prog.cu:12 lead to their line."""
    def link(match):
        file = next((name for name in names if Path(name).name == match[1] and has_line(name, int(match[2]))), None)
        return f'<a href="#{anchor(names, file, match[2])}">{match[0]}</a>' if file else match[0]
    return re.sub(r"([\w.+-]+):(\d+)", link, text(message))


def cost(row):
    """What a line asks of memory, as HTML."""
    unit = MEMORIES[row["memory"]]
    per, best = row[unit] / row["requests"], row["ideal"] / row["requests"]
    of = f" of {row['buffer']}" if row["buffer"] else f" of {row['memory']} memory"
    words = f"{row['operation']}{of}: {plural(row['requests'], 'request')}, {per:.1f} {unit} each"
    bad = row["operation"] != "atomic" and row["ideal"] and row[unit] >= 2 * row["ideal"]
    return f'<div class="cost{" bad" if bad else ""}">{text(words)}{f" ({best:.1f} would do)" if per > best else ""}</div>'


def figure(data, is_open):
    request = Request(data | {"file": Path(data["file"]).name})
    picture = (sectors if request.memory == "global" else banks).draw(request)
    return (f"<details{' open' if is_open else ''}><summary class=\"small\">{request.operation}, {text(request.memory)} memory: the worst "
            f"request, lane by lane</summary><figure>{picture.svg()}</figure></details>")


def page(document):
    names = list(dict.fromkeys([*document["sources"], *(row["file"] for row in document["accesses"])]))
    sources = {name: Path(name).read_text(errors="replace").rstrip("\n").split("\n") for name in names if Path(name).is_file()}
    names = list(sources)

    def has_line(name, line):
        return 1 <= line <= len(sources[name])
    below = {name: {} for name in names}  # line -> HTML under it
    hits = set()

    def add(file, line, part):
        if file in sources and has_line(file, line):
            below[file].setdefault(line, []).append(part)
    for row in document["accesses"]:
        add(row["file"], row["line"], cost(row))
    for finding in document["findings"]:
        places = {(name, int(line)) for base, line in re.findall(r"([\w.+-]+):(\d+)", finding["message"])
                  for name in names if Path(name).name == base and has_line(name, int(line))}
        for file, line in sorted(places):
            hits.add((file, line))
            add(file, line, f'<div class="finding">{text(finding["message"])}</div>')
    worst = max(document["requests"], key=lambda data: above_ideal(data["line_total"]), default=None)
    for data in document["requests"]:
        add(data["file"], data["line"], figure(data, data is worst))
    title = "Check of " + ", ".join(Path(name).name for name in document["sources"])
    parts = [f"<h1>{text(title)}</h1>"]
    if document["findings"]:
        parts.append(f"<p>Found {len(document['findings'])}:</p><ol>")
        for finding in document["findings"]:
            times = f" [{finding['count']:,} times]" if finding["count"] > 1 else ""
            remedy = f'<div class="small">remedy: {text(finding["remedy"])}</div>' if finding["remedy"] else ""
            parts.append(f"<li>{linked(finding['message'], names, has_line)}{times}{remedy}</li>")
        parts.append("</ol>")
    else:
        parts.append("<p>No mistakes found.</p>")
    if document["costly"]:
        parts.append("<p>Accesses that take at least twice what they need:</p><ul>")
        parts += [f"<li>{linked(f'{Path(file).name}:{line}: {what}', names, has_line)}</li>" for file, line, what in document["costly"]]
        parts.append("</ul>")
    parts += [f'<p class="small">note: {linked(note, names, has_line)}</p>' for note in dict.fromkeys(document["notes"])]
    for name, lines in sources.items():
        parts.append(f'<h2>{text(Path(name).name)}</h2><div class="source">')
        for number, line in enumerate(lines, 1):
            at = anchor(names, name, number)
            hit = " hit" if (name, number) in hits else ""
            parts.append(f'<div class="row{hit}" id="{at}"><a href="#{at}">{number}</a>{text(line)}</div>')
            if number in below[name]:
                parts.append('<div class="below">' + "".join(below[name][number]) + "</div>")
        parts.append("</div>")
    parts.append('<p class="small">Counted by ./run check on the CPU, of the blocks that it traces. Requests are of a warp. A sector '
                 "has 32 bytes of global memory; a wavefront is one pass over the 32 banks of shared memory.</p>")
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>{text(title)}</title><style>{STYLE}</style></head><body>\n" + "\n".join(parts) + "\n</body></html>\n")


def above_ideal(total):
    return next(total[unit] for unit in MEMORIES.values() if unit in total) - total["ideal"]


def write(file, document):
    with of_the_right_form("not the JSON of ./run check"):
        made = page(json.loads(document))
    with Staging() as files:
        files.write_text(file, made)
    print(f"wrote {file}")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="checked", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path, help="the page")
    options = parser.parse_args(arguments)
    return ended("check", write, options.out, sys.stdin.read())


if __name__ == "__main__":
    sys.exit(main())
