"""A photograph, a sentence and a model: where did it look?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from crossgaze.data.regions.store import RegionStore
from crossgaze.errors import InputError
from crossgaze.explain.explanation import Explanation, is_word
from crossgaze.explain.regions import make_regions, stored_regions
from crossgaze.models.cross_attention import clean_fragments, relevance
from crossgaze.models.encoded import Attention, Encoded
from crossgaze.models.ensemble import Ensemble
from crossgaze.models.matcher import Matcher
from crossgaze.models.pieces import join_pieces, mean_of_pieces, sum_of_pieces
from crossgaze.models.pretrained import load
from crossgaze.models.reading import read_words
from crossgaze.models.regions import FragmentMatcher
from crossgaze.vision.photos import read_photo
from crossgaze.vision.sources.base import RegionSource

Floats = npt.NDArray[np.float32]

# What a model's weights are, by its family, and by the direction where it has one.
MEANINGS = {
    "t-i": "each word looks at the regions; its weights sum to 1",
    "i-t": "each region looks at the words; a region's weights over the words sum to 1",
    "bfan": "only what a fragment looks at more than at the rest keeps a weight: words at regions "
    "(t-i), regions at words (i-t)",
    "sum-max t-i": "the one region that each word takes",
    "sum-max i-t": "the one word that each region takes",
    "mmca": "the share of a word's attention that goes to each region; the rest goes to words",
    "m-dan": "image and sentence are read each by itself, step by step; brightness and darkness "
    "are what a step looked at",
    "vsrn": "regions by how well they agree with the whole image, lambda (k - rank)^2; the "
    "sentence plays no part",
}
NO_MAP = {
    "vse++": "there is no attention in vse++: every region counts the same, and no word is related "
    "to one",
    "vse++ whole": "there is no attention in vse++: half of what it reads is the whole image, half "
    "the mean of all regions, and no word is related to one",
    "mmca": "there is no attention between words and regions in this mmca: its sides never meet",
}


def explain(
    model: Matcher | Ensemble | str | Path,
    image: str | os.PathLike[str],
    sentence: str,
    *,
    source: RegionSource | None = None,
    fit: str = "stretch",
    store: RegionStore | str | Path | None = None,
    name: str | None = None,
    notes: tuple[str, ...] = (),
) -> Explanation:
    """Return where a model looked when it compared a photograph with a sentence.

    Args:
        model: one that matches, its folder, or its name in the zoo; of several in one
            (`crossgaze.models.ensemble`) each is explained by itself, see `load_matchers`.
        image: the photograph's file.
        sentence: in words.
        source: makes the regions; if not given, what the model was trained with.
        fit: how the photograph is brought to the source's size, where a source is given.
        store: takes the regions from here instead, by the photograph's name.
        name: what the model is to be called; its folder's name if not given.
        notes: what else the user should be told.

    Example:
        ```python
        seen = crossgaze.explain.explain("my-scan", "dog.jpg", "a dog runs in the snow")
        seen.words, seen.boxes.shape, seen.weights.shape  # n words, (k, 4), (maps, n, k)
        ```
    """
    called, model = load_matcher(model)
    pieces, strange = read_words(model, "sentence", sentence)
    words, starts = join_pieces(pieces)
    unknown = tuple(filter(is_word, strange))  # a full stop that is not known matters to nobody
    photo = read_photo(image)
    if store is not None:
        found = stored_regions(store, image)
    else:
        found = make_regions(model, image, source, fit)
    if found.features.shape[1] != model.config.region_width:
        raise InputError(
            f"regions: have width {found.features.shape[1]}, the model takes "
            f"{model.config.region_width}; give the regions that it was trained with "
            "(--regions, --store)"
        )
    with torch.inference_mode():
        images = model.encode_images(found.features[None])
        texts = model.encode_texts([sentence])
        score = float(model.similarity(images, texts)[0, 0])
        seen = model.attention(images, texts)
        relevances = _relevances(model, images, texts, seen)
    word_weights = _array(seen.words)
    notes = (*notes, *found.notes)
    if unknown:
        notes += (f"words that the model does not know: {', '.join(unknown)}",)
    return Explanation(
        sentence=sentence,
        model=name or called,
        family=model.family,
        score=score,
        photo=photo,
        words=words,
        boxes=found.boxes,
        labels=found.labels,
        names=seen.names,
        weights=_of_words(seen, starts),
        region_weights=_array(seen.regions),
        word_weights=None if word_weights is None else sum_of_pieces(word_weights, starts),
        relevances=None
        if relevances is None
        else mean_of_pieces(relevances[:, None], starts)[:, 0],
        meaning=_meaning(model, seen),
        unknown=unknown,
        notes=notes,
    )


def load_matcher(model: Matcher | Ensemble | str | Path) -> tuple[str, Matcher]:
    """Return what a model is called, and itself, loaded; several in one are refused."""
    first, *others = load_matchers(model)
    if others:
        inside = " and ".join(name for name, _ in (first, *others))
        raise InputError(
            "model: is several models in one, each of which looks for itself; explain them one by "
            f"one ({inside})"
        )
    return first


def load_matchers(model: Matcher | Ensemble | str | Path) -> tuple[tuple[str, Matcher], ...]:
    """Return a model's members, each with what it is called; a single model is its own.

    Example:
        ```python
        pairs = load_matchers("my-pair")  # an ensemble's folder, or an ensemble
        seen = [explain(one, "dog.jpg", "a dog", name=name) for name, one in pairs]
        save(together(seen), "why.html")
        ```
    """
    called = getattr(model, "family", "")
    if not isinstance(model, Matcher | Ensemble):
        path = Path(model)
        # A run's snapshot is called "best", which says nothing.
        called = f"{path.parent.name}/{path.name}" if path.name == "best" else path.name
        model = load(model)
    if isinstance(model, Ensemble):
        return tuple((f"{called}/{n}", one.eval()) for n, one in enumerate(model.matchers))
    if not isinstance(model, Matcher):
        kind = getattr(model, "family", type(model).__name__)
        raise InputError(
            f"{called or 'model'}: is a {kind}, which compares no sentence with a photograph; "
            "crossgaze ask draws what one that answers looked at"
        )
    return ((called, model.eval()),)


def together(seen: Sequence[Explanation]) -> tuple[Explanation, ...]:
    """Return what an ensemble's members saw, each with a note of the score that they give together.

    Args:
        seen: one explanation a member, of the same photograph and sentence.
    """
    if len(seen) < 2:
        return tuple(seen)
    score = sum(one.score for one in seen) / len(seen)
    note = f"one of {len(seen)} models that score together: {score:.3f}, the mean of theirs"
    return tuple(replace(one, notes=(note, *one.notes)) for one in seen)


def _array(part: torch.Tensor | None) -> Floats | None:
    return None if part is None else part[0].float().numpy(force=True)


def _relevances(model: Matcher, images: Encoded, texts: Encoded, seen: Attention) -> Floats | None:
    """Return R(e_j, a_j) of each word piece (SCAN, eq. 4), where words look at regions."""
    if not isinstance(model, FragmentMatcher) or "t-i" not in seen.names or seen.weights is None:
        return None
    weights = seen.weights[:, seen.names.index("t-i")]  # (1, n, k)
    (regions, _), (words, _) = map(clean_fragments, (images, texts))
    return _array(relevance(regions, words, weights))


def _of_words(seen: Attention, starts: tuple[int, ...]) -> Floats | None:
    """Return the maps of words and regions, (maps, words, k), of those of word pieces."""
    weights = _array(seen.weights)
    if weights is None:
        return None
    # Of regions that look at words a word gets all that its pieces got.
    rows = [
        sum_of_pieces(one, starts, axis=0) if name == "i-t" else mean_of_pieces(one, starts)
        for name, one in zip(seen.names, weights, strict=True)
    ]
    return np.stack(rows)


def _meaning(model: Matcher, seen: Attention) -> str:
    """Return in one line what a model's weights are."""
    if not seen.names:
        whole = " whole" if getattr(model.config, "whole", False) else ""
        return NO_MAP.get(model.family + whole, f"there is no attention in {model.family}")
    for key in (f"{model.family} {seen.names[0]}", model.family, seen.names[0]):
        if key in MEANINGS:
            return MEANINGS[key]
    return f"what {model.family} gave: {', '.join(seen.names)}"
