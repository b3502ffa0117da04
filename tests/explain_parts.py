"""A small model of every family, a photograph of four cells, and explanations of both."""

from dataclasses import replace

import numpy as np
import torch

from crossgaze.explain.explaining import explain
from crossgaze.explain.explanation import Explanation
from crossgaze.models.families import FAMILIES, family
from crossgaze.models.text import TextConfig
from crossgaze.vision.photos import Photo
from search_parts import WIDTH, WORDS, CellSource, make_photo

SENTENCE = "a red dog runs ."


def matcher(kind="scan", seed=0, **options):
    """Return a model that takes the features of `CellSource`."""
    torch.manual_seed(seed)
    made, config = family(kind)
    text = TextConfig(kind="lstm" if kind == "m-dan" else "gru", word_size=4)
    options = {"heads": 2} | options if kind == "mmca" else options
    return made(config(region_width=WIDTH, size=8, text=text, **options), WORDS).eval()


def explained(folder, kind="scan", sentence=SENTENCE, name=None, **options):
    """Explain one of the small models on a photograph that is written to `folder`."""
    photo = make_photo(folder / "photo.png", 1)
    return explain(matcher(kind, **options), photo, sentence, source=CellSource(), name=name)


def made_up(weights=((0.1, 0.9), (0.5, 0.5)), words=("red", "dog"), size=(80, 40), **options):
    """Return an explanation without any model: grey, left and right half, two words."""
    seen = Explanation(
        sentence=" ".join(words),
        model="made up",
        family="scan",
        score=0.5,
        photo=Photo(np.full((size[1], size[0], 3), 200, np.uint8), *size),
        words=tuple(words),
        boxes=np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1]], np.float32),
        labels=("red cat", ""),
        names=("t-i",),
        weights=np.array([weights], np.float32),
        region_weights=None,
        word_weights=None,
        meaning="each word looks",
    )
    return replace(seen, **options)


__all__ = ["FAMILIES", "SENTENCE", "explained", "made_up", "matcher"]
