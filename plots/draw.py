#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws what `./run N --explain --draw FOLDER` recorded: an SVG per request, beside its file.

    plots/draw.py FILE.json... [--out FOLDER]

Exit status 2 where a file is malformed, or where its addresses make other sectors or wavefronts than the tracer counted.
"""
import argparse
import sys
from pathlib import Path

from cookbook_plots.pictures import book
from cookbook_plots.staging import ended


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, help="folder of the pictures; that of the file")
    options = parser.parse_args(arguments)

    def draw():
        for file in options.files:
            folder = options.out or file.parent
            folder.mkdir(parents=True, exist_ok=True)
            for path in book.draw(file, folder):
                print(path)
    return ended("draw", draw)


if __name__ == "__main__":
    sys.exit(main())
