#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The map of the rooms: docs/rooms.json says which folder may include which, docs/architecture.md shows it.

    rooms.py            names every include that crosses a wall, and every allowed dependency that nothing uses
    rooms.py --write    writes the map into docs/architecture.md again

A room is a folder; a file belongs to the room with the longest matching path. Rooms stand from top to
bottom: each includes only rooms below it, except those that it names under `also`, with a reason. A room
with `expected` need not have files yet.
"""
import ast
import json
import re
import subprocess
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
SOURCES = ("*.hpp", "*.cpp", "*.cu", "*.cuh", "*.h", "*.inc", "*.py")
PYTHON_FOLDERS = ("plots", "docs", "tools", "tools/identity", "tools/grading", "tools/exercises", "tools/slurm", "tests", "tests/ci")  # in which scripts look for modules
MARKS = "<!-- map -->", "<!-- /map -->"


def read(root=ROOT):
    return {room.pop("room"): room for room in json.loads((root / "docs/rooms.json").read_text())["rooms"]}


def files_of(root, *globs, new=True):
    """The files of the repository that match, with `new` also those that are not committed yet."""
    listed = subprocess.run(["git", "ls-files", "-z", *(["-co", "--exclude-standard"] if new else []), "--", *globs], cwd=root,
                            check=True, capture_output=True, text=True).stdout
    return [root / name for name in listed.split("\0") if name and (root / name).is_file()]


def room_of(name, rooms):
    """The room of a file, or None where it is in none."""
    return max((room for room in rooms if name.startswith(room + "/")), key=len, default=None)


def allowed(rooms, one, other):
    return one == other or {"*", other} & {*rooms[one]["includes"], *rooms[one].get("also", ())}


def includes(file, name, text, root=ROOT):
    """(line, path from the root) of what a file includes or imports of the project."""
    if name.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            modules = ([alias.name for alias in node.names] if isinstance(node, ast.Import) else
                       [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else [])
            for module in modules:
                places = (root / folder / module.split(".")[0] for folder in PYTHON_FOLDERS)
                found = [place for place in (file.parent / module.split(".")[0], *places)
                         if place.with_suffix(".py").is_file() and place.with_suffix(".py") != file
                         or (place / "__init__.py").is_file()]
                if found:
                    yield node.lineno, found[0].relative_to(root).as_posix() + "/"
        return
    for match in INCLUDE.finditer(text):
        if not (file.parent / match[1]).is_file():  # one beside it is of its own room
            yield text.count("\n", 0, match.start()) + 1, match[1]


def dependencies(root=ROOT, rooms=None):
    """{(room, room that it includes): where first}, and the sources that are in no room."""
    rooms = rooms or read(root)
    found, homeless, lived_in = {}, [], set()
    for file in files_of(root, *SOURCES):
        name = file.relative_to(root).as_posix()
        room = room_of(name, rooms)
        if room is None:
            homeless.append(name)
            continue
        lived_in.add(room)
        for line, target in includes(file, name, file.read_text(), root):
            other = room_of(target, rooms)
            if other and other != room:
                found.setdefault((room, other), f"{name}:{line}")
    return found, homeless, lived_in


def crossed(text, name, root=ROOT, rooms=None):
    """What a file called `name` (from the root) includes across a wall: [(line, include)]."""
    rooms = rooms or read(root)
    room = room_of(name, rooms)
    if room is None:
        return []
    return [(line, target) for line, target in includes(root / name, name, text, root)
            if (other := room_of(target, rooms)) and not allowed(rooms, room, other)]


def problems(rooms, found, homeless, lived_in):
    order = {room: at for at, room in enumerate(rooms)}
    out = [f"{name}: in no room" for name in homeless]
    for (one, other), where in found.items():
        if not allowed(rooms, one, other):
            out.append(f"{where}: {one} includes {other}, which docs/rooms.json does not allow")
    for one, room in rooms.items():
        if one not in lived_in:
            if not room.get("expected"):
                out.append(f"{one}: a room without a source")
            continue
        for other in [*room["includes"], *room.get("also", ())]:
            if other == "*":
                continue
            if other not in rooms:
                out.append(f"{one}: includes {other}, which is no room")
            elif other in lived_in and (one, other) not in found:
                out.append(f"{one}: nothing in it includes {other}, which docs/rooms.json allows")
        for other in room["includes"]:
            if other in order and order[other] < order[one]:
                out.append(f"{one}: {other} stands above it; give the reason under `also`")
    return out


def map_text(rooms, found, lived_in):
    """The map: a row per room, from top to bottom, with what it includes."""
    below = defaultdict(list)
    for one, other in found:
        below[one].append(other)
    rows = ["| room | holds | includes |", "|---|---|---|"]
    for name, room in rooms.items():
        if name in lived_in:
            names = ["everything"] if "*" in room["includes"] else \
                [f"`{other}`" + (" †" if other in room.get("also", ()) else "") for other in rooms if other in below[name]]
            rows.append(f"| `{name}` | {room['holds']} | {', '.join(names) or '-'} |")
    reasons = [textwrap.fill(f"- `{name}` includes `{other}`: {why}", 100, subsequent_indent="  ") for name, room in rooms.items() if name in lived_in
               for other, why in room.get("also", {}).items() if other in lived_in]
    return "\n".join([MARKS[0], "", *rows, *(["", "† Upwards, with a reason:", "", *reasons] if reasons else []), "", MARKS[1]])


def with_map(page, text):
    before, rest = page.split(MARKS[0])
    return before + text + rest.split(MARKS[1])[1]


def main(arguments):
    rooms = read()
    state = dependencies(rooms=rooms)
    page = ROOT / "docs/architecture.md"
    new = with_map(page.read_text(), map_text(rooms, state[0], state[2]))
    found = problems(rooms, *state)
    if arguments == ["--write"]:
        page.write_text(new)
    elif new != page.read_text():
        found.append("docs/architecture.md: its map differs (rooms.py --write)")
    print("\n".join(found) or f"{len(state[2])} rooms, {len(state[0])} dependencies")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
