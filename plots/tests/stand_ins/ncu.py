#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints what ncu would on a GPU machine, and writes the CSV where it is asked to."""
import os
import sys
from pathlib import Path

few = "sm__ops" not in " ".join(sys.argv)
text = os.environ["FAKE_CSV"] if few or not os.environ.get("FAKE_MISSING") else "==ERROR== Failed to find metric sm__ops"
Path(sys.argv[sys.argv.index("--log-file") + 1]).write_text(text)
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write(os.getcwd() + " " + " ".join(sys.argv[1:]) + "\n")
sys.exit(int(os.environ.get("FAKE_STATUS", "0")))
