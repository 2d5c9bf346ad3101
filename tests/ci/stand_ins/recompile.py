# SPDX-License-Identifier: MIT
"""recompile.py where one of nine files does not compile for cc 8.0, and a kernel spills 8 bytes on sm_90a."""
import re
import sys

bad = sys.argv[1].endswith("80")
name = re.search(r"sm_\w+$", sys.argv[1])[0]
spilled = 8 * (name == "sm_90a")
with open(sys.argv[sys.argv.index("--log") + 1], "w") as log:
    print(f"ptxas info    : Compiling entry function '_Z4lastPf' for '{name}'\n"
          f"    {spilled} bytes stack frame, {spilled} bytes spill stores, {spilled} bytes spill loads\n", file=log)
print(f"{9 - bad} files compile, {int(bad)} do not")
sys.exit(bad)
