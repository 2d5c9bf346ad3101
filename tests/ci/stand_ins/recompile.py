# SPDX-License-Identifier: MIT
"""recompile.py where one of nine files does not compile for cc 8.0."""
import sys

bad = sys.argv[1].endswith("80")
print(f"{9 - bad} files compile, {int(bad)} do not")
sys.exit(bad)
