# SPDX-License-Identifier: MIT
"""common/backend/simt/runtime/throw.cpp links with a C++ library of either kind, and sees who throws."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
class Throw(unittest.TestCase):
    def noted(self, *options):
        """How many exceptions were noted in a program of these options; None if it does not link."""
        with tempfile.TemporaryDirectory() as folder:
            built = subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-I", ROOT, *options,
                                    ROOT / "tests/ci/throws.cpp",
                                    ROOT / "common/backend/simt/runtime/throw.cpp", "-o", "main", "-ldl"],
                                   cwd=folder, capture_output=True)
            return None if built.returncode else subprocess.check_output(["./main"], cwd=folder, text=True)

    def test_each_library(self):
        wraps = ("-DCOOKBOOK_WRAPS_THROW=1", "-Wl,--wrap=__cxa_throw")
        self.assertEqual(self.noted("-static-libstdc++", *wraps), "2")
        self.assertIsNone(self.noted("-static-libstdc++"))  # what the build's check looks for
        shared = subprocess.check_output([os.environ.get("CXX", "g++"), "-print-file-name=libstdc++.so"], text=True)
        if "/" in shared:  # some compilers have no shared one
            self.assertEqual(self.noted(), "2")


if __name__ == "__main__":
    unittest.main()
