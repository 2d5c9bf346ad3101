#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of the READMEs from the committed results; --check only compares.

Needs nothing but Python. `./run plots` does this and draws the figures."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cookbook_plots.cli import main  # noqa: E402

sys.exit(main(["--tables-only", *sys.argv[1:]]))
