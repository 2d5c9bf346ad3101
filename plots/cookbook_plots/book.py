# SPDX-License-Identifier: MIT
"""What the sources say about the book: its chapters, and the identities of its levels."""
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/identity"))
from identity import Identities, program_of, read_lock, tokens_of, toolkit  # noqa: E402, F401
from tokens import forget_sources, sources, token_hash  # noqa: E402, F401


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


@cache
def identities(root=ROOT):
    """What says whether a result is of the sources as they are now."""
    files = [file for room in ("chapters", "library") for kind in ("cuh", "hpp")
             for file in (root / room).glob(f"*/*.{kind}")]
    return Identities((token_hash(file, root) for file in files), read_lock(root))
