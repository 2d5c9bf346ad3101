# SPDX-License-Identifier: MIT
"""Figures and tables of the book, drawn from the results committed under plots/results/<gpu>/."""
