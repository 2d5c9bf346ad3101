# SPDX-License-Identifier: MIT
"""Exit status 0 if the Python that runs this can draw the figures; with --markdown: and read Markdown."""
import sys

import matplotlib  # noqa: F401

if "--markdown" in sys.argv:
    import markdown_it  # noqa: F401
sys.exit(sys.version_info < (3, 10))
