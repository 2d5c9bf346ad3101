# SPDX-License-Identifier: MIT
"""How every figure looks: light and dark, readable in grey, safe for colour-blind readers."""
import matplotlib
import matplotlib.colors

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Okabe and Ito's palette; the lightest and darkest are left to text and background.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
MARKERS = ["o", "s", "^", "D", "p", "h", "v", "<", ">", "8", "d", "H"]
# Libraries: never solid, so that they differ from levels without colour, and each with its own dashes and marker.
LIBRARY_DASHES = [(0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 1.5, 1.5, 1.5))]
LIBRARY_MARKERS = ["X", "P", "*", "d", "<", "8"]

THEMES = {
    "light": {"background": "#ffffff", "text": "#1b1f24", "muted": "#57606a", "grid": "#d8dee4",
              "first": "#0072B2", "roof": "#1b1f24", "accent": "#D55E00",
              "libraries": ["#1b1f24", "#7B3F98", "#57606a"],
              "memories": {"dram": "#004C7F", "l2": "#00805F", "shared": "#CC79A7"}},
    "dark": {"background": "#0d1117", "text": "#e6edf3", "muted": "#9da7b3", "grid": "#30363d",
             "first": "#56B4E9", "roof": "#e6edf3", "accent": "#E69F00",
             "libraries": ["#e6edf3", "#C9A6E4", "#9da7b3"],
             "memories": {"dram": "#A9DAF9", "l2": "#2FB388", "shared": "#B5548C"}},
}


class Theme:
    """A theme in force while its `with` block runs."""

    def __init__(self, name):
        self.name = name
        self.__dict__.update(THEMES[name])

    def __enter__(self):
        self.context = plt.rc_context({
            "font.family": ["DejaVu Sans", "sans-serif"], "svg.fonttype": "none",
            "font.size": 10, "axes.titlesize": 12,
            "axes.titleweight": "bold", "axes.titlelocation": "left", "svg.hashsalt": "cookbook",
            "figure.facecolor": self.background, "axes.facecolor": self.background,
            "savefig.facecolor": self.background, "text.color": self.text,
            "axes.edgecolor": self.muted, "axes.labelcolor": self.text, "xtick.color": self.muted,
            "ytick.color": self.muted, "grid.color": self.grid, "grid.linewidth": 0.6,
            "axes.grid": True, "axes.axisbelow": True, "axes.spines.top": False,
            "axes.spines.right": False, "legend.frameon": False, "lines.linewidth": 1.6,
        })
        self.context.__enter__()
        return self

    def __exit__(self, *exception):
        plt.close("all")
        return self.context.__exit__(*exception)


CHARACTERS_PER_INCH = 15.5  # of the small line at the foot


def conditions(figure, theme, text, width=0.98):
    """The small lines at the foot: GPU, clock, date, commit. width: the fraction of the figure that they may take."""
    room = int(width * figure.get_figwidth() * CHARACTERS_PER_INCH)
    lines = []
    for part in text.split("\n"):
        line = ""
        for piece in part.split(" · "):
            longer = f"{line} · {piece}" if line else piece
            if line and len(longer) > room:
                lines.append(line)
                longer = piece
            line = longer
        lines.append(line)
    figure.text(0.008, 0.008, "\n".join(lines), color=theme.muted, fontsize=7.5, va="bottom", ha="left")


def of_series(order):
    """Colour and marker of the order-th level or run of a panel."""
    return COLOURS[order % len(COLOURS)], MARKERS[order % len(MARKERS)]


def library(theme, order):
    """How the curve of the order-th library of a panel looks."""
    return {"color": theme.libraries[order % len(theme.libraries)], "marker": LIBRARY_MARKERS[order % len(LIBRARY_MARKERS)],
            "linestyle": LIBRARY_DASHES[order % len(LIBRARY_DASHES)], "markersize": (7, 7, 10)[order % 3],
            "markeredgecolor": theme.background, "markeredgewidth": 0.6}


def lightness(colour):
    """CIE L* of a colour, 0 to 100: what is left of it in grey."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in matplotlib.colors.to_rgb(colour)]
    y = sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))
    return 116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y


def blend(colour, background, share):
    """`colour` at an opacity of `share` over `background`, as one opaque colour."""
    front, back = (matplotlib.colors.to_rgb(c) for c in (colour, background))
    return tuple(share * f + (1 - share) * b for f, b in zip(front, back))


def save(figure, files, folder, png_folder, name, theme, digest):
    """SVG for the repository, PNG for slides, in both themes. `digest` of the data tells later whether they changed."""
    figure.savefig(files.path(folder / f"{name}-{theme.name}.svg"),
                   metadata={"Date": None, "Identifier": f"sha256:{digest}"})
    figure.savefig(files.path(png_folder / f"{name}-{theme.name}.png"), dpi=130)
    plt.close(figure)


def save_all(draw, names, files, folder, png_folder, digest):
    """In both themes, what draw(what, theme) makes of each of `names`, name -> what; digest(what) is of its data."""
    for theme_name in THEMES:
        with Theme(theme_name) as theme:
            for name, what in names.items():
                save(draw(what, theme), files, folder, png_folder, name, theme, digest(what))
