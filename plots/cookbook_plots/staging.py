# SPDX-License-Identifier: MIT
"""Files that are all written or none: an error or Ctrl-C leaves what was there before."""
import os
import sys

from .results import ResultError


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


def ended(command, make, *arguments):
    """The exit status of make(*arguments): 2, after one line, where it refuses something or cannot write."""
    try:
        make(*arguments)
        return 0
    except ResultError as error:
        print(f"{command}: {error}", file=sys.stderr)
    except OSError as error:
        print(f"{command}: cannot write: {error}", file=sys.stderr)
    return 2
