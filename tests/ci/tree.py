# SPDX-License-Identifier: MIT
"""Tests with a folder of their own."""
import contextlib
import io
import subprocess
import tempfile
import unittest
from pathlib import Path


class Tree(unittest.TestCase):
    """An empty folder, `root`, for each test."""
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, name, text):
        """A file below the folder, and its path."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def script(self, name, text):
        """A program of the shell."""
        self.write(name, f"#!/bin/sh\n{text}\n").chmod(0o755)

    def git(self, *arguments):
        return subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True, text=True).stdout


def said(call, *arguments):
    """(what a call returns, all that it prints)."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        return call(*arguments), out.getvalue()
