#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds to Doxygen's own page header what the site needs: the switch between light and dark, and its script."""
import sys
from pathlib import Path

file = Path(sys.argv[1])
text = file.read_text()
extra = """<script type="text/javascript" src="$relpath^doxygen-awesome-darkmode-toggle.js"></script>
<script type="text/javascript">DoxygenAwesomeDarkModeToggle.init()</script>
<script type="text/javascript" src="$relpath^cookbook.js"></script>
"""
if "</head>" not in text:
    sys.exit(f"{file}: no </head>")
text = text.replace("</head>", extra + "</head>")
text = text.replace("$doxygenversion", "").replace("$generatedby", "")
file.write_text(text)
