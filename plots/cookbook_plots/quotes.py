# SPDX-License-Identifier: MIT
"""Lines of kernels that a chapter's pages quote.

In a source a quote stands between the comments `// [quote NAME]` and `// [end quote]`, in Python with #. In a page the line
<!-- quote FILE NAME --> is followed by it; FILE is relative to the page. `./run plots` writes it there. The line
<!-- banks FILE NAME --> is followed by the banks to which the quote's store `tile[y][...] =` sends eight columns of
eight rows.
"""
import re

LONGEST, WIDEST = 25, 100  # lines of a quote, columns of a line
TAGGED = re.compile(r"^ *(?://|#) \[quote (\w+)\]\n(.*?)^ *(?://|#) \[end quote\]\n", re.MULTILINE | re.DOTALL)
TAG = re.compile(r"(?://|#) \[(?:end )?quote\b")
QUOTE = re.compile(r"^(<!-- quote (\S+) (\w+) -->\n)(?:```(?:cuda|python)\n.*?^```\n)?", re.MULTILINE | re.DOTALL)

BANKS = re.compile(r"^(<!-- banks (\S+) (\w+) -->\n)(?:\n(?:\|.*\n)+)?", re.MULTILINE)
STORE = re.compile(r"\btile\[y\]\[([xy0-9^&|+*() ]+)\] =")


def tagged(source):
    """{name: lines} of the quotes in a source. ValueError: a tag without its partner, a name twice, too long."""
    found = {}
    for name, lines in TAGGED.findall(source):
        if name in found:
            raise ValueError(f"two quotes are called {name}")
        # clang-format puts #pragma into the first column: it does not count for the indentation.
        margin = min((len(line) - len(line.lstrip()) for line in lines.split("\n") if line.strip() and line[0] != "#"),
                     default=0)
        found[name] = "\n".join(line if line.startswith("#") else line[margin:] for line in lines.split("\n")).strip("\n")
        rows = found[name].split("\n")
        if len(rows) > LONGEST or max(map(len, rows)) > WIDEST:
            raise ValueError(f"the quote {name} has {len(rows)} lines; at most {LONGEST} of {WIDEST} columns are shown")
    if 2 * len(found) != len(TAG.findall(source)):
        raise ValueError("a // [quote NAME] without its // [end quote], or the other way round")
    return found


def filled(text, folder):
    """(text of a page in `folder` with its quotes as the sources have them, {(file, name)} it quotes)."""
    used = set()

    def lines_of(match):
        file, name = folder / match[2], match[3]
        lines = tagged(file.read_text()).get(name) if file.is_file() else None
        if lines is None:
            raise ValueError(f"{match[2]} has no // [quote {name}]")
        used.add((file.resolve(), name))
        return lines

    def language(match):
        return "python" if match[2].endswith(".py") else "cuda"

    text = QUOTE.sub(lambda match: f"{match[1]}```{language(match)}\n{lines_of(match)}\n```\n", text)
    return BANKS.sub(lambda match: match[1] + "\n" + banks(lines_of(match)), text), used


def banks(lines):
    """A table of the bank that tile[y][...] = is in, by row y and column threadIdx.x; rows of 32 words."""
    store = STORE.search(lines.replace("threadIdx.x", "x"))
    if not store:
        raise ValueError(f"no store tile[y][...] = in {lines!r}")
    index = compile(store[1].strip(), "index", "eval")
    table = [["bank", *(f"c = {x}" for x in range(8))], ["---"] + 8 * ["---:"]]
    table += [[f"r = {y}", *(str(eval(index, {"x": x, "y": y}) % 32) for x in range(8))] for y in range(8)]
    return "".join(f"|{'|'.join(row)}|\n" for row in table)


def unused(root, used):
    """A sentence for every tag of a source that no page quotes, or that is malformed."""
    for file in sorted([*(root / "chapters").glob("*/*.cuh"), *(root / "library").glob("*/*.[ch]*"),
                        *(root / "tests").glob("*_test.cpp"), *(root / "plots/contestants").glob("*.*")]):
        try:
            names = tagged(file.read_text())
        except ValueError as error:
            yield f"{file.relative_to(root)}: {error}"
            continue
        yield from (f"{file.relative_to(root)}: no page quotes {name}" for name in names if (file.resolve(), name) not in used)
