"""The learning curves of runs as a picture, from their logs or their summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crossgaze.errors import InputError, MissingExtraError
from crossgaze.training.logs import read_log

# Tell apart without colour, too: captions' recalls are whole lines, images' are dashed.
COLOURS = {"r1": "#0072b2", "r5": "#d55e00", "r10": "#009e73"}
# Okabe and Ito's colours for all kinds of sight, without their yellow, which is faint on white.
RUNS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKS = "osD^vPX*<"  # tell runs apart without colour
SIDES = {"i2t": ("-", "sentences"), "t2i": ("--", "images")}


def draw_curves(logs: Sequence[tuple[str, Path]], picture: Path) -> None:
    """Draw loss and figures on dev over the epochs of one or several runs.

    Of runs that match these are the recalls and their sum, of runs that answer the accuracies.

    Args:
        logs: a name and a `log.jsonl` for each run; with one run all six recalls are drawn, with
            several only the loss and the sum.
        picture: the file to write; its ending decides the format.
    """
    if not logs:
        raise InputError("logs: got none, wanted one or more")
    runs = [(name, read_log(path)) for name, path in logs]
    alone = len(runs) == 1
    figure = _figure(13.5 if alone else 9.5, 4.2)
    axes = figure.subplots(1, 3 if alone else 2)
    for number, (name, lines) in enumerate(runs):
        colour = RUNS[number % len(RUNS)]
        _draw_loss(axes[0], name, lines, colour)
        _draw_sum(axes[1], name, lines, colour, mark=True)
    axes[0].set(title="Training loss", xlabel="epoch", ylabel="loss of a batch", ylim=(0, None))
    answers = any("accuracy" in line["dev"] for line in _epochs(runs[0][1]))
    title, unit = ("Accuracy", "%") if answers else ("Sum of recalls", "rsum (of 600)")
    axes[1].set(title=f"{title} on dev", xlabel="epoch", ylabel=unit)
    if alone:
        (_draw_kinds if answers else _draw_recalls)(axes[2], runs[0][1])
        figure.suptitle(runs[0][0], fontsize=13)
    else:
        axes[1].legend(frameon=False, fontsize=9)
    for ax in axes:
        _plain(ax)
    figure.savefig(picture, dpi=130)


def draw_histories(
    runs: Sequence[tuple[str, Sequence[Mapping[str, float]]]],
    picture: Path,
    *,
    title: str = "",
    note: str = "",
) -> None:
    """Draw the sum of recalls on dev after each epoch, several runs in one small PNG.

    Args:
        runs: a name and a summary's `history` for each; runs of one name (its seeds) share a
            colour. The best epoch of each is ringed.
        picture: the file to write.
        title: above it.
        note: kept inside the file as its "Description".
    """
    if not runs:
        raise InputError("runs: got none, wanted one or more")
    figure = _figure(8.2, 3.9)
    ax = figure.subplots()
    names = list(dict.fromkeys(name for name, _ in runs))
    for number, name in enumerate(names):
        colour, mark = RUNS[number % len(RUNS)], MARKS[number % len(MARKS)]
        for seed, history in enumerate(found for its, found in runs if its == name):
            y = [figures["rsum"] for figures in history]
            label = name if not seed else "_nolegend_"
            x = range(1, len(y) + 1)
            ax.plot(x, y, color=colour, marker=mark, markersize=4, linewidth=1.3, label=label)
            if y:
                best = max(x, key=lambda epoch: y[epoch - 1])
                ring = {"marker": "o", "markersize": 10, "fillstyle": "none"}
                ax.plot(best, y[best - 1], color=colour, **ring)
    ax.set(title=title, xlabel="epoch", ylabel="rsum on dev (of 600)")
    ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    _plain(ax)
    # Not which version drew it: the same runs should give the same file.
    figure.savefig(picture, dpi=100, metadata={"Software": None, "Description": note})


def _figure(width: float, height: float) -> Any:  # noqa: ANN401 (the extra is not typed)
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("a picture of learning curves", "matplotlib", "train") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _plain(ax: Any) -> None:  # noqa: ANN401
    ax.grid(alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.get_major_locator().set_params(integer=True)


def _epochs(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if line["kind"] == "epoch"]


def _draw_loss(ax: Any, name: str, lines: Sequence[dict[str, Any]], colour: str) -> None:  # noqa: ANN401
    steps = [line for line in lines if line["kind"] == "step"]
    places = [line["at"] for line in steps]
    ax.plot(places, [line["loss"] for line in steps], color=colour, linewidth=1.4, label=name)


def _draw_sum(
    ax: Any,  # noqa: ANN401
    name: str,
    lines: Sequence[dict[str, Any]],
    colour: str,
    *,
    mark: bool,
) -> None:
    epochs = _epochs(lines)
    if not epochs:
        return
    x = [line["epoch"] for line in epochs]
    y = [line["dev"].get("rsum", line["dev"].get("accuracy")) for line in epochs]
    ax.plot(x, y, color=colour, marker="o", markersize=4, label=name)
    best = max(range(len(y)), key=y.__getitem__)
    if mark:
        ax.plot(x[best], y[best], marker="o", markersize=9, color=colour, fillstyle="none")
        ax.annotate(
            f"{y[best]:.1f}",
            (x[best], y[best]),
            xytext=(0, -16),
            textcoords="offset points",
            ha="center",
        )


def _draw_recalls(ax: Any, lines: Sequence[dict[str, Any]]) -> None:  # noqa: ANN401
    epochs = _epochs(lines)
    x = [line["epoch"] for line in epochs]
    for side, (style, asked) in SIDES.items():
        for cut, colour in COLOURS.items():
            y = [line["dev"][f"{side}_{cut}"] for line in epochs]
            label = f"R@{cut[1:]} of {asked}"
            ax.plot(x, y, style, color=colour, marker="o", markersize=3, label=label)
    ax.set(title="Recalls on dev", xlabel="epoch", ylabel="%", ylim=(0, 100))
    ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _draw_kinds(ax: Any, lines: Sequence[dict[str, Any]]) -> None:  # noqa: ANN401
    epochs = _epochs(lines)
    x = [line["epoch"] for line in epochs]
    names = [name for name in epochs[0]["dev"] if name != "accuracy"] or ["accuracy"]
    for name, colour in zip(names, COLOURS.values(), strict=False):
        y = [line["dev"][name] for line in epochs]
        label = name.replace("yes_no", "yes/no")
        ax.plot(x, y, color=colour, marker="o", markersize=3, label=label)
    ax.set(title="Accuracy on dev by answer", xlabel="epoch", ylabel="%", ylim=(0, 100))
    ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
