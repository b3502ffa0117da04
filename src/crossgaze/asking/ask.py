"""Ask a question about a photograph: file to regions to answers, with what each step looked at."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from crossgaze.devices import find_device
from crossgaze.errors import InputError
from crossgaze.evaluation.choices import best_answers, require_choices
from crossgaze.models.answerer import Answerer
from crossgaze.models.base import Model
from crossgaze.models.pieces import join_pieces, sum_of_pieces
from crossgaze.models.pretrained import load_answerer
from crossgaze.models.reading import read_words
from crossgaze.vision.photos import Photo, read_photo
from crossgaze.vision.settings import ExtractConfig
from crossgaze.vision.sources.base import RegionSource
from crossgaze.vision.sources.making import make_source

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Reply:
    """What a model answered, and what it looked at.

    Args:
        question: as it was asked.
        photo: the photograph, upright; in its own size, or as the regions' source saw it.
        answers: the likeliest answers with their probability, the likeliest first.
        words: (n,) the words that the model read, <start> and <end> among them; whole also
            where it read pieces of words (`crossgaze.models.pieces`).
        boxes: (k, 4) the regions, x1, y1, x2, y2 as shares of width and height.
        region_weights: (K, k) how much each step looked at each region; None if at none.
        word_weights: (K, n) how much each step looked at each word; None if at none.
        unknown: words that the model does not know.
    """

    question: str
    photo: Photo
    answers: tuple[tuple[str, float], ...]
    words: tuple[str, ...]
    boxes: Floats
    region_weights: Floats | None
    word_weights: Floats | None
    unknown: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""

        def rows(weights: Floats | None) -> list[list[float]] | None:
            return None if weights is None else np.round(weights, 5).tolist()

        return {
            "question": self.question,
            "answers": [{"answer": one, "probability": round(p, 5)} for one, p in self.answers],
            "words": list(self.words),
            "unknown": list(self.unknown),
            "boxes": np.round(self._pixels(), 1).tolist(),
            "regions_by_step": rows(self.region_weights),
            "words_by_step": rows(self.word_weights),
        }

    def _pixels(self) -> Floats:
        """Return the boxes in pixels of the photograph."""
        size = np.array([self.photo.width, self.photo.height] * 2, np.float32)
        return self.boxes * size


def shown_answer(answer: str) -> str:
    """Return an answer as people read it; DAQUAR writes "garbage_bin".

    Example:
        >>> shown_answer("garbage_bin")
        'garbage bin'
    """
    return answer.replace("_", " ")


def ask(
    model: Answerer | str | Path,
    image: str | os.PathLike[str],
    question: str,
    *,
    choices: Sequence[str] | None = None,
    top: int = 5,
    source: RegionSource | None = None,
    fit: str = "stretch",
    full_size: bool = True,
) -> Reply:
    """Ask a question about a photograph.

    Args:
        model: one that answers, its folder, or its name in the zoo.
        image: the photograph's file.
        question: in words.
        choices: the answers to choose from; any if not given.
        top: how many answers to return.
        source: makes the regions; what the model was trained with if not given (`source_of`).
        fit: how the photograph is brought to the source's size; of that source, if it is given.
        full_size: whether the reply has the photograph in its own size, for `draw_reply`; a large
            one takes longer to decode than its answer.

    Example:
        ```python
        reply = crossgaze.ask("my-rdan", "kitchen.jpg", "what is on the table?")
        reply.answers[0]
        ```
    """
    model = model if isinstance(model, Answerer) else load_answerer(model)
    pieces, unknown = require_askable(model, question, choices)
    # First, so that a file that is none is refused before anything is loaded.
    photo = read_photo(image) if full_size else None
    if source is None:
        source, fit = source_of(model)
    if source.width != model.config.region_width:
        raise InputError(
            f"source: makes regions of width {source.width}, the model takes "
            f"{model.config.region_width}"
        )
    small = read_photo(image, source.size, fit=fit, multiple=source.multiple)
    (found,) = source([small], [Path(image).name], lambda: None)
    with torch.no_grad():
        answered = model.answer(found.features[None], [question])
    seen = answered.attention
    words, starts = join_pieces(pieces)
    word_weights = None if seen.words is None else seen.words[0].float().numpy(force=True)
    return Reply(
        question=question,
        photo=photo or small,
        answers=best_answers(model.answers, answered.logits[0].float().cpu(), top, choices or ()),
        words=words,
        boxes=found.boxes,
        region_weights=None if seen.regions is None else seen.regions[0].float().numpy(force=True),
        word_weights=None if word_weights is None else sum_of_pieces(word_weights, starts),
        unknown=unknown,
    )


def require_askable(
    model: Answerer, question: str, choices: Sequence[str] | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words that are read, and those of them that the model does not know.

    A question without any known word is refused, and so are choices that are no answer.
    """
    if choices is not None:
        require_choices(model.answers, choices)
    return read_words(model, "question", question)


def source_of(
    model: Model,
    *,
    detector: str = "objects",
    weights: str | Path | None = None,
    device: str = "auto",
) -> tuple[RegionSource, str]:
    """Return what makes the regions that a model was trained with, and how photographs fit it.

    Args:
        model: trained by `crossgaze train`, which notes how the store's regions were made.
        detector: the region model's folder, if it was not the one that ships.
        weights: of VGG-19, if that was the backbone.
        device: where it computes.
    """
    made = model.origin.get("regions")
    if not isinstance(made, Mapping) or "regions" not in made:
        raise InputError(
            "model: does not say what its regions were made by, so no photograph can be read; "
            "give regions or a source"
        )
    kind, fit = str(made["regions"]), str(made.get("fit", "stretch"))
    whole, geometry = (bool(made.get(key, False)) for key in ("whole", "geometry"))
    if kind == "grid":
        config = ExtractConfig(
            regions="grid",
            whole=whole,
            geometry=geometry,
            backbone=str(made["backbone"]),
            weights=None if weights is None else Path(weights),
            grid=int(made["grid"]),
            size=int(made["size"]),
            fit="keep" if fit == "keep" else "stretch",
        )
    elif kind in ("objects", "selective-search"):
        config = ExtractConfig(
            regions=kind,  # type: ignore[arg-type]
            whole=whole,
            geometry=geometry,
            detector=detector,
        )
    else:
        raise InputError(f"model: was trained on regions from {kind!r}, which are not made here")
    source = make_source(config, find_device(device))
    # A store's head is JSON, and so is a model's: compare what JSON makes of both.
    now = {**source.made_by, "fit": fit}
    differ = sorted(key for key in now if key in made and now[key] != made[key])
    if differ:
        key = differ[0]
        raise InputError(
            f"model: was trained on regions with {key} {made[key]!r}, here it is {now[key]!r}; "
            "give the one it was trained with (--detector, --weights)"
        )
    return source, fit
