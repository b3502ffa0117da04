"""Measured figures in a table beside the papers', with whose they are in every row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from crossgaze.evaluation.bootstrap import Estimate
from crossgaze.evaluation.papers import COCO, F30K, PaperRow
from crossgaze.evaluation.recall import FIGURES

MEASURED, PRINTED = "measured here", "the paper's"
HEADER = (
    *("whose", "what", "tested on"),
    *("i2t R@1", "R@5", "R@10", "median"),
    *("t2i R@1", "R@5", "R@10", "median", "rsum"),
)
ATTENTION_HEADER = ("whose", "what", "tested on", "precision", "recall", "F1")
ATTENTION = ("precision", "recall", "f1")


@dataclass(frozen=True)
class Table:
    """A table for people; `notes` stand below it.

    Args:
        title: above it.
        header: the names of the columns.
        rows: the cells.
        notes: sentences.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """Return it for a page of documentation.

        Example:
            >>> print(Table("", ("a", "b"), (("1", "2"),)).markdown())
            | a | b |
            | --- | --- |
            | 1 | 2 |
        """
        rows = [self.header, ("---",) * len(self.header), *self.rows]
        lines = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)])


def papers_data(name: str, images: int, folds: int) -> tuple[str, str]:
    """Return the papers' set and protocol that come nearest to what was measured.

    Args:
        name: of the measured data set.
        images: how many.
        folds: in how many folds they were searched.

    Example:
        >>> papers_data("coco_precomp", 5000, 5), papers_data("flickr8k", 1000, 1)
        (('MS-COCO', '5 x 1K'), ('Flickr30K', '1K'))
    """
    if "coco" not in name.lower():
        return F30K, "1K"
    return (COCO, "5K") if folds == 1 and images > 1000 else (COCO, "5 x 1K")


def same_data(name: str, images: int, folds: int, splits: Iterable[str]) -> bool:
    """Tell whether the papers' rows are on the very set and protocol that was measured.

    Args:
        name: of the measured data set.
        images: how many.
        folds: in how many folds they were searched.
        splits: of the images; "" where they have none. The papers' are of test.
    """
    if not all(split == "" or split.startswith("test") for split in splits):
        return False
    known = {
        F30K: re.search(r"f(lickr)?_?30k", name.lower()) is not None,
        COCO: "coco" in name.lower(),
    }
    data, protocol = papers_data(name, images, folds)
    sizes = {"1K": (1000, 1), "5 x 1K": (5000, 5), "5K": (5000, 1)}
    return known[data] and sizes[protocol] == (images, folds)


def retrieval_table(
    measured: Sequence[tuple[str, str, Mapping[str, Estimate]]],
    papers: Sequence[PaperRow],
    *,
    title: str = "",
    same: bool = False,
    level: float = 0.95,
) -> Table:
    """Return measured figures, their intervals, and the papers' rows below.

    Args:
        measured: what, on which data, and its figures.
        papers: rows to stand below.
        title: above it.
        same: whether the papers' rows are on the very same data and protocol.
        level: of the intervals.
    """
    rows = _rows(measured, papers, FIGURES, 1, level)
    return Table(title, HEADER, rows, _notes(papers, same))


def attention_table(
    measured: Sequence[tuple[str, str, Mapping[str, Estimate]]],
    papers: Sequence[PaperRow],
    *,
    title: str = "",
    same: bool = False,
    level: float = 0.95,
) -> Table:
    """Return attention precision, recall and F1 with the papers' rows below (0 to 1)."""
    rows = _rows(measured, papers, ATTENTION, 3, level)
    return Table(title, ATTENTION_HEADER, rows, _notes(papers, same))


def _rows(
    measured: Sequence[tuple[str, str, Mapping[str, Estimate]]],
    papers: Sequence[PaperRow],
    names: Sequence[str],
    digits: int,
    level: float,
) -> tuple[tuple[str, ...], ...]:
    rows: list[tuple[str, ...]] = []
    for what, data, figures in measured:
        rows.append((MEASURED, what, data, *(_cell(figures[name], digits) for name in names)))
        if any(figures[name].low is not None for name in names):
            spans = (_span(figures[name], digits) for name in names)
            rows.append(("", f"  {level:.0%} interval".replace("%", " %"), "", *spans))
    return (*rows, *(_paper_row(row, names, digits) for row in papers))


def _notes(papers: Sequence[PaperRow], same: bool) -> tuple[str, ...]:
    if not papers:
        return ()
    whose = f"Rows marked '{PRINTED}' are printed in the papers and were not measured here"
    where = "" if same else ", and on other data or another protocol than the measured ones"
    return (f"{whose}{where}.",)


def _paper_row(row: PaperRow, names: Sequence[str], digits: int = 1) -> tuple[str, ...]:
    figures = row.figures | ({} if row.rsum is None else {"rsum": row.rsum})
    cells = (_number(figures[name], name, digits) if name in figures else "-" for name in names)
    trained = f", trained on {row.trained}" if row.trained else ""
    where = f"{row.data} {row.protocol}{trained}"
    return (PRINTED, f"{row.source}: {row.name}", where, *cells)


def _number(value: float, name: str, digits: int) -> str:
    return f"{value:g}" if name.endswith("median") else f"{value:.{digits}f}"


def _cell(figure: Estimate, digits: int = 1) -> str:
    return f"{figure.value:.{digits}f}"


def _span(figure: Estimate, digits: int = 1) -> str:
    if figure.low is None or figure.high is None:
        return "-"
    return f"{figure.low:.{digits}f}-{figure.high:.{digits}f}"


def change_table(folds: int, name: str, change: Mapping[str, Estimate]) -> Table:
    """Return how much higher each figure is than in an earlier result.

    Args:
        folds: of the protocol.
        name: of the earlier result.
        change: the differences with their intervals.
    """
    what = "all at once" if folds == 1 else f"mean of {folds} folds"
    rows = (
        (MEASURED, "difference", what, *(f"{change[name].value:+.1f}" for name in FIGURES)),
        ("", "  interval", "", *(_signed(change[name]) for name in FIGURES)),
    )
    note = "An interval without 0 is more than the luck of the test set; medians: lower is better."
    return Table(f"against {name}", HEADER, rows, (note,))


def _signed(figure: Estimate) -> str:
    if figure.low is None or figure.high is None:
        return "-"
    return f"{figure.low:+.1f} to {figure.high:+.1f}"
