# SPDX-License-Identifier: MIT
"""Pictures of what a warp does: data (docs/pictures.md), geometry, SVG. A module per kind of picture."""
