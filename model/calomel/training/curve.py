"""The loss curves of a run, drawn from its log."""

from __future__ import annotations

import json
from pathlib import Path

from calomel.training.branch import GROUPS


def draw_curves(log: Path, image: Path) -> None:
    """Draw the parts of the loss over rows, training and held-out, from the JSONL `log` as a PNG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    training = [entry for entry in entries if "held_out" not in entry]
    held_out = [entry for entry in entries if "held_out" in entry]
    figure, axes = plt.subplots(figsize=(9, 5))
    for number, group in enumerate((*GROUPS, "edit_causal", "edit_canvas")):
        for part, style in ((training, "-"), (held_out, "o")):
            axes.plot(
                [entry["rows"] / 1e6 for entry in part if group in entry],
                [entry[group] for entry in part if group in entry],
                style,
                color=f"C{number}",
                markersize=4,
                linewidth=1,
                label=group if style == "-" else f"{group}, held out",
            )
    axes.set(xlabel="million rows", ylabel="cross-entropy, nats a token", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(ncols=2, fontsize=8)
    figure.savefig(image, dpi=110, bbox_inches="tight")
    plt.close(figure)
