#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How fast each searcher gets within 2 % of the best: one panel a kernel.

    build/simt/chapter-11 replay --json searchers.json
    chapters/11_autotuning/plot_searchers.py searchers.json searchers.svg
"""
import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#000000"]  # told apart by everyone
STYLES = ["-", "--", "-.", ":", "-"]


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1]) as file:
        kernels = json.load(file)
    figure, axes = plt.subplots(1, len(kernels), figsize=(4.5 * len(kernels), 3.6), squeeze=False)
    for axis, (kernel, searchers) in zip(axes[0], kernels.items()):
        for (name, score), colour, style in zip(searchers.items(), COLOURS, STYLES):
            loss = [100 * (slowdown - 1) for slowdown in score["slowdown"]]
            axis.step(range(1, len(loss) + 1), loss, where="post", color=colour, linestyle=style,
                      label=f"{name} ({score['median_looks']:.0f} looks)")
        axis.axhline(2, color="0.6", linewidth=0.8)
        axis.set(title=kernel, xlabel="looks", ylim=(0, None))
        axis.legend(fontsize=7, title="median to stay within 2 %", title_fontsize=7)
    axes[0][0].set_ylabel("mean loss against the best, %")
    figure.tight_layout()
    figure.savefig(sys.argv[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
