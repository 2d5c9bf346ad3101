# SPDX-License-Identifier: MIT
"""Exit status 0 if the Python that runs this can draw the figures."""
import sys

import matplotlib  # noqa: F401

sys.exit(sys.version_info < (3, 10))
