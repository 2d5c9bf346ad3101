# SPDX-License-Identifier: MIT
"""Files that are all written or none: an error or Ctrl-C leaves what was there before."""
import os


class Staging:
    """Within `with Staging() as files`, files are written beside their place; its end puts them there."""

    def __init__(self):
        self.moves = []

    def __enter__(self):
        return self

    def path(self, file):
        """Where to write what `file` will hold; with the same suffix."""
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_name(f".{os.getpid()}.{file.name}")
        if (beside, file) not in self.moves:  # written twice: the last one counts
            self.moves.append((beside, file))
        return beside

    def write_text(self, file, text):
        self.path(file).write_text(text)

    def __exit__(self, kind, error, trace):
        for beside, file in self.moves:
            if kind is None:
                os.replace(beside, file)
            else:
                beside.unlink(missing_ok=True)
