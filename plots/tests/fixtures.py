# SPDX-License-Identifier: MIT
"""What several tests of the plots need: a folder of their own, and what a command prints."""
import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path


class Folder(unittest.TestCase):
    """An empty folder, `folder`, for each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name, content):
        """A file below the folder, and its path; what is no text is written as JSON."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return file

    def program(self, name, text):
        """The same, executable."""
        self.file(name, text).chmod(0o755)


def said(call, *arguments):
    """(what a call returns, what it prints, what it says on stderr)."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        found = call(*arguments)
    return found, out.getvalue(), err.getvalue()
