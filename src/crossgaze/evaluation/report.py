"""An evaluation as JSON, with every query's rank and best answers, and read back from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from crossgaze.data.textfiles import read_json_text
from crossgaze.errors import FileFormatError, InputError
from crossgaze.evaluation.bootstrap import BootstrapConfig, Estimate, differences
from crossgaze.evaluation.evaluate import Evaluation, Fold, Protocol
from crossgaze.evaluation.papers import attention_rows, retrieval_rows
from crossgaze.evaluation.phrase_sums import PhraseSums
from crossgaze.evaluation.recall import Retrieval, fold_rows, rounded
from crossgaze.evaluation.tables import (
    Table,
    attention_table,
    papers_data,
    retrieval_table,
    same_data,
)

FORMAT, VERSION = "crossgaze-evaluation", 1
# What Python raises on JSON that is something else; numbers in it may have hundreds of digits.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


def to_dict(found: Evaluation, config: BootstrapConfig, *, queries: bool) -> dict[str, Any]:
    """Return an evaluation for JSON.

    Args:
        found: what was measured.
        config: how intervals were made.
        queries: whether each query's rank (1 is first) and best answers are part of it, and what
            attention did on each image.
    """
    captioned = found.captioned
    described: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "data": {
            "name": captioned.name,
            "splits": sorted(set(captioned.splits)),
            "images": len(captioned),
            "captions": len(captioned.captions),
        },
        "words": None
        if found.unknown is None
        else {"unknown": found.unknown[0], "all": found.unknown[1]},
        "bank": None
        if found.bank is None
        else {"images": found.bank[0], "captions": found.bank[1]},
        "bootstrap": {
            "resamples": config.resamples,
            "level": config.level,
            "seed": config.seed,
            "resampled": "images",
        },
        "protocols": [
            {
                "folds": len(protocol.folds),
                "figures": _estimates(protocol.figures),
                "by_fold": [rounded(fold.ranks.figures()) for fold in protocol.folds],
            }
            for protocol in found.protocols
        ],
        "attention": [
            {
                "family": family,
                "phrases": len(quality),
                "figures": _estimates(quality.estimates(config), 4),
                "left_out": list(quality.notes),
            }
            for family, quality in found.attention
        ],
        "notes": list(found.notes),
    }
    if queries:
        for protocol, entry in zip(found.protocols, described["protocols"], strict=True):
            entry["queries"] = _queries(found, protocol)
        for (_, quality), entry in zip(found.attention, described["attention"], strict=True):
            entry["by_image"] = PhraseSums.of(quality).to_dict()
    return described


def _estimates(figures: Any, digits: int = 2) -> dict[str, dict[str, float | None]]:  # noqa: ANN401
    return {name: figure.to_dict(digits) for name, figure in figures.items()}


def _queries(found: Evaluation, protocol: Protocol) -> dict[str, list[dict[str, Any]]]:
    """Return every image and every caption with its rank; 1 is first."""
    captioned = found.captioned
    images: list[dict[str, Any]] = []
    captions: list[dict[str, Any]] = []
    for fold in protocol.folds:
        first = (len(images), len(captions))
        for row, rank in enumerate(fold.ranks.text_ranks.tolist()):
            entry = {"image": captioned.images[first[0] + row], "rank": rank + 1}
            images.append(entry | _top_captions(fold, row, first[1]))
        for row, rank in enumerate(fold.ranks.image_ranks.tolist()):
            number = first[1] + row
            owner = captioned.images[captioned.image_of[number]]
            entry = {"caption": number, "text": captioned.captions[number], "image": owner}
            top = _top_images(found, fold, row, first[0])
            captions.append(entry | {"rank": rank + 1} | top)
    return {"images": images, "captions": captions}


def _top_captions(fold: Fold, row: int, first: int) -> dict[str, Any]:
    if fold.best_texts is None:
        return {}
    scores, rows = fold.best_texts
    pairs = zip(rows[row].tolist(), scores[row].tolist(), strict=True)
    return {"top": [{"caption": first + place, "score": _short(s)} for place, s in pairs]}


def _top_images(found: Evaluation, fold: Fold, row: int, first: int) -> dict[str, Any]:
    if fold.best_images is None:
        return {}
    scores, rows = fold.best_images
    names = (found.captioned.images[first + place] for place in rows[row].tolist())
    pairs = zip(names, scores[row].tolist(), strict=True)
    return {"top": [{"image": name, "score": _short(s)} for name, s in pairs]}


def _short(score: float) -> float:
    return float(f"{score:.6g}")


def read_ranks(path: str | Path) -> dict[int, tuple[tuple[str, ...], list[Retrieval]]]:
    """Read the ranks of every query back from a file that `crossgaze evaluate --out` wrote.

    Returns:
        For each number of folds, the images in order and the ranks of each fold.
    """
    file, text = Path(path), read_json_text(path, "a result of crossgaze evaluate --out")
    try:
        tree = json.loads(text)
        if tree["format"] != FORMAT or tree["version"] != VERSION:
            raise ValueError(f"it is {tree['format']!r} version {tree['version']!r}")
        return {int(entry["folds"]): _read(entry) for entry in tree["protocols"]}
    except UNREADABLE as error:
        raise FileFormatError(file, f"does not read as an evaluation: {error!r}") from None
    except InputError as error:
        raise FileFormatError(file, f"does not read as an evaluation: {error}") from None


def _read(entry: dict[str, Any]) -> tuple[tuple[str, ...], list[Retrieval]]:
    images = entry["queries"]["images"]
    captions = entry["queries"]["captions"]
    place = {image["image"]: row for row, image in enumerate(images)}
    owners = np.array([place[caption["image"]] for caption in captions], np.int64)
    text_ranks = np.array([int(image["rank"]) - 1 for image in images], np.int64)
    image_ranks = np.array([int(caption["rank"]) - 1 for caption in captions], np.int64)
    folds = []
    for start, stop in fold_rows(len(images), int(entry["folds"])):
        mine = (owners >= start) & (owners < stop)
        folds.append(Retrieval(text_ranks[start:stop], image_ranks[mine], owners[mine] - start))
    return tuple(place), folds


def against(
    found: Evaluation, path: str | Path, config: BootstrapConfig
) -> dict[int, dict[str, Estimate]]:
    """Return how much higher each figure is than in an earlier result, by number of folds."""
    earlier = read_ranks(path)
    out: dict[int, dict[str, Estimate]] = {}
    for protocol in found.protocols:
        folds = len(protocol.folds)
        if folds not in earlier:
            continue
        images, ranks = earlier[folds]
        if images != found.captioned.images:
            raise InputError(f"{path}: was measured on other images, wanted the same in order")
        out[folds] = differences(protocol.retrievals, ranks, config)
    if not out:
        raise InputError(f"{path}: has no protocol with as many folds as were measured now")
    return out


def tables(
    found: Evaluation, name: str, families: set[str], level: float, *, papers: bool = True
) -> list[Table]:
    """Return the tables for people: recalls a protocol, then attention.

    Args:
        found: what was measured.
        name: what the model is called.
        families: of its members, whose rows of the papers stand below.
        level: of the intervals.
        papers: whether the papers' rows are shown.
    """
    captioned = found.captioned
    splits = ", ".join(sorted(set(captioned.splits) - {""}))
    data = f"{captioned.name} {splits}".strip()
    made = []
    for protocol in found.protocols:
        folds, images = len(protocol.folds), len(captioned)
        size = f"{images:,} images" if folds == 1 else f"mean of {folds} x {images // folds:,}"
        where = papers_data(captioned.name, images, folds)
        rows = retrieval_rows(families, *where) if papers else []
        same = same_data(captioned.name, images, folds, captioned.splits)
        measured = [(name, f"{data}, {size}", protocol.figures)]
        made.append(
            retrieval_table(measured, rows, title=f"{data}: recall", same=same, level=level)
        )
    return made


def attention_tables(
    found: Evaluation, name: str, config: BootstrapConfig, *, papers: bool = True
) -> list[Table]:
    """Return the tables of attention, and the measures that the paper does not have as notes."""
    made = []
    captioned = found.captioned
    same = same_data(captioned.name, len(captioned), 1, captioned.splits)
    for family, quality in found.attention:
        figures = quality.estimates(config)
        rows = attention_rows({family}) if papers else []
        data = f"{found.captioned.name}, {len(quality):,} phrases"
        # An ensemble averages scores, not attention: this is one member's.
        what = name if found.models == 1 else f"{family} of {name}"
        table = attention_table(
            [(what, data, figures)],
            rows,
            title=f"{what}: attention",
            same=same,
            level=config.level,
        )
        notes = tuple(
            f"{label}: {_with_span(figures[measure])}" for measure, label in _OTHERS.items()
        )
        made.append(Table(table.title, table.header, table.rows, (*table.notes, *notes)))
    return made


_OTHERS = {
    "covered": "phrases that a region fits (only these count above)",
    "f1_all": "F1 with the others as 0",
    "f1_everything": "F1 of looking at every region",
    "pointing": "pointing game",
    "pointing_any_word": "pointing game, any word of the phrase",
    "pointing_chance": "pointing game at a random region",
}


def _with_span(figure: Estimate) -> str:
    span = "" if figure.low is None else f" ({figure.low:.3f}-{figure.high:.3f})"
    return f"{figure.value:.3f}{span}"
