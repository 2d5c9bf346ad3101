# SPDX-License-Identifier: MIT
"""What the sources say about the book: its chapters, and the identities of its levels."""
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/identity"))
from identity import Identities, program_of, read_lock, tokens_of, toolkit  # noqa: E402, F401
from tokens import forget_sources, sources, token_hash  # noqa: E402, F401


@dataclass(frozen=True)
class ChapterInfo:
    number: int
    folder: str  # "03_bank_conflicts"
    title: str  # as in its ladder.hpp

    @property
    def path(self):
        return ROOT / "chapters" / self.folder


def chapters(root=ROOT):
    """The table of contents, from chapters/CMakeLists.txt."""
    text = (root / "chapters/CMakeLists.txt").read_text()
    found = []
    for number, folder in re.findall(r"^cookbook_chapter\((\d+) (\S+)\)", text, re.MULTILINE):
        ladder = root / "chapters" / folder / "ladder.hpp"
        title = re.search(r'\.title\s*=\s*"([^"]+)"', ladder.read_text()) if ladder.exists() else None
        found.append(ChapterInfo(int(number), folder, title[1] if title else folder))
    return found


@lru_cache(maxsize=None)
def identities(root=ROOT):
    """What says whether a result is of the sources as they are now."""
    files = [*(root / "chapters").glob("*/*.cuh"), *(root / "chapters").glob("*/*.hpp")]
    return Identities((token_hash(file, root) for file in files), read_lock(root))
