# SPDX-License-Identifier: MIT
"""What the sources say about the book: its chapters, and the hash of a level's source."""
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class ChapterInfo:
    number: int
    folder: str  # "03_bank_conflicts"
    title: str

    @property
    def path(self):
        return ROOT / "chapters" / self.folder


def chapters(root=ROOT):
    """The table of contents, chapters/contents.txt."""
    lines = (line.split(None, 2) for line in (root / "chapters/contents.txt").read_text().splitlines())
    return [ChapterInfo(int(number), folder, title) for number, folder, title in lines]


def without_timeline_marks(text):
    """The text without the marks of common/device/timeline.cuh, which change no machine code."""
    return re.sub(rb'^( *timeline::[^;\n]*;|#include "common/device/timeline.cuh")\n', b"", text, flags=re.MULTILINE)


def source_hash(file, root=ROOT):
    """SHA-256 of a source and of the project headers it includes, each once and in order.

    The same as cookbook::source_hash (common/harness/result.cpp)."""
    seen, digest = set(), hashlib.sha256()

    def add(path):
        path = path.resolve()
        if path in seen:
            return
        seen.add(path)
        if not path.is_file():
            return
        text = without_timeline_marks(path.read_bytes())
        digest.update(text)
        for line in text.split(b"\n"):
            opening = line.find(b'#include "')
            if opening < 0:
                continue
            name = line[opening + 10:].split(b'"')[0].decode()
            beside = path.parent / name
            add(beside if beside.exists() else root / name)

    add(Path(file))
    return digest.hexdigest()


@cache
def current_hashes(root=ROOT):
    """The hashes that the sources of all levels have now."""
    files = [*(root / "chapters").glob("*/*.cuh"), *(root / "chapters").glob("*/*.hpp")]
    return frozenset(source_hash(file, root) for file in files)
