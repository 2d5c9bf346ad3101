# SPDX-License-Identifier: MIT
"""Every figure of the committed results, printed in grey: curves in one panel must differ without colour."""
import itertools
import unittest
from unittest import mock

from cookbook_plots import book, cli, style
from cookbook_plots.results import RESULTS, Results, gpus

LIGHTNESS = 12  # steps of CIE L* that an eye tells apart on paper
WIDER = 1.4


def look(line, background):
    """What is left of a line in grey: lightness, dashes, marker, width."""
    colour = style.blend(line.get_color(), background, 1 if line.get_alpha() is None else line.get_alpha())
    dashes = line._unscaled_dash_pattern[1] if line.get_linestyle() != "None" else "none"
    return style.lightness(colour), tuple(dashes or ()), line.get_marker(), line.get_linewidth()


def alike(one, other):
    return (abs(one[0] - other[0]) < LIGHTNESS and one[1:3] == other[1:3]
            and max(one[3], other[3]) < WIDER * min(one[3], other[3]))


def twins(figure, theme):
    """Pairs of names whose lines cannot be told apart in grey, of all panels. Lines of one name are one thing."""
    found = []
    for axes in figure.axes:
        named = [line for line in axes.lines if not line.get_label().startswith("_")]
        found += [(a.get_label(), b.get_label()) for a, b in itertools.combinations(named, 2)
                  if a.get_label() != b.get_label() and alike(look(a, theme.background), look(b, theme.background))]
    return found


class Grey(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folders = gpus(RESULTS)
        if not folders:
            raise unittest.SkipTest("no results are committed")
        cls.results, cls.chapters = Results(folders[0]), book.chapters()
        cls.names = cli.figure_names(cls.results, cls.chapters)

    def draw(self, kinds):
        """(name, theme, figure) of every figure of these kinds, in both themes."""
        for theme_name in style.THEMES:
            with style.Theme(theme_name) as theme:
                for name, (kind, what) in self.names.items():
                    if kind in kinds:
                        yield name, theme, cli.figure_of(kind, what, self.results, self.chapters, theme)
                        style.plt.close("all")

    def test_lines_of_a_panel_differ(self):
        compared = 0
        for name, theme, figure in self.draw({kind for kind, _ in self.names.values()}):
            with self.subTest(figure=name, theme=theme.name):
                self.assertEqual(twins(figure, theme), [])
            compared += sum(not line.get_label().startswith("_") for axes in figure.axes for line in axes.lines)
        self.assertGreater(compared, 2 * len(self.names), "lines lost their names")

    def found(self, *kinds):
        return {pair for _, theme, figure in self.draw(kinds) for pair in twins(figure, theme)}

    def test_planted_levels_alike_are_found(self):
        # Blue and vermillion of one lightness, and one marker: fine on a screen, the same on paper.
        with mock.patch.multiple(style, COLOURS=["#0072B2", "#A94A00"] * 3, MARKERS=["o"] * 12):
            self.assertIn(("on_chip", "signals"), self.found("sweep"))
            self.assertIn(("chapter 2", "chapter 4"), self.found("book"))

    def test_planted_libraries_alike_are_found(self):
        with mock.patch.multiple(style, LIBRARY_DASHES=[(0, (5, 2))], LIBRARY_MARKERS=["x"]), \
                mock.patch.dict(style.THEMES["light"], libraries=["#57606a", "#7B3F98", "#57606a"]):
            self.assertIn(("cuDNN", "Triton"), self.found("sweep"))
            self.assertIn(("cuDNN", "FlashAttention-2"), self.found("attention"))

    def test_a_planted_roof_like_the_library_is_found(self):
        with mock.patch.object(style, "LIBRARY_DASHES", ["-"]), \
                mock.patch.dict(style.THEMES["light"], accent="#1b1f24"):
            self.assertTrue(any("roof" in one + other for one, other in self.found("ladder")))

    def test_lines_across_bars_have_a_rim(self):
        """A bar may be as dark as the line of a library that crosses it."""
        for name, theme, figure in self.draw({"ladder"}):
            lines = figure.axes[0].lines
            rims = {line.get_xdata()[0] for line in lines if line.get_color() == theme.background
                    and line.get_linewidth() >= 4}
            for line in lines:
                if not line.get_label().startswith("_"):
                    self.assertIn(line.get_xdata()[0], rims, f"{name}: {line.get_label()}")

    def test_lightness(self):
        self.assertAlmostEqual(style.lightness("#000000"), 0)
        self.assertAlmostEqual(style.lightness("#ffffff"), 100, places=3)
        self.assertAlmostEqual(style.lightness("#777777"), 50, places=0)


if __name__ == "__main__":
    unittest.main()
