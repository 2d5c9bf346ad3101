# SPDX-License-Identifier: MIT
"""nvcc's two passes as one text (docs/check.md): kernels and __device__ functions see __CUDA_ARCH__, the rest does not.

A program is preprocessed with and without the macro. Where the two differ, device code takes the lines of the one,
and everything else those of the other.
"""
import re
from difflib import SequenceMatcher
from pathlib import Path

from rewrite import MARKER, OWN, Rewriter, source_line, SOURCES

TABLE = Path(__file__).resolve().parents[2] / "common/backend/simt/runtime/devices.cpp"
DEVICES = {name: int(number) for name, number in re.findall(r'\{"(\w+)", "[^"]+", (\d+),', TABLE.read_text())}


def architecture(environment):
    """What the device pass defines: of the model device."""
    name = environment.get("COOKBOOK_SIMT_DEVICE", "h100").lower()
    number = int(environment.get("COOKBOOK_SIMT_CC") or DEVICES.get(name, 90))
    return [f"-D__CUDA_ARCH__={10 * number}", *([f"-D__CUDA_ARCH_FEAT_SM{number}_ALL"] if number >= 90 else [])]


def own_lines(text):
    """[(rows, file, line, text)] of the program's own lines that are not blank. What a macro of a system header becomes,
    such as __forceinline__, stands on rows of its own and belongs to its line."""
    found, expanded, files, file, line, own = [], [], set(), "", 1, False
    for row, content in enumerate(text.split("\n")):
        marker = MARKER.match(content) if content.startswith("#") else None
        if marker:
            line = int(marker[1])
            file = marker[2].replace('\\"', '"').replace("\\\\", "\\")
            own = "3" not in marker[3].split() and not file.startswith(("<", *OWN))
            files |= {file} if own else set()
            continue
        if content.strip() and (own or file in files):
            expanded = [part for part in expanded if part[1:3] == (file, line)] + [((row,), file, line, content)]
            if own or (found and found[-1][1:3] == (file, line)):
                joined = [found.pop()] if found and not own else []
                joined += expanded
                found.append((sum((part[0] for part in joined), ()), file, line, " ".join(part[3] for part in joined)))
                expanded = []
        line += 1
    return found


def asks(text):
    """Whether a file of the program names the macro."""
    for file in {entry[1] for entry in own_lines(text)}:
        source_line(file, 1)
        if any("__CUDA_ARCH_" in line for line in SOURCES[file]):
            return True
    return False


def states(text, lines):
    """Of each line, and behind the last: (scope, whose code) where it begins."""
    tokens = [(where.token.file, where.token.line, (where.scope, where.code)) for where in Rewriter(text, False).walk()]
    found, at, last = [], 0, ("namespace", None)
    for _, file, line, _ in lines:
        ahead = next((i for i in range(at, min(at + 400, len(tokens))) if tokens[i][:2] == (file, line)), None)
        if ahead is not None:
            at, last = ahead, tokens[ahead][2]
        found.append(last)
    return [*found, ("namespace", None)]


def stretches(lines, begin, end):
    """[(begin, end)] of lines between which no directive stands."""
    found = []
    for at in range(begin, end):
        _, file, line, _ = lines[at]
        joins = found and lines[at - 1][1] == file and lines[at - 1][2] <= line and not any(
            source_line(file, between).lstrip().startswith("#") for between in range(lines[at - 1][2] + 1, line))
        if joins:
            found[-1] = (found[-1][0], at + 1)
        else:
            found.append((at, at + 1))
    return found


def words_of(lines):
    return set(re.findall(r"__\w+__", " ".join(entry[3] for entry in lines)))


def is_for_device(state, lines):
    """Whether the device pass decides about these lines."""
    scope, code = state
    if scope == "function":
        return code == "device"
    words = words_of(lines)
    return bool({"__device__", "__global__"} & words) and "__host__" not in words


def merge(host, device):
    """The text, and [(file, line)] where a __host__ __device__ function takes the host's side."""
    a, b = own_lines(host), own_lines(device)
    rows, of = host.split("\n"), states(host, a)
    before, notes = {}, []

    def note(state, lines):
        if state == ("function", "both") or {"__host__", "__device__"} <= words_of(lines):
            notes.append(lines[0][1:3])

    matcher = SequenceMatcher(None, [entry[1:] for entry in a], [entry[1:] for entry in b], autojunk=False)
    for what, a_begin, a_end, b_begin, b_end in matcher.get_opcodes():
        if what == "equal":
            continue
        for begin, end in stretches(a, a_begin, a_end):
            if is_for_device(of[begin], a[begin:end]):
                for row in sum((entry[0] for entry in a[begin:end]), ()):
                    rows[row] = ""
            else:
                note(of[begin], a[begin:end])
        for begin, end in stretches(b, b_begin, b_end):
            _, file, line, _ = b[begin]
            # The line of the host's pass in front of which these stand.
            next_one = next((i for i in range(a_begin, a_end) if a[i][1] != file or a[i][2] >= line), a_end)
            if not is_for_device(of[next_one], b[begin:end]):
                note(of[next_one], b[begin:end])
                continue
            at_rows, *place, _ = a[next_one] if next_one < len(a) else ((len(rows) - 1,), *b[end - 1][1:])
            row = at_rows[0]
            inserted = [f'# {line} "{file}"\n{content}\n' for _, file, line, content in b[begin:end]]
            before[row] = before.get(row, "") + "".join(inserted) + f'# {place[1]} "{place[0]}"\n'
    return "\n".join(before.get(row, "") + content for row, content in enumerate(rows)), notes
